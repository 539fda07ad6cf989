//! Messages about invalid durations.

use windlass_ir::Duration;

pub const HELP: &str =
    "write days, hours, minutes and seconds in that order, such as `30s`, `5m`, `1h30m` or `2d`";

/// What the author probably meant by a bare number.
pub fn suggest(text: &str) -> Option<String> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    Some(format!("{text}s")).filter(|seconds| digits && Duration::parse(seconds).is_some())
}
