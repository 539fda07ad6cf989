//! Cron patterns of five fields: minute, hour, day, month and weekday. A field is a list of `*`, `*/N`, `N` and `N-M`;
//! weekdays go from 0, Sunday, to 6. There are no names.

use crate::table::Table;
use std::sync::Arc;
use windlass_ir::{Code, Spanned};

const LENGTH_MAX: usize = 256;
const FIELDS: [(&str, u32, u32); 5] =
    [("minute", 0, 59), ("hour", 0, 23), ("day", 1, 31), ("month", 1, 12), ("weekday", 0, 6)];

/// Reports what is wrong with a pattern; true when nothing is.
pub fn check(table: &Table<'_>, key: &str, pattern: &Spanned<Arc<str>>) -> bool {
    let Err(cause) = fault(&pattern.value) else { return true };
    let shown: String = pattern.value.chars().take(60).collect();
    let message = format!("`{shown}` is no cron pattern: {cause}");
    let finding = table.error(Code::BadCron, key, pattern.span, message).reference(&*pattern.value);
    table.report(finding.help("write minute, hour, day, month and weekday (0-6), such as `0 9 * * 1-5`"));
    false
}

fn fault(pattern: &str) -> Result<(), String> {
    if pattern.len() > LENGTH_MAX {
        return Err(format!("it is longer than {LENGTH_MAX} characters"));
    }
    let fields: Vec<&str> = pattern.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        return Err(format!("it needs 5 fields, not {}", fields.len()));
    }
    for (field, (name, min, max)) in fields.into_iter().zip(FIELDS) {
        for part in field.split(',') {
            if !is_part(part, min, max) {
                return Err(format!("`{part}` is no {name}, which goes from {min} to {max}"));
            }
        }
    }
    Ok(())
}

fn is_part(part: &str, min: u32, max: u32) -> bool {
    let number = |text: &str| text.parse::<u32>().ok().filter(|_| text.bytes().all(|b| b.is_ascii_digit()));
    let inside = |text: &str| number(text).filter(|number| (min..=max).contains(number));
    match (part.strip_prefix("*/"), part.split_once('-')) {
        _ if part == "*" => true,
        (Some(step), _) => number(step).is_some_and(|step| step > 0),
        (None, Some((low, high))) => {
            matches!((inside(low), inside(high)), (Some(low), Some(high)) if low <= high)
        }
        (None, None) => inside(part).is_some(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_have_five_fields_within_their_bounds() {
        let check =
            |pattern: &str, expected: bool| assert_eq!(fault(pattern).is_ok(), expected, "{pattern:?}");
        check("* * * * *", true);
        check("*/15 6-20 * * 1-5", true);
        check("0,30 0 1,15 1-12 0,6", true);
        check("59 23 31 12 6", true);
        check("  0  9  *  *  * ", true);
        let bad = [
            "",
            "* * * *",
            "0 0 9 * * *",
            "60 * * * *",
            "* 24 * * *",
            "* * 0 * *",
            "* * * 13 *",
            "* * * * 7",
            "* * * * mon",
            "*/0 * * * *",
            "5-1 * * * *",
            "1-5/2 * * * *",
            "1,,2 * * * *",
            "+5 * * * *",
            "-5 * * * *",
            "99999999999 * * * *",
        ];
        bad.into_iter().for_each(|pattern| check(pattern, false));
        check(&format!("{} * * * *", ["1"; 200].join(",")), false);
    }
}
