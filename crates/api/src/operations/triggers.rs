//! When triggers fire.

use crate::code::Code;
use crate::operation::{About, Operation, Route, Stability, Subject};
use crate::perform::{Context, Perform};
use crate::refusal::Refusal;
use crate::types::{CronPattern, Diagnostic, NextFirings, NextTrigger, Time, TriggerKind};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_dialects::{FileKind, Options, Text, file_kind, load, read_schedules};
use windlass_ir::cron::Cron;
use windlass_ir::trigger::{CronTrigger, SigningSecret, Trigger, TriggerSource};
use windlass_ir::zone::zone;
use windlass_ir::{Diagnostic as Finding, Sources};

/// How many firings are listed if the request does not say.
const COUNT: u16 = 5;
const COUNT_MAX: u16 = 1_000;

/// Show when the triggers of a file fire next.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct NextTriggers {
    /// The text of a schedules file or of a workflow.
    pub source: String,
    /// Its name, for diagnostics. Its ending says whether the text is YAML or JSON.
    pub file: Option<String>,
    /// How many firings of each trigger, from 1 to 1,000; 5 by default.
    pub count: Option<u16>,
    /// Only firings after this time; now by default.
    pub after: Option<Time>,
}

impl Operation for NextTriggers {
    type Reply = NextFirings;
    const ABOUT: About = About {
        name: "triggers.next",
        summary: "Show when triggers fire next",
        subject: Subject::Workflow,
        errors: &[Code::InvalidWorkflow],
        http: &[Route::post("/triggers/next")],
        cli: &["triggers next"],
        stability: Stability::Preview,
        ..About::PURE
    };

    fn example() -> Self {
        let source = "schedules:\n  - {id: nightly, workflow: tidy, trigger: {kind: cron, expression: \"0 30 2 * * *\"}}\n";
        Self {
            source: source.into(),
            file: Some("schedules.yaml".into()),
            count: Some(3),
            after: Some("2026-01-01T00:00:00Z".into()),
        }
    }
}

impl Perform for NextTriggers {
    async fn perform(self, _: &Context) -> Result<NextFirings, Refusal> {
        let count = self.count.unwrap_or(COUNT);
        if !(1..=COUNT_MAX).contains(&count) {
            let message = format!("`count` must be between 1 and {COUNT_MAX}");
            return Err(Refusal::new(Code::BadRequest, message).field("count"));
        }
        let after = match self.after.as_deref().map(str::parse::<Timestamp>) {
            None => Timestamp::now(),
            Some(Ok(after)) => after,
            Some(Err(_)) => {
                let refusal = Refusal::new(Code::BadRequest, "`after` is not a valid time").field("after");
                return Err(refusal.help("use a date, a time and an offset, such as 2026-03-29T00:00:00Z"));
            }
        };
        let file = self.file.unwrap_or_else(|| "-".to_owned());
        let read = Read::new(Text { name: file.clone(), bytes: self.source.into_bytes() });
        let diagnostics = Diagnostic::list(&read.findings, &read.sources, Some(&file));
        if diagnostics.iter().any(Diagnostic::is_error) {
            return Err(Refusal::found(Code::InvalidWorkflow, diagnostics));
        }
        let ask = Ask { count: count.into(), after };
        let triggers = read.triggers.iter().map(|(trigger, workflow)| ask.about(&file, trigger, workflow));
        Ok(NextFirings { after: after.to_string(), triggers: triggers.collect(), diagnostics })
    }
}

/// The triggers of a file, each with the workflow that it starts.
struct Read {
    triggers: Vec<(Trigger, Option<String>)>,
    findings: Vec<Finding>,
    sources: Sources,
}

impl Read {
    fn new(text: Text) -> Self {
        match file_kind(&text) {
            FileKind::Schedules => {
                let read = read_schedules(text);
                let entries = read.schedules.into_iter();
                let triggers =
                    entries.map(|schedule| (schedule.trigger, Some(schedule.workflow.value.to_string())));
                Self { triggers: triggers.collect(), findings: read.diagnostics, sources: read.sources }
            }
            FileKind::Workflow(_) | FileKind::Overlay | FileKind::Skill => {
                let loaded = load(text, Options::default());
                let triggers = loaded.triggers.into_iter();
                let triggers = triggers.map(|trigger| (trigger, loaded.workflow.clone())).collect();
                Self { triggers, findings: loaded.diagnostics, sources: loaded.sources }
            }
        }
    }
}

struct Ask {
    count: usize,
    after: Timestamp,
}

impl Ask {
    fn about(&self, file: &str, trigger: &Trigger, workflow: &Option<String>) -> NextTrigger {
        let mut entry = NextTrigger {
            id: trigger.id.as_ref().map(|id| id.value.to_string()),
            kind: TriggerKind::External,
            workflow: workflow.clone(),
            enabled: trigger.enabled,
            file: file.to_owned(),
            timezone: None,
            cron: None,
            path: None,
            method: None,
            signed: false,
            secret: None,
            message: None,
            next: Vec::new(),
        };
        match &trigger.source {
            TriggerSource::Cron(cron) => {
                entry.kind = TriggerKind::Cron;
                let timezone = cron.timezone.as_deref().unwrap_or("UTC").to_owned();
                entry.timezone = Some(timezone.clone());
                entry.cron = Some(CronPattern {
                    expression: cron.pattern.value.to_string(),
                    timezone,
                    jitter_seconds: cron.jitter.unwrap_or_default().as_secs_f64(),
                });
                if trigger.enabled {
                    entry.next = self.firings(cron);
                }
            }
            TriggerSource::Webhook { path, secret } => {
                entry.kind = TriggerKind::Webhook;
                entry.path = Some(path.to_string());
                entry.sign(secret.as_ref());
            }
            TriggerSource::Http(http) => {
                entry.kind = TriggerKind::Http;
                entry.path = Some(http.path.to_string());
                entry.method = Some(http.method.to_string());
                entry.sign(http.secret.as_ref());
            }
            TriggerSource::Message { name } => {
                entry.kind = TriggerKind::Message;
                entry.message = Some(name.to_string());
            }
            TriggerSource::External { kind, .. } => entry.message = Some(kind.to_string()),
        }
        entry
    }

    /// Empty without a valid pattern or zone, for which the file was refused already.
    fn firings(&self, cron: &CronTrigger) -> Vec<Time> {
        let zone = cron.timezone.as_deref().map_or(Ok(TimeZone::UTC), zone);
        let pattern = Cron::parse(&cron.pattern.value, cron.syntax);
        let (Ok(zone), Ok(pattern)) = (zone, pattern) else { return Vec::new() };
        let next = |at: &Timestamp| pattern.next_after(*at, &zone);
        let times = std::iter::successors(next(&self.after), next).take(self.count);
        times.map(|at| at.to_string()).collect()
    }
}

impl NextTrigger {
    /// Names the secret but never shows it.
    fn sign(&mut self, secret: Option<&SigningSecret>) {
        self.signed = secret.is_some();
        self.secret = match secret {
            Some(SigningSecret::Declared(name)) => Some(name.value.to_string()),
            Some(SigningSecret::Variable(name)) => Some(name.to_string()),
            Some(SigningSecret::Literal(_)) | None => None,
        };
    }
}
