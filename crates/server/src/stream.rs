//! Server-sent events: the stream form of an operation. `id` is the number of an event, so a client that reconnects continues
//! after the last one it has.

use crate::request::Members;
use crate::router::Server;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures::stream::unfold;
use serde_json::json;
use std::convert::Infallible;
use std::sync::Arc;
use windlass_api::types::{CutReason, Sign, Streamed};
use windlass_api::{Context, Refusal, Row, Stream};

const LAST_EVENT: &str = "last-event-id";

/// Whether the client asks for a stream.
pub fn is_wanted(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|kind| {
        kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("text/event-stream"))
    })
}

pub async fn answer(
    server: &Arc<Server>,
    row: &Row,
    cx: &Context,
    headers: &HeaderMap,
    mut members: Members,
) -> Result<Response, Refusal> {
    // A browser that reconnects repeats the address and adds the number of the last event.
    let last = headers.get(LAST_EVENT).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if let Some(last) = last {
        members.set("after", json!(last));
    }
    let request = members.into_json();
    let after = request["after"].as_u64().unwrap_or(0);
    let run = request["run_id"].as_str().map(str::to_owned);
    let stream = Stream::of(row, cx, request).await?;
    if let Some(run) = run.filter(|_| after > 0) {
        let run = cx.run(&cx.run_id(&run)?).await?;
        // Nothing will follow, and this status keeps a browser from reconnecting.
        if run.ended_at.is_some() && after >= run.seq {
            return Ok(StatusCode::NO_CONTENT.into_response());
        }
    }
    let state = Sending { stream, server: server.clone(), seq: after, begun: false, over: false };
    let body = unfold(state, |mut state| async move {
        let text = state.next().await?;
        Some((Ok::<_, Infallible>(Bytes::from(text)), state))
    });
    let kind = [(header::CONTENT_TYPE, "text/event-stream")];
    Ok((kind, Body::from_stream(body)).into_response())
}

struct Sending {
    stream: Stream,
    server: Arc<Server>,
    seq: u64,
    begun: bool,
    over: bool,
}

impl Sending {
    async fn next(&mut self) -> Option<String> {
        if self.over {
            return None;
        }
        if !std::mem::replace(&mut self.begun, true) {
            return Some("retry: 1000\n\n".to_owned());
        }
        tokio::select! {
            biased;
            object = self.stream.next() => match object? {
                Ok(object) => {
                    self.seq = object.seq().unwrap_or(self.seq);
                    Some(message(&object))
                }
                Err(refusal) => {
                    self.over = true;
                    let refused = json!({"type": "refused", "error": refusal});
                    Some(format!("event: refused\ndata: {refused}\n\n"))
                }
            },
            () = self.server.stopping.cancelled() => {
                self.over = true;
                let cut = Sign::Cut { after: self.seq, reason: CutReason::ShuttingDown };
                Some(message(&Streamed::Sign(cut)))
            }
        }
    }
}

/// One message. JSON has no line breaks of its own, so the data is one line.
fn message(object: &Streamed) -> String {
    let data = serde_json::to_string(object).unwrap_or_default();
    let id = object.seq().map(|seq| format!("id: {seq}\n")).unwrap_or_default();
    format!("{id}event: {}\ndata: {data}\n\n", object.name())
}
