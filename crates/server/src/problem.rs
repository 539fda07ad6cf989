//! Refusals as HTTP responses: `application/problem+json` of RFC 9457, with the members of the refusal.

use crate::PREFIX;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value as Json, json};
use windlass_api::{Code, Family, Refusal};

/// A refusal, and the request that it answers.
#[derive(Debug)]
pub struct Problem {
    pub refusal: Refusal,
    pub request_id: String,
}

pub fn status(code: Code) -> StatusCode {
    match code.family() {
        Family::Malformed => StatusCode::BAD_REQUEST,
        Family::Unauthorized => StatusCode::UNAUTHORIZED,
        Family::NotAllowed => StatusCode::FORBIDDEN,
        Family::NotFound => StatusCode::NOT_FOUND,
        Family::Method => StatusCode::METHOD_NOT_ALLOWED,
        Family::MediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        Family::Conflict => StatusCode::CONFLICT,
        Family::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        Family::Content | Family::Evaluation => StatusCode::UNPROCESSABLE_ENTITY,
        Family::Damaged | Family::Bug => StatusCode::INTERNAL_SERVER_ERROR,
        Family::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
    }
}

/// How long a client should wait if the refusal does not say.
const RETRY_SECONDS: f64 = 1.0;

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let Self { refusal, request_id } = self;
        let (code, status) = (refusal.code, status(refusal.code));
        let mut problem = Map::new();
        problem.insert("type".into(), json!(format!("{PREFIX}/codes/{code}")));
        problem.insert("title".into(), json!(code.word().replace('_', " ")));
        problem.insert("status".into(), json!(status.as_u16()));
        problem.insert("detail".into(), json!(refusal.message));
        problem.insert("instance".into(), json!(request_id));
        let retry_after = refusal.retry_after_seconds;
        if let Ok(Json::Object(members)) = serde_json::to_value(refusal) {
            problem.extend(members);
        }
        let mut response = (status, Json::Object(problem).to_string()).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if code.family() == Family::Unauthorized {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if code.family() == Family::Unavailable {
            let seconds = retry_after.unwrap_or(RETRY_SECONDS).ceil() as u64;
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}
