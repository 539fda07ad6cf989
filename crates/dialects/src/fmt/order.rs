//! The canonical order of keys, taken from the rows of the key tables, part by part. The formatter knows nothing else
//! about a dialect.
//!
//! Content that no table describes keeps the author's order: arguments, environments, cases, schemas, metadata.

use crate::keys::{self, Block, Key, Language, Shape};
use crate::{Dialect, FileKind};

/// What is known about the order of a value.
#[derive(Clone, Copy, Debug)]
pub(super) enum KeyOrder {
    /// Names and values chosen by the user: keep the author's order, recursively.
    Author,
    Block(&'static Language, &'static Block),
    Shape(&'static Language, &'static Shape),
}

/// The order of one mapping.
#[derive(Debug)]
pub(super) enum MapOrder {
    Author,
    /// Names chosen by the user, in the author's order, with values of this kind.
    Named(KeyOrder),
    Keys(Keys),
}

/// The possible keys of one mapping, in order.
#[derive(Debug)]
pub(super) struct Keys {
    language: &'static Language,
    block: &'static Block,
    rows: Vec<&'static Key>,
}

impl KeyOrder {
    pub(super) fn of(kind: FileKind) -> Self {
        let language = match kind {
            FileKind::Workflow(Dialect::Swdl) => &keys::SWDL,
            FileKind::Workflow(Dialect::Speckit) => &keys::SPECKIT,
            FileKind::Workflow(Dialect::Dagnats) => &keys::DAGNATS,
            FileKind::Workflow(Dialect::Dcc) => &keys::DCC,
            FileKind::Schedules => &keys::SCHEDULES,
            FileKind::Skill | FileKind::Overlay => return Self::Author,
        };
        Self::Block(language, language.top())
    }

    /// The order of the items of a list.
    pub(super) fn item(self) -> Self {
        let Self::Shape(language, shape) = self else { return Self::Author };
        let item = inside(shape).into_iter().find_map(|inside| match inside {
            Inside::Items(item) => Some(Self::Shape(language, item)),
            Inside::Block(_) | Inside::Values(_) => None,
        });
        item.unwrap_or(Self::Author)
    }

    /// The order of a mapping with these keys, each with its value if that is a string.
    pub(super) fn mapping<'a>(
        self,
        entries: impl Iterator<Item = (&'a str, Option<&'a str>)> + Clone,
    ) -> MapOrder {
        let (language, shape) = match self {
            Self::Author => return MapOrder::Author,
            Self::Block(language, block) => return MapOrder::Keys(Keys::new(language, block, entries)),
            Self::Shape(language, shape) => (language, shape),
        };
        let order = inside(shape).into_iter().find_map(|inside| match inside {
            Inside::Items(_) => None,
            Inside::Block(name) => Some(Self::Block(language, language.block(name)).mapping(entries.clone())),
            Inside::Values(value) => Some(MapOrder::Named(Self::Shape(language, value))),
        });
        order.unwrap_or(MapOrder::Author)
    }
}

/// The order of a value of some shape.
#[derive(Clone, Copy, Debug)]
enum Inside {
    Items(&'static Shape),
    Block(&'static str),
    /// Below names chosen by the user.
    Values(&'static Shape),
}

fn inside(shape: &'static Shape) -> Vec<Inside> {
    match shape {
        Shape::List(item) | Shape::Several(item) => vec![Inside::Items(item)],
        Shape::Map(value) | Shape::Named(_, value) => vec![Inside::Values(value)],
        Shape::Block(name) => vec![Inside::Block(name)],
        Shape::Sized(shape, ..) => inside(shape),
        Shape::Either(shapes) => shapes.iter().flat_map(inside).collect(),
        Shape::Any
        | Shape::AnyOrNull
        | Shape::Template
        | Shape::Text
        | Shape::TextTemplate
        | Shape::String
        | Shape::StringTemplate
        | Shape::Condition
        | Shape::Form(_)
        | Shape::Words(_)
        | Shape::Boolean
        | Shape::Integer { .. }
        | Shape::Number
        | Shape::NotNegative
        | Shape::Positive
        | Shape::Share
        | Shape::Containing(_)
        | Shape::Null
        | Shape::Schema => Vec::new(),
    }
}

impl MapOrder {
    /// The order below a key.
    pub(super) fn below(&self, key: &str) -> KeyOrder {
        match self {
            Self::Author => KeyOrder::Author,
            Self::Named(order) => *order,
            Self::Keys(keys) => keys.below(key),
        }
    }

    /// The rank of a key; `None` if the author decides. A merge comes first, unknown keys come last.
    pub(super) fn rank(&self, key: &str) -> Option<usize> {
        match self {
            Self::Author | Self::Named(_) => None,
            Self::Keys(_) if key == "<<" => Some(0),
            Self::Keys(keys) => {
                let place = keys.rows.iter().position(|row| is_named(keys.language, row.name, key));
                Some(1 + place.unwrap_or(keys.rows.len()))
            }
        }
    }
}

impl Keys {
    fn new<'a>(
        language: &'static Language,
        block: &'static Block,
        entries: impl Iterator<Item = (&'a str, Option<&'a str>)> + Clone,
    ) -> Self {
        let mut rows = rows(language, &[block]);
        rows.extend(self::rows(language, &variants(language, block, entries)));
        // A stable sort keeps the order of rows within a part.
        rows.sort_by_key(|row| row.stands);
        Self { language, block, rows }
    }

    /// A key may belong to a variant other than the declared one.
    fn below(&self, key: &str) -> KeyOrder {
        let is_it = |row: &&&'static Key| is_named(self.language, row.name, key);
        let others = || rows(self.language, &all_variants(self.language, self.block));
        let row = self.rows.iter().find(is_it).copied().or_else(|| others().iter().find(is_it).copied());
        row.map_or(KeyOrder::Author, |row| KeyOrder::Shape(self.language, &row.shape))
    }
}

fn is_named(language: &Language, name: &str, key: &str) -> bool {
    if language.any_case { name.eq_ignore_ascii_case(key) } else { name == key }
}

/// The keys of blocks that form one mapping: their own, then those of included blocks.
fn rows(language: &'static Language, blocks: &[&'static Block]) -> Vec<&'static Key> {
    let names = blocks.iter().flat_map(|block| block.includes);
    let included: Vec<&'static Block> = names.map(|name| language.block(name)).collect();
    let mut keys: Vec<&'static Key> = blocks.iter().flat_map(|block| block.keys).collect();
    if !included.is_empty() {
        keys.extend(rows(language, &included));
    }
    keys
}

/// The blocks that a mapping adds to its own keys; all of them if the deciding key is absent.
fn variants<'a>(
    language: &'static Language,
    block: &'static Block,
    mut entries: impl Iterator<Item = (&'a str, Option<&'a str>)> + Clone,
) -> Vec<&'static Block> {
    let Some(variants) = &block.variants else { return Vec::new() };
    let said = entries.clone().find(|(key, _)| is_named(language, variants.by, key));
    let word = match said {
        Some((_, word)) => word,
        // A merged mapping may contain the deciding key.
        None if entries.any(|(key, _)| key == "<<") => None,
        None => variants.default,
    };
    match variants.of.iter().find(|(value, _)| Some(*value) == word) {
        Some((_, name)) => vec![language.block(name)],
        None => all_variants(language, block),
    }
}

fn all_variants(language: &'static Language, block: &'static Block) -> Vec<&'static Block> {
    let names = block.variants.iter().flat_map(|variants| variants.of);
    names.map(|(_, name)| language.block(name)).collect()
}
