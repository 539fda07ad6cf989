//! One field of a pattern: stars, numbers, names, ranges, steps and lists, parsed into a set of numbers.

use super::days::{YEAR_MAX, YEAR_MIN};

/// A set of numbers from 0 to 2111, which is enough for every field including years.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Set {
    words: Vec<u64>,
}

impl Set {
    pub(super) fn has(&self, value: u16) -> bool {
        let (word, bit) = place(value);
        self.words.get(word).is_some_and(|word| word & bit != 0)
    }

    /// The smallest member from `value` up to `max`.
    pub(super) fn next(&self, value: u16, max: u16) -> Option<u16> {
        (value..=max).find(|value| self.has(*value))
    }

    pub(super) fn first(&self, max: u16) -> Option<u16> {
        self.next(0, max)
    }

    /// Decrements every member: weekdays that count from 1 become weekdays that count from 0.
    pub(super) fn shifted_down(&self) -> Self {
        (1..=7).filter(|value| self.has(*value)).map(|value| value - 1).collect()
    }

    fn insert(&mut self, value: u16) {
        let (word, bit) = place(value);
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= bit;
    }
}

fn place(value: u16) -> (usize, u64) {
    (usize::from(value / 64), 1 << (value % 64))
}

impl FromIterator<u16> for Set {
    fn from_iter<T: IntoIterator<Item = u16>>(values: T) -> Self {
        let mut set = Self::default();
        values.into_iter().for_each(|value| set.insert(value));
        set
    }
}

/// The syntax and bounds of one field.
#[derive(Debug)]
pub(super) struct Field {
    name: &'static str,
    min: u16,
    max: u16,
    names: &'static [(&'static str, u16)],
    /// Whether `?` is a synonym for `*`.
    question_mark: bool,
    steps: Steps,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Steps {
    /// Only `*/N`, with any N above zero.
    AfterStar,
    /// After any value; N is at most the largest value of the field.
    Anywhere,
}

impl Field {
    const fn new(name: &'static str, min: u16, max: u16, steps: Steps) -> Self {
        Self { name, min, max, names: &[], question_mark: false, steps }
    }

    pub(super) fn read(&self, text: &str) -> Result<Set, String> {
        let mut set = Set::default();
        for part in text.split(',') {
            let (first, last, step) = self.part(part)?;
            (first..=last).step_by(step.into()).for_each(|value| set.insert(value));
        }
        Ok(set)
    }

    fn part(&self, part: &str) -> Result<(u16, u16, u16), String> {
        let (what, step) = match part.split_once('/') {
            Some((what, step)) => (what, Some(self.step(what, step)?)),
            None => (part, None),
        };
        let (first, last) = match what.split_once('-') {
            _ if what == "*" || (what == "?" && self.question_mark) => (self.min, self.max),
            Some((first, last)) => self.range(what, first, last)?,
            None => {
                let value = self.value(what)?;
                (value, if step.is_some() { self.max } else { value })
            }
        };
        Ok((first, last, step.unwrap_or(1)))
    }

    fn range(&self, range: &str, first: &str, last: &str) -> Result<(u16, u16), String> {
        let (first, last) = (self.value(first)?, self.value(last)?);
        if first > last {
            return Err(format!("the range `{range}` in the {} field runs backwards", self.name));
        }
        Ok((first, last))
    }

    fn step(&self, what: &str, step: &str) -> Result<u16, String> {
        let max = match self.steps {
            Steps::AfterStar if what != "*" => {
                return Err(format!(
                    "in the {} field, a step is only allowed after `*`, as in `*/{step}`",
                    self.name
                ));
            }
            Steps::AfterStar => u16::MAX,
            Steps::Anywhere => self.max,
        };
        let number = number(step).filter(|number| (1..=max).contains(number));
        number.ok_or_else(|| format!("invalid step `{step}` in the {} field", self.name))
    }

    fn value(&self, text: &str) -> Result<u16, String> {
        let named = self.names.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
        let value = named.map(|(_, value)| *value).or_else(|| number(text));
        match value {
            Some(value) if (self.min..=self.max).contains(&value) => Ok(value),
            Some(_) => Err(format!(
                "invalid {} `{text}`: allowed values are {} to {}",
                self.name, self.min, self.max
            )),
            None if text.is_empty() => Err(format!("missing value in the {} field", self.name)),
            None => Err(format!("invalid {} `{text}`", self.name)),
        }
    }
}

fn number(text: &str) -> Option<u16> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

pub(super) mod posix {
    use super::{Field, Steps};

    const STEPS: Steps = Steps::AfterStar;
    pub(in super::super) const MINUTE: Field = Field::new("minute", 0, 59, STEPS);
    pub(in super::super) const HOUR: Field = Field::new("hour", 0, 23, STEPS);
    pub(in super::super) const DAY: Field = Field::new("day-of-month", 1, 31, STEPS);
    pub(in super::super) const MONTH: Field = Field::new("month", 1, 12, STEPS);
    pub(in super::super) const WEEKDAY: Field = Field::new("day-of-week", 0, 6, STEPS);
}

pub(super) mod seconds_first {
    use super::{Field, MONTHS, Steps, WEEKDAYS, YEAR_MAX, YEAR_MIN};

    const STEPS: Steps = Steps::Anywhere;
    pub(in super::super) const SECOND: Field = Field::new("second", 0, 59, STEPS);
    pub(in super::super) const MINUTE: Field = Field::new("minute", 0, 59, STEPS);
    pub(in super::super) const HOUR: Field = Field::new("hour", 0, 23, STEPS);
    pub(in super::super) const DAY: Field =
        Field { question_mark: true, ..Field::new("day-of-month", 1, 31, STEPS) };
    pub(in super::super) const MONTH: Field = Field { names: MONTHS, ..Field::new("month", 1, 12, STEPS) };
    pub(in super::super) const WEEKDAY: Field =
        Field { names: WEEKDAYS, question_mark: true, ..Field::new("day-of-week", 1, 7, STEPS) };
    pub(in super::super) const YEAR: Field =
        Field::new("year", YEAR_MIN.unsigned_abs(), YEAR_MAX.unsigned_abs(), STEPS);
}

const MONTHS: &[(&str, u16)] = &[
    ("jan", 1),
    ("january", 1),
    ("feb", 2),
    ("february", 2),
    ("mar", 3),
    ("march", 3),
    ("apr", 4),
    ("april", 4),
    ("may", 5),
    ("jun", 6),
    ("june", 6),
    ("jul", 7),
    ("july", 7),
    ("aug", 8),
    ("august", 8),
    ("sep", 9),
    ("september", 9),
    ("oct", 10),
    ("october", 10),
    ("nov", 11),
    ("november", 11),
    ("dec", 12),
    ("december", 12),
];

const WEEKDAYS: &[(&str, u16)] = &[
    ("sun", 1),
    ("sunday", 1),
    ("mon", 2),
    ("monday", 2),
    ("tue", 3),
    ("tues", 3),
    ("tuesday", 3),
    ("wed", 4),
    ("wednesday", 4),
    ("thu", 5),
    ("thurs", 5),
    ("thursday", 5),
    ("fri", 6),
    ("friday", 6),
    ("sat", 7),
    ("saturday", 7),
];

pub(super) const NICKNAMES: &[(&str, &str)] = &[
    ("@yearly", "0 0 0 1 1 *"),
    ("@monthly", "0 0 0 1 * *"),
    ("@weekly", "0 0 0 * * SUN"),
    ("@daily", "0 0 0 * * *"),
    ("@hourly", "0 0 * * * *"),
];

const SHORT_WEEKDAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

/// Numeric weekdays (0 to 7, both 0 and 7 are Sunday) written by name. None if the field has any other form.
pub(super) fn named_weekdays(text: &str) -> Option<String> {
    let parts: Option<Vec<String>> = text.split(',').map(named_part).collect();
    parts.map(|parts| parts.join(","))
}

fn named_part(part: &str) -> Option<String> {
    let weekday = |number: u16| (number <= 7).then(|| SHORT_WEEKDAYS[usize::from(number % 7)]);
    let Some((first, last)) = part.split_once('-') else {
        return weekday(number(part)?).map(str::to_owned);
    };
    let (first, last) = (number(first)?, number(last)?);
    match last {
        // Sunday is the first name, so a range that ends with Sunday has to be written as a list.
        7 => Some((first..=last).map(weekday).collect::<Option<Vec<_>>>()?.join(",")),
        _ => Some(format!("{}-{}", weekday(first)?, weekday(last)?)),
    }
}
