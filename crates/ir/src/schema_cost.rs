//! Counts the evaluations needed to check a value against a JSON Schema, so that excessive schemas and values are
//! refused before anything is evaluated.
//!
//! Without references, the count is at most the size of the schema times the size of the value. With them, a schema
//! of a few lines can refer to itself twice at each level, which doubles the work per level. The count includes every
//! branch, so it is an upper bound.

use serde_json::{Map, Value as Json};
use std::collections::{BTreeMap, BTreeSet};

/// The maximum number of subschema evaluations per value, which take about a tenth of a second.
pub const EVALUATIONS_MAX: u64 = 10_000_000;

/// The maximum number of subschemas applied inside each other, to the same part of a value and on the way to its
/// innermost part. Each uses stack space.
const NESTED_MAX: usize = 200;
const NESTED_IN_ALL_MAX: usize = 4_000;

/// A schema with resolved references. Node 0 is the schema itself.
#[derive(Debug)]
pub struct Cost(Vec<Node>);

/// A subschema and the numbers of the subschemas that it applies.
#[derive(Debug, Default)]
struct Node {
    /// To the same value.
    same: Vec<usize>,
    /// To one member of an object, to each member, and to the members that are not named.
    named: BTreeMap<String, usize>,
    each_member: Vec<usize>,
    other_members: Vec<usize>,
    /// To one item of a list, and to each.
    positioned: Vec<usize>,
    each_item: Vec<usize>,
    /// Whether it asks again, for each part of the value, which subschemas were applied to it.
    asks_again: bool,
    /// The number of evaluations for a value without parts.
    alone: u64,
}

impl Cost {
    /// `None` for a schema without references. An error says what is wrong with them.
    pub fn of(schema: &Json) -> Result<Option<Self>, String> {
        let mut reader = Reader { root: schema, resources: Vec::new(), anchors: Vec::new(), refers: false };
        reader.note(schema, 0)?;
        if !reader.refers {
            return Ok(None);
        }
        let mut cost = Self(reader.nodes());
        let mut seen = vec![Seen::No; cost.0.len()];
        for node in 0..cost.0.len() {
            cost.weigh(node, 0, &mut seen)?;
        }
        Ok(Some(cost))
    }

    /// Computes the cost of a node alone and checks that it does not apply itself to the same value.
    fn weigh(&mut self, node: usize, depth: usize, seen: &mut [Seen]) -> Result<u64, String> {
        match seen[node] {
            Seen::Yes => return Ok(self.0[node].alone),
            Seen::Open => return Err("a `$ref` refers to itself for the same value".into()),
            Seen::No if depth == NESTED_MAX => {
                return Err(format!("more than {NESTED_MAX} references in a row apply to the same value"));
            }
            Seen::No => seen[node] = Seen::Open,
        }
        let mut sum: u64 = 1;
        for below in self.0[node].same.clone() {
            sum = sum.saturating_add(self.weigh(below, depth + 1, seen)?);
        }
        let alone = if self.0[node].asks_again { sum.saturating_mul(2) } else { sum };
        if alone > EVALUATIONS_MAX {
            return Err(format!(
                "its references multiply: checking one value takes more than {EVALUATIONS_MAX} evaluations; \
                    refer to each definition only once"
            ));
        }
        (self.0[node].alone, seen[node]) = (alone, Seen::Yes);
        Ok(alone)
    }

    /// Whether a value can be checked within the limit.
    pub fn allows(&self, value: &Json) -> bool {
        let mut known = BTreeMap::new();
        self.count(0, value, 0, &mut known) <= EVALUATIONS_MAX
    }

    fn count(
        &self,
        number: usize,
        value: &Json,
        depth: usize,
        known: &mut BTreeMap<(usize, *const Json), u64>,
    ) -> u64 {
        let node = &self.0[number];
        let parts = match value {
            Json::Array(items) => items.len(),
            Json::Object(map) => map.len(),
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => return node.alone,
        };
        if depth == NESTED_IN_ALL_MAX {
            return u64::MAX;
        }
        let key = (number, std::ptr::from_ref(value));
        if let Some(count) = known.get(&key) {
            return *count;
        }
        let mut sum: u64 = 1;
        let mut add = |below: usize, value: &Json| {
            if sum <= EVALUATIONS_MAX {
                sum = sum.saturating_add(self.count(below, value, depth + 1, known));
            }
        };
        node.same.iter().for_each(|below| add(*below, value));
        match value {
            Json::Array(items) => {
                for (position, item) in items.iter().enumerate() {
                    let own = node.positioned.get(position);
                    own.into_iter().chain(&node.each_item).for_each(|below| add(*below, item));
                }
            }
            Json::Object(map) => {
                for (name, member) in map {
                    let named = node.named.get(name);
                    let others = node.other_members.iter().filter(|_| named.is_none());
                    named
                        .into_iter()
                        .chain(others)
                        .chain(&node.each_member)
                        .for_each(|below| add(*below, member));
                }
            }
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => {}
        }
        if node.asks_again {
            sum = sum.saturating_mul(parts as u64 + 1);
        }
        known.insert(key, sum);
        sum
    }
}

#[derive(Clone, Copy)]
enum Seen {
    No,
    /// The nodes it applies are being visited.
    Open,
    Yes,
}

/// Finds the subschemas of a schema and resolves its references.
struct Reader<'s> {
    root: &'s Json,
    /// Subschemas with an `$id`: a pointer may be relative to any of them.
    resources: Vec<(&'s str, &'s Json)>,
    anchors: Vec<(&'s str, &'s Json)>,
    refers: bool,
}

const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// The readers of files limit the nesting of schemas to this depth.
const DEPTH_MAX: usize = 512;

impl<'s> Reader<'s> {
    /// Collects the possible targets of references, anywhere in the schema.
    fn note(&mut self, json: &'s Json, depth: usize) -> Result<(), String> {
        if depth == DEPTH_MAX {
            return Err(format!("the schema is nested more than {DEPTH_MAX} levels deep"));
        }
        match json {
            Json::Array(items) => items.iter().try_for_each(|item| self.note(item, depth + 1)),
            Json::Object(map) => {
                let text = |key: &str| map.get(key).and_then(Json::as_str);
                self.refers |= REFERENCES.iter().any(|key| map.contains_key(*key));
                self.resources.extend(text("$id").or_else(|| text("id")).map(|id| (id, json)));
                let anchors = ["$anchor", "$dynamicAnchor"].iter().filter_map(|key| text(key));
                self.anchors.extend(anchors.map(|anchor| (anchor, json)));
                map.values().try_for_each(|value| self.note(value, depth + 1))
            }
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => Ok(()),
        }
    }

    /// All possible targets of a reference. In a schema with several `$id`s a pointer may have several, and all are
    /// counted. Targets outside this schema, such as the metaschemas, are not counted.
    fn targets(&self, reference: &str) -> Vec<&'s Json> {
        let (resource, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let named = |id: &str| {
            let name = resource.rsplit('/').next().unwrap_or_default();
            id.trim_end_matches('#').rsplit('/').next() == Some(name)
        };
        let resources: Vec<&Json> = match resource {
            "" => std::iter::once(self.root).chain(self.resources.iter().map(|(_, json)| *json)).collect(),
            _ => self.resources.iter().filter(|(id, _)| named(id)).map(|(_, json)| *json).collect(),
        };
        match fragment {
            "" => resources,
            pointer if pointer.starts_with('/') => {
                let pointer = decoded(pointer);
                resources.into_iter().filter_map(|json| json.pointer(&pointer)).collect()
            }
            anchor => {
                let ids = self.resources.iter().filter(|(id, _)| id.strip_prefix('#') == Some(anchor));
                let anchors = self.anchors.iter().filter(|(name, _)| *name == anchor);
                anchors.chain(ids).map(|(_, json)| *json).collect()
            }
        }
    }

    /// Everything reachable from the schema.
    fn nodes(&self) -> Vec<Node> {
        let mut numbers = Numbers { known: BTreeMap::new(), found: Vec::new() };
        numbers.of(self.root);
        let mut nodes = Vec::new();
        while let Some(schema) = numbers.found.get(nodes.len()).copied() {
            nodes.push(schema.as_object().map_or_else(Node::default, |map| self.node(map, &mut numbers)));
        }
        nodes
    }

    fn node(&self, map: &'s Map<String, Json>, numbers: &mut Numbers<'s>) -> Node {
        let mut node = Node::default();
        for (key, value) in map {
            match key.as_str() {
                "$ref" | "$dynamicRef" | "$recursiveRef" => {
                    let targets = value.as_str().map(|reference| self.targets(reference));
                    let targets: BTreeSet<usize> =
                        targets.into_iter().flatten().map(|target| numbers.of(target)).collect();
                    node.same.extend(targets);
                }
                "not" | "if" | "then" | "else" => node.same.push(numbers.of(value)),
                "allOf" | "anyOf" | "oneOf" => node.same.extend(numbers.all(value)),
                "dependentSchemas" | "dependencies" => node.same.extend(numbers.members(value)),
                "properties" => {
                    let members = value.as_object().into_iter().flatten();
                    node.named.extend(members.map(|(name, schema)| (name.clone(), numbers.of(schema))));
                }
                "patternProperties" => node.each_member.extend(numbers.members(value)),
                "additionalProperties" => node.other_members.push(numbers.of(value)),
                "prefixItems" => node.positioned.extend(numbers.all(value)),
                "items" if value.is_array() => node.positioned.extend(numbers.all(value)),
                "items" | "additionalItems" | "contains" => node.each_item.push(numbers.of(value)),
                "unevaluatedProperties" => {
                    node.each_member.push(numbers.of(value));
                    node.asks_again = true;
                }
                "unevaluatedItems" => {
                    node.each_item.push(numbers.of(value));
                    node.asks_again = true;
                }
                _ => {}
            }
        }
        node
    }
}

/// The number of each subschema, by its address.
struct Numbers<'s> {
    known: BTreeMap<*const Json, usize>,
    found: Vec<&'s Json>,
}

impl<'s> Numbers<'s> {
    fn of(&mut self, schema: &'s Json) -> usize {
        *self.known.entry(std::ptr::from_ref(schema)).or_insert_with(|| {
            self.found.push(schema);
            self.found.len() - 1
        })
    }

    fn all(&mut self, list: &'s Json) -> Vec<usize> {
        list.as_array().into_iter().flatten().map(|schema| self.of(schema)).collect()
    }

    fn members(&mut self, map: &'s Json) -> Vec<usize> {
        map.as_object().into_iter().flatten().map(|(_, schema)| self.of(schema)).collect()
    }
}

/// A pointer in the fragment of a reference may be percent-encoded.
fn decoded(pointer: &str) -> String {
    let mut bytes = Vec::with_capacity(pointer.len());
    let mut rest = pointer.as_bytes();
    while let [first, after @ ..] = rest {
        let digits = after.get(..2).filter(|_| *first == b'%').and_then(|hex| std::str::from_utf8(hex).ok());
        match digits.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A chain of definitions, each of which applies `body` to the next.
    fn chain(length: usize, body: impl Fn(String) -> Json) -> Json {
        let mut definitions: Map<String, Json> =
            (0..length).map(|n| (format!("d{n}"), body(format!("#/$defs/d{}", n + 1)))).collect();
        definitions.insert(format!("d{length}"), json!({"type": "integer"}));
        json!({"$defs": definitions, "$ref": "#/$defs/d0"})
    }

    fn problem(schema: &Json) -> Option<String> {
        Cost::of(schema).err()
    }

    #[test]
    fn multiplying_references_are_refused() {
        let twice = |next: String| json!({"allOf": [{"$ref": next}, {"$ref": next}]});
        assert_eq!(problem(&chain(10, twice)), None);
        let expected = Some(
            "its references multiply: checking one value takes more than 10000000 evaluations; refer to each definition only once",
        );
        assert_eq!(problem(&chain(30, twice)).as_deref(), expected);
        assert_eq!(problem(&chain(60, twice)).as_deref(), expected);
        let again = |next: String| json!({"$ref": next, "unevaluatedProperties": false});
        assert_eq!(problem(&chain(60, again)).as_deref(), expected);
        let by_anchor = |next: String| {
            let number: usize = next[9..].parse().expect("a number");
            let next = format!("#a{number}");
            json!({"$anchor": format!("a{}", number - 1), "anyOf": [{"$ref": next}, {"$ref": next}]})
        };
        assert_eq!(problem(&chain(30, by_anchor)).as_deref(), expected);
    }

    #[test]
    fn infinite_references_are_refused() {
        let expected = Some("a `$ref` refers to itself for the same value");
        assert_eq!(problem(&json!({"$ref": "#"})).as_deref(), expected);
        assert_eq!(problem(&json!({"allOf": [{"not": {"$ref": "#"}}]})).as_deref(), expected);
        let single = |next: String| json!({"$ref": next});
        let expected = Some("more than 200 references in a row apply to the same value");
        assert_eq!(problem(&chain(10_000, single)).as_deref(), expected);
    }

    #[test]
    fn recursive_tree_schemas_are_accepted_at_any_depth() {
        let mut tree = json!({"properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}, "any": {"items": {"$ref": "#"}}}});
        let mut value = json!({"left": {}});
        for _ in 0..100 {
            value = json!({"left": value, "any": [1, 2]});
        }
        assert!(Cost::of(&tree).expect("good").expect("it refers").allows(&value));
        tree["$id"] = "https://example.org/tree".into();
        assert!(Cost::of(&tree).expect("good").expect("it refers").allows(&value));
        assert!(Cost::of(&json!({"properties": {"a": true}})).expect("good").is_none());
    }

    #[test]
    fn values_that_double_the_work_at_each_level_are_refused() {
        let twice =
            json!({"allOf": [{"properties": {"a": {"$ref": "#"}}}, {"properties": {"a": {"$ref": "#"}}}]});
        let cost = Cost::of(&twice).expect("good").expect("it refers");
        let mut value = json!(1);
        for level in 0..60 {
            assert!(cost.allows(&value) || level > 15, "{level}");
            assert!(!cost.allows(&value) || level < 30, "{level}");
            value = json!({"a": value});
        }
    }
}
