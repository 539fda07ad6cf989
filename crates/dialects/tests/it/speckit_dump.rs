//! Workflows as Spec Kit stores them. The expected files were written by PyYAML 6 from the data of `input.yml`.

use windlass_dialects::speckit::Definition;

#[test]
fn data_is_written_as_pyyaml_writes_it() {
    let definition = Definition::read(include_str!("dump/input.yml"), "").expect("a mapping");
    similar(&definition.yaml(), include_str!("dump/unicode.yml"));
    similar(&definition.ascii(), include_str!("dump/ascii.yml"));
}

/// Compares line by line, so that a difference is shown where it is.
fn similar(ours: &str, theirs: &str) {
    let differs =
        ours.split('\n').zip(theirs.split('\n')).enumerate().find(|(_, (ours, theirs))| ours != theirs);
    assert_eq!(differs, None);
    assert_eq!(ours.len(), theirs.len());
}
