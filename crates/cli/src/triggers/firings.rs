//! Shows the next firings of triggers as text.

use crate::show::Screen;
use crate::show::words::clean;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use std::fmt::Write;
use windlass_api::types::{NextTrigger, TriggerKind};
use windlass_ir::zone::zone;

/// How to show the firings.
#[derive(Debug)]
pub struct Page {
    /// The number of firings to show.
    pub count: usize,
    pub after: Timestamp,
    /// The time zone of this machine.
    pub local: TimeZone,
}

impl Page {
    /// The triggers of each file.
    pub fn render(&self, files: &[(String, Vec<NextTrigger>)], screen: &Screen) -> String {
        let mut text = format!(
            "firings after {}; a second time on a line is local ({})\n",
            show(&self.after.to_zoned(self.local.clone())),
            clean(self.local.iana_name().unwrap_or("local")),
        );
        let files: Vec<_> = files.iter().filter(|(_, triggers)| !triggers.is_empty()).collect();
        for (file, triggers) in &files {
            if files.len() > 1 {
                let _ = write!(text, "\n{}\n", screen.bold(&clean(file)));
            }
            for (number, trigger) in triggers.iter().enumerate() {
                text.push('\n');
                text.push_str(&self.render_trigger(number, trigger, screen));
            }
        }
        if files.is_empty() {
            text.push_str("\nno triggers\n");
        }
        text
    }

    fn render_trigger(&self, number: usize, trigger: &NextTrigger, screen: &Screen) -> String {
        let name = trigger.id.clone().unwrap_or_else(|| format!("trigger {}", number + 1));
        let workflow = trigger.workflow.as_deref().map(|workflow| format!(" -> {}", clean(workflow)));
        let disabled = if trigger.enabled { "" } else { " (disabled: never fires)" };
        let mut text = format!("{}{}{disabled}\n", screen.bold(&clean(&name)), workflow.unwrap_or_default());
        let _ = writeln!(text, "  {}", clean(&source(trigger)));
        if let (Some(cron), true) = (&trigger.cron, trigger.enabled) {
            text.push_str(&self.render_firings(&trigger.next, &cron.timezone));
        }
        text
    }

    fn render_firings(&self, times: &[String], timezone: &str) -> String {
        let zone = zone(timezone).unwrap_or(TimeZone::UTC);
        let times = times.iter().filter_map(|time| time.parse::<Timestamp>().ok());
        let times: Vec<Zoned> = times.map(|time| time.to_zoned(zone.clone())).collect();
        let shown: Vec<String> = times.iter().map(show).collect();
        let width = shown.iter().map(String::len).max().unwrap_or_default();
        let mut text = String::new();
        for (time, shown) in times.iter().zip(&shown) {
            let local = match zone == self.local {
                true => String::new(),
                false => format!("   {}", show(&time.with_time_zone(self.local.clone()))),
            };
            let line = format!("  {shown:width$}{local}");
            let _ = writeln!(text, "{}", line.trim_end());
        }
        match shown.len() {
            0 => text.push_str("  never: there is no such time before the year 2101\n"),
            count if count < self.count => text.push_str("  and never after that\n"),
            _ => {}
        }
        text
    }
}

/// `Sun 2026-03-29 03:00:00 CEST`.
fn show(time: &Zoned) -> String {
    time.strftime("%a %Y-%m-%d %H:%M:%S %Z").to_string()
}

/// A one-line description of the trigger's source.
fn source(trigger: &NextTrigger) -> String {
    let path = trigger.path.as_deref().unwrap_or_default();
    let message = trigger.message.as_deref().unwrap_or_default();
    match trigger.kind {
        TriggerKind::Cron => {
            let Some(cron) = &trigger.cron else { return "cron".to_owned() };
            let jitter = match cron.jitter_seconds {
                0.0 => String::new(),
                // The cast saturates, and a jitter is only a few minutes.
                seconds => {
                    format!(", each up to {} later", windlass_ir::Duration((seconds * 1e6).round() as u64))
                }
            };
            format!("cron {} in {}{jitter}", cron.expression, cron.timezone)
        }
        TriggerKind::Webhook => format!("webhook: POST {path}{}", signed(trigger)),
        TriggerKind::Http => {
            format!("http: {} {path}{}", trigger.method.as_deref().unwrap_or("POST"), signed(trigger))
        }
        TriggerKind::Message => format!("message {message}"),
        TriggerKind::External => format!("{message}, sent by a worker"),
    }
}

fn signed(trigger: &NextTrigger) -> String {
    match (&trigger.secret, trigger.signed) {
        (Some(secret), _) => format!(", signed with the secret {secret}"),
        (None, true) => ", signed".to_owned(),
        (None, false) => String::new(),
    }
}
