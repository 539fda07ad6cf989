//! Checks cron patterns, time zones and timeouts of gates, and points to the invalid part.

use crate::table::Table;
use crate::text::Locator;
use std::sync::Arc;
use windlass_ir::cron::Cron;
use windlass_ir::trigger::CronSyntax;
use windlass_ir::zone::{UnknownZone, zone};
use windlass_ir::{Code, Duration, Spanned};

/// Longer patterns are not repeated in the message.
const SHOWN_MAX: usize = 100;

impl Table<'_> {
    /// Reports an invalid pattern; returns whether it is valid.
    pub fn check_cron(&self, key: &'static str, pattern: &Spanned<Arc<str>>, syntax: CronSyntax) -> bool {
        let Err(error) = Cron::parse(&pattern.value, syntax) else { return true };
        let source = self.context.sources.get(pattern.span.source);
        let span = match self.lookup(key) {
            Some(entry) if error.range.len() < pattern.value.len() => {
                Locator::new(&entry.value, source).span(error.range)
            }
            // The whole pattern is shown with its quotes.
            Some(_) | None => pattern.span,
        };
        let shown = if pattern.value.len() > SHOWN_MAX { "this" } else { &format!("`{}`", pattern.value) };
        let message = format!("invalid cron pattern {shown}: {}", error.message);
        let finding = self.error(Code::BadCron, key, span, message).reference(&*pattern.value);
        self.report(match error.suggest {
            // The help already contains the suggestion.
            Some(meant) => finding.help(error.help).suggest(Some(meant)),
            None => finding.help(error.help),
        });
        false
    }

    /// Reports an unknown time zone.
    pub fn check_zone(&self, key: &'static str, name: &Spanned<Arc<str>>) {
        if let Err(unknown) = zone(&name.value) {
            let finding = self.error(Code::BadTime, key, name.span, unknown.to_string());
            self.report(finding.reference(&*name.value).suggest(unknown.suggest).help(UnknownZone::HELP));
        }
    }

    /// Warns about a gate that may wait longer than the whole run may take.
    pub fn check_gate_timeout(&self, gate: Option<Duration>, run: Option<Duration>, help: &str) {
        let (Some(gate), Some(run)) = (gate, run) else { return };
        if gate > run {
            let span = self.node("timeout").map_or(self.span, |node| node.span);
            let message = format!("this gate may wait {gate}, longer than the whole run may take ({run})");
            let finding = self.warning(Code::GateTimeoutExceedsRunTimeout, "timeout", span, message);
            self.report(finding.help(help));
        }
    }
}
