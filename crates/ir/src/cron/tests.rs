//! Tests of patterns and their matches, especially on days when clocks change.

use super::*;
use crate::zone::zone;
use jiff::Timestamp;

const SYNTAXES: [CronSyntax; 3] = [CronSyntax::House, CronSyntax::Posix, CronSyntax::SecondsFirst];

/// Checks the next matches after `from`, in local time of the zone.
fn check_in(syntax: CronSyntax, pattern: &str, zone_name: &str, from: &str, expected: &[&str]) {
    let cron = Cron::parse(pattern, syntax).unwrap_or_else(|error| panic!("{pattern}: {error}"));
    let zone = zone(zone_name).expect("a zone");
    let mut at: Timestamp = from.parse().expect("an instant");
    let mut found = Vec::new();
    for _ in expected {
        let Some(next) = cron.next_after(at, &zone) else {
            found.push("never".to_owned());
            break;
        };
        assert!(next > at, "{pattern} in {zone_name}: {next} is not after {at}");
        at = next;
        found.push(next.to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M:%S %z").to_string());
    }
    assert_eq!(found, expected, "{pattern} in {zone_name} after {from}");
}

fn check(pattern: &str, zone: &str, from: &str, expected: &[&str]) {
    check_in(CronSyntax::SecondsFirst, pattern, zone, from, expected);
}

#[test]
fn a_skipped_time_fires_right_after_the_gap() {
    let berlin = "Europe/Berlin";
    let fires = ["2026-03-28 02:30:00 +0100", "2026-03-29 03:00:00 +0200", "2026-03-30 02:30:00 +0200"];
    check("0 30 2 * * *", berlin, "2026-03-27T12:00:00Z", &fires);
    check_in(CronSyntax::Posix, "30 2 * * *", berlin, "2026-03-27T12:00:00Z", &fires);
    check_in(CronSyntax::House, "30 2 * * *", berlin, "2026-03-27T12:00:00Z", &fires);
    // All matches inside the gap fire once together, merged with a match at the end of the gap.
    check(
        "0 */20 2,3 * * *",
        berlin,
        "2026-03-28T23:30:00Z",
        &["2026-03-29 03:00:00 +0200", "2026-03-29 03:20:00 +0200", "2026-03-29 03:40:00 +0200"],
    );
    check("0 30 2 * * *", berlin, "2026-03-29T01:00:00Z", &["2026-03-30 02:30:00 +0200"]);
    check("0 30 2 * * *", "America/New_York", "2026-03-08T05:00:00Z", &["2026-03-08 03:00:00 -0400"]);
    check("0 15 2 * * *", "Australia/Lord_Howe", "2026-10-03T12:00:00Z", &["2026-10-04 02:30:00 +1100"]);
    check("0 45 2 * * *", "Australia/Lord_Howe", "2026-10-03T12:00:00Z", &["2026-10-04 02:45:00 +1100"]);
    // Samoa skipped a whole day.
    check("0 0 12 30 12 *", "Pacific/Apia", "2011-12-01T00:00:00Z", &["2011-12-31 00:00:00 +1400"]);
    // Midnight itself is skipped.
    check("0 0 0 * * *", "Africa/Cairo", "2026-04-23T12:00:00Z", &["2026-04-24 01:00:00 +0300"]);
}

#[test]
fn a_repeated_time_fires_once() {
    let fires = ["2026-10-24 02:30:00 +0200", "2026-10-25 02:30:00 +0200", "2026-10-26 02:30:00 +0100"];
    check("0 30 2 * * *", "Europe/Berlin", "2026-10-23T12:00:00Z", &fires);
    check_in(CronSyntax::Posix, "30 2 * * *", "Europe/Berlin", "2026-10-23T12:00:00Z", &fires);
    check_in(CronSyntax::House, "30 2 * * *", "Europe/Berlin", "2026-10-23T12:00:00Z", &fires);
    // From inside the second pass.
    check("0 30 2 * * *", "Europe/Berlin", "2026-10-25T01:15:00Z", &["2026-10-26 02:30:00 +0100"]);
    check(
        "0 30 1 * * *",
        "America/New_York",
        "2026-11-01T04:00:00Z",
        &["2026-11-01 01:30:00 -0400", "2026-11-02 01:30:00 -0500"],
    );
    check(
        "0 45 1 * * *",
        "Australia/Lord_Howe",
        "2026-04-04T12:00:00Z",
        &["2026-04-05 01:45:00 +1100", "2026-04-06 01:45:00 +1030"],
    );
}

#[test]
fn hourly_patterns_follow_elapsed_time() {
    check(
        "0 30 * * * *",
        "Europe/Berlin",
        "2026-10-24T23:45:00Z",
        &["2026-10-25 02:30:00 +0200", "2026-10-25 02:30:00 +0100", "2026-10-25 03:30:00 +0100"],
    );
    check(
        "0 30 * * * *",
        "Europe/Berlin",
        "2026-03-28T23:45:00Z",
        &["2026-03-29 01:30:00 +0100", "2026-03-29 03:30:00 +0200"],
    );
    check_in(
        CronSyntax::House,
        "*/20 * * * *",
        "Australia/Lord_Howe",
        "2026-04-04T14:30:00Z",
        &[
            "2026-04-05 01:40:00 +1100",
            "2026-04-05 01:40:00 +1030",
            "2026-04-05 02:00:00 +1030",
            "2026-04-05 02:20:00 +1030",
        ],
    );
    check("59 59 23 31 12 *", "UTC", "2026-12-31T23:59:59Z", &["2027-12-31 23:59:59 +0000"]);
    check("* * * * * *", "UTC", "2026-12-31T23:59:59.5Z", &["2027-01-01 00:00:00 +0000"]);
}

#[test]
fn rare_and_impossible_dates() {
    check(
        "0 0 0 29 2 *",
        "UTC",
        "2026-11-16T00:00:00Z",
        &["2028-02-29 00:00:00 +0000", "2032-02-29 00:00:00 +0000"],
    );
    check("0 0 0 31 2 *", "UTC", "2026-11-16T00:00:00Z", &["never"]);
    check("0 * * 31 2 *", "Europe/Berlin", "2026-11-16T00:00:00Z", &["never"]);
    check("0 0 0 29 2 * 2099", "UTC", "2026-11-16T00:00:00Z", &["never"]);
    check("0 0 0 1 1 * 2030", "UTC", "2026-11-16T00:00:00Z", &["2030-01-01 00:00:00 +0000", "never"]);
    check("0 0 0 1 1 *", "UTC", "2099-12-31T00:00:00Z", &["2100-01-01 00:00:00 +0000", "never"]);
    check("0 0 0 1 1 *", "UTC", "-009999-01-03T00:00:00Z", &["1970-01-01 00:00:00 +0000"]);
    check("0 0 * * * *", "Europe/Berlin", "-009999-01-03T00:00:00Z", &["1970-01-01 00:00:00 +0100"]);
    check("0 0 * * * *", "Europe/Berlin", "9999-12-30T00:00:00Z", &["never"]);
    check_in(CronSyntax::Posix, "0 0 31 4 *", "UTC", "2026-11-16T00:00:00Z", &["never"]);
    check_in(CronSyntax::House, "0 0 31 4 *", "UTC", "2026-11-16T00:00:00Z", &["never"]);
}

#[test]
fn day_fields_combine_with_and_or_with_or() {
    let from = "2026-11-16T00:00:00Z";
    // Friday the 13th, because both day fields must match.
    check("0 0 0 13 * FRI", "UTC", from, &["2027-08-13 00:00:00 +0000"]);
    let either = ["2026-11-20 00:00:00 +0000", "2026-11-27 00:00:00 +0000", "2026-12-04 00:00:00 +0000"];
    check_in(CronSyntax::Posix, "0 0 13 * 5", "UTC", from, &either);
    check_in(CronSyntax::House, "0 0 13 * 5", "UTC", from, &either);
    check_in(CronSyntax::Posix, "0 0 1-31 * 5", "UTC", from, &["2026-11-17 00:00:00 +0000"]);
    check_in(CronSyntax::Posix, "0 0 * * 0", "UTC", from, &["2026-11-22 00:00:00 +0000"]);
    check("0 0 0 ? * 1", "UTC", from, &["2026-11-22 00:00:00 +0000"]);
    check("0 0 0 ? * SAT,sunday", "UTC", from, &["2026-11-21 00:00:00 +0000", "2026-11-22 00:00:00 +0000"]);
    check_in(CronSyntax::House, "0 0 L * *", "UTC", from, &["2026-11-30 00:00:00 +0000"]);
    check_in(CronSyntax::House, "0 0 * * MON#1", "UTC", from, &["2026-12-07 00:00:00 +0000"]);
    check_in(CronSyntax::House, "0 0 * * 7", "UTC", from, &["2026-11-22 00:00:00 +0000"]);
}

#[test]
fn shorthands_expand_to_patterns() {
    let from = "2026-11-16T12:34:56Z";
    check("@hourly", "UTC", from, &["2026-11-16 13:00:00 +0000"]);
    check(" @daily ", "UTC", from, &["2026-11-17 00:00:00 +0000"]);
    check("@weekly", "UTC", from, &["2026-11-22 00:00:00 +0000"]);
    check("@monthly", "UTC", from, &["2026-12-01 00:00:00 +0000"]);
    check("@yearly", "UTC", from, &["2027-01-01 00:00:00 +0000"]);
    check_in(CronSyntax::House, "@daily", "UTC", from, &["2026-11-17 00:00:00 +0000"]);
}

/// Checks which part of a pattern is reported and why; none if the pattern is valid.
fn fault(pattern: &str, syntax: CronSyntax) -> Option<(String, String)> {
    let error = Cron::parse(pattern, syntax).err()?;
    assert!(!error.help.is_empty());
    Some((pattern[error.range.clone()].to_owned(), error.message))
}

#[test]
fn fields_accept_only_their_own_syntax() {
    let good = [
        "0 0 3 * * *",
        "0 0 3 * * * 2030",
        "*/5 * * * * *",
        "0 0 0-23/2 * * *",
        "  0   0\t3 *  * * ",
        "0 0 0 1,15 JAN Sunday",
        "0 0 0 ? december mon-fri/2",
        "5/10 0 0 1 1 7 1970-2100/10",
    ];
    for pattern in good {
        assert_eq!(fault(pattern, CronSyntax::SecondsFirst), None, "{pattern}");
    }
    let check = |syntax, pattern: &str, part: &str, cause: &str| {
        assert_eq!(fault(pattern, syntax), Some((part.to_owned(), cause.to_owned())), "{pattern}");
    };
    let seconds =
        |pattern: &str, part: &str, cause: &str| check(CronSyntax::SecondsFirst, pattern, part, cause);
    seconds("0 0 24 * * *", "24", "invalid hour `24`: allowed values are 0 to 23");
    seconds("0 0 5-1 * * *", "5-1", "the range `5-1` in the hour field runs backwards");
    seconds("0 0 0 * * SAT-SUN", "SAT-SUN", "the range `SAT-SUN` in the day-of-week field runs backwards");
    seconds("60 0 0 * * *", "60", "invalid second `60`: allowed values are 0 to 59");
    seconds("0 0 0 0 * *", "0", "invalid day-of-month `0`: allowed values are 1 to 31");
    seconds("0 0 0 L * *", "L", "invalid day-of-month `L`");
    seconds("0 0 0 1W * *", "1W", "invalid day-of-month `1W`");
    seconds("0 0 0 * 13 *", "13", "invalid month `13`: allowed values are 1 to 12");
    seconds("0 0 0 * * 0", "0", "invalid day-of-week `0`: allowed values are 1 to 7");
    seconds("0 0 0 * * 1#2", "1#2", "invalid day-of-week `1#2`");
    seconds("0 0 ? * * *", "?", "invalid hour `?`");
    seconds("*/0 * * * * *", "*/0", "invalid step `0` in the second field");
    seconds("0 */60 * * * *", "*/60", "invalid step `60` in the minute field");
    seconds("1, * * * * *", "1,", "missing value in the second field");
    seconds("0 0 0 1 1 * 1969", "1969", "invalid year `1969`: allowed values are 1970 to 2100");
    seconds("", "", "expected 6 or 7 fields, found 0");
    seconds("@noon", "@noon", "unknown shorthand `@noon`");
    let posix = |pattern: &str, part: &str, cause: &str| check(CronSyntax::Posix, pattern, part, cause);
    posix("0 9 * * 7", "7", "invalid day-of-week `7`: allowed values are 0 to 6");
    posix("0 9 * * MON", "MON", "invalid day-of-week `MON`");
    posix("0 9-17/2 * * *", "9-17/2", "in the hour field, a step is only allowed after `*`, as in `*/2`");
    posix("0 0 9 * * *", "0 0 9 * * *", "expected 5 fields, found 6");
    assert_eq!(fault("*/90 0 * * *", CronSyntax::Posix), None);
}

#[test]
fn five_fields_are_suggested_with_seconds() {
    let check = |pattern: &str, expected: Option<&str>| {
        let error = Cron::parse(pattern, CronSyntax::SecondsFirst).expect_err("five fields");
        assert_eq!(error.suggest.as_deref(), expected, "{pattern}");
    };
    check("0 3 * * *", Some("0 0 3 * * *"));
    check("0 3 * * 1-5", Some("0 0 3 * * MON-FRI"));
    check("0 3 * * 0,6", Some("0 0 3 * * SUN,SAT"));
    check("0 3 * * 5-7", Some("0 0 3 * * FRI,SAT,SUN"));
    check("0 3 * * MON", Some("0 0 3 * * MON"));
    check("0 25 * * *", None);
}

#[test]
fn hostile_patterns_are_parsed_or_refused_within_bounds() {
    for syntax in SYNTAXES {
        assert!(Cron::parse(&"1,".repeat(1 << 20), syntax).is_err());
        assert!(Cron::parse(&"0 ".repeat(129), syntax).is_err());
        for pattern in
            ["é", "@", "* * * * * * * *", "- - - - - -", "/ / / / / /", "99999 * * * * *", "0 0 0 ٣ * *"]
        {
            assert!(Cron::parse(pattern, syntax).is_err(), "{pattern}");
        }
    }
}

/// Pseudorandom numbers that are the same on every machine.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits fit") % sides
    }
}

#[test]
fn random_tokens_never_panic() {
    const WORDS: [&str; 24] = [
        "*", "?", "/", "-", ",", " ", " ", " ", "0", "1", "5", "7", "12", "23", "31", "59", "2030", "MON",
        "sunday", "feb", "L", "W", "#", "@daily",
    ];
    let zone = zone("Europe/Berlin").expect("a zone");
    let mut dice = Dice(1);
    let mut read = 0;
    for _ in 0..20_000 {
        let mut pattern: String = (0..dice.roll(4)).map(|_| WORDS[dice.roll(WORDS.len())]).collect();
        (0..dice.roll(8)).for_each(|_| pattern += [" *", " 1", " 2-5", " */7", " 2"][dice.roll(5)]);
        for syntax in SYNTAXES {
            // The starting points cover two years, so both clock changes are included.
            let start = 1_740_000_000 + i64::try_from(dice.roll(17_500)).expect("small") * 3_600;
            let at = Timestamp::from_second(start).expect("an instant");
            match Cron::parse(&pattern, syntax) {
                Ok(cron) => {
                    read += 1;
                    let next = cron.next_after(at, &zone);
                    assert!(next.is_none_or(|next| next > at), "{pattern}");
                }
                Err(error) => assert!(pattern.get(error.range).is_some(), "{pattern}"),
            }
        }
    }
    assert!(read > 1_000, "only {read} patterns were read");
}

/// The sequence of matches does not depend on the minute at which the search starts.
#[test]
fn matches_do_not_depend_on_the_start_of_the_search() {
    let patterns = ["0 */30 * * * *", "0 0 2 * * *", "0 30 1,2,3 * * *", "0 15 */2 * * *"];
    let days = [
        ("Europe/Berlin", "2026-03-28T20:00:00Z"),
        ("Europe/Berlin", "2026-10-24T20:00:00Z"),
        ("Australia/Lord_Howe", "2026-04-04T10:00:00Z"),
        ("Australia/Lord_Howe", "2026-10-03T10:00:00Z"),
    ];
    for (name, start) in days {
        let zone = zone(name).expect("a zone");
        let start: Timestamp = start.parse().expect("an instant");
        let minutes: Vec<Timestamp> =
            (0..24 * 60).map(|minute| start + jiff::SignedDuration::from_mins(minute)).collect();
        for pattern in patterns {
            let cron = Cron::parse(pattern, CronSyntax::SecondsFirst).expect("a pattern");
            let fires: Vec<Timestamp> = std::iter::successors(Some(start), |at| cron.next_after(*at, &zone))
                .skip(1)
                .take_while(|at| at <= minutes.last().expect("a day"))
                .collect();
            for minute in &minutes {
                let expected = fires.iter().find(|fire| *fire > minute);
                let found = cron.next_after(*minute, &zone);
                assert!(
                    expected.is_none() || found.as_ref() == expected,
                    "{pattern} in {name} after {minute}"
                );
            }
        }
    }
}
