//! Every key of every dialect, as data: where it stands, what it holds, and what becomes of it here. The schemas for
//! editors (`schema`) and the page of all keys (`page`) come from these tables, and tests hold them against the readers.
//!
//! A table describes what a reader does; the reader never asks it.

mod cases;
mod dagnats;
mod dcc;
mod page;
mod schedules;
mod schema;
mod speckit;
mod swdl;

pub use page::page;
pub use schema::schema;

/// The kinds of files, in the order of the page.
pub const LANGUAGES: [&Language; 6] = [&SWDL, &SPECKIT, &DAGNATS, &DCC, &SCHEDULES, &CASES];

pub static SWDL: Language = swdl::LANGUAGE;
pub static SPECKIT: Language = speckit::LANGUAGE;
pub static DAGNATS: Language = dagnats::LANGUAGE;
pub static DCC: Language = dcc::LANGUAGE;
pub static SCHEDULES: Language = schedules::LANGUAGE;
pub static CASES: Language = cases::LANGUAGE;

/// One kind of file. The first block is the file itself.
#[derive(Debug)]
pub struct Language {
    pub name: &'static str,
    pub title: &'static str,
    pub about: &'static str,
    /// What opens an expression; empty where there are none.
    pub opens: &'static str,
    /// Keys may be written in capital letters.
    pub any_case: bool,
    pub blocks: &'static [&'static [Block]],
    /// The values of `config.semantics` under which names and bounds are those of another dialect, and the tables say
    /// which keys there are but not what they may hold.
    pub foreign: &'static [&'static str],
}

/// A mapping with known keys.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    pub name: &'static str,
    pub about: &'static str,
    /// Blocks whose keys are keys of this one too.
    pub includes: &'static [&'static str],
    pub keys: &'static [Key],
    pub rules: &'static [Rule],
    pub variants: Option<Variants>,
    pub unknown: Unknown,
    /// Only ever a part of other blocks: included by them, or one of their variants.
    pub part: bool,
}

/// Further keys by the value of one key.
#[derive(Clone, Copy, Debug)]
pub struct Variants {
    pub by: &'static str,
    /// What holds when the key is left out.
    pub default: Option<&'static str>,
    /// Values, and the block with the keys that each adds.
    pub of: &'static [(&'static str, &'static str)],
}

/// What becomes of a key that is in no table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    Warned,
    Refused,
}

/// What holds between the keys of a block. A key whose value is null counts as left out; `a.b` is a key inside a key.
#[derive(Clone, Copy, Debug)]
pub enum Rule {
    OneOf(&'static [&'static str]),
    AtMostOneOf(&'static [&'static str]),
    AnyOf(&'static [&'static str]),
    /// The first key cannot stand without the second.
    Needs(&'static str, &'static str),
    /// The first key cannot have this value without the second.
    NeedsWhen(&'static str, &'static str, &'static str),
}

#[derive(Clone, Copy, Debug)]
pub struct Key {
    pub name: &'static str,
    pub shape: Shape,
    pub about: &'static str,
    pub required: bool,
    /// Null is refused although the key may be left out.
    pub not_null: bool,
    pub default: Default,
    /// A good value: JSON, or else plain text. Where none is given the shape has one.
    pub example: &'static str,
    /// It means something only beside this other key.
    pub beside: Option<&'static str>,
    pub status: Status,
    pub stands: Part,
}

/// Where in its mapping a key stands in the canonical form. Within a part the order is that of the rows: those of a block,
/// of the blocks that it includes, and of its variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// Who it is.
    Who,
    /// When it is done, and what.
    Work,
    /// What it is given, and what it gives.
    Data,
    /// Time, attempts, limits.
    Policy,
    Rest,
}

/// What holds when an optional key is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Default {
    None,
    /// A value that could be written: JSON, or else plain text.
    Value(&'static str),
    /// Said in words.
    Words(&'static str),
}

/// What becomes of a key that is written. Whatever is not honoured has a note that says why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Honoured,
    /// Accepted without effect; a hint says so.
    NoEffect(&'static str),
    /// A warning, and no effect.
    Warned(&'static str),
    /// An error.
    Refused(&'static str),
}

/// What a value looks like.
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    /// Any value, taken as it is.
    Any,
    /// Any value; null is one of them, even where the key is required.
    AnyOrNull,
    /// Any value; texts in it may hold expressions.
    Template,
    /// Text; a number or a truth value counts by its letters.
    Text,
    /// Text that may hold expressions.
    TextTemplate,
    /// Nothing but text.
    String,
    /// Nothing but text, which may hold expressions.
    StringTemplate,
    /// One expression as a whole.
    Condition,
    Form(Form),
    Words(&'static [&'static str]),
    Boolean,
    Integer {
        min: i64,
        max: i64,
    },
    Number,
    /// A number from 0.
    NotNegative,
    /// A number above 0.
    Positive,
    /// A number from 0 to 1.
    Share,
    List(&'static Shape),
    /// A list with at least one element.
    Several(&'static Shape),
    /// A list or a mapping with so many entries.
    Sized(&'static Shape, u32, u32),
    /// A list of texts, one of which has this form.
    Containing(Form),
    /// Free names to values of one shape.
    Map(&'static Shape),
    /// The same, with a form for the names.
    Named(Form, &'static Shape),
    Block(&'static str),
    /// Nothing but null.
    Null,
    /// A JSON Schema.
    Schema,
    Either(&'static [Shape]),
}

/// Text of a certain form. The pattern is one that both ECMAScript and the validator of the tests understand.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    pub what: &'static str,
    pub pattern: &'static str,
    pub example: &'static str,
    /// What else is taken by its letters, and has this form then.
    pub also: &'static [&'static str],
}

const NOTHING: &[&str] = &[];
/// `true` and `false`.
const WORD: &[&str] = &["boolean"];
const WORD_OR_NUMBER: &[&str] = &["boolean", "number"];

const ANY_COUNT: Shape = Shape::Integer { min: 0, max: i64::MAX };
const COUNT: Shape = Shape::Integer { min: 1, max: i64::MAX };
const TEXTS: Shape = Shape::List(&Shape::Text);

const fn key(name: &'static str, shape: Shape, about: &'static str) -> Key {
    Key {
        name,
        shape,
        about,
        required: false,
        not_null: false,
        default: Default::None,
        example: "",
        beside: None,
        status: Status::Honoured,
        stands: Part::Work,
    }
}

impl Key {
    const fn required(self) -> Self {
        Self { required: true, ..self }
    }

    const fn not_null(self) -> Self {
        Self { not_null: true, ..self }
    }

    const fn default(self, value: &'static str) -> Self {
        Self { default: Default::Value(value), ..self }
    }

    /// A default that is no single value.
    const fn otherwise(self, words: &'static str) -> Self {
        Self { default: Default::Words(words), ..self }
    }

    const fn example(self, example: &'static str) -> Self {
        Self { example, ..self }
    }

    const fn beside(self, other: &'static str) -> Self {
        Self { beside: Some(other), ..self }
    }

    const fn no_effect(self, note: &'static str) -> Self {
        Self { status: Status::NoEffect(note), ..self }
    }

    const fn warned(self, note: &'static str) -> Self {
        Self { status: Status::Warned(note), ..self }
    }

    const fn stands(self, part: Part) -> Self {
        Self { stands: part, ..self }
    }

    const fn refused(self, note: &'static str) -> Self {
        Self { status: Status::Refused(note), ..self }
    }
}

const fn block(name: &'static str, about: &'static str, keys: &'static [Key]) -> Block {
    Block {
        name,
        about,
        includes: &[],
        keys,
        rules: &[],
        variants: None,
        unknown: Unknown::Warned,
        part: false,
    }
}

impl Block {
    const fn includes(self, includes: &'static [&'static str]) -> Self {
        Self { includes, ..self }
    }

    const fn rules(self, rules: &'static [Rule]) -> Self {
        Self { rules, ..self }
    }

    const fn variants(self, variants: Variants) -> Self {
        Self { variants: Some(variants), ..self }
    }

    const fn refuses_unknown(self) -> Self {
        Self { unknown: Unknown::Refused, ..self }
    }

    const fn part(self) -> Self {
        Self { part: true, ..self }
    }
}

impl Language {
    pub fn by_name(name: &str) -> Option<&'static Self> {
        LANGUAGES.into_iter().find(|language| language.name == name)
    }

    pub fn blocks(&self) -> impl Iterator<Item = &'static Block> {
        self.blocks.iter().copied().flatten()
    }

    /// The block of the file itself.
    pub fn top(&self) -> &'static Block {
        self.blocks().next().expect("every table begins with the file")
    }

    pub fn block(&self, name: &str) -> &'static Block {
        self.blocks().find(|block| block.name == name).expect("tables name blocks that exist: a test looks")
    }

    /// The keys that a block has whatever its variant, those it includes first.
    pub fn keys(&self, block: &Block) -> Vec<&'static Key> {
        let included = block.includes.iter().flat_map(|name| self.keys(self.block(name)));
        included.chain(block.keys).collect()
    }

    /// The keys that the variants of a block add, each name once.
    pub fn variant_keys(&self, block: &Block) -> Vec<&'static Key> {
        let mut keys: Vec<&Key> = Vec::new();
        for (_, name) in block.variants.iter().flat_map(|variants| variants.of) {
            let new = self.keys(self.block(name)).into_iter();
            let new: Vec<&Key> = new.filter(|key| keys.iter().all(|other| other.name != key.name)).collect();
            keys.extend(new);
        }
        keys
    }
}

/// What an example or a default in a table says: JSON, or else plain text.
pub fn literal(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_else(|_| serde_json::Value::String(text.to_owned()))
}
