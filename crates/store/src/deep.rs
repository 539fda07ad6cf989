//! Parses JSON that is nested deeper than libraries allow: the depth is counted first, and parsing uses a large
//! enough stack.

use serde::de::DeserializeOwned;

/// The maximum nesting that is written or read. A plan nests a few levels for each level of its expressions.
pub(crate) const NESTING_MAX: usize = 2_000;

/// Up to this depth any thread has enough stack, and serde_json's own limit suffices.
const NESTING_SHALLOW: usize = 100;

/// Stack space for one level: several times the need of our largest parser in a build without optimization.
const LEVEL_BYTES: usize = 32 << 10;

/// The nesting depth, or an upper bound if it is shallow; an error if it is too deep.
pub(crate) fn check(json: &[u8]) -> Result<usize, String> {
    // Nearly all records have fewer brackets than the limit, and counting them costs almost nothing.
    let brackets = json.iter().filter(|byte| matches!(byte, b'[' | b'{')).count();
    let nesting = if brackets <= NESTING_SHALLOW { brackets } else { nesting(json) };
    if nesting <= NESTING_MAX {
        Ok(nesting)
    } else {
        Err(format!("it is nested {nesting} levels deep, more than {NESTING_MAX}"))
    }
}

pub(crate) fn from_slice<T: DeserializeOwned + Send>(json: &[u8]) -> Result<T, String> {
    let nesting = check(json)?;
    if nesting <= NESTING_SHALLOW {
        return serde_json::from_slice(json).map_err(|error| error.to_string());
    }
    std::thread::scope(|scope| {
        std::thread::Builder::new()
            .stack_size((nesting + NESTING_SHALLOW) * LEVEL_BYTES)
            .spawn_scoped(scope, || parse(json))
            .map_err(|error| format!("cannot start a thread to read it: {error}"))?
            .join()
            .unwrap_or_else(|_| Err("the reader failed".into()))
    })
}

fn parse<T: DeserializeOwned>(json: &[u8]) -> Result<T, String> {
    let mut reader = serde_json::Deserializer::from_slice(json);
    reader.disable_recursion_limit();
    let value = T::deserialize(&mut reader).map_err(|error| error.to_string())?;
    reader.end().map_err(|error| error.to_string())?;
    Ok(value)
}

/// The maximum number of brackets open at once. Invalid JSON yields a number as well; the parser reports the error.
fn nesting(json: &[u8]) -> usize {
    let (mut open, mut most, mut bytes) = (0usize, 0, json.iter());
    while let Some(byte) = bytes.next() {
        match byte {
            b'[' | b'{' => {
                open += 1;
                most = most.max(open);
            }
            b']' | b'}' => open = open.saturating_sub(1),
            b'"' => skip_text(&mut bytes),
            _ => {}
        }
    }
    most
}

fn skip_text(bytes: &mut std::slice::Iter<'_, u8>) {
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => return,
            b'\\' => drop(bytes.next()),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_engine::Event;

    #[test]
    fn nesting_is_counted_outside_of_strings() {
        let check = |json: &str, expected: usize| assert_eq!(nesting(json.as_bytes()), expected, "{json}");
        check("1", 0);
        check("[]", 1);
        check(r#"[{"a":[]},[]]"#, 3);
        check(r#"["[[[", "\"[", "\\"]"#, 1);
        check("]]][[", 2);
        check(r#"["never closed [[["#, 1);
    }

    fn noted(levels: usize) -> String {
        let value = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        format!(r#"[{{"at":1,"event":"noted","path":["a"],"key":"k","value":{value}}}]"#)
    }

    /// Test threads have 2 MiB of stack: values must also fit there when they are serialized and dropped.
    #[test]
    fn deep_events_are_read_up_to_the_limit() {
        for levels in [1, 97, 98, 99, 127, 128, 129, 1_000, NESTING_MAX - 2] {
            let json = noted(levels);
            let events: Vec<Event> =
                from_slice(json.as_bytes()).unwrap_or_else(|cause| panic!("{levels}: {cause}"));
            assert_eq!(serde_json::to_string(&events).expect("JSON"), json, "{levels}");
        }
        for levels in [NESTING_MAX - 1, 1_000_000] {
            let cause = from_slice::<Vec<Event>>(noted(levels).as_bytes()).expect_err("too deep");
            assert_eq!(cause, format!("it is nested {} levels deep, more than 2000", levels + 2));
        }
    }

    #[test]
    fn deeply_nested_garbage_is_an_error() {
        for json in
            ["[".repeat(NESTING_MAX), format!("{}{}x", "[".repeat(200), "]".repeat(200)), String::new()]
        {
            assert!(from_slice::<serde_json::Value>(json.as_bytes()).is_err(), "{json}");
        }
    }
}
