//! `windlass convert`: where it writes the new file, and what it refuses.

use crate::support::{folder, windlass, windlass_in};

const FILE: &str = "\
# Says hello.
workflow: {id: hello, name: Hello}
config: {parameters: {whom: {type: string, default: you}}}
stages:
  - {id: greet, type: shell, run: \"echo hello ${{ parameters.whom }}\", colour: red}
";

#[test]
fn the_result_goes_to_standard_output_or_a_file() {
    let folder =
        folder("convert", &[("hello.yaml", FILE), ("bad.yaml", "workflow: {id: Bad}\nstages: []\n")]);
    let see = |args: &[&str]| windlass_in(&folder, &[&["convert"], args].concat()).see();
    insta::assert_snapshot!("convert_screen", see(&["hello.yaml", "--to", "swdl"]));
    insta::assert_snapshot!("convert_refused", see(&["bad.yaml", "--to", "swdl"]));

    let written = see(&["hello.yaml", "--to", "swdl", "-o", "out.yaml"]);
    assert_eq!((written.status, written.stdout.as_str()), (0, ""), "{written}");
    let text = std::fs::read_to_string(folder.join("out.yaml")).expect("it was written");
    assert_eq!(text, see(&["hello.yaml"]).stdout);

    insta::assert_snapshot!("convert_exists", see(&["hello.yaml", "-o", "hello.yaml"]));
    assert_eq!(
        std::fs::read_to_string(folder.join("hello.yaml")).expect("a file"),
        FILE,
        "it was left alone"
    );
    let forced = see(&["hello.yaml", "--from", "swdl", "-o", "hello.yaml", "--force"]);
    assert_eq!(forced.status, 0, "{forced}");
    assert_eq!(std::fs::read_to_string(folder.join("hello.yaml")).expect("a file"), text);
    let names: Vec<_> =
        std::fs::read_dir(&folder).expect("a folder").map(|e| e.expect("an entry").file_name()).collect();
    assert_eq!(names.len(), 3, "nothing is left behind: {names:?}");
}

#[test]
fn the_syntax_changes_and_the_dialect_stays() {
    let folder = folder("convert_syntax", &[("hello.yaml", FILE), ("overrides.yaml", "overrides: {}\n")]);
    let see = |args: &[&str]| windlass_in(&folder, &[&["convert"], args].concat()).see();
    insta::assert_snapshot!("convert_json", see(&["hello.yaml", "--to", "json"]));
    let written = see(&["hello.yaml", "--to", "json", "-o", "hello.json"]);
    assert!(written.status == 0 && written.stderr.contains("comments of the original file"), "{written}");
    insta::assert_snapshot!("convert_yaml", see(&["hello.json", "--to", "yaml"]));
    insta::assert_snapshot!(
        "convert_overrides",
        see(&["hello.yaml", "--to", "json", "--overrides", "overrides.yaml"])
    );
}

#[test]
fn bad_usage_is_refused() {
    let check = |args: &[&str], part: &str| {
        let seen = windlass(&[&["convert"], args].concat()).see();
        assert_eq!((seen.status, seen.stdout.as_str()), (2, ""), "{seen}");
        assert!(seen.stderr.contains(part), "{seen}");
    };
    check(&["missing.yaml"], "error[unreadable]");
    check(&["x.yaml", "--to", "speckit"], "[possible values: swdl, json, yaml]");
    check(&["x.yaml", "--force"], "--output");
    let folder = folder("convert_nowhere", &[("hello.yaml", FILE)]);
    let seen = windlass_in(&folder, &["convert", "hello.yaml", "-o", "none/out.yaml"]).see();
    assert_eq!(seen.status, 2, "{seen}");
    assert!(seen.stderr.contains("cannot write none/out.yaml"), "{seen}");
}
