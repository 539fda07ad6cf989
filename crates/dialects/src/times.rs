//! Cron patterns and time zones of a file: what is wrong with them, at the part that is wrong.

use crate::table::Table;
use crate::text::Locator;
use std::sync::Arc;
use windlass_ir::cron::Cron;
use windlass_ir::trigger::CronSyntax;
use windlass_ir::zone::{UnknownZone, zone};
use windlass_ir::{Code, Spanned};

/// A longer pattern is not repeated in the message.
const SHOWN_MAX: usize = 100;

impl Table<'_> {
    /// Reports a pattern that cannot be read; true when it can.
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
        let message = format!("{shown} is no cron pattern: {}", error.message);
        let finding = self.error(Code::BadCron, key, span, message).reference(&*pattern.value);
        self.report(match error.suggest {
            // The help names it already.
            Some(meant) => finding.help(error.help).suggest(Some(meant)),
            None => finding.help(error.help),
        });
        false
    }

    /// Reports a zone that does not exist.
    pub fn check_zone(&self, key: &'static str, name: &Spanned<Arc<str>>) {
        if let Err(unknown) = zone(&name.value) {
            let finding = self.error(Code::BadTime, key, name.span, unknown.to_string());
            self.report(finding.reference(&*name.value).suggest(unknown.suggest).help(UnknownZone::HELP));
        }
    }
}
