//! Any bytes as a file of any dialect: what is valid can be written in the native dialect, means the same there, and is written
//! the same a second time. The first byte chooses the dialect, the second the format.
#![no_main]

use libfuzzer_sys::fuzz_target;
use windlass_dialects::convert::{difference, to_swdl};
use windlass_dialects::{Dialect, Options, Text, load};
use windlass_ir::Code;

fn options(dialect: Dialect) -> Options {
    Options { dialect: Some(dialect), ..Options::default() }
}

fn swdl(text: &str) -> Text {
    Text { name: "WORKFLOW.yaml".into(), bytes: text.as_bytes().to_vec() }
}

fuzz_target!(|data: &[u8]| {
    let [dialect, format, bytes @ ..] = data else { return };
    let dialect = Dialect::ALL[usize::from(*dialect) % Dialect::ALL.len()];
    let name = if format % 2 == 0 { "fuzz.yaml" } else { "fuzz.json" };
    let file = Text { name: name.into(), bytes: bytes.to_vec() };
    let converted = match to_swdl(file, options(dialect)) {
        Ok(converted) => converted,
        // Only what is nested or long beyond what a file may hold has an excuse.
        Err(loaded) => {
            let lost = loaded.diagnostics.iter().find(|finding| finding.code == Code::NotConvertible);
            let excused = |message: &str| {
                ["too_deep", "too_large", "expression_limit"].iter().any(|code| message.contains(code))
            };
            assert!(lost.is_none_or(|finding| excused(&finding.message)), "{lost:?}");
            return;
        }
    };
    let back = load(swdl(&converted.text), options(Dialect::Swdl));
    assert!(back.is_valid(), "{:?}\n{}", back.diagnostics, converted.text);
    assert_eq!(difference(&converted.loaded, &back), None, "{}", converted.text);
    let again = to_swdl(swdl(&converted.text), options(Dialect::Swdl)).expect("it was valid before");
    assert_eq!(again.text, converted.text);
});
