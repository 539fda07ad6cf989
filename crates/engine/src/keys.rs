//! Identities. Each is computed from the plan and recorded decisions; none is random.

use serde::de::{Deserialize, Deserializer, Error as _};
use serde::ser::{Serialize, SerializeTuple, Serializer};
use std::sync::Arc;

/// The name of a run, unique in its data folder: 1 to 64 letters, digits, dots, underscores and hyphens.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunId(Arc<str>);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid run id `{0}`: use 1 to 64 letters, digits, dots, underscores and hyphens")]
pub struct BadRunId(pub String);

impl RunId {
    pub fn new(text: &str) -> Result<Self, BadRunId> {
        let is_good = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
        // A leading dot would hide files named after the run.
        let good = (1..=64).contains(&text.len()) && text.bytes().all(is_good) && !text.starts_with('.');
        if good { Ok(Self(text.into())) } else { Err(BadRunId(text.into())) }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name of the coordinator's stream, which no run can have. Journals contain it, so it keeps its original
    /// spelling.
    pub fn coordinator() -> Self {
        Self(".desk".into())
    }

    pub fn is_coordinator(&self) -> bool {
        &*self.0 == ".desk"
    }

    /// Parses the stored name of a stream: that of a run or of the coordinator.
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

/// One level of a [`Path`]: the step, and the number of the instance if there can be several.
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

/// The position of a step instance in its run, outermost scope first, displayed as `/images[3]/resize`. The display
/// form is never parsed.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(transparent)]
pub struct Path(Arc<[Segment]>);

/// A prefix that no step id can have.
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

    /// The path of a step in the scope at this path, in the given pass. A gate that sends steps back starts another
    /// pass.
    pub fn pass(&self, step: &Arc<str>, pass: u32) -> Self {
        self.child(if pass == 1 { step.clone() } else { format!("{step}#{pass}").into() }, None)
    }

    /// The items and rounds on this path, including itself, outermost first: the path of each, and of the step it
    /// belongs to.
    pub fn frames(&self) -> impl Iterator<Item = (Self, Self, u32)> {
        let numbered = self.0.iter().enumerate().filter_map(|(end, segment)| Some((end, segment.ordinal?)));
        numbered.map(|(end, number)| {
            let frame = Self(self.0[..=end].into());
            let owner = Segment { name: self.0[end].name.clone(), ordinal: None };
            let owner = Self(self.0[..end].iter().cloned().chain([owner]).collect());
            (frame, owner, number)
        })
    }

    /// The path of a hook, which runs outside the steps.
    pub fn hook(moment: &str, number: u32) -> Self {
        Self(Arc::new([Segment { name: format!("{HOOK}{moment}").into(), ordinal: Some(number) }]))
    }

    pub fn is_hook(&self) -> bool {
        self.0.first().is_some_and(|first| first.name.starts_with(HOOK))
    }

    pub fn is_run(&self) -> bool {
        self.0.is_empty()
    }

    /// The path of the enclosing scope, or `None` for the run itself.
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

/// One delivery of one attempt of one step.
///
/// `attempt` starts at 1; retry policies count it. `delivery` starts at 1 and grows when the same attempt is
/// dispatched again after a loss or a crash, so that the engine can refuse reports of older deliveries.
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

/// The idempotency key that executors pass to other systems. It is the same for all attempts and deliveries of a
/// step.
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

/// The reason for a timer. A path has at most one timer per reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The next attempt is due.
    Retry,
    /// The attempt has taken too long.
    Timeout,
    /// A gate or a wait is over.
    Wait,
    /// The grace period of a job that must stop is over.
    Grace,
}

/// An instant in microseconds since the Unix epoch.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// Later than any other instant.
    pub const NEVER: Self = Self(i64::MAX);

    #[must_use]
    pub fn plus(self, length: windlass_ir::Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(length.0).unwrap_or(i64::MAX)))
    }

    /// The time since an earlier instant; zero if that one is later.
    pub fn since(self, earlier: Self) -> windlass_ir::Duration {
        windlass_ir::Duration(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

/// Displayed as RFC 3339 in UTC: `2026-02-06T10:00:05.250Z`.
impl std::fmt::Display for Timestamp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Instants beyond the year 9999 are shown as its end.
        let last = if self.0 < 0 { jiff::Timestamp::MIN } else { jiff::Timestamp::MAX };
        let instant = jiff::Timestamp::from_microsecond(self.0).unwrap_or(last);
        match self.0.rem_euclid(1_000_000) {
            0 => write!(f, "{instant:.0}"),
            micros if micros % 1000 == 0 => write!(f, "{instant:.3}"),
            _ => write!(f, "{instant:.6}"),
        }
    }
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
        check(Timestamp::NEVER.0, "9999-12-30T22:00:00.999999Z");
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
