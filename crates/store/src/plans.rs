//! The plans that runs are pinned to, under their digests.

use crate::deep;
use crate::error::Error;
use crate::pending::Pending;
use serde::de::DeserializeOwned;

/// A stored plan: never lowered again, even if its files change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredPlan {
    pub digest: String,
    /// The format version of `plan`.
    pub format: u32,
    /// The lowered plan as JSON.
    pub plan: String,
    /// The source files, composed.
    pub source: String,
    /// The overrides of the caller.
    pub overrides: String,
}

impl StoredPlan {
    /// The plan itself, for a program that knows formats up to `format_max`.
    pub fn read<T: DeserializeOwned + Send>(&self, format_max: u32) -> Result<T, Error> {
        let refuse = |cause| Error::UnreadablePlan { digest: self.digest.clone(), cause };
        if self.format > format_max {
            return Err(refuse(format!(
                "it has format {}, but this version reads up to {format_max}",
                self.format
            )));
        }
        deep::from_slice(self.plan.as_bytes()).map_err(refuse)
    }

    /// A fingerprint of the whole entry, to detect damage.
    pub(crate) fn checksum(&self) -> [u8; 8] {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.format.to_le_bytes());
        for text in [&self.digest, &self.plan, &self.source, &self.overrides] {
            hasher.update(&(text.len() as u64).to_le_bytes());
            hasher.update(text.as_bytes());
        }
        let mut sum = [0; 8];
        sum.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
        sum
    }

    /// An entry that could not be read back must not be written.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let refuse = |cause| Error::UnreadablePlan { digest: self.digest.clone(), cause };
        deep::check(self.plan.as_bytes()).map(drop).map_err(refuse)
    }
}

pub trait Plans: Send + Sync + std::fmt::Debug {
    /// Recovery relies on: once this is acknowledged, the plan is there after any crash, so await it before the first
    /// record of a run that needs it. An existing digest keeps its plan: plans with equal digests mean the same.
    fn put(&self, plan: StoredPlan) -> Pending<()>;

    /// The digests of all plans.
    fn list(&self) -> Pending<Vec<String>>;

    /// Removes plans that no run is pinned to, as verified by the caller. Returns how many existed.
    fn forget(&self, digests: Vec<String>) -> Pending<usize>;

    /// Recovery relies on: the bytes that were stored, or an error; never another plan. `None` if it was never
    /// stored.
    fn get(&self, digest: &str) -> Pending<Option<StoredPlan>>;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A plan of any nesting is read with enough stack, or refused before it is parsed.
    #[test]
    fn a_plan_of_any_depth_can_be_read() {
        let nested = |levels: usize| StoredPlan {
            digest: "d".into(),
            format: 1,
            plan: "[".repeat(levels) + &"]".repeat(levels),
            source: String::new(),
            overrides: String::new(),
        };
        assert!(nested(2_000).read::<serde_json::Value>(1).is_ok());
        let refused = nested(100_000).read::<serde_json::Value>(1).map_err(|error| error.to_string());
        assert!(refused.expect_err("too deep").contains("nested 100000 levels deep"));
    }
}
