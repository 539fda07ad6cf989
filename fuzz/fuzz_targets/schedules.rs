//! Any bytes as a file of schedules and as a skill, and any text as a pattern: reading never panics, every place lies in its
//! file, and the next fire is after the instant that it was asked for.
#![no_main]

use jiff::Timestamp;
use libfuzzer_sys::fuzz_target;
use windlass_dialects::dcc::skill::read_skill;
use windlass_dialects::{Text, read_schedules};
use windlass_ir::cron::Cron;
use windlass_ir::trigger::{CronSyntax, TriggerInput, TriggerSource};
use windlass_ir::zone::zone;
use windlass_ir::{Diagnostic, Sources, Span};

const SYNTAXES: [CronSyntax; 3] = [CronSyntax::House, CronSyntax::Posix, CronSyntax::SecondsFirst];
/// Whole hours, half hours, a day that is missing, and no change at all.
const ZONES: [&str; 4] = ["Europe/Berlin", "Australia/Lord_Howe", "Pacific/Apia", "UTC"];
const FIRES_MAX: usize = 3;

fuzz_target!(|data: &[u8]| {
    let read = read_schedules(Text { name: "fuzz.schedules.yaml".into(), bytes: data.to_vec() });
    check_findings(&read.diagnostics, &read.sources);
    for schedule in read.schedules.iter().take(20) {
        if let TriggerInput::Whole(input) = &schedule.trigger.input {
            input.template.expressions().into_iter().for_each(|expr| check_span(expr.span, &read.sources));
        }
        if let TriggerSource::Cron(cron) = &schedule.trigger.source {
            check_pattern(&cron.pattern.value, data.len());
        }
    }
    let skill = read_skill(&Text { name: "SKILL.md".into(), bytes: data.to_vec() });
    check_findings(&skill.diagnostics, &skill.sources);
    if let Ok(text) = std::str::from_utf8(data) {
        check_pattern(text, data.len());
    }
});

fn check_findings(findings: &[Diagnostic], sources: &Sources) {
    for finding in findings {
        assert!(!finding.message.is_empty() && !finding.help.is_empty(), "{finding:?}");
        check_span(finding.span.expect("every finding has a place"), sources);
        finding.labels.iter().for_each(|label| check_span(label.span, sources));
    }
}

fn check_span(span: Span, sources: &Sources) {
    let text = &sources.get(span.source).text;
    assert!(text.get(span.start as usize..span.end as usize).is_some(), "{span:?} in {} bytes", text.len());
}

/// The seed moves the start, so that both halves of a change are met.
fn check_pattern(text: &str, seed: usize) {
    for syntax in SYNTAXES {
        match Cron::parse(text, syntax) {
            Ok(cron) => ZONES.iter().for_each(|zone| check_fires(&cron, zone, seed)),
            Err(error) => assert!(text.get(error.range.clone()).is_some(), "{error:?} in {text:?}"),
        }
    }
}

fn check_fires(cron: &Cron, name: &str, seed: usize) {
    const HOUR: i64 = 3_600;
    let zone = zone(name).expect("it is built in");
    let start = 1_300_000_000 + i64::try_from(seed % 100_000).unwrap_or_default() * HOUR;
    let mut at = Timestamp::from_second(start).expect("within a few years of now");
    for _ in 0..FIRES_MAX {
        let Some(next) = cron.next_after(at, &zone) else { return };
        assert!(next > at, "{next} is not after {at}");
        assert_eq!(next.subsec_nanosecond(), 0);
        at = next;
    }
}
