//! Reading JSON that nests deeper than a library dares: counted before it is parsed, and parsed where there is room.

use serde::de::DeserializeOwned;

/// The deepest nesting that is written or read. A plan nests a few levels for each level of its expressions.
pub(crate) const NESTING_MAX: usize = 2_000;

/// Up to here any thread has room, and so does serde_json's own limit.
const NESTING_SHALLOW: usize = 100;

/// Room for one level: several times what the hungriest reader of ours takes in a build without optimisation.
const LEVEL_BYTES: usize = 32 << 10;

/// How deep it nests, or more than that where it is shallow anyway; an error where it is too deep.
pub(crate) fn check(json: &[u8]) -> Result<usize, String> {
    // Nearly all records have fewer brackets than any reader minds, and counting them is nothing.
    let brackets = json.iter().filter(|byte| matches!(byte, b'[' | b'{')).count();
    let nesting = if brackets <= NESTING_SHALLOW { brackets } else { nesting(json) };
    if nesting <= NESTING_MAX {
        Ok(nesting)
    } else {
        Err(format!("it nests {nesting} levels, more than {NESTING_MAX}"))
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
            .map_err(|error| format!("no thread to read it: {error}"))?
            .join()
            .unwrap_or_else(|_| Err("its reader failed".into()))
    })
}

fn parse<T: DeserializeOwned>(json: &[u8]) -> Result<T, String> {
    let mut reader = serde_json::Deserializer::from_slice(json);
    reader.disable_recursion_limit();
    let value = T::deserialize(&mut reader).map_err(|error| error.to_string())?;
    reader.end().map_err(|error| error.to_string())?;
    Ok(value)
}

/// The most brackets that are open at once. Text that is not JSON gives a number too; the parser says what is wrong.
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
    fn nesting_is_counted_outside_of_texts() {
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

    /// The threads of a test have 2 MiB: what is read must also fit there when it is written and dropped.
    #[test]
    fn deep_events_are_read_up_to_the_bound() {
        for levels in [1, 97, 98, 99, 127, 128, 129, 1_000, NESTING_MAX - 2] {
            let json = noted(levels);
            let events: Vec<Event> =
                from_slice(json.as_bytes()).unwrap_or_else(|cause| panic!("{levels}: {cause}"));
            assert_eq!(serde_json::to_string(&events).expect("JSON"), json, "{levels}");
        }
        for levels in [NESTING_MAX - 1, 1_000_000] {
            let cause = from_slice::<Vec<Event>>(noted(levels).as_bytes()).expect_err("too deep");
            assert_eq!(cause, format!("it nests {} levels, more than 2000", levels + 2));
        }
    }

    #[test]
    fn deep_nonsense_is_an_error() {
        for json in
            ["[".repeat(NESTING_MAX), format!("{}{}x", "[".repeat(200), "]".repeat(200)), String::new()]
        {
            assert!(from_slice::<serde_json::Value>(json.as_bytes()).is_err(), "{json}");
        }
    }
}
