//! Identities. Each is an address computed from the plan and recorded decisions; none is generated while running.

use serde::de::{Deserialize, Deserializer, Error as _};
use serde::ser::{Serialize, SerializeTuple, Serializer};
use std::sync::Arc;

/// The name of a run, unique in its data folder: 1 to 64 letters, digits, dots, underscores and hyphens.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunId(Arc<str>);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no run id: use 1 to 64 letters, digits, dots, underscores and hyphens")]
pub struct BadRunId(pub String);

impl RunId {
    pub fn new(text: &str) -> Result<Self, BadRunId> {
        let is_good = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
        // A leading dot would make a hidden file of whatever is named after the run.
        let good = (1..=64).contains(&text.len()) && text.bytes().all(is_good) && !text.starts_with('.');
        if good { Ok(Self(text.into())) } else { Err(BadRunId(text.into())) }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name of the coordinator's stream, which no run can have. It is the name of the first version: journals contain it.
    pub fn coordinator() -> Self {
        Self(".desk".into())
    }

    pub fn is_coordinator(&self) -> bool {
        &*self.0 == ".desk"
    }

    /// The name of a stream as it is stored: that of a run, or of the coordinator.
    pub fn written(text: &str) -> Option<Self> {
        let coordinator = Self::coordinator();
        if text == coordinator.as_str() { Some(coordinator) } else { Self::new(text).ok() }
    }
}

impl std::fmt::Display for RunId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for RunId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for RunId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

/// One level of a [`Path`]: the step, and which instance of it when there can be several.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Segment {
    pub name: Arc<str>,
    pub ordinal: Option<u32>,
}

impl Serialize for Segment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.ordinal {
            None => serializer.serialize_str(&self.name),
            Some(ordinal) => {
                let mut pair = serializer.serialize_tuple(2)?;
                pair.serialize_element(&*self.name)?;
                pair.serialize_element(&ordinal)?;
                pair.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for Segment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(serde::Deserialize)]
        #[serde(untagged)]
        enum Form {
            Name(Arc<str>),
            Numbered(Arc<str>, u32),
        }
        Ok(match Form::deserialize(deserializer)? {
            Form::Name(name) => Self { name, ordinal: None },
            Form::Numbered(name, ordinal) => Self { name, ordinal: Some(ordinal) },
        })
    }
}

/// Where a step instance is in its run, from the outermost scope inwards. Shown as `/images[3]/resize`; never read back
/// from that text.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(transparent)]
pub struct Path(Arc<[Segment]>);

/// What no id of a step begins with.
const HOOK: &str = "hook:";

impl Path {
    pub fn child(&self, name: Arc<str>, ordinal: Option<u32>) -> Self {
        Self(self.0.iter().cloned().chain([Segment { name, ordinal }]).collect())
    }

    /// The path of one item or round of the step at this path.
    pub fn frame(&self, number: u32) -> Self {
        let (last, around) = self.0.split_last().expect("the run itself has no frames");
        let last = Segment { name: last.name.clone(), ordinal: Some(number) };
        Self(around.iter().cloned().chain([last]).collect())
    }

    /// The path of a step in the scope at this path, in the given pass: a gate that sends steps back starts another pass of them.
    pub fn pass(&self, step: &Arc<str>, pass: u32) -> Self {
        self.child(if pass == 1 { step.clone() } else { format!("{step}#{pass}").into() }, None)
    }

    /// The items and rounds on the way to this path, itself included, the outermost first: the path of each, and of the step that
    /// has it.
    pub fn frames(&self) -> impl Iterator<Item = (Self, Self, u32)> {
        let numbered = self.0.iter().enumerate().filter_map(|(end, segment)| Some((end, segment.ordinal?)));
        numbered.map(|(end, number)| {
            let frame = Self(self.0[..=end].into());
            let owner = Segment { name: self.0[end].name.clone(), ordinal: None };
            let owner = Self(self.0[..end].iter().cloned().chain([owner]).collect());
            (frame, owner, number)
        })
    }

    /// The path of something that is done around the run, not in it.
    pub fn hook(moment: &str, number: u32) -> Self {
        Self(Arc::new([Segment { name: format!("{HOOK}{moment}").into(), ordinal: Some(number) }]))
    }

    pub fn is_hook(&self) -> bool {
        self.0.first().is_some_and(|first| first.name.starts_with(HOOK))
    }

    /// Whether this is the path of the run itself.
    pub fn is_run(&self) -> bool {
        self.0.is_empty()
    }

    /// The path of the scope around; none for the run itself.
    pub fn parent(&self) -> Option<Self> {
        self.0.split_last().map(|(_, around)| Self(around.into()))
    }

    pub fn segments(&self) -> &[Segment] {
        &self.0
    }
}

impl std::fmt::Display for Path {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0.is_empty() {
            return f.write_str("/");
        }
        for Segment { name, ordinal } in &*self.0 {
            match ordinal {
                None => write!(f, "/{name}")?,
                Some(ordinal) => write!(f, "/{name}[{ordinal}]")?,
            }
        }
        Ok(())
    }
}

/// One handing-out of one attempt of one step. Two reports with different keys are never about the same doing.
///
/// `attempt` counts from 1 and is what retry policies count. `delivery` counts from 1 and grows when the same attempt is
/// handed out again after a loss or a crash, so that a report about an older delivery is recognised and refused.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub struct JobKey {
    pub run: RunId,
    pub path: Path,
    pub attempt: u32,
    pub delivery: u32,
}

impl std::fmt::Display for JobKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}#{}.{}", self.run, self.path, self.attempt, self.delivery)
    }
}

/// What executors pass to the outside as idempotency key: the same for all attempts and deliveries of a step.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OperationKey {
    pub run: RunId,
    pub path: Path,
}

impl std::fmt::Display for OperationKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.run, self.path)
    }
}

/// Why something will happen at an instant. A path has at most one timer for each reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The next attempt is due.
    Retry,
    /// The attempt has taken too long.
    Timeout,
    /// A gate or a wait is over.
    Wait,
    /// What was told to stop has had its time.
    Grace,
}

/// An instant in microseconds since the Unix epoch: the core has no other time.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// After everything.
    pub const NEVER: Self = Self(i64::MAX);

    #[must_use]
    pub fn plus(self, length: windlass_ir::Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(length.0).unwrap_or(i64::MAX)))
    }

    /// The time from an earlier instant to this one; zero when it is not earlier.
    pub fn since(self, earlier: Self) -> windlass_ir::Duration {
        windlass_ir::Duration(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

/// As RFC 3339 writes it, in UTC: `2026-02-06T10:00:05.250Z`.
impl std::fmt::Display for Timestamp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (days, micros) = (self.0.div_euclid(86_400_000_000), self.0.rem_euclid(86_400_000_000));
        let (year, month, day) = civil(days);
        let (seconds, fraction) = (micros / 1_000_000, micros % 1_000_000);
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}",
            seconds / 3600,
            seconds / 60 % 60,
            seconds % 60
        )?;
        match fraction {
            0 => f.write_str("Z"),
            _ if fraction % 1000 == 0 => write!(f, ".{:03}Z", fraction / 1000),
            _ => write!(f, ".{fraction:06}Z"),
        }
    }
}

/// Year, month and day of a day counted from 1970-01-01. Years are taken to begin in March, so that the leap day is the
/// last one, and counted in eras of 400 of them, which all have the same length.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_ids_are_safe_as_file_names() {
        for good in ["r", "run-2026.01_x", &"a".repeat(64)] {
            assert!(RunId::new(good).is_ok(), "{good}");
        }
        for bad in ["", "a/b", "..", ".hidden", "a b", "ä", &"a".repeat(65)] {
            assert!(RunId::new(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn instants_are_shown_in_utc() {
        let check = |micros: i64, expected: &str| assert_eq!(Timestamp(micros).to_string(), expected);
        check(0, "1970-01-01T00:00:00Z");
        check(951_782_400_000_000, "2000-02-29T00:00:00Z");
        check(1_770_372_005_250_000, "2026-02-06T10:00:05.250Z");
        check(-1, "1969-12-31T23:59:59.999999Z");
        check(4_102_444_799_000_001, "2099-12-31T23:59:59.000001Z");
    }

    #[test]
    fn paths_are_shown_and_stored() {
        let path = Path::default().child("images".into(), Some(3)).child("resize".into(), None);
        assert_eq!(path.to_string(), "/images[3]/resize");
        let json = serde_json::to_string(&path).expect("JSON");
        assert_eq!(json, r#"[["images",3],"resize"]"#);
        assert_eq!(serde_json::from_str::<Path>(&json).expect("a path"), path);
    }
}
