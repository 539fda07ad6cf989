//! Shared helpers: reading fixtures and loading them.

use std::path::{Path, PathBuf};
use windlass_dialects::{Dialect, Loaded, Options, Text, load};

pub fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name)
}

pub fn read(path: &Path) -> Text {
    let name = path.file_name().expect("a file").to_string_lossy().into_owned();
    let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    Text { name, bytes }
}

pub fn load_text(text: &str) -> Loaded {
    load(Text { name: "test.yaml".into(), bytes: text.as_bytes().to_vec() }, Options::default())
}

pub fn load_as(dialect: Dialect, text: &str) -> Loaded {
    let file = Text { name: "test.yaml".into(), bytes: text.as_bytes().to_vec() };
    load(file, Options { dialect: Some(dialect), ..Options::default() })
}
