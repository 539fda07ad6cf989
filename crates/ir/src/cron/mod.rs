//! Cron patterns in the three syntaxes of the dialects, such as `0 30 2 * * MON-FRI`. Parsing is in `fields`, the
//! search for the next match in `next`. This module never reads a clock: instants are passed in as arguments.

mod days;
mod fields;
mod next;

use crate::trigger::CronSyntax;
use days::Days;
use fields::{Field, Set};
use std::ops::Range;
use std::str::FromStr;

/// Longer patterns are refused before they are parsed.
const CHARS_MAX: usize = 256;

/// A parsed pattern. Seconds, minutes and hours are sets; days are tested one at a time.
#[derive(Clone, Debug)]
pub struct Cron {
    seconds: Set,
    minutes: Set,
    hours: Set,
    days: Days,
}

/// Why a pattern is invalid: the cause, how to fix it, and the part of the text that caused it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct CronError {
    pub message: String,
    pub help: String,
    /// The pattern that the author probably meant.
    pub suggest: Option<String>,
    /// A range of bytes in the pattern.
    pub range: Range<usize>,
}

const HOUSE_HELP: &str = "write minute, hour, day, month and weekday, such as `0 9 * * 1-5`; add a sixth field in front for seconds";
const POSIX_HELP: &str =
    "write minute, hour, day, month and weekday (0 to 6, Sunday is 0), such as `0 9 * * 1-5`";
const SECONDS_FIRST_HELP: &str = "write second, minute, hour, day, month and weekday (1 to 7, Sunday is 1), \
    such as `0 0 9 * * MON-FRI`; a seventh field is the year";

impl CronSyntax {
    fn help(self) -> &'static str {
        match self {
            Self::House => HOUSE_HELP,
            Self::Posix => POSIX_HELP,
            Self::SecondsFirst => SECONDS_FIRST_HELP,
        }
    }
}

impl Cron {
    pub fn parse(text: &str, syntax: CronSyntax) -> Result<Self, CronError> {
        let error = |message: String| CronError {
            message,
            help: syntax.help().to_owned(),
            suggest: None,
            range: 0..text.len(),
        };
        if text.chars().count() > CHARS_MAX {
            return Err(error(format!("a cron pattern can have at most {CHARS_MAX} characters")));
        }
        match syntax {
            CronSyntax::House => parse_house(text).map_err(error),
            CronSyntax::Posix => parse_posix(text, error),
            CronSyntax::SecondsFirst => parse_seconds_first(text, error),
        }
    }
}

fn parse_house(text: &str) -> Result<Cron, String> {
    let read = croner::Cron::from_str(text).map_err(|error| {
        let cause = error.to_string();
        cause.trim_start_matches("Component error: ").trim_end_matches('.').to_lowercase()
    })?;
    let pattern = &read.pattern;
    let set = |max: u16, has: &dyn Fn(u32) -> bool| {
        (0..=max).filter(|value| has(u32::from(*value))).collect::<Set>()
    };
    Ok(Cron {
        seconds: set(59, &|value| pattern.second_match(value).unwrap_or(false)),
        minutes: set(59, &|value| pattern.minute_match(value).unwrap_or(false)),
        hours: set(23, &|value| pattern.hour_match(value).unwrap_or(false)),
        days: Days::House(Box::new(read)),
    })
}

/// One field of the text and its position.
struct Word<'a> {
    text: &'a str,
    start: usize,
}

fn words(text: &str) -> Vec<Word<'_>> {
    let mut end = 0;
    let mut words = Vec::new();
    for word in text.split_whitespace() {
        // Only blanks separate two words, and no word contains a blank.
        let start = end + text[end..].find(word).unwrap_or_default();
        end = start + word.len();
        words.push(Word { text: word, start });
    }
    words
}

impl Word<'_> {
    fn read(&self, field: &Field, syntax: CronSyntax) -> Result<Set, CronError> {
        field.read(self.text).map_err(|message| CronError {
            message,
            help: syntax.help().to_owned(),
            suggest: None,
            range: self.start..self.start + self.text.len(),
        })
    }
}

fn parse_posix(text: &str, error: impl Fn(String) -> CronError) -> Result<Cron, CronError> {
    let words = words(text);
    let [minute, hour, day, month, weekday] = words.as_slice() else {
        return Err(error(format!("expected 5 fields, found {}", words.len())));
    };
    let read = |word: &Word<'_>, field| word.read(field, CronSyntax::Posix);
    Ok(Cron {
        seconds: Set::from_iter([0]),
        minutes: read(minute, &fields::posix::MINUTE)?,
        hours: read(hour, &fields::posix::HOUR)?,
        days: Days::Sets {
            years: None,
            months: read(month, &fields::posix::MONTH)?,
            days: read(day, &fields::posix::DAY)?,
            weekdays: read(weekday, &fields::posix::WEEKDAY)?,
            // Only a bare star leaves a day field unrestricted; a field that lists every day still restricts it.
            either: day.text != "*" && weekday.text != "*",
        },
    })
}

fn parse_seconds_first(text: &str, error: impl Fn(String) -> CronError) -> Result<Cron, CronError> {
    let nickname = text.trim();
    if nickname.starts_with('@') {
        let known = fields::NICKNAMES.iter().find(|(name, _)| *name == nickname);
        return match known {
            Some((_, pattern)) => parse_seconds_first(pattern, error),
            None => {
                let names: Vec<&str> = fields::NICKNAMES.iter().map(|(name, _)| *name).collect();
                let help = format!("use one of {}", names.join(", "));
                Err(CronError { help, ..error(format!("unknown shorthand `{nickname}`")) })
            }
        };
    }
    let words = words(text);
    let (second, minute, hour, day, month, weekday, year) = match words.as_slice() {
        [second, minute, hour, day, month, weekday] => (second, minute, hour, day, month, weekday, None),
        [second, minute, hour, day, month, weekday, year] => {
            (second, minute, hour, day, month, weekday, Some(year))
        }
        [_, _, _, _, _] => return Err(five_fields(&words, &error)),
        _ => return Err(error(format!("expected 6 or 7 fields, found {}", words.len()))),
    };
    let read = |word: &Word<'_>, field| word.read(field, CronSyntax::SecondsFirst);
    Ok(Cron {
        seconds: read(second, &fields::seconds_first::SECOND)?,
        minutes: read(minute, &fields::seconds_first::MINUTE)?,
        hours: read(hour, &fields::seconds_first::HOUR)?,
        days: Days::Sets {
            years: year.map(|year| read(year, &fields::seconds_first::YEAR)).transpose()?,
            months: read(month, &fields::seconds_first::MONTH)?,
            days: read(day, &fields::seconds_first::DAY)?,
            weekdays: read(weekday, &fields::seconds_first::WEEKDAY)?.shifted_down(),
            either: false,
        },
    })
}

/// Most people write five fields first. The suggestion with seconds names the weekdays, because their numbers differ
/// by one between the two syntaxes.
fn five_fields(words: &[Word<'_>], error: &impl Fn(String) -> CronError) -> CronError {
    let mut texts: Vec<String> = words.iter().map(|word| word.text.to_owned()).collect();
    let cause = error("expected 6 or 7 fields, found 5: the seconds are missing".to_owned());
    let named = texts.last().and_then(|weekday| fields::named_weekdays(weekday));
    // A suggestion is only correct if the weekdays can be written by name and at most one day field is restricted.
    let is_open = |text: &String| matches!(text.as_str(), "*" | "?");
    let keeps_days = texts.last().is_some_and(|weekday| !weekday.contains(|c: char| c.is_ascii_digit()));
    let both = texts.len() == 5 && !is_open(&texts[2]) && !is_open(&texts[4]);
    if both || (named.is_none() && !keeps_days) {
        return cause;
    }
    if let (Some(weekday), Some(named)) = (texts.last_mut(), named) {
        *weekday = named;
    }
    let meant = format!("0 {}", texts.join(" "));
    match Cron::parse(&meant, CronSyntax::SecondsFirst) {
        Ok(_) => {
            let help = format!("add the seconds in front: `{meant}`");
            CronError { help, suggest: Some(meant), ..cause }
        }
        Err(_) => cause,
    }
}

#[cfg(test)]
mod tests;
