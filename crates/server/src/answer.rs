//! Answers a request: the caller, the request object, the operation, and the status and headers of its reply.

use crate::problem::Problem;
use crate::request::Members;
use crate::router::{RequestId, Server};
use crate::{PREFIX, access, stream};
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::Value as Json;
use std::sync::Arc;
use windlass_api::operations::{CreateToken, StartRun};
use windlass_api::{Caller, Code, Context, Operation, Refusal, Route, Row};

const KEY: &str = "idempotency-key";

pub async fn answer(server: Arc<Server>, row: &'static Row, route: Route, request: Request) -> Response {
    let id = request.extensions().get::<RequestId>().map(|id| id.0.clone()).unwrap_or_default();
    match answered(&server, row, route, request, id.clone()).await {
        Ok(response) => response,
        Err(refusal) => Problem { refusal, request_id: id.to_string() }.into_response(),
    }
}

async fn answered(
    server: &Arc<Server>,
    row: &'static Row,
    route: Route,
    request: Request,
    id: Arc<str>,
) -> Result<Response, Refusal> {
    let (parts, body) = request.into_parts();
    let headers = &parts.headers;
    let caller = access::caller(server, headers).await?;
    let caller = Caller { request_id: Some(id), key: key(headers)?, ..caller };
    let mut cx = Context::owning(server.engine.clone(), caller);
    if !server.workflows.is_empty() {
        cx = cx.with_workflows(server.workflows.clone());
    }
    let mut members = Members::of_path(route, &parts.uri)?;
    // Nothing of the body is read for a caller who may not call this.
    row.permit(&cx, &members.clone().into_json()).await?;
    members.add_query(row, &parts.uri)?;
    members.add_body(headers, body).await?;
    if stream::is_wanted(headers) {
        return stream::answer(server, row, &cx, headers, members).await;
    }
    let reply = row.call(cx, members.into_json()).await?;
    Ok(replied(row, &reply))
}

fn key(headers: &HeaderMap) -> Result<Option<Arc<str>>, Refusal> {
    let Some(key) = headers.get(KEY) else { return Ok(None) };
    match key.to_str() {
        Ok(key) => Ok(Some(key.into())),
        Err(_) => {
            let refusal = Refusal::new(Code::BadRequest, "invalid idempotency key").field("key");
            Err(refusal.help("a key has 1 to 255 visible ASCII characters"))
        }
    }
}

/// The reply with its status: 202 for a run that has started and continues, 201 for what was created.
fn replied(row: &Row, reply: &Json) -> Response {
    let started = reply["run_id"].as_str().filter(|_| row.about.name == StartRun::ABOUT.name);
    let status = match started {
        Some(_) if matches!(reply["status"].as_str(), Some("pending" | "running")) => StatusCode::ACCEPTED,
        _ if row.about.name == CreateToken::ABOUT.name => StatusCode::CREATED,
        _ => StatusCode::OK,
    };
    let json = [(header::CONTENT_TYPE, "application/json")];
    let mut response = (status, json, reply.to_string()).into_response();
    let place = started.map(|run| format!("{PREFIX}/workflow-runs/{run}"));
    if let Some(place) = place.and_then(|place| HeaderValue::from_str(&place).ok()) {
        response.headers_mut().insert(header::LOCATION, place);
    }
    response
}
