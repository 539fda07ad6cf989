//! From path, query and body to the one request object of an operation. A member arrives in one place only.

use axum::body::Body;
use axum::http::{HeaderMap, Uri, header};
use serde_json::{Map, Value as Json};
use std::collections::BTreeMap;
use std::time::Duration;
use windlass_api::{Code, Refusal, Route, Row};

/// The most bytes of a body.
const BODY_BYTES_MAX: usize = 16 << 20;
/// A client that takes longer to send its body is refused.
const BODY_TIME_MAX: Duration = Duration::from_secs(30);

/// The members of a request, while they are collected.
#[derive(Clone, Debug, Default)]
pub struct Members(Map<String, Json>);

impl Members {
    /// The members in the path of a request.
    pub fn of_path(route: Route, uri: &Uri) -> Result<Self, Refusal> {
        let mut members = Self::default();
        // The route matched without its prefixes, so both have the same parts, counted from the end.
        let given = uri.path().rsplit('/');
        for (part, text) in route.path.rsplit('/').zip(given) {
            let Some(part) = part.strip_prefix('{').and_then(|part| part.strip_suffix('}')) else { continue };
            let member = if part == "id" { "workflow" } else { part };
            members.add(member, Json::String(decoded(text)?))?;
        }
        Ok(members)
    }

    /// Adds the members in a query, as the types that their schema asks for.
    pub fn add_query(&mut self, row: &Row, uri: &Uri) -> Result<(), Refusal> {
        let mut lists: BTreeMap<String, Vec<Json>> = BTreeMap::new();
        for pair in uri.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            let (name, text) = pair.split_once('=').unwrap_or((pair, ""));
            let (name, text) = (decoded(&name.replace('+', " "))?, decoded(&text.replace('+', " "))?);
            let schema = property(row.request.as_value(), &name);
            match items(schema) {
                Some(item) => {
                    lists.entry(name).or_default().push(typed(row.request.as_value(), item, text));
                }
                None => self.add(&name, typed(row.request.as_value(), schema, text))?,
            }
        }
        lists.into_iter().try_for_each(|(name, list)| self.add(&name, Json::Array(list)))
    }

    /// Adds the members of a JSON body.
    pub async fn add_body(&mut self, headers: &HeaderMap, body: Body) -> Result<(), Refusal> {
        let bytes =
            match tokio::time::timeout(BODY_TIME_MAX, axum::body::to_bytes(body, BODY_BYTES_MAX)).await {
                Ok(Ok(bytes)) => bytes,
                Ok(Err(error)) if is_too_large(&error) => {
                    let refusal = Refusal::new(Code::TooLarge, "the body is larger than 16 MiB");
                    return Err(refusal.help("send less at once"));
                }
                Ok(Err(error)) => {
                    return Err(Refusal::new(Code::BadRequest, format!("the body cannot be read: {error}")));
                }
                Err(_) => {
                    return Err(Refusal::new(Code::BadRequest, "the body did not arrive within 30 seconds"));
                }
            };
        if bytes.is_empty() {
            return Ok(());
        }
        let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim();
        if !kind.eq_ignore_ascii_case("application/json") {
            let refusal = Refusal::new(Code::UnsupportedMediaType, "the body is not JSON");
            return Err(refusal.help("send the header `Content-Type: application/json`"));
        }
        match serde_json::from_slice(&bytes) {
            Ok(Json::Object(members)) => {
                members.into_iter().try_for_each(|(name, value)| self.add(&name, value))
            }
            Ok(_) => Err(Refusal::new(Code::BadRequest, "the body is not a JSON object")),
            Err(error) => Err(Refusal::new(Code::BadRequest, format!("the body is not valid JSON: {error}"))),
        }
    }

    /// Sets a member that a header gives.
    pub fn set(&mut self, name: &str, value: Json) {
        self.0.insert(name.to_owned(), value);
    }

    pub fn into_json(self) -> Json {
        Json::Object(self.0)
    }

    fn add(&mut self, name: &str, value: Json) -> Result<(), Refusal> {
        match self.0.insert(name.to_owned(), value) {
            None => Ok(()),
            Some(_) => {
                let refusal = Refusal::new(Code::BadRequest, format!("`{name}` is given twice")).field(name);
                Err(refusal.help("send it in the path, the query or the body, but only once"))
            }
        }
    }
}

fn is_too_large(error: &axum::Error) -> bool {
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        if error.is::<http_body_util::LengthLimitError>() {
            return true;
        }
        cause = error.source();
    }
    false
}

/// Text with `%XX` decoded.
fn decoded(text: &str) -> Result<String, Refusal> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let byte = match byte {
            b'%' => match (rest.next().and_then(digit), rest.next().and_then(digit)) {
                (Some(high), Some(low)) => high * 16 + low,
                _ => return Err(malformed()),
            },
            byte => byte,
        };
        bytes.push(byte);
    }
    String::from_utf8(bytes).map_err(|_| malformed())
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

fn malformed() -> Refusal {
    Refusal::new(Code::BadRequest, "the address has an invalid `%` sequence")
}

/// The schema of a member, behind references.
fn property<'a>(whole: &'a Json, name: &str) -> &'a Json {
    referred(whole, &referred(whole, whole)["properties"][name])
}

fn referred<'a>(whole: &'a Json, schema: &'a Json) -> &'a Json {
    let place = schema["$ref"].as_str().map(|place| place.trim_start_matches('#'));
    place.and_then(|place| whole.pointer(place)).unwrap_or(schema)
}

/// The schema of the items, if the member is a list.
fn items(schema: &Json) -> Option<&Json> {
    has_type(schema, "array").then(|| &schema["items"])
}

fn has_type(schema: &Json, kind: &str) -> bool {
    match &schema["type"] {
        Json::String(only) => only == kind,
        Json::Array(several) => several.iter().any(|one| one == kind),
        _ => schema["anyOf"].as_array().is_some_and(|any| any.iter().any(|one| has_type(one, kind))),
    }
}

/// A text of a query as the type that its schema asks for. A text that does not fit stays one, and the schema refuses it.
fn typed(whole: &Json, schema: &Json, text: String) -> Json {
    let schema = referred(whole, schema);
    let parsed = match text.as_str() {
        "true" | "false" if has_type(schema, "boolean") => serde_json::from_str(&text).ok(),
        _ if has_type(schema, "integer") || has_type(schema, "number") => {
            serde_json::from_str(&text).ok().filter(Json::is_number)
        }
        _ => None,
    };
    parsed.unwrap_or(Json::String(text))
}
