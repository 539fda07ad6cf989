//! Messages that name no run.

use crate::operation::{About, Operation, Route};
use crate::perform::{Context, Perform};
use crate::refusal::Refusal;
use crate::types::Json;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Publish a message: every step that waits for it, and every run that it cancels, gets it once.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PublishMessage {
    pub name: String,
    #[serde(default)]
    pub value: Json,
    /// The same id published twice is one message.
    #[serde(default)]
    pub id: Option<String>,
    #[serde(default)]
    pub by: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Published {
    pub id: String,
    /// How many subscribers received it.
    pub subscribers: usize,
}

impl Operation for PublishMessage {
    type Reply = Published;
    const ABOUT: About = About {
        name: "messages.publish",
        summary: "Publish a message to every step that waits for it",
        http: &[Route::post("/messages")],
        cli: &["publish"],
        ..About::CHANGES
    };

    fn example() -> Self {
        Self { name: "order.paid".into(), value: serde_json::json!({"order": 17}), id: None, by: None }
    }
}

impl Perform for PublishMessage {
    async fn perform(self, cx: &Context) -> Result<Published, Refusal> {
        let by = cx.actor(self.by)?;
        let id = self.id.unwrap_or_else(|| cx.new_id(&by));
        let value = crate::perform::value(self.value)?;
        let (name, entries) = (self.name.into(), cx.entries());
        let subscribers = cx.owner()?.publish(id.as_str().into(), name, by.into(), value, entries).await?;
        Ok(Published { id, subscribers })
    }
}
