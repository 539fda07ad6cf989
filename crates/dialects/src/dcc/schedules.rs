//! Schedules files: which workflow a clock or a request starts, and with which input.
//!
//! A disabled entry is checked in full, and every entry is checked even if others have errors.

use super::payload::{self, Fires};
use super::routes;
use crate::Text;
use crate::table::{Context, Keys, Place, Table, is_null, wrong_shape};
use crate::text::{Kind, Node};
use std::collections::HashMap;
use std::sync::Arc;
use windlass_ir::diagnostic::sort_by_place;
use windlass_ir::trigger::{
    CatchUp, CronSyntax, CronTrigger, Overlap, Schedule, SigningSecret, Trigger, TriggerInput, TriggerSource,
};
use windlass_ir::{Code, Diagnostic, Duration, Source, Sources, Span, Spanned};

/// The default time zone.
pub const ZONE: &str = "UTC";

/// A loaded schedules file.
#[derive(Clone, Debug)]
pub struct Schedules {
    pub sources: Sources,
    /// The schedules that could be read; all of them if there are no errors.
    pub schedules: Vec<Schedule>,
    /// All findings, in the order of the file.
    pub diagnostics: Vec<Diagnostic>,
}

impl Schedules {
    pub fn is_valid(&self) -> bool {
        !self.diagnostics.iter().any(Diagnostic::is_error)
    }
}

/// Whether a file is a schedules file by its name: `schedules.yaml`, `nightly.schedules.yml`.
pub fn is_schedules_file(name: &str) -> bool {
    let file = name.rsplit(['/', '\\']).next().unwrap_or(name).to_ascii_lowercase();
    let stem = file.strip_suffix(".yaml").or_else(|| file.strip_suffix(".yml"));
    stem.is_some_and(|stem| stem == "schedules" || stem.ends_with(".schedules"))
}

/// Two paths of the same shape cannot both be served; the names of segments do not matter.
pub fn route_shape(path: &str) -> String {
    routes::shape(path)
}

/// Reads a file and checks it on its own.
pub fn read_schedules(file: Text) -> Schedules {
    let mut sources = Sources::default();
    let mut diagnostics = Vec::new();
    let mut schedules = Vec::new();
    if let Some(blank) = blank(&file) {
        sources.add(blank);
    } else if let Some(root) = crate::read(file, &mut sources, &mut diagnostics) {
        let context = Context::new(&sources, Keys::Exact, "{{");
        schedules = read_root(&root, &context);
        diagnostics.extend(context.diagnostics.into_inner());
    }
    sort_by_place(&mut diagnostics);
    Schedules { sources, schedules, diagnostics }
}

/// An empty file has no schedules, which is valid.
fn blank(file: &Text) -> Option<Source> {
    let text = std::str::from_utf8(&file.bytes).ok()?.trim_start_matches('\u{feff}');
    let says_nothing =
        |line: &str| matches!(line.trim(), "" | "---" | "...") || line.trim_start().starts_with('#');
    text.lines().all(says_nothing).then(|| Source::new(&*file.name, text))
}

fn read_root<'a>(root: &'a Node, context: &'a Context<'a>) -> Vec<Schedule> {
    let Kind::Map(map) = &root.kind else {
        if !is_null(root) {
            let finding = wrong_shape(root, "a mapping with `schedules`");
            let finding = match &root.kind {
                Kind::List(_) => finding.help("put `schedules:` above the list"),
                Kind::Scalar(_) | Kind::Map(_) => finding,
            };
            context.diagnostics.borrow_mut().push(finding);
        }
        return Vec::new();
    };
    let top = Table::new(context, map, root.span, Place::default());
    let items = top.list("schedules").unwrap_or_default().iter().enumerate();
    let entries: Vec<Entry<'_>> = items.filter_map(|(index, node)| Entry::read(&top, index, node)).collect();
    top.finish_all();
    check_ids(&entries);
    check_paths(&entries);
    entries.into_iter().filter_map(Entry::into_schedule).collect()
}

/// One entry, as far as it could be read.
struct Entry<'a> {
    table: Table<'a>,
    id: Option<Spanned<Arc<str>>>,
    workflow: Option<Spanned<Arc<str>>>,
    source: Option<TriggerSource>,
    input: TriggerInput,
    enabled: bool,
    runs_max: Option<u32>,
}

impl<'a> Entry<'a> {
    fn read(top: &Table<'a>, index: usize, node: &'a Node) -> Option<Self> {
        let table = Table::of(top.context, node, top.place.child(&format!("schedules[{index}]")))?;
        let id = named(&table, "id", "give the schedule a unique id: `id: nightly`");
        let workflow = named(&table, "workflow", "name the workflow that it starts");
        let source = read_source(&table);
        let fires = if matches!(source, Some(TriggerSource::Cron(_))) { Fires::Cron } else { Fires::Webhook };
        let input = TriggerInput::Whole(payload::bound(&table, "inputs", fires));
        let enabled = table.boolean("enabled").unwrap_or(true);
        // The default is one run at a time; zero means no limit.
        let runs_max = table.integer("max_concurrent", 0, u32::MAX.into()).unwrap_or(1);
        let runs_max = u32::try_from(runs_max).ok().filter(|runs| *runs > 0);
        table.finish_all();
        Some(Self { table, id, workflow, source, input, enabled, runs_max })
    }

    fn into_schedule(self) -> Option<Schedule> {
        let trigger = Trigger {
            id: Some(self.id?),
            enabled: self.enabled,
            source: self.source?,
            input: self.input,
            runs_max: self.runs_max,
            overlap: Overlap::Skip,
            debounce: None,
            span: self.table.span,
        };
        Some(Schedule { workflow: self.workflow?, trigger })
    }

    fn path(&self) -> Option<&Arc<str>> {
        match self.source.as_ref()? {
            TriggerSource::Webhook { path, .. } => Some(path),
            TriggerSource::Cron(_)
            | TriggerSource::Http(_)
            | TriggerSource::Message { .. }
            | TriggerSource::External { .. } => None,
        }
    }

    fn path_span(&self) -> Span {
        self.table.lookup("trigger").map_or(self.table.span, |entry| match &entry.value.kind {
            Kind::Map(map) => map.get("path").map_or(entry.value.span, |path| path.value.span),
            Kind::Scalar(_) | Kind::List(_) => entry.value.span,
        })
    }
}

/// Text that is present and not blank.
fn named(table: &Table<'_>, key: &'static str, help: &str) -> Option<Spanned<Arc<str>>> {
    let Some(text) = table.text(key) else {
        table.demand(key, help);
        return None;
    };
    if text.value.trim().is_empty() {
        let message = format!("`{}` is blank", table.place.field(key));
        table.report(table.error(Code::MissingField, key, text.span, message).help(help));
        return None;
    }
    Some(text)
}

const KINDS: [(&str, Fires); 2] = [("cron", Fires::Cron), ("webhook", Fires::Webhook)];
const CRON_KEYS: [&str; 3] = ["expression", "timezone", "jitter_secs"];
const WEBHOOK_KEYS: [&str; 2] = ["path", "secret_env"];

fn read_source(entry: &Table<'_>) -> Option<TriggerSource> {
    let Some(table) = entry.table("trigger") else {
        entry.demand("trigger", "set the trigger: `trigger: {kind: cron, expression: \"0 0 3 * * *\"}`");
        return None;
    };
    let Some(kind) = table.word("kind", &KINDS) else {
        table.demand("kind", "set the kind: `kind: cron` or `kind: webhook`");
        // While the kind is unknown, the keys of both kinds are accepted.
        table.known(&CRON_KEYS);
        table.known(&WEBHOOK_KEYS);
        table.finish_all();
        return None;
    };
    let (source, others) = match kind {
        Fires::Cron => (read_cron(&table), WEBHOOK_KEYS.as_slice()),
        Fires::Webhook => (read_webhook(&table), CRON_KEYS.as_slice()),
    };
    table.finish(others, |key| match WEBHOOK_KEYS.contains(&key) {
        true => ("on a cron trigger".to_owned(), "remove it, or write `kind: webhook`"),
        false => ("on a webhook".to_owned(), "remove it, or write `kind: cron`"),
    });
    source
}

fn read_cron(table: &Table<'_>) -> Option<TriggerSource> {
    let pattern = table.text("expression");
    let timezone = table.text("timezone");
    let jitter = table.integer("jitter_secs", 0, u32::MAX.into()).filter(|seconds| *seconds > 0);
    match &pattern {
        Some(pattern) => drop(table.check_cron("expression", pattern, CronSyntax::SecondsFirst)),
        None => {
            table.demand("expression", "set the time: `expression: \"0 0 3 * * *\"` is every day at 3:00");
        }
    }
    if let Some(zone) = &timezone {
        table.check_zone("timezone", zone);
    }
    Some(TriggerSource::Cron(CronTrigger {
        pattern: pattern?,
        syntax: CronSyntax::SecondsFirst,
        timezone: Some(timezone.map_or_else(|| ZONE.into(), |zone| zone.value)),
        jitter: jitter.map(Duration::from_secs),
        catch_up: CatchUp::None,
    }))
}

fn read_webhook(table: &Table<'_>) -> Option<TriggerSource> {
    let path = table.text("path");
    let secret = table.text("secret_env");
    match &path {
        Some(path) => check_path(table, path),
        None => table.demand("path", "set the path to listen on: `path: /hooks/upload`"),
    }
    if let Some(variable) = secret.as_ref().filter(|variable| variable.value.trim().is_empty()) {
        let finding = table.error(
            Code::BadName,
            "secret_env",
            variable.span,
            "missing name of an environment variable",
        );
        table.report(finding.help("name the variable that contains the secret, or remove the key"));
    }
    let secret = secret.map(|variable| SigningSecret::Variable(variable.value));
    Some(TriggerSource::Webhook { path: path?.value, secret })
}

fn check_path(table: &Table<'_>, path: &Spanned<Arc<str>>) {
    if let Err(bad) = routes::check(&path.value) {
        let message = format!("invalid path `{}`: {}", path.value, bad.cause);
        let finding = table.error(Code::BadPath, "path", path.span, message);
        table.report(finding.reference(&*path.value).suggest(bad.suggest).help(bad.help));
    }
}

fn check_ids(entries: &[Entry<'_>]) {
    let mut seen: HashMap<&str, Span> = HashMap::new();
    for entry in entries {
        let Some(id) = &entry.id else { continue };
        let first = *seen.entry(&id.value).or_insert(id.span);
        if first != id.span {
            let message = format!("duplicate schedule id `{}`", id.value);
            let finding = entry.table.error(Code::DuplicateTrigger, "id", id.span, message);
            let finding = finding.label(first, "first used here").reference(&*id.value);
            entry.table.report(finding.help("rename one of them"));
        }
    }
}

/// Two routes of the same shape cannot both be served. A disabled entry has no route, but would conflict once it is
/// enabled.
fn check_paths(entries: &[Entry<'_>]) {
    let mut seen: HashMap<String, &Entry<'_>> = HashMap::new();
    for entry in entries {
        let Some(path) = entry.path() else { continue };
        let span = entry.path_span();
        let first = *seen.entry(routes::shape(path)).or_insert(entry);
        if first.path_span() == span {
            continue;
        }
        let both = first.enabled && entry.enabled;
        let message = match both {
            true => format!("two webhooks listen on `{path}`"),
            false => format!("two webhooks would listen on `{path}` if both were enabled"),
        };
        let finding = match both {
            true => entry.table.error(Code::DuplicateTrigger, "trigger.path", span, message),
            false => entry.table.warning(Code::DuplicateTrigger, "trigger.path", span, message),
        };
        let finding = finding.label(first.path_span(), "first used here").reference(&**path);
        entry.table.report(finding.help("change one of the paths"));
    }
}
