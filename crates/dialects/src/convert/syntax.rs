//! Rewrites a workflow in the other syntax of its own dialect: YAML as JSON, or JSON as YAML. Keys and values stay the
//! same, and so does the plan: its digest is compared before anything is returned.

use super::yaml::{self, Map, Yaml};
use super::{Converted, not_convertible};
use crate::speckit::{key_text, resolve_scalars};
use crate::text::{Format, Key, Kind, Limits, Node, Scalar, Style};
use crate::{Dialect, FileKind, Loaded, Options, Text, fmt, format_of, load, text};
use windlass_ir::{SourceId, Value};

/// Writes a workflow in this syntax. Returns the loaded file instead if it is invalid or cannot be written without loss.
/// Overrides and overlays are separate files and stay separate.
pub fn to_syntax(file: Text, dialect: Option<Dialect>, format: Format) -> Result<Converted, Box<Loaded>> {
    let mut loaded = load(file, Options { dialect, ..Options::default() });
    if !loaded.is_valid() {
        return Err(Box::new(loaded));
    }
    match rewritten(&loaded, format) {
        Ok((text, comments_lost)) => Ok(Converted { text, loaded, comments_lost }),
        Err(why) => {
            let syntax = match format {
                Format::Json => "JSON",
                Format::Yaml => "YAML",
            };
            loaded.diagnostics.push(not_convertible(syntax, &why));
            loaded.plan = None;
            Err(Box::new(loaded))
        }
    }
}

/// The text in the other syntax, and whether comments are missing in it.
fn rewritten(loaded: &Loaded, format: Format) -> Result<(String, bool), String> {
    let source = loaded.sources.get(SourceId(0));
    let kind = Some(FileKind::Workflow(loaded.dialect));
    let formatted = |text: String| fmt::format(&text, format, kind).unwrap_or(text);
    if format_of(source) == Some(format) {
        return Ok((formatted(source.text.to_string()), false));
    }
    let root = tree(loaded).ok_or("the file cannot be read")?;
    let is_speckit = loaded.dialect == Dialect::Speckit;
    let text = match format {
        Format::Json => {
            let mut out = String::new();
            write_json(&root, is_speckit, &mut out)?;
            out
        }
        Format::Yaml => match yaml_of(&root, is_speckit)? {
            Yaml::Map(map) => yaml::document(&map),
            _ => return Err("the file is not a mapping".to_owned()),
        },
    };
    let text = formatted(text);
    match difference(loaded, &text, format) {
        None => Ok((text, format == Format::Json && fmt::comments(&source.text) > 0)),
        Some(why) => Err(why),
    }
}

/// The tree of a valid file, with the values that its dialect reads.
fn tree(loaded: &Loaded) -> Option<Node> {
    let source = loaded.sources.get(SourceId(0));
    let is_speckit = loaded.dialect == Dialect::Speckit;
    let limits = Limits { typed_keys: is_speckit, ..Limits::default() };
    let mut root = text::read(source, SourceId(0), format_of(source)?, &limits).root?;
    if is_speckit {
        resolve_scalars(&mut root);
    }
    Some(root)
}

fn difference(loaded: &Loaded, text: &str, format: Format) -> Option<String> {
    let name = match format {
        Format::Json => "workflow.json",
        Format::Yaml => "workflow.yaml",
    };
    let file = Text { name: name.into(), bytes: text.as_bytes().to_vec() };
    let back = load(file, Options { dialect: Some(loaded.dialect), ..Options::default() });
    if let Some(error) = back.diagnostics.iter().find(|finding| finding.is_error()) {
        return Some(format!("{}: {}", error.code, error.message));
    }
    let digest = |loaded: &Loaded| loaded.plan.as_ref().map(|plan| plan.digest.clone());
    super::difference(loaded, &back)
        .or_else(|| (digest(loaded) != digest(&back)).then(|| "the plans differ".to_owned()))
}

/// A scalar in a syntax that YAML and JSON share.
enum Written {
    /// A number, a boolean or null, as it is written without quotes.
    Plain(String),
    Text(String),
}

fn written(scalar: &Scalar) -> Result<Written, String> {
    let is_shared = |text: &str| {
        let is_scalar = |json: serde_json::Value| !json.is_string() && !json.is_array() && !json.is_object();
        serde_json::from_str(text).is_ok_and(is_scalar)
    };
    Ok(match scalar.to_value() {
        // Some keys take numbers and booleans as text, so their spelling counts.
        Value::Text(text) => Written::Text(text.to_string()),
        _ if scalar.style == Style::Plain && is_shared(&scalar.text) => {
            Written::Plain(scalar.text.to_string())
        }
        value => Written::Plain(
            value
                .to_json_text()
                .filter(|_| !matches!(value, Value::Float(float) if !float.is_finite()))
                .ok_or_else(|| format!("JSON cannot represent the number {}", scalar.text))?,
        ),
    })
}

fn key(key: &Key, is_speckit: bool) -> String {
    if is_speckit { key_text(key).to_string() } else { key.text.to_string() }
}

fn write_json(node: &Node, is_speckit: bool, out: &mut String) -> Result<(), String> {
    let string = |text: &str| serde_json::Value::from(text).to_string();
    match &node.kind {
        Kind::Scalar(scalar) => match written(scalar)? {
            Written::Plain(text) => out.push_str(&text),
            Written::Text(text) => out.push_str(&string(&text)),
        },
        Kind::List(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                out.push_str(if at > 0 { "," } else { "" });
                write_json(item, is_speckit, out)?;
            }
            out.push(']');
        }
        Kind::Map(map) => {
            out.push('{');
            for (at, entry) in map.entries.iter().enumerate() {
                out.push_str(if at > 0 { "," } else { "" });
                out.push_str(&string(&key(&entry.key, is_speckit)));
                out.push(':');
                write_json(&entry.value, is_speckit, out)?;
            }
            out.push('}');
        }
    }
    Ok(())
}

fn yaml_of(node: &Node, is_speckit: bool) -> Result<Yaml, String> {
    Ok(match &node.kind {
        Kind::Scalar(scalar) => match written(scalar)? {
            Written::Plain(text) => Yaml::Plain(text),
            Written::Text(text) => Yaml::Text(text),
        },
        Kind::List(items) => {
            Yaml::List(items.iter().map(|item| yaml_of(item, is_speckit)).collect::<Result<_, _>>()?)
        }
        Kind::Map(map) => {
            let mut out = Map::new();
            for entry in &map.entries {
                out.put(key(&entry.key, is_speckit), yaml_of(&entry.value, is_speckit)?);
            }
            Yaml::Map(out)
        }
    })
}
