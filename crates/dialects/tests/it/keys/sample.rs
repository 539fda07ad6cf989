//! Documents generated from the tables: the smallest file with a certain block and one additional key.

use serde_json::{Map, Value as Json, json};
use std::collections::{BTreeSet, VecDeque};
use windlass_dialects::keys::{Block, Key, Language, Rule, Shape, Status, Unknown, Variants, literal};

/// A place for keys: a block, and its variant if it has any.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    pub block: &'static Block,
    pub variant: Option<(&'static str, &'static Block)>,
}

/// The path from the top of a file to a place: for each place on it, the key that leads to the next one.
#[derive(Clone, Debug)]
pub struct Route {
    before: Vec<(Place, &'static Key)>,
    pub end: Place,
}

impl Place {
    pub fn name(&self) -> String {
        match self.variant {
            Some((word, _)) => format!("{} {word}", self.block.name),
            None => self.block.name.to_owned(),
        }
    }

    pub fn keys(&self, language: &Language) -> Vec<&'static Key> {
        let variant = self.variant.into_iter().flat_map(|(_, block)| language.keys(block));
        language.keys(self.block).into_iter().chain(variant).collect()
    }

    pub fn includes(&self) -> Vec<&'static str> {
        let variant = self.variant.into_iter().flat_map(|(_, block)| block.includes);
        self.block.includes.iter().chain(variant).copied().collect()
    }

    /// The block whose table contains a key of this place.
    pub fn home(&self, language: &Language, key: &Key) -> &'static str {
        let has = |block: &Block| block.keys.iter().any(|own| own.name == key.name);
        let included = self.includes().into_iter().map(|name| language.block(name));
        let blocks = self.variant.map(|(_, block)| block).into_iter().chain([self.block]).chain(included);
        blocks.into_iter().find(|block| has(block)).unwrap_or(self.block).name
    }

    pub fn refuses_unknown(&self) -> bool {
        let refuses = |block: &Block| block.unknown == Unknown::Refused;
        refuses(self.block) || self.variant.is_some_and(|(_, block)| refuses(block))
    }

    fn all(language: &Language, name: &str) -> Vec<Self> {
        let block = language.block(name);
        let variant = |(word, name): &(&'static str, &str)| Self {
            block,
            variant: Some((*word, language.block(name))),
        };
        match &block.variants {
            Some(Variants { of, .. }) => of.iter().map(variant).collect(),
            None => vec![Self { block, variant: None }],
        }
    }

    /// The default variant, or else the first.
    fn usual(language: &Language, name: &str) -> Self {
        let default = language.block(name).variants.and_then(|variants| variants.default);
        let mut places = Self::all(language, name);
        let at = places.iter().position(|place| place.variant.map(|(word, _)| word) == default);
        places.swap_remove(at.unwrap_or(0))
    }

    /// The smallest mapping for this place, with one additional key.
    pub fn object(&self, language: &Language, more: Option<&Key>) -> Map<String, Json> {
        let keys = self.keys(language);
        let mut object = Map::new();
        if let (Some(variants), Some((word, _))) = (self.block.variants, self.variant) {
            object.insert(variants.by.into(), json!(word));
        }
        let mut wanted: Vec<&str> = keys.iter().filter(|key| key.required).map(|key| key.name).collect();
        wanted.extend(more.into_iter().flat_map(|key| key.beside.into_iter().chain([key.name])));
        let rules = self.block.rules.iter().chain(self.variant.iter().flat_map(|(_, block)| block.rules));
        for rule in rules {
            match rule {
                Rule::OneOf(names) | Rule::AnyOf(names)
                    if !names.iter().any(|name| wanted.contains(&outer(name))) =>
                {
                    wanted.push(outer(names[0]));
                }
                Rule::Needs(name, other) if wanted.contains(name) => wanted.push(other),
                Rule::OneOf(_)
                | Rule::AnyOf(_)
                | Rule::AtMostOneOf(_)
                | Rule::Needs(..)
                | Rule::NeedsWhen(..) => {}
            }
        }
        for key in keys.iter().filter(|key| wanted.contains(&key.name)) {
            object.entry(key.name).or_insert_with(|| example(language, key));
        }
        object
    }
}

/// The first part of `a.b`.
fn outer(name: &'static str) -> &'static str {
    name.split('.').next().unwrap_or(name)
}

pub fn example(language: &Language, key: &Key) -> Json {
    if key.example.is_empty() { sample(language, &key.shape) } else { literal(key.example) }
}

fn sample(language: &Language, shape: &Shape) -> Json {
    match shape {
        Shape::Any
        | Shape::AnyOrNull
        | Shape::Template
        | Shape::Text
        | Shape::TextTemplate
        | Shape::String
        | Shape::StringTemplate => json!("text"),
        Shape::Condition => json!("true"),
        Shape::Form(form) => json!(form.example),
        Shape::Words(words) => json!(words[0]),
        Shape::Boolean => json!(true),
        Shape::Integer { min, max } => json!(1.clamp(*min, *max)),
        Shape::Number | Shape::NotNegative | Shape::Positive => json!(1.5),
        Shape::Share => json!(0.5),
        Shape::Null => Json::Null,
        Shape::Schema => json!({"type": "object"}),
        Shape::Block(name) => Json::Object(Place::usual(language, name).object(language, None)),
        Shape::Either(shapes) => sample(language, &shapes[0]),
        Shape::Containing(form) => json!([form.example]),
        Shape::Sized(of, ..) => sample(language, of),
        Shape::List(item) | Shape::Several(item) => wrapped(shape, &sample(language, item)),
        Shape::Map(item) | Shape::Named(_, item) => wrapped(shape, &sample(language, item)),
    }
}

/// The elements of a list or a mapping of this shape.
fn inside(shape: &Shape) -> Option<&'static Shape> {
    match shape {
        Shape::List(item) | Shape::Several(item) | Shape::Map(item) | Shape::Named(_, item) => Some(item),
        Shape::Sized(of, ..) => inside(of),
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
        | Shape::Block(_)
        | Shape::Null
        | Shape::Schema
        | Shape::Either(_) => None,
    }
}

/// A list or a mapping with one entry.
fn wrapped(shape: &Shape, inner: &Json) -> Json {
    if let Shape::Sized(of, ..) = shape {
        wrapped(of, inner)
    } else if let Shape::Named(form, _) = shape {
        json!({form.example: inner})
    } else if let Shape::Map(_) = shape {
        json!({"name": inner})
    } else {
        json!([inner])
    }
}

/// The blocks in a value of this shape.
fn blocks_in(shape: &Shape) -> Vec<&'static str> {
    if let Shape::Block(name) = shape {
        return vec![name];
    }
    if let Shape::Either(shapes) = shape {
        return shapes.iter().flat_map(blocks_in).collect();
    }
    inside(shape).map(blocks_in).unwrap_or_default()
}

/// A value of a shape with this object somewhere inside, in place of that block.
fn holding(shape: &Shape, block: &str, object: Json) -> Json {
    if let Shape::Either(shapes) = shape {
        let inner = shapes.iter().find(|shape| blocks_in(shape).contains(&block));
        return holding(inner.expect("it holds the block"), block, object);
    }
    match inside(shape) {
        Some(item) => wrapped(shape, &holding(item, block, object)),
        None => object,
    }
}

/// The shortest path to each place in a file.
pub fn routes(language: &Language) -> Vec<Route> {
    let mut seen: BTreeSet<String> = BTreeSet::new();
    let mut open: VecDeque<Route> = Place::all(language, language.top().name)
        .into_iter()
        .map(|end| Route { before: Vec::new(), end })
        .collect();
    let mut routes = Vec::new();
    while let Some(route) = open.pop_front() {
        if !seen.insert(route.end.name()) {
            continue;
        }
        let keys = route.end.keys(language).into_iter().filter(|key| key.status == Status::Supported);
        for key in keys {
            for end in blocks_in(&key.shape).into_iter().flat_map(|name| Place::all(language, name)) {
                let mut before = route.before.clone();
                before.push((route.end, key));
                open.push_back(Route { before, end });
            }
        }
        routes.push(route);
    }
    routes
}

impl Route {
    /// A whole file with this mapping at the end of the path.
    pub fn file(&self, language: &Language, object: Map<String, Json>) -> Json {
        let mut inner = (self.end.block.name, Json::Object(object));
        for (place, key) in self.before.iter().rev() {
            let mut around = place.object(language, Some(key));
            around.insert(key.name.into(), holding(&key.shape, inner.0, inner.1));
            inner = (place.block.name, Json::Object(around));
        }
        let mut file = inner.1;
        distinguish(&mut file, &mut BTreeSet::new());
        file
    }
}

/// Gives every mapping a unique id.
fn distinguish(json: &mut Json, seen: &mut BTreeSet<String>) {
    match json {
        Json::Array(items) => items.iter_mut().for_each(|item| distinguish(item, seen)),
        Json::Object(map) => {
            if let Some(Json::String(id)) = map.get_mut("id")
                && !seen.insert(id.clone())
            {
                *id = format!("{id}-{}", seen.len());
                seen.insert(id.clone());
            }
            map.values_mut().for_each(|value| distinguish(value, seen));
        }
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => {}
    }
}
