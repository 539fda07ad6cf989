//! Cron patterns: which instants a text such as `0 30 2 * * MON-FRI` stands for, in the three syntaxes that the dialects
//! have. Reading is in `fields`, the search for the next instant in `next`. No clock is asked: instants come in as
//! arguments.

mod days;
mod fields;
mod next;

use crate::trigger::CronSyntax;
use days::Days;
use fields::{Field, Set};
use std::ops::Range;
use std::str::FromStr;

/// Longer patterns are refused before they are looked at.
const CHARS_MAX: usize = 256;

/// A pattern that was read. Seconds, minutes and hours are sets; which days match is asked day by day.
#[derive(Clone, Debug)]
pub struct Cron {
    seconds: Set,
    minutes: Set,
    hours: Set,
    days: Days,
}

/// Why a text is no pattern: the cause, the next action, and the part of the text that is at fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct CronError {
    pub message: String,
    pub help: String,
    /// The pattern that was probably meant.
    pub suggest: Option<String>,
    /// Bytes of the text.
    pub range: Range<usize>,
}

const HOUSE_HELP: &str =
    "write minute, hour, day, month and weekday, such as `0 9 * * 1-5`; a sixth field in front is seconds";
const POSIX_HELP: &str =
    "write minute, hour, day, month and weekday (0 to 6 from Sunday), such as `0 9 * * 1-5`";
const SECONDS_FIRST_HELP: &str = "write second, minute, hour, day, month and weekday (1 to 7 from Sunday), such as `0 0 9 * * MON-FRI`; a seventh field is the year";

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
            return Err(error(format!("a pattern has at most {CHARS_MAX} characters")));
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

/// A field of a text, and where it stands.
struct Word<'a> {
    text: &'a str,
    start: usize,
}

fn words(text: &str) -> Vec<Word<'_>> {
    let mut end = 0;
    let mut words = Vec::new();
    for word in text.split_whitespace() {
        // Between the end of one word and the start of the next there are blanks only, which no word contains.
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
        return Err(error(format!("a pattern has 5 fields, this one has {}", words.len())));
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
            // Only a bare star leaves a day free; what lists every day still names them.
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
                let help = format!("the short forms are {}", names.join(", "));
                Err(CronError { help, ..error(format!("`{nickname}` stands for no pattern")) })
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
        _ => return Err(error(format!("a pattern has 6 or 7 fields, this one has {}", words.len()))),
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

/// What most people write first. The form with seconds is offered with its weekdays by name, because the numbers of the
/// two forms differ by one.
fn five_fields(words: &[Word<'_>], error: &impl Fn(String) -> CronError) -> CronError {
    let mut texts: Vec<String> = words.iter().map(|word| word.text.to_owned()).collect();
    let cause = error("seconds are missing: a pattern has 6 or 7 fields, this one has 5".to_owned());
    let named = texts.last().and_then(|weekday| fields::named_weekdays(weekday));
    // Weekdays that cannot be named would mean other days with seconds in front, and so would both kinds of days at once.
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
            let help = format!("put the seconds in front: `{meant}`");
            CronError { help, suggest: Some(meant), ..cause }
        }
        Err(_) => cause,
    }
}

#[cfg(test)]
mod tests;
