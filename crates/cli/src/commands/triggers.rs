//! `windlass triggers`: the next and the past firings of triggers.

use super::{call, pure, validate};
use crate::answer::{Answer, Exit, Refused};
use crate::args::{Triggers, TriggersCommand, TriggersHistory, TriggersNext};
use crate::data;
use crate::show::{Screens, diagnostics};
use crate::triggers::firings::Page;
use crate::triggers::{Found, What, history, read};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use windlass_api::operations::{ListFirings, NextTriggers};
use windlass_api::types::{Diagnostic, NextFirings};
use windlass_api::{Code, Refusal};
use windlass_ir::Sources;

pub fn run(args: &Triggers, screens: &Screens) -> Result<Answer, Refused> {
    match &args.command {
        TriggersCommand::Check(args) => validate::run(args, screens),
        TriggersCommand::Next(args) => next(args, screens),
        TriggersCommand::History(args) => past(args, screens),
    }
}

fn next(args: &TriggersNext, screens: &Screens) -> Result<Answer, Refused> {
    let found = read(std::slice::from_ref(&args.file));
    let findings = |file: &Found| Diagnostic::list(&file.all(), &file.sources, Some(&file.file));
    let diagnostics: Vec<Diagnostic> = found.iter().flat_map(findings).collect();
    let mut sources = Sources::default();
    for source in found.iter().flat_map(|file| file.sources.iter()) {
        sources.add(source.clone());
    }
    if !found.iter().all(Found::is_valid) {
        let is_unreadable = found.iter().any(|file| file.what == What::Unreadable);
        let code = if is_unreadable { Code::Unreadable } else { Code::InvalidWorkflow };
        return Err(Refused { refusal: Box::new(Refusal::found(code, diagnostics)), sources });
    }
    let after = args.after.unwrap_or_else(Timestamp::now);
    let mut files = Vec::new();
    for file in &found {
        // A skill only names files.
        if matches!(file.what, What::Skill { .. }) {
            continue;
        }
        let text = file.sources.iter().next().map(|source| source.text.to_string());
        let request = NextTriggers {
            source: text.unwrap_or_default(),
            file: Some(file.file.clone()),
            count: Some(args.count),
            after: Some(after.to_string()),
        };
        files.push((file.file.clone(), pure(request)?.triggers));
    }
    if args.json {
        let triggers = files.into_iter().flat_map(|(_, triggers)| triggers).collect();
        return Ok(Answer::json(
            Exit::Done,
            &NextFirings { after: after.to_string(), triggers, diagnostics },
        ));
    }
    let local = TimeZone::try_system().unwrap_or(TimeZone::UTC);
    let page = Page { count: args.count.into(), after, local };
    let stderr = diagnostics::explained(&diagnostics, &sources, &screens.stderr);
    Ok(Answer { stdout: page.render(&files, &screens.stdout), stderr, ..Answer::new(Exit::Done) })
}

fn past(args: &TriggersHistory, screens: &Screens) -> Result<Answer, Refused> {
    let request =
        ListFirings { trigger: args.trigger.clone(), limit: Some(args.limit), ..ListFirings::default() };
    let firings = call(&data::listed(&args.data), request)?;
    Ok(match args.json {
        true => Answer::json(Exit::Done, &firings),
        false if firings.items.is_empty() => {
            Answer { stderr: "no firings\n".into(), ..Answer::new(Exit::Done) }
        }
        false => {
            Answer { stdout: history::render(&firings.items, &screens.stdout), ..Answer::new(Exit::Done) }
        }
    })
}
