//! The canonical order of keys, as data: which keys a mapping has, in which order, and what stands below each of them.
//! The formatter knows nothing else about a dialect.

use crate::text::{Kind, Node};

/// What is known about the order of a value.
#[derive(Clone, Copy, Debug)]
pub(super) enum KeyOrder {
    /// The author's order is kept, all the way down: names and values of the user's own.
    Author,
    /// A mapping with these keys, or a list of such mappings.
    Keys(&'static Keys),
    /// A mapping of the user's own names, in the author's order, to values of this kind.
    Named(&'static Keys),
}

/// The keys of one kind of mapping, in their order, each with what stands below it.
#[derive(Debug)]
pub(super) struct Keys(pub(super) &'static [(&'static str, KeyOrder)]);

impl KeyOrder {
    /// What holds below a key.
    pub(super) fn below(self, key: &str) -> Self {
        match self {
            Self::Author => Self::Author,
            Self::Keys(keys) => {
                keys.0.iter().find(|(name, _)| *name == key).map_or(Self::Author, |(_, order)| *order)
            }
            Self::Named(keys) => Self::Keys(keys),
        }
    }

    /// What holds for the items of a list.
    pub(super) fn item(self) -> Self {
        match self {
            Self::Keys(_) => self,
            Self::Author | Self::Named(_) => Self::Author,
        }
    }

    /// Where a key belongs; none where the author decides. A merge comes first, and what nobody knows comes last.
    pub(super) fn rank(self, key: &str) -> Option<usize> {
        match self {
            Self::Author | Self::Named(_) => None,
            Self::Keys(_) if key == "<<" => Some(0),
            Self::Keys(keys) => {
                Some(1 + keys.0.iter().position(|(name, _)| *name == key).unwrap_or(keys.0.len()))
            }
        }
    }
}

/// The kinds of files whose keys have an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    Swdl,
    Speckit,
    Dagnats,
    Dcc,
    Schedules,
}

impl Dialect {
    pub const ALL: [Self; 5] = [Self::Swdl, Self::Speckit, Self::Dagnats, Self::Dcc, Self::Schedules];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Swdl => "swdl",
            Self::Speckit => "speckit",
            Self::Dagnats => "dagnats",
            Self::Dcc => "dcc",
            Self::Schedules => "schedules",
        }
    }

    /// By the keys of the file; none when they tell nothing, and then all keys stay where they are.
    pub fn guess(root: &Node) -> Option<Self> {
        let Kind::Map(map) = &root.kind else { return None };
        let has = |key: &str| map.get(key).is_some();
        let step_has = |keys: &[&str]| {
            let Some(Kind::List(steps)) = map.get("steps").map(|entry| &entry.value.kind) else {
                return false;
            };
            steps.iter().any(|step| match &step.kind {
                Kind::Map(step) => keys.iter().any(|key| step.get(key).is_some()),
                Kind::List(_) | Kind::Scalar(_) => false,
            })
        };
        match () {
            () if has("stages") => Some(Self::Swdl),
            () if has("schedules") => Some(Self::Schedules),
            () if has("schema_version") || (has("workflow") && has("steps")) => Some(Self::Speckit),
            () if step_has(&["tool", "kind"]) => Some(Self::Dcc),
            () if step_has(&["task", "type"]) => Some(Self::Dagnats),
            () => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{Format, Limits, read};
    use windlass_ir::{Source, SourceId};

    #[test]
    fn the_keys_of_a_file_tell_its_dialect() {
        let check = |text: &str, expected: Option<Dialect>| {
            let read = read(&Source::new("f", text), SourceId(0), Format::Yaml, &Limits::default());
            assert_eq!(Dialect::guess(&read.root.expect("readable")), expected, "{text}");
        };
        check("{workflow: {id: a}, stages: []}", Some(Dialect::Swdl));
        check("{workflow: {id: a}, steps: [{id: b, type: shell}]}", Some(Dialect::Speckit));
        check("{schema_version: '1.0', workflow: {}}", Some(Dialect::Speckit));
        check("{name: a, steps: [{id: b, task: c}]}", Some(Dialect::Dagnats));
        check("{name: a, steps: [{id: b, tool: c}]}", Some(Dialect::Dcc));
        check("{schedules: []}", Some(Dialect::Schedules));
        check("{overrides: {}}", None);
        check("[a]", None);
    }
}
