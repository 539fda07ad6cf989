//! Every key of every dialect, as data: where it is used, its value, and its effect. The schemas for editors
//! (`schema`) and the page of all keys (`page`) are generated from these tables, and tests compare them with the
//! readers.
//!
//! A table describes a reader; the reader never uses it.

mod cases;
mod config;
mod dagnats;
mod dcc;
mod mock;
mod page;
mod schedules;
mod schema;
mod speckit;
mod swdl;

pub use page::{page, page_of};
pub use schema::schema;

/// The kinds of files that have a schema. Those that this crate reads come first, in the order of the page.
pub const LANGUAGES: [&Language; 8] = [&SWDL, &SPECKIT, &DAGNATS, &DCC, &SCHEDULES, &CASES, &MOCK, &CONFIG];

/// The kinds of files that other crates read. Each has its own page.
pub const ELSEWHERE: [&Language; 2] = [&MOCK, &CONFIG];

pub static SWDL: Language = swdl::LANGUAGE;
pub static SPECKIT: Language = speckit::LANGUAGE;
pub static DAGNATS: Language = dagnats::LANGUAGE;
pub static DCC: Language = dcc::LANGUAGE;
pub static SCHEDULES: Language = schedules::LANGUAGE;
pub static CASES: Language = cases::LANGUAGE;
pub static MOCK: Language = mock::LANGUAGE;
pub static CONFIG: Language = config::LANGUAGE;

/// One kind of file. The first block is the file itself.
#[derive(Debug)]
pub struct Language {
    pub name: &'static str,
    pub title: &'static str,
    pub about: &'static str,
    /// What opens an expression; empty if there are none.
    pub opens: &'static str,
    /// Keys may be written in upper case.
    pub any_case: bool,
    pub blocks: &'static [&'static [Block]],
    /// The values of `config.semantics` under which names and limits are those of another dialect. For these, the
    /// tables say which keys exist but not which values they accept.
    pub foreign: &'static [&'static str],
}

/// A mapping with known keys.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    pub name: &'static str,
    pub about: &'static str,
    /// Blocks whose keys are also keys of this one.
    pub includes: &'static [&'static str],
    pub keys: &'static [Key],
    pub rules: &'static [Rule],
    pub variants: Option<Variants>,
    pub unknown: Unknown,
    /// Only used as part of other blocks: included by them, or as one of their variants.
    pub part: bool,
    /// What is missing, if the block is read and checked but not implemented yet.
    pub not_yet: Option<&'static str>,
}

/// The subject of a statement that something is not implemented yet.
#[derive(Clone, Copy, Debug)]
pub enum Subject {
    /// The name of a block and a key of it.
    Key(&'static str, &'static str),
    Block(&'static str),
}

/// Everything that Windlass reads and checks but does not implement yet, with what is missing. Documentation and schemas
/// take their statements from here.
pub fn not_yet() -> impl Iterator<Item = (&'static Language, Subject, &'static str)> {
    LANGUAGES.into_iter().flat_map(|language| {
        language.blocks().flat_map(move |block| {
            let own = block.not_yet.map(|missing| (language, Subject::Block(block.name), missing));
            let keys = block.keys.iter().filter_map(move |key| {
                key.not_yet.map(|missing| (language, Subject::Key(block.name, key.name), missing))
            });
            own.into_iter().chain(keys)
        })
    })
}

/// Additional keys that depend on the value of one key.
#[derive(Clone, Copy, Debug)]
pub struct Variants {
    pub by: &'static str,
    /// The value if the key is absent.
    pub default: Option<&'static str>,
    /// Values, and the block with the keys that each adds.
    pub of: &'static [(&'static str, &'static str)],
}

/// What happens to unknown keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    Warned,
    Refused,
}

/// A rule between the keys of a block. A null key counts as absent; `a.b` is a key inside a key.
#[derive(Clone, Copy, Debug)]
pub enum Rule {
    OneOf(&'static [&'static str]),
    AtMostOneOf(&'static [&'static str]),
    AnyOf(&'static [&'static str]),
    /// The first key requires the second.
    Needs(&'static str, &'static str),
    /// The first key can have this value only with the second.
    NeedsWhen(&'static str, &'static str, &'static str),
}

#[derive(Clone, Copy, Debug)]
pub struct Key {
    pub name: &'static str,
    pub shape: Shape,
    pub about: &'static str,
    pub required: bool,
    /// Null is invalid although the key is optional.
    pub not_null: bool,
    pub default: Default,
    /// A valid value: JSON, or else plain text. If empty, the shape provides one.
    pub example: &'static str,
    /// It has a meaning only next to this other key.
    pub beside: Option<&'static str>,
    pub status: Status,
    /// What is missing, if the key is read and checked but its effect is not implemented yet.
    pub not_yet: Option<&'static str>,
    pub stands: Part,
}

/// The position of a key in the canonical order of its mapping. Within a part, the order is that of the rows: those
/// of a block, of included blocks, and of its variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// Identity.
    Who,
    /// When it runs, and what it does.
    Work,
    /// Inputs and outputs.
    Data,
    /// Timeouts, retries and limits.
    Policy,
    Rest,
}

/// The value of an optional key that is absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Default {
    None,
    /// A value that could be written: JSON, or else plain text.
    Value(&'static str),
    /// Described in words.
    Words(&'static str),
}

/// The effect of a key. Each key that has none has a note that says why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Supported,
    /// Accepted without effect; a hint says so.
    NoEffect(&'static str),
    /// No effect; a warning says so.
    Warned(&'static str),
    /// An error.
    Refused(&'static str),
}

/// The shape of a value.
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    /// Any value, taken literally.
    Any,
    /// Any value, including null even if the key is required.
    AnyOrNull,
    /// Any value; strings in it may contain expressions.
    Template,
    /// Text; numbers and booleans are taken as written.
    Text,
    /// Text that may contain expressions.
    TextTemplate,
    /// A string and nothing else.
    String,
    /// A string and nothing else, which may contain expressions.
    StringTemplate,
    /// A single expression.
    Condition,
    Form(Form),
    Words(&'static [&'static str]),
    Boolean,
    Integer {
        min: i64,
        max: i64,
    },
    Number,
    /// A number of at least 0.
    NotNegative,
    /// A number above 0.
    Positive,
    /// A number from 0 to 1.
    Share,
    List(&'static Shape),
    /// A list with at least one element.
    Several(&'static Shape),
    /// A list or a mapping with this many entries.
    Sized(&'static Shape, u32, u32),
    /// A list of strings, one of which has this form.
    Containing(Form),
    /// A mapping from arbitrary names to values of one shape.
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

/// Text of a certain form. Both ECMAScript and the validator of the tests must understand the pattern.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    pub what: &'static str,
    pub pattern: &'static str,
    pub example: &'static str,
    /// Other types that are taken as written, in this form.
    pub also: &'static [&'static str],
}

const NO_EXECUTOR: &str =
    "there is no executor; mock its responses, or provide an executor through the library";
const NO_SERVER: &str = "there is no server that receives requests";
const NO_PUBLISHER: &str = "requests for approval are not published";
const NO_RESPONSE: &str = "`respond` has no executor; mock its response";
const NO_MESSAGES: &str = "messages do not start runs";
const NO_WORKERS: &str = "workers cannot fire triggers";
const NO_MEMORIES: &str = "agents receive no memories";

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
        status: Status::Supported,
        not_yet: None,
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

    /// A default that is not a single value.
    const fn otherwise(self, words: &'static str) -> Self {
        Self { default: Default::Words(words), ..self }
    }

    const fn example(self, example: &'static str) -> Self {
        Self { example, ..self }
    }

    const fn beside(self, other: &'static str) -> Self {
        Self { beside: Some(other), ..self }
    }

    const fn not_yet(self, missing: &'static str) -> Self {
        Self { not_yet: Some(missing), ..self }
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
        not_yet: None,
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

    const fn not_yet(self, missing: &'static str) -> Self {
        Self { not_yet: Some(missing), ..self }
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

    /// The keys that a block has in every variant, included ones first.
    pub fn keys(&self, block: &Block) -> Vec<&'static Key> {
        let included = block.includes.iter().flat_map(|name| self.keys(self.block(name)));
        included.chain(block.keys).collect()
    }

    /// The keys that the variants of a block add, without duplicates.
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

/// Parses an example or a default of a table: JSON, or else plain text.
pub fn literal(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_else(|_| serde_json::Value::String(text.to_owned()))
}
