//! The front matter of a SKILL.md: which files next to it contain the skill's workflows and schedules.
//!
//! Three forms are in use: `dcc-mcp.workflows` with a string of globs, the same nested under `dcc-mcp`, and
//! `dcc-mcp.workflow` with `specs` and `schedules`, nested or flat. They are combined. Everything else in the front
//! matter belongs to other programs.

use crate::Text;
use crate::table::{Context, Keys, Place, Table, is_null, wrong_shape};
use crate::text::{self, Format, Kind, Limits, Locator, Mapping, Node, Scalar};
use globset::{GlobBuilder, GlobMatcher};
use std::sync::Arc;
use windlass_ir::diagnostic::sort_by_place;
use windlass_ir::suggest::nearest;
use windlass_ir::{Code, Diagnostic, Source, Sources, Span, Spanned};

/// The name of the file, in upper or lower case.
pub const SKILL_FILE: &str = "SKILL.md";

/// The files that a skill declares.
#[derive(Clone, Debug)]
pub struct Skill {
    pub sources: Sources,
    pub name: Option<Arc<str>>,
    pub workflows: Vec<Pattern>,
    pub schedules: Vec<Pattern>,
    /// Words to find its workflows by.
    pub search_hint: Option<Arc<str>>,
    /// All findings, in the order of the file.
    pub diagnostics: Vec<Diagnostic>,
}

/// Files below the skill's folder, as a path with wildcards: `*` within a name, `**` across folders.
#[derive(Clone, Debug)]
pub struct Pattern {
    pub glob: Spanned<Arc<str>>,
    matcher: GlobMatcher,
}

impl Pattern {
    /// Whether a path matches; relative to the folder and with slashes.
    pub fn matches(&self, path: &str) -> bool {
        self.matcher.is_match(path)
    }
}

pub fn is_skill_file(name: &str) -> bool {
    let file = name.rsplit(['/', '\\']).next().unwrap_or(name);
    file.eq_ignore_ascii_case(SKILL_FILE)
}

pub fn read_skill(file: &Text) -> Skill {
    let mut sources = Sources::default();
    let mut diagnostics = Vec::new();
    let root = match text::decode(&file.bytes) {
        Ok(text) => read_front_matter(Source::new(&*file.name, text), &mut sources, &mut diagnostics),
        Err(finding) => {
            let id = sources.add(Source::new(&*file.name, ""));
            diagnostics.push(finding.at(Span::new(id, 0, 0)));
            None
        }
    };
    let context = Context::new(&sources, Keys::Exact, "{{");
    let mut found = Found { name: None, workflows: Vec::new(), schedules: Vec::new(), search_hint: None };
    if let Some(root) = &root {
        found.read(root, &context);
    }
    diagnostics.extend(context.diagnostics.into_inner());
    sort_by_place(&mut diagnostics);
    let Found { name, workflows, schedules, search_hint } = found;
    Skill { sources, name, workflows, schedules, search_hint, diagnostics }
}

/// Reads the text between the first two `---` lines. The rest is blanked out, not cut off, so that locations stay
/// valid.
fn read_front_matter(source: Source, sources: &mut Sources, found: &mut Vec<Diagnostic>) -> Option<Node> {
    let (text, name) = (source.text.clone(), source.name.clone());
    let id = sources.add(source);
    let Some((start, end)) = front_matter(&text) else {
        let message = "missing front matter: the file does not start with a block between two `---` lines";
        let help = "start the file with `---`, the metadata of the skill, and another `---`";
        found.push(Diagnostic::error(Code::Syntax, message).at(Span::new(id, 0, 0)).help(help));
        return None;
    };
    let blank =
        |part: &str| part.bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }).collect::<String>();
    let masked = blank(&text[..start]) + &text[start..end] + &blank(&text[end..]);
    if text[start..end].trim().is_empty() {
        return None;
    }
    let read = text::read(&Source::new(name, masked), id, Format::Yaml, &Limits::default());
    found.extend(read.diagnostics);
    read.root
}

fn front_matter(text: &str) -> Option<(usize, usize)> {
    let is_fence = |line: &str| line.trim_end() == "---";
    let mut lines = text.split_inclusive('\n');
    let start = lines.next().filter(|line| is_fence(line))?.len();
    let mut end = start;
    for line in lines {
        if is_fence(line) {
            return Some((start, end));
        }
        end += line.len();
    }
    None
}

struct Found {
    name: Option<Arc<str>>,
    workflows: Vec<Pattern>,
    schedules: Vec<Pattern>,
    search_hint: Option<Arc<str>>,
}

/// How the value of a key may be written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// One comma-separated string; hosts accept nothing else here.
    Text,
    TextOrList,
}

const NAMESPACE: &str = "dcc-mcp";

impl Found {
    fn read<'a>(&mut self, root: &'a Node, context: &'a Context<'a>) {
        let Kind::Map(map) = &root.kind else {
            if !is_null(root) {
                context.diagnostics.borrow_mut().push(wrong_shape(root, "a mapping"));
            }
            return;
        };
        let top = Table::new(context, map, root.span, Place::default());
        self.name = top.prose("name").filter(|name| !name.trim().is_empty());
        let Some(metadata) = top.table("metadata") else { return };
        self.read_flat(&metadata);
        self.search_hint = metadata.prose("dcc-mcp.workflows.search-hint");
        if let Some(nested) = metadata.table(NAMESPACE) {
            self.search_hint = nested.prose("workflows.search-hint").or_else(|| self.search_hint.take());
            self.add(&nested, "workflows", Shape::Text, |found| &mut found.workflows);
            report_near_misses(&nested, &NESTED_KEYS, &["workflow", "schedule"]);
            if let Some(workflow) = nested.table("workflow") {
                self.add(&workflow, "specs", Shape::TextOrList, |found| &mut found.workflows);
                self.add(&workflow, "schedules", Shape::TextOrList, |found| &mut found.schedules);
                workflow.finish_all();
            }
        }
    }

    fn read_flat(&mut self, metadata: &Table<'_>) {
        self.add(metadata, "dcc-mcp.workflows", Shape::Text, |found| &mut found.workflows);
        self.add(metadata, "dcc-mcp.workflow.specs", Shape::TextOrList, |found| &mut found.workflows);
        self.add(metadata, "dcc-mcp.workflow.schedules", Shape::TextOrList, |found| &mut found.schedules);
        report_near_misses(metadata, &FLAT_KEYS, &["dcc-mcp.workflow", "dcc-mcp.schedule"]);
    }

    fn add(
        &mut self,
        table: &Table<'_>,
        key: &'static str,
        shape: Shape,
        list: impl Fn(&mut Self) -> &mut Vec<Pattern>,
    ) {
        let Some(node) = table.node(key) else { return };
        if shape == Shape::Text && matches!(node.kind, Kind::List(_)) {
            let message = format!("hosts expect a comma-separated string for `{key}`, not a list");
            let help = "write one string; Windlass accepts the list as well";
            table.report(table.warning(Code::WrongShape, key, node.span, message).help(help));
        }
        let globs = globs(table, key, node);
        list(self).extend(globs.into_iter().filter_map(|glob| pattern(table, key, glob)));
    }
}

const FLAT_KEYS: [&str; 4] = [
    "dcc-mcp.workflows",
    "dcc-mcp.workflow.specs",
    "dcc-mcp.workflow.schedules",
    "dcc-mcp.workflows.search-hint",
];
const NESTED_KEYS: [&str; 3] = ["workflows", "workflow", "workflows.search-hint"];

/// Keys that were probably meant for Windlass; a misspelled one would be ignored silently.
fn report_near_misses(table: &Table<'_>, keys: &[&'static str], beginnings: &[&str]) {
    for entry in &table.map.entries {
        let key = &*entry.key.text;
        if keys.contains(&key) || !beginnings.iter().any(|beginning| key.starts_with(beginning)) {
            continue;
        }
        let message = format!("unknown key `{key}`");
        let finding = table.warning(Code::UnknownKey, key, entry.key.span, message);
        let finding = finding.reference(key).suggest(nearest(key, keys.iter().copied()));
        table.report(finding.help(format!("use one of {}", keys.join(", "))));
    }
}

/// The strings in a value: comma-separated parts, or the items of a list.
fn globs(table: &Table<'_>, key: &'static str, node: &Node) -> Vec<Spanned<Arc<str>>> {
    match &node.kind {
        Kind::Scalar(scalar) => parts(table, scalar, node),
        Kind::List(items) => items
            .iter()
            .flat_map(|item| match &item.kind {
                Kind::Scalar(scalar) if !is_null(item) => parts(table, scalar, item),
                Kind::Scalar(_) | Kind::List(_) | Kind::Map(_) => {
                    table.report(wrong_shape(item, "text").field(table.place.field(key)));
                    Vec::new()
                }
            })
            .collect(),
        Kind::Map(_) => {
            table.report(wrong_shape(node, "text").field(table.place.field(key)));
            Vec::new()
        }
    }
}

fn parts(table: &Table<'_>, scalar: &Scalar, node: &Node) -> Vec<Spanned<Arc<str>>> {
    let locator = Locator::new(node, table.context.sources.get(node.span.source));
    let mut start = 0;
    let mut parts = Vec::new();
    let mut depth = 0_usize;
    // A comma between braces belongs to the pattern.
    let is_end = |letter: char| {
        match letter {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        letter == ',' && depth == 0
    };
    for part in scalar.text.split(is_end) {
        let glob = part.trim();
        let from = start + (part.len() - part.trim_start().len());
        start += part.len() + 1;
        if !glob.is_empty() {
            parts.push(Spanned::new(glob.into(), locator.span(from..from + glob.len())));
        }
    }
    parts
}

fn pattern(table: &Table<'_>, key: &str, glob: Spanned<Arc<str>>) -> Option<Pattern> {
    let bad = |message: String, help: &str| {
        let finding = table.error(Code::BadPath, key, glob.span, message);
        table.report(finding.reference(&*glob.value).help(help));
        None
    };
    if glob.value.starts_with('/') || glob.value.contains(['\\', ':']) {
        let message = format!("`{}` is not a path below the skill's folder", glob.value);
        return bad(message, "write a relative path with slashes");
    }
    if glob.value.split('/').any(|part| part == "..") {
        let message = format!("`{}` leads out of the skill's folder", glob.value);
        return bad(message, "keep the files of a skill in its folder");
    }
    let relative = glob.value.strip_prefix("./").unwrap_or(&glob.value);
    match GlobBuilder::new(relative).literal_separator(true).build() {
        Ok(built) => Some(Pattern { matcher: built.compile_matcher(), glob }),
        Err(error) => bad(
            format!("invalid path pattern `{}`: {}", glob.value, error.kind()),
            "`*` matches part of a name, `**` any folders, `{a,b}` one of several",
        ),
    }
}

/// The name by which a schedule starts the workflow of a file: the name in the file, otherwise the file name without
/// extensions. An unreadable file still has the latter.
pub fn workflow_name(file: &Text) -> String {
    let stated = text::decode(&file.bytes).ok().and_then(|text| {
        let source = Source::new(&*file.name, text);
        let format = crate::format_of(&source)?;
        stated_name(&text::read(&source, windlass_ir::SourceId(0), format, &Limits::default()).root?)
    });
    stated.unwrap_or_else(|| {
        let name = file.name.rsplit(['/', '\\']).next().unwrap_or(&file.name);
        let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
        stem.strip_suffix(".workflow").unwrap_or(stem).to_owned()
    })
}

/// `name`, or the id under `workflow` in dialects that put it there.
fn stated_name(root: &Node) -> Option<String> {
    let Kind::Map(map) = &root.kind else { return None };
    let id = || match &map.get("workflow")?.value.kind {
        Kind::Map(header) => said(header, "id"),
        Kind::Scalar(_) | Kind::List(_) => None,
    };
    said(map, "name").or_else(id)
}

fn said(map: &Mapping, key: &str) -> Option<String> {
    match &map.get(key)?.value.kind {
        Kind::Scalar(scalar) if !scalar.text.trim().is_empty() => Some(scalar.text.to_string()),
        Kind::Scalar(_) | Kind::List(_) | Kind::Map(_) => None,
    }
}
