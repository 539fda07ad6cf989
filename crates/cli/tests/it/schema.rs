//! `windlass schema` prints the schemas that are committed to the repository.

use crate::support::{root, windlass};

#[test]
fn it_prints_the_committed_schemas() {
    for name in ["swdl", "speckit", "dagnats", "dcc", "schedules", "cases", "mock", "config"] {
        let seen = windlass(&["schema", name]).see();
        let copy =
            std::fs::read_to_string(root().join(format!("schemas/{name}.schema.json"))).expect("a copy");
        assert_eq!((seen.status, seen.stderr.as_str()), (0, ""), "{name}");
        assert!(seen.stdout == copy, "{name}: UPDATE_SCHEMAS=1 rewrites the copies");
    }
}

#[test]
fn a_strict_schema_lists_all_keys() {
    let strict = windlass(&["schema", "swdl", "--strict"]).see().json();
    assert_eq!(strict["$defs"]["file"]["additionalProperties"], false);
    assert_eq!(strict["$defs"]["stage"]["additionalProperties"], false);
    let open = windlass(&["schema", "swdl"]).see().json();
    assert_eq!(open["$defs"]["stage"].get("additionalProperties"), None);
}
