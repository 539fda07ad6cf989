//! Any text goes through the formatter. The first byte chooses format and dialect; nothing may panic, and what comes out
//! must say the same as what went in and be canonical already.
#![no_main]

use libfuzzer_sys::fuzz_target;
use windlass_dialects::FileKind;
use windlass_dialects::fmt::format;
use windlass_dialects::text::{Format, Limits, read};
use windlass_ir::{Source, SourceId, Value};

fuzz_target!(|data: &[u8]| {
    let Some((choice, bytes)) = data.split_first() else { return };
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let kind = if choice % 2 == 0 { Format::Yaml } else { Format::Json };
    let dialect = FileKind::ALL.get(usize::from(choice / 2) % (FileKind::ALL.len() + 1)).copied();
    match format(text, kind, dialect) {
        Ok(once) => {
            assert_eq!(value(&once, kind), value(text, kind), "the same tree, keys in any order");
            assert_eq!(format(&once, kind, dialect).as_deref(), Ok(once.as_str()), "a second time");
        }
        Err(found) => assert!(found.iter().any(|finding| finding.is_error() && !finding.help.is_empty())),
    }
});

/// The value with sorted keys. As text, because NaN is not equal to itself.
fn value(text: &str, kind: Format) -> String {
    let read = read(&Source::new("fuzz", text), SourceId(0), kind, &Limits::default());
    // A file of comments alone is one too.
    read.root.map_or_else(String::new, |root| show(&root.to_value()))
}

fn show(value: &Value) -> String {
    match value {
        Value::List(items) => format!("[{}]", items.iter().map(show).collect::<Vec<_>>().join(",")),
        Value::Map(map) => {
            let mut entries: Vec<String> =
                map.iter().map(|(key, value)| format!("{key:?}:{}", show(value))).collect();
            entries.sort_unstable();
            format!("{{{}}}", entries.join(","))
        }
        other => format!("{other:?}"),
    }
}
