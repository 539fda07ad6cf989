//! What runs share: slots, rates, keys and subscriptions.

use crate::operation::{About, Operation, Route};
use crate::perform::{Context, Perform};
use crate::refusal::Refusal;
use crate::report;
use crate::types::Limits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_runtime::Clock;

/// Show the limits that runs share: slots, rates, idempotency keys and subscriptions.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct GetLimits {
    /// Only this key.
    pub key: Option<String>,
}

impl Operation for GetLimits {
    type Reply = Limits;
    const ABOUT: About = About {
        name: "limits.get",
        summary: "Show the limits that runs share",
        http: &[Route::get("/limits")],
        cli: &["limits"],
        ..About::READS
    };

    fn example() -> Self {
        Self::default()
    }
}

impl Perform for GetLimits {
    async fn perform(self, cx: &Context) -> Result<Limits, Refusal> {
        cx.read_or(Limits::default(), move |engine| {
            let mut limits = report::limits(&engine.shared()?, Clock::Real.now());
            if let Some(key) = self.key {
                limits.slots.retain(|slot| slot.key == key);
                limits.rates.retain(|rate| rate.key == key);
                limits.keys.retain(|kept| kept.key == key);
                limits.subscriptions.retain(|subscription| subscription.name == key);
            }
            Ok(limits)
        })
        .await
    }
}
