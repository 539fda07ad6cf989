//! When triggers fire next, for people and for programs.

use super::{Entry, Found};
use crate::show::Screen;
use crate::show::words::clean;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use serde_json::{Value, json};
use std::fmt::Write;
use windlass_ir::cron::Cron;
use windlass_ir::trigger::{CronTrigger, SigningSecret, TriggerSource};
use windlass_ir::zone::zone;

/// What is asked: how many fires, after when, and what the clock of this machine shows.
#[derive(Debug)]
pub struct Ask {
    pub count: usize,
    pub from: Timestamp,
    pub local: TimeZone,
}

/// The fires of a clock, in its own zone.
struct Fires {
    zone: TimeZone,
    times: Vec<Zoned>,
}

impl Ask {
    pub fn local_name(&self) -> &str {
        self.local.iana_name().unwrap_or("local")
    }

    /// None when it has no pattern or no zone, which its file has been refused for.
    fn fires(&self, cron: &CronTrigger) -> Option<Fires> {
        let zone = cron.timezone.as_deref().map_or(Ok(TimeZone::UTC), zone).ok()?;
        let pattern = Cron::parse(&cron.pattern.value, cron.syntax).ok()?;
        let next = |at: &Timestamp| pattern.next_after(*at, &zone);
        let times = std::iter::successors(next(&self.from), next).take(self.count);
        let times = times.map(|at| at.to_zoned(zone.clone())).collect();
        Some(Fires { zone, times })
    }

    pub fn render(&self, found: &[Found], screen: &Screen) -> String {
        let mut text = format!(
            "fires after {}; where two times stand side by side, the second is local ({})\n",
            show(&self.from.to_zoned(self.local.clone())),
            clean(self.local_name()),
        );
        let with_triggers: Vec<&Found> = found.iter().filter(|file| !file.entries.is_empty()).collect();
        for file in &with_triggers {
            if with_triggers.len() > 1 {
                let _ = write!(text, "\n{}\n", screen.bold(&clean(&file.file)));
            }
            for (number, entry) in file.entries.iter().enumerate() {
                text.push('\n');
                text.push_str(&self.render_entry(number, entry, screen));
            }
        }
        if with_triggers.is_empty() {
            text.push_str("\nthere are no triggers\n");
        }
        text
    }

    fn render_entry(&self, number: usize, entry: &Entry, screen: &Screen) -> String {
        let name = clean(&name(number, entry)).into_owned();
        let workflow = entry.workflow.as_deref().map(|workflow| format!(" -> {}", clean(workflow)));
        let disabled = if entry.trigger.enabled { "" } else { " (disabled: never fires)" };
        let mut text = format!("{}{}{disabled}\n", screen.bold(&name), workflow.unwrap_or_default());
        let _ = writeln!(text, "  {}", clean(&source(&entry.trigger.source)));
        if let (TriggerSource::Cron(cron), true) = (&entry.trigger.source, entry.trigger.enabled)
            && let Some(fires) = self.fires(cron)
        {
            text.push_str(&self.render_fires(&fires));
        }
        text
    }

    fn render_fires(&self, fires: &Fires) -> String {
        let shown: Vec<String> = fires.times.iter().map(show).collect();
        let width = shown.iter().map(String::len).max().unwrap_or_default();
        let mut text = String::new();
        for (time, shown) in fires.times.iter().zip(&shown) {
            let local = match fires.zone == self.local {
                true => String::new(),
                false => format!("   {}", show(&time.with_time_zone(self.local.clone()))),
            };
            let line = format!("  {shown:width$}{local}");
            let _ = writeln!(text, "{}", line.trim_end());
        }
        match shown.len() {
            0 => text.push_str("  never: no such time comes before the year 2101\n"),
            count if count < self.count => text.push_str("  and never after that\n"),
            _ => {}
        }
        text
    }

    pub fn to_json(&self, found: &[Found]) -> Vec<Value> {
        let entries = found.iter().flat_map(|file| file.entries.iter().map(move |entry| (file, entry)));
        entries.map(|(file, entry)| self.entry_json(&file.file, entry)).collect()
    }

    fn entry_json(&self, file: &str, entry: &Entry) -> Value {
        let (kind, cron, path) = match &entry.trigger.source {
            TriggerSource::Cron(cron) => ("cron", Some(cron), None),
            TriggerSource::Webhook { path, .. } => ("webhook", None, Some(&**path)),
            TriggerSource::Http(http) => ("http", None, Some(&*http.path)),
            TriggerSource::Message { .. } => ("message", None, None),
            TriggerSource::External { .. } => ("external", None, None),
        };
        let fires = cron.filter(|_| entry.trigger.enabled).and_then(|cron| self.fires(cron));
        let fire = |time: &Zoned| {
            json!({
                "at": time.timestamp().to_string(),
                "in_timezone": with_offset(time),
                "local": with_offset(&time.with_time_zone(self.local.clone())),
            })
        };
        json!({
            "file": file,
            "id": entry.trigger.id.as_ref().map(|id| &*id.value),
            "workflow": entry.workflow.as_deref(),
            "kind": kind,
            "enabled": entry.trigger.enabled,
            "pattern": cron.map(|cron| &*cron.pattern.value),
            "timezone": cron.map(|cron| cron.timezone.as_deref().unwrap_or("UTC")),
            "jitter_seconds": cron.map(|cron| cron.jitter.unwrap_or_default().as_secs_f64()),
            "path": path,
            "fires": fires.map(|fires| fires.times.iter().map(fire).collect::<Vec<Value>>()),
        })
    }
}

/// `Sun 2026-03-29 03:00:00 CEST`.
fn show(time: &Zoned) -> String {
    time.strftime("%a %Y-%m-%d %H:%M:%S %Z").to_string()
}

/// `2026-03-29T03:00:00+02:00`.
fn with_offset(time: &Zoned) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string()
}

fn name(number: usize, entry: &Entry) -> String {
    entry.trigger.id.as_ref().map_or_else(|| format!("trigger {}", number + 1), |id| id.value.to_string())
}

/// What fires it, in a line.
fn source(source: &TriggerSource) -> String {
    match source {
        TriggerSource::Cron(cron) => {
            let zone = cron.timezone.as_deref().unwrap_or("UTC");
            let jitter = cron.jitter.map(|jitter| format!(", each up to {jitter} later"));
            format!("cron {} in {zone}{}", cron.pattern.value, jitter.unwrap_or_default())
        }
        TriggerSource::Webhook { path, secret } => format!("webhook: POST {path}{}", signed(secret.as_ref())),
        TriggerSource::Http(http) => {
            format!("http: {} {}{}", http.method, http.path, signed(http.secret.as_ref()))
        }
        TriggerSource::Message { name } => format!("message {name}"),
        TriggerSource::External { kind, .. } => format!("{kind}, which a worker brings"),
    }
}

/// Never the secret itself.
fn signed(secret: Option<&SigningSecret>) -> String {
    match secret {
        None => String::new(),
        Some(SigningSecret::Declared(name)) => format!(", signed with the secret {}", name.value),
        Some(SigningSecret::Variable(name)) => format!(", signed with the secret in {name}"),
        Some(SigningSecret::Literal(_)) => ", signed".to_owned(),
    }
}
