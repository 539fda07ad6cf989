//! `windlass fmt`: files that change, files that would change, and files that stay unchanged.

use crate::support::{folder, windlass_in};
use serde_json::json;

const UNTIDY: &str = "stages:\n- {type: shell, id: 'a', run: x} # work\nworkflow: {name: \"U\", id: u}\n";
const TIDY: &str = "workflow: { id: u, name: U }\nstages:\n  - { id: a, type: shell, run: x }  # work\n";
const BROKEN: &str = "workflow: {id: u\n";

#[test]
fn files_are_written_once() {
    let folder = folder("fmt_write", &[("a.yaml", UNTIDY), ("b.yaml", TIDY), ("bad.yaml", BROKEN)]);
    let call = |args: &[&str]| windlass_in(&folder, &[&["fmt"], args].concat()).see();
    let text = |name: &str| std::fs::read_to_string(folder.join(name)).expect("a file");
    insta::assert_snapshot!("fmt_check", call(&["--check", "a.yaml", "b.yaml"]));
    assert_eq!(text("a.yaml"), UNTIDY, "a check changes nothing");
    insta::assert_snapshot!("fmt_write", call(&["a.yaml", "b.yaml", "bad.yaml", "missing.yaml"]));
    assert_eq!((text("a.yaml"), text("b.yaml"), text("bad.yaml")), (TIDY.into(), TIDY.into(), BROKEN.into()));
    assert_eq!(call(&["--check", "a.yaml", "b.yaml"]).status, 0);
    let mut names: Vec<_> = std::fs::read_dir(&folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["a.yaml", "b.yaml", "bad.yaml"], "nothing is left behind");
}

#[test]
fn json_output_follows_the_contract() {
    let folder =
        folder("fmt_json", &[("a.yaml", UNTIDY), ("flow/WORKFLOW.yaml", TIDY), ("bad.yaml", BROKEN)]);
    let call = |args: &[&str]| windlass_in(&folder, &[&["fmt", "--json"], args].concat()).see();
    let short = |entry: &serde_json::Value| json!([entry["file"], entry["changed"]]);
    let checked = call(&["--check", "a.yaml", "flow"]);
    let list = checked.json();
    let list: Vec<_> = list.as_array().expect("a list").iter().map(short).collect();
    assert_eq!((checked.status, json!(list)), (1, json!([["a.yaml", true], ["flow/WORKFLOW.yaml", false]])));
    let refused = call(&["bad.yaml"]).json();
    assert_eq!(refused["error"]["diagnostics"][0]["code"], "syntax");
    let several = call(&["bad.yaml", "flow"]);
    assert_eq!((several.status, &several.json()[0]["type"]), (2, &json!("refused")));
    let changed = call(&["a.yaml"]).json();
    assert_eq!((short(&changed), &changed["source"]), (json!(["a.yaml", true]), &json!(TIDY)));
    assert_eq!(changed["changes"].as_array().map(Vec::len), Some(1));
    let unchanged = call(&["a.yaml"]).json();
    assert_eq!((short(&unchanged), &unchanged["changes"]), (json!(["a.yaml", false]), &json!([])));
}

#[test]
fn standard_input_goes_to_standard_output() {
    let folder = folder("fmt_stdin", &[]);
    let check = |args: &[&str], stdin: &str, status: i32, stdout: &str| {
        let seen = windlass_in(&folder, &[&["fmt"], args].concat()).stdin(stdin).see();
        assert_eq!((seen.status, seen.stdout.as_str()), (status, stdout), "{seen}");
    };
    check(&["-"], UNTIDY, 0, TIDY);
    check(&["-"], TIDY, 0, TIDY);
    check(&["-"], "{\"b\":[1,2]}", 0, "{\n  \"b\": [1, 2]\n}\n");
    check(&["-"], BROKEN, 2, "");
    check(&["-", "--check"], UNTIDY, 1, "-: not formatted\n");
    check(&["-", "--check"], TIDY, 0, "");
    check(&["-", "a.yaml"], TIDY, 2, "");
    let json = windlass_in(&folder, &["fmt", "-", "--json"]).stdin(UNTIDY).see().json();
    assert_eq!((&json["file"], &json["source"]), (&json!("-"), &json!(TIDY)));
}

#[cfg(unix)]
#[test]
fn links_and_permissions_stay() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = folder("fmt_links", &[("deep/real.yaml", UNTIDY), ("fixed.yaml", UNTIDY)]);
    let mode =
        |name: &str| std::fs::metadata(folder.join(name)).expect("a file").permissions().mode() & 0o777;
    let set = |name: &str, mode: u32| {
        let permissions = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(folder.join(name), permissions).expect("a writable file");
    };
    symlink("deep/real.yaml", folder.join("link.yaml")).expect("a writable folder");
    set("deep/real.yaml", 0o640);
    set("fixed.yaml", 0o444);
    assert_eq!(windlass_in(&folder, &["fmt", "link.yaml"]).see().status, 0);
    assert!(folder.join("link.yaml").is_symlink());
    assert_eq!(std::fs::read_to_string(folder.join("deep/real.yaml")).expect("a file"), TIDY);
    assert_eq!(mode("deep/real.yaml"), 0o640);
    let seen = windlass_in(&folder, &["fmt", "fixed.yaml"]).see();
    assert_eq!(seen.status, 2, "{seen}");
    assert_eq!(std::fs::read_to_string(folder.join("fixed.yaml")).expect("a file"), UNTIDY);
}
