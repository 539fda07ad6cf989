//! Renders the tables as JSON Schema 2020-12, for editors and other programs that check a file in advance. Rules that
//! a schema cannot express (existing names, cycles, expressions, cron patterns) are left to the reader, which is
//! never more lenient.

use super::{Block, Default, Form, Key, Language, Rule, Shape, Status, Unknown, Variants, literal};
use serde_json::{Map, Value as Json, json};

const HOME: &str = "https://raw.githubusercontent.com/windlass-dev/windlass/main/schemas";

/// The schema of one kind of file. A strict schema refuses keys without effect, which the reader only warns about.
pub fn schema(language: &Language, strict: bool) -> Json {
    let writer = Writer { language, strict };
    let mut schema = Map::new();
    schema.insert("$schema".into(), json!("https://json-schema.org/draft/2020-12/schema"));
    schema.insert("$id".into(), json!(format!("{HOME}/{}.schema.json", language.name)));
    schema.insert("title".into(), json!(language.title));
    schema.extend(writer.top());
    schema.insert("description".into(), json!(language.about));
    let own = usize::from(language.foreign.is_empty());
    let others = language.blocks().skip(own).filter(|block| !is_only_included(language, block));
    let definitions = others.map(|block| (block.name.to_owned(), Json::Object(writer.block(block))));
    schema.insert("$defs".into(), Json::Object(definitions.collect()));
    Json::Object(schema)
}

/// Blocks whose keys only appear in the blocks that include them.
fn is_only_included(language: &Language, block: &Block) -> bool {
    let variants = language.blocks().filter_map(|other| other.variants);
    let is_variant = variants.flat_map(|variants| variants.of).any(|(_, name)| *name == block.name);
    block.part && !is_variant
}

struct Writer<'a> {
    language: &'a Language,
    strict: bool,
}

impl Writer<'_> {
    /// The file itself. Files that select the rules of another dialect are left to the reader.
    fn top(&self) -> Map<String, Json> {
        let top = self.language.top();
        if self.language.foreign.is_empty() {
            let mut file = self.block(top);
            file.insert("type".into(), json!("object"));
            return file;
        }
        let semantics = json!({"type": "object", "properties": {"semantics": {"enum": self.language.foreign}}, "required": ["semantics"]});
        let foreign = json!({"properties": {"config": semantics}, "required": ["config"]});
        let house = json!({"$ref": format!("#/$defs/{}", top.name)});
        Map::from_iter([
            ("type".to_owned(), json!("object")),
            ("if".to_owned(), foreign),
            ("then".to_owned(), json!({"required": ["workflow", "stages"]})),
            ("else".to_owned(), house),
        ])
    }

    fn block(&self, block: &Block) -> Map<String, Json> {
        let mut schema = Map::new();
        if !block.part {
            // Optional keys accept null; exceptions are marked on the key.
            schema.insert("type".into(), json!(["object", "null"]));
        }
        schema.insert("description".into(), json!(block.about));
        let keys = self.language.keys(block);
        schema.insert("properties".into(), Json::Object(self.properties(block, &keys)));
        let required: Vec<&str> = keys.iter().filter(|key| key.required).map(|key| key.name).collect();
        if !required.is_empty() {
            schema.insert("required".into(), json!(required));
        }
        let mut conditions: Vec<Json> = block.rules.iter().flat_map(rule).collect();
        conditions.extend(block.variants.iter().flat_map(|variants| self.variants(block, variants)));
        if !conditions.is_empty() {
            schema.insert("allOf".into(), Json::Array(conditions));
        }
        if !block.part && (self.strict || block.unknown == Unknown::Refused) {
            schema.insert("additionalProperties".into(), json!(false));
        }
        schema
    }

    /// The keys of a block; keys that only a variant has are named as well, and described by the variant.
    fn properties(&self, block: &Block, keys: &[&Key]) -> Map<String, Json> {
        let mut properties: Map<String, Json> =
            keys.iter().map(|key| (key.name.to_owned(), self.key(key))).collect();
        for key in self.language.variant_keys(block) {
            properties.entry(key.name).or_insert_with(|| json!({"description": self.description(key)}));
        }
        properties
    }

    fn key(&self, key: &Key) -> Json {
        let mut schema = match key.status {
            Status::Refused(_) => absent(),
            Status::Warned(_) if self.strict => absent(),
            Status::NoEffect(_) | Status::Warned(_) => json!({"deprecated": true}),
            Status::Supported if key.required || key.not_null => self.required(&key.shape),
            Status::Supported => or_null(self.shape(&key.shape)),
        };
        let fields = schema.as_object_mut().expect("shapes are objects");
        fields.insert("description".into(), json!(self.description(key)));
        if let Default::Value(default) = key.default {
            fields.insert("default".into(), literal(default));
        }
        if !key.example.is_empty() {
            fields.insert("examples".into(), json!([literal(key.example)]));
        }
        schema
    }

    /// A required key cannot be null, which would be the same as leaving it out.
    fn required(&self, shape: &Shape) -> Json {
        let is_anything = matches!(shape, Shape::Any | Shape::Template);
        if is_anything { json!({"not": absent()}) } else { self.shape(shape) }
    }

    fn description(&self, key: &Key) -> String {
        let mut text = sentence(key.about);
        let opens = self.language.opens;
        let takes_expressions =
            matches!(key.shape, Shape::Template | Shape::TextTemplate | Shape::StringTemplate);
        if takes_expressions && !opens.is_empty() {
            text += &format!(" May contain expressions, `{opens} … }}}}`.");
        }
        if let Default::Words(words) = key.default {
            text += &format!(" Default: {words}.");
        }
        if let Status::NoEffect(note) | Status::Warned(note) | Status::Refused(note) = key.status {
            text += &format!(" {}", sentence(note));
        }
        if let Some(note) = key.not_yet {
            text += &format!(" Not implemented yet: {note}.");
        }
        text.trim_start().to_owned()
    }

    fn shape(&self, shape: &Shape) -> Json {
        match shape {
            Shape::Any | Shape::AnyOrNull | Shape::Template => json!({}),
            Shape::Text | Shape::TextTemplate | Shape::Condition => {
                json!({"type": ["string", "number", "boolean"]})
            }
            Shape::String | Shape::StringTemplate => json!({"type": "string"}),
            Shape::Form(Form { also: [], pattern, .. }) => json!({"type": "string", "pattern": pattern}),
            Shape::Form(Form { also, pattern, .. }) => {
                let types: Vec<&str> = std::iter::once("string").chain(also.iter().copied()).collect();
                json!({"type": types, "pattern": pattern})
            }
            Shape::Words(words) => json!({"enum": words}),
            Shape::Boolean => json!({"type": "boolean"}),
            Shape::Integer { min, max: i64::MAX } => json!({"type": "integer", "minimum": min}),
            Shape::Integer { min: i64::MIN, max } => json!({"type": "integer", "maximum": max}),
            Shape::Integer { min, max } => json!({"type": "integer", "minimum": min, "maximum": max}),
            Shape::Number => json!({"type": "number"}),
            Shape::NotNegative => json!({"type": "number", "minimum": 0}),
            Shape::Positive => json!({"type": "number", "exclusiveMinimum": 0}),
            Shape::Share => json!({"type": "number", "minimum": 0, "maximum": 1}),
            Shape::List(item) => json!({"type": "array", "items": self.shape(item)}),
            Shape::Several(item) => json!({"type": "array", "items": self.shape(item), "minItems": 1}),
            Shape::Sized(of, min, max) => self.sized(of, *min, *max),
            Shape::Containing(form) => {
                let wanted = json!({"type": "string", "pattern": form.pattern});
                json!({"type": "array", "items": self.shape(&Shape::Text), "contains": wanted})
            }
            Shape::Map(value) => json!({"type": "object", "additionalProperties": self.shape(value)}),
            Shape::Named(form, value) => self.named(form, value),
            Shape::Block(name) => json!({"$ref": format!("#/$defs/{name}"), "type": "object"}),
            Shape::Null => json!({"type": "null"}),
            Shape::Schema => json!({"type": ["object", "boolean"]}),
            Shape::Either(shapes) => {
                json!({"anyOf": shapes.iter().map(|shape| self.shape(shape)).collect::<Vec<_>>()})
            }
        }
    }

    /// One condition for each value of the deciding key; if it is absent or null, its default applies.
    fn variants(&self, block: &Block, variants: &Variants) -> Vec<Json> {
        let variant = |(word, name): &(&str, &str)| {
            let mut then = json!({"$ref": format!("#/$defs/{name}")});
            if self.strict {
                then["properties"] = self.of_others(block, name);
            }
            json!({"if": is_meant(variants, word), "then": then})
        };
        variants.of.iter().map(variant).collect()
    }

    /// The keys that other variants have but this one does not.
    fn of_others(&self, block: &Block, variant: &str) -> Json {
        let own =
            self.language.keys(self.language.block(variant)).into_iter().chain(self.language.keys(block));
        let own: Vec<&str> = own.map(|key| key.name).collect();
        let others = self.language.variant_keys(block).into_iter().filter(|key| !own.contains(&key.name));
        Json::Object(others.map(|key| (key.name.to_owned(), absent())).collect())
    }

    fn sized(&self, of: &Shape, min: u32, max: u32) -> Json {
        let mut schema = self.shape(of);
        let is_map = matches!(of, Shape::Map(_) | Shape::Named(..));
        let (least, most) =
            if is_map { ("minProperties", "maxProperties") } else { ("minItems", "maxItems") };
        schema[least] = json!(min);
        schema[most] = json!(max);
        schema
    }

    fn named(&self, form: &Form, value: &Shape) -> Json {
        let value = self.shape(value);
        json!({"type": "object", "propertyNames": {"pattern": form.pattern}, "additionalProperties": value})
    }
}

/// An optional key may be null, which is the same as leaving it out.
fn or_null(schema: Json) -> Json {
    let Json::Object(mut fields) = schema else { return schema };
    if fields.contains_key("$ref") {
        fields.shift_remove("type");
        return Json::Object(fields);
    }
    if let Some(ty) = fields.get_mut("type") {
        let mut types = match ty.take() {
            Json::Array(types) => types,
            one => vec![one],
        };
        types.push(json!("null"));
        *ty = Json::Array(types);
        return Json::Object(fields);
    }
    if let Some(words) = fields.get_mut("enum").and_then(Json::as_array_mut) {
        words.push(Json::Null);
        return Json::Object(fields);
    }
    if let Some(shapes) = fields.get_mut("anyOf").and_then(Json::as_array_mut) {
        shapes.push(json!({"type": "null"}));
        return Json::Object(fields);
    }
    match fields.is_empty() {
        true => Json::Object(fields),
        false => json!({"anyOf": [fields, {"type": "null"}]}),
    }
}

/// Null counts as absent.
fn absent() -> Json {
    json!({"type": "null"})
}

fn given(key: &str) -> Json {
    let (key, value) = match key.split_once('.') {
        Some((key, inner)) => (key, given(inner)),
        None => (key, json!({"not": {"type": "null"}})),
    };
    json!({"type": "object", "required": [key], "properties": {key: value}})
}

fn rule(rule: &Rule) -> Vec<Json> {
    // An absent block has no requirements.
    let all = |keys: &[&str]| keys.iter().map(|key| given(key)).chain([absent()]).collect::<Vec<_>>();
    match rule {
        Rule::OneOf(keys) => vec![json!({"oneOf": all(keys)})],
        Rule::AnyOf(keys) => vec![json!({"anyOf": all(keys)})],
        Rule::AtMostOneOf(keys) => {
            let pairs =
                keys.iter().enumerate().flat_map(|(at, a)| keys[at + 1..].iter().map(move |b| (a, b)));
            pairs.map(|(a, b)| json!({"not": {"allOf": [given(a), given(b)]}})).collect()
        }
        Rule::NeedsWhen(key, value, other) => {
            let key = *key;
            let is_so = json!({"type": "object", "required": [key], "properties": {key: {"const": value}}});
            vec![json!({"if": is_so, "then": given(other)})]
        }
        Rule::Needs(key, other) => vec![json!({"if": given(key), "then": given(other)})],
    }
}

fn is_meant(variants: &Variants, word: &str) -> Json {
    let by = variants.by;
    match variants.default {
        Some(default) if default == word => {
            json!({"type": "object", "properties": {by: {"enum": [word, null]}}})
        }
        Some(_) | None => json!({"type": "object", "properties": {by: {"const": word}}, "required": [by]}),
    }
}

/// The notes in the tables start in lower case and have no final period.
pub(super) fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    if text.is_empty() {
        return String::new();
    }
    let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    format!("{first}{}.", letters.as_str())
}
