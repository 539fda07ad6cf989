//! Splits text into words as Python's `shlex.split` does, for variables that contain arguments.

/// The words, or the error: an unterminated quote or a trailing backslash.
pub fn split(text: &str) -> Result<Vec<String>, &'static str> {
    let (mut words, mut word) = (Vec::new(), None::<String>);
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            ' ' | '\t' | '\r' | '\n' => words.extend(word.take()),
            '\\' => {
                let next = characters.next().ok_or("it ends with a backslash")?;
                word.get_or_insert_default().push(next);
            }
            '\'' | '"' => quoted(character, &mut characters, word.get_or_insert_default())?,
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    Ok(words)
}

fn quoted(quote: char, characters: &mut std::str::Chars<'_>, word: &mut String) -> Result<(), &'static str> {
    let open = "a quote is not closed";
    loop {
        match characters.next().ok_or(open)? {
            end if end == quote => return Ok(()),
            '\\' if quote == '"' => match characters.next().ok_or(open)? {
                escaped @ ('"' | '\\') => word.push(escaped),
                other => word.extend(['\\', other]),
            },
            other => word.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_match_python() {
        let check = |text: &str, expected: &[&str]| {
            assert_eq!(split(text).as_deref(), Ok(expected.map_to_strings().as_slice()), "{text}");
        };
        check("", &[]);
        check("  --yes  -v\t", &["--yes", "-v"]);
        check("--allow-tool 'shell(echo)'", &["--allow-tool", "shell(echo)"]);
        check(r#"--flag "two words" a"b c"d"#, &["--flag", "two words", "ab cd"]);
        check(r#""a\"b\\c\d" 'a\b'"#, &[r#"a"b\c\d"#, r"a\b"]);
        check(r"a\ b \'", &["a b", "'"]);
        check("'' \"\"", &["", ""]);
        check("--color #fff", &["--color", "#fff"]);
    }

    #[test]
    fn unterminated_text_is_an_error() {
        for text in ["'a", "\"a", "a \"b\\", "\"\\"] {
            assert_eq!(split(text), Err("a quote is not closed"), "{text}");
        }
        assert_eq!(split("a\\"), Err("it ends with a backslash"));
    }

    trait ToStrings {
        fn map_to_strings(&self) -> Vec<String>;
    }

    impl ToStrings for [&str] {
        fn map_to_strings(&self) -> Vec<String> {
            self.iter().map(ToString::to_string).collect()
        }
    }
}
