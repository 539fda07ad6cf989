//! Tests of triggers with fixed instants, so that no test waits for a clock.

use super::due::{Agenda, Doing, Due};
use super::*;
use windlass_ir::trigger::{CatchUp, CronSyntax, CronTrigger};
use windlass_ir::{Duration, Span, Spanned};

fn at(text: &str) -> Timestamp {
    let read: jiff::Timestamp = text.parse().expect("an instant");
    Timestamp(read.as_microsecond())
}

fn cron(pattern: &str, catch_up: CatchUp) -> CronTrigger {
    CronTrigger {
        pattern: Spanned::new(pattern.into(), Span::default()),
        syntax: CronSyntax::House,
        timezone: None,
        jitter: None,
        catch_up,
    }
}

fn due(pattern: &str, jitter: Duration, catch_up: CatchUp) -> Due {
    let times = cron(pattern, catch_up).times().expect("a pattern");
    Due { trigger: "t".into(), times, jitter, catch_up }
}

fn shown(agenda: &Agenda) -> Vec<String> {
    let decided = agenda.decide.iter().map(|(due, doing)| match doing {
        Doing::Fire => format!("{due} fire"),
        Doing::Skip(because) => format!("{due} {because}"),
    });
    decided.chain(agenda.next.map(|next| format!("next {next}"))).collect()
}

#[test]
fn missed_instants_are_caught_up_on_as_configured() {
    let check = |catch_up: CatchUp, expected: &[&str]| {
        let due = due("0 * * * *", Duration::ZERO, catch_up);
        let now = at("2026-03-29T05:30:00Z");
        assert_eq!(shown(&due.agenda(at("2026-03-29T00:00:00Z"), now, now)), expected, "{catch_up:?}");
    };
    let next = "next 2026-03-29T06:00:00Z";
    check(CatchUp::None, &["2026-03-29T05:00:00Z 5 missed while Windlass was not running", next]);
    let rest = "2026-03-29T04:00:00Z 4 missed while Windlass was not running";
    check(CatchUp::Last, &[rest, "2026-03-29T05:00:00Z fire", next]);
    let rest = "2026-03-29T03:00:00Z 3 missed while Windlass was not running";
    check(CatchUp::All(2), &[rest, "2026-03-29T04:00:00Z fire", "2026-03-29T05:00:00Z fire", next]);
    let all = ["01", "02", "03", "04", "05"].map(|hour| format!("2026-03-29T{hour}:00:00Z fire"));
    let all: Vec<&str> = all.iter().map(String::as_str).chain([next]).collect();
    check(CatchUp::All(5), &all);
    check(CatchUp::All(100), &all);
}

#[test]
fn instants_fire_while_the_process_watches_the_clock() {
    let due = due("0 * * * *", Duration::ZERO, CatchUp::None);
    let (last, since) = (at("2026-03-29T00:00:00Z"), at("2026-03-29T00:30:00Z"));
    let check = |now: &str, expected: &[&str]| {
        assert_eq!(shown(&due.agenda(last, since, at(now))), expected, "{now}");
    };
    check("2026-03-29T00:59:59Z", &["next 2026-03-29T01:00:00Z"]);
    check("2026-03-29T01:00:00Z", &["2026-03-29T01:00:00Z fire", "next 2026-03-29T02:00:00Z"]);
    // A busy machine may be a little late. A machine that was asleep has missed the instant.
    check("2026-03-29T01:00:40Z", &["2026-03-29T01:00:00Z fire", "next 2026-03-29T02:00:00Z"]);
    let slept = ["2026-03-29T01:00:00Z 1 missed while Windlass was not running", "2026-03-29T02:00:00Z fire"];
    check("2026-03-29T02:00:01Z", &[slept[0], slept[1], "next 2026-03-29T03:00:00Z"]);
    // Setting the clock back decides nothing twice.
    check("2026-03-28T12:00:00Z", &["next 2026-03-29T01:00:00Z"]);
}

#[test]
fn a_pattern_without_future_instants_has_no_agenda() {
    let due = due("0 0 9 * * Mon 2025", Duration::ZERO, CatchUp::All(3));
    let now = at("2026-01-01T00:00:00Z");
    assert_eq!(due.agenda(now, now, now), Agenda::default());
}

#[test]
fn very_many_missed_instants_are_not_all_counted() {
    let due = due("* * * * * *", Duration::from_secs(5), CatchUp::All(3));
    let now = at("2026-01-01T00:00:00Z");
    let agenda = due.agenda(at("2006-01-01T00:00:00Z"), now, now);
    assert_eq!(agenda.decide.len(), 4, "{agenda:?}");
    let (last, doing) = &agenda.decide[3];
    assert!(now.since(*last) <= Duration::from_secs(6) && *doing == Doing::Fire, "{last}");
    let because = "at least 10000 missed while Windlass was not running";
    assert_eq!(agenda.decide[0].1, Doing::Skip(because.into()));
}

#[test]
fn jitter_delays_by_a_constant_share() {
    let jitter = Duration::from_secs(600);
    let due = due("0 * * * *", jitter, CatchUp::None);
    let hours = std::iter::successors(due.times.next_micros(0), |at| due.times.next_micros(*at));
    let late: Vec<Duration> =
        hours.take(200).map(|hour| due.fires_at(Timestamp(hour)).since(Timestamp(hour))).collect();
    assert!(late.iter().all(|late| *late <= jitter));
    assert!(late.iter().any(|late| *late < Duration::from_secs(60)));
    assert!(late.iter().any(|late| *late > Duration::from_secs(540)));
    let hour = at("2026-03-29T01:00:00Z");
    let fires_at = due.fires_at(hour);
    assert_eq!(fires_at, due.fires_at(hour));
    // A process that starts between an instant and its firing has missed nothing.
    let (last, since) = (at("2026-03-29T00:00:00Z"), Timestamp(hour.0 + 1));
    assert_eq!(due.agenda(last, since, since), Agenda { decide: Vec::new(), next: Some(fires_at) });
    let agenda = due.agenda(last, since, fires_at);
    assert_eq!(agenda.decide, [(hour, Doing::Fire)]);
}

#[test]
fn instants_are_decided_in_order_whatever_their_jitter() {
    let due = due("* * * * *", Duration::from_secs(3_600), CatchUp::None);
    let mut last = at("2026-03-29T00:00:00Z");
    let since = last;
    let mut now = last;
    let mut fired = Vec::new();
    while fired.len() < 100 {
        let agenda = due.agenda(last, since, now);
        for (due, doing) in agenda.decide {
            assert_eq!(doing, Doing::Fire);
            fired.push(due);
            last = due;
        }
        now = agenda.next.expect("there is always a next minute");
    }
    assert!(fired.is_sorted() && fired.windows(2).all(|two| two[1].since(two[0]) == Duration::from_secs(60)));
}
