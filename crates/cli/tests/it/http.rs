//! The HTTP API against the contract: every route with every kind of caller, the shape of requests and refusals, and streams.

use crate::operations::Sample;
use crate::reference::check_copy;
use crate::scratch::Scratch;
use crate::support::root;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request, StatusCode, header};
use serde_json::{Value as Json, json};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::Arc;
use tower::ServiceExt;
use windlass_api::operations::{CreateToken, ListAudit, RevokeToken, operations};
use windlass_api::{Caller, Context, Effect, Method, Role, Route, Row, admit};
use windlass_dialects::DIALECTS;
use windlass_runtime::{Durability, Engine};
use windlass_server::{Server, TokenFile, openapi, router};

const HOST: &str = "127.0.0.1:7421";
const ROLES: [Role; 6] =
    [Role::Viewer, Role::Operator, Role::Approver, Role::Author, Role::Admin, Role::Worker];

/// A server of a copy of the sample folder, without a socket.
struct Site {
    engine: Arc<Engine>,
    router: Router,
    token: String,
}

struct Seen {
    status: StatusCode,
    headers: HeaderMap,
    text: String,
}

impl Seen {
    fn json(&self) -> Json {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }
}

impl Site {
    fn new(sample: &Sample, name: &str) -> Self {
        let folder = &sample.copy(name);
        let engine = Engine::open(folder, Durability::Disk, DIALECTS).expect("a writable folder");
        let file = TokenFile::open(folder).expect("a writable folder");
        let token = std::fs::read_to_string(&file.path).expect("the token").trim().to_owned();
        let server = Server::new(engine.clone(), file, "ann", HOST.parse().expect("an address"));
        let server = server.with_workflows(vec![sample.scratch.path().to_owned()]);
        Self { router: router(server), engine, token }
    }

    fn admin(&self) -> Context {
        Context::owning(self.engine.clone(), Caller::user("ann"))
    }

    /// The text and the id of a new token.
    async fn token(&self, name: &str, roles: &[Role], expires: Option<f64>) -> (String, String) {
        let create =
            CreateToken { name: name.to_owned(), roles: roles.to_vec(), expires_in_seconds: expires };
        let created = admit(create, &self.admin()).await.expect("a token");
        (created.token.expect("its text"), created.about.token_id)
    }

    async fn send(&self, request: Request<Body>) -> Seen {
        let response = self.router.clone().oneshot(request).await.expect("an answer");
        let (parts, body) = response.into_parts();
        let bytes = to_bytes(body, usize::MAX).await.expect("a whole body");
        let text = String::from_utf8(bytes.to_vec()).expect("UTF-8");
        Seen { status: parts.status, headers: parts.headers, text }
    }

    async fn call(&self, method: &str, path: &str, body: Option<&Json>) -> Seen {
        let token = format!("Bearer {}", self.token);
        self.call_as(Some(&token), method, path, body).await
    }

    async fn call_as(&self, token: Option<&str>, method: &str, path: &str, body: Option<&Json>) -> Seen {
        self.send(request(token, method, path, body)).await
    }
}

fn request(token: Option<&str>, method: &str, path: &str, body: Option<&Json>) -> Request<Body> {
    let mut request = Request::builder().method(method).uri(path).header(header::HOST, HOST);
    if let Some(token) = token {
        request = request.header(header::AUTHORIZATION, token);
    }
    match body {
        None => request.body(Body::empty()),
        Some(body) => {
            request.header(header::CONTENT_TYPE, "application/json").body(Body::from(body.to_string()))
        }
    }
    .expect("a request")
}

/// The method, path and body of an example.
fn example(sample: &Sample, row: &Row, route: Route) -> (&'static str, String, Option<Json>) {
    let mut members = sample.example(row, "http").as_object().cloned().unwrap_or_default();
    members.retain(|_, value| !value.is_null());
    let mut path = format!("/api/v1{}", route.path);
    for (part, member) in route.members() {
        let text = members.remove(member).and_then(|value| value.as_str().map(str::to_owned));
        path = path.replace(&format!("{{{part}}}"), &text.unwrap_or_else(|| "sign-off".to_owned()));
    }
    let query = || {
        let pairs = members.iter().flat_map(|(name, value)| {
            let texts = match value {
                Json::Array(items) => items.clone(),
                other => vec![other.clone()],
            };
            let text = |value: &Json| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            texts.iter().map(|value| format!("{name}={}", encoded(&text(value)))).collect::<Vec<_>>()
        });
        pairs.collect::<Vec<_>>().join("&")
    };
    match route.method {
        Method::Get => ("GET", format!("{path}?{}", query()), None),
        Method::Delete => ("DELETE", path, None),
        Method::Post => ("POST", path, Some(Json::Object(members))),
        Method::Put => ("PUT", path, Some(Json::Object(members))),
    }
}

fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// A worker may call none of these; the other roles what they include. A text in a request also needs an author.
fn expects(row: &Row, role: Role, body: Option<&Json>) -> bool {
    let has_text =
        row.about.effect == Effect::Changes && body.is_some_and(|body| body.get("source").is_some());
    role.includes(row.about.role) && (!has_text || role.includes(Role::Author))
}

#[tokio::test]
async fn every_route_checks_its_caller() {
    let sample = Sample::new("http-matrix");
    let site = Site::new(&sample, "http-matrix");
    let mut bearers = Vec::new();
    for role in ROLES {
        let (text, _) = site.token(&format!("the {role}"), &[role], None).await;
        bearers.push((role, format!("Bearer {text}")));
    }
    let (revoked, id) = site.token("revoked", &[Role::Admin], None).await;
    admit(RevokeToken { token_id: id }, &site.admin()).await.expect("a revoked token");
    let (expired, _) = site.token("expired", &[Role::Admin], Some(1e-6)).await;
    let wrong = format!("{}x", site.token);
    let strangers = [
        None,
        Some("Bearer".to_owned()),
        Some(format!("Basic {}", site.token)),
        Some(format!("Bearer {wrong}")),
        Some(format!("Bearer {revoked}")),
        Some(format!("Bearer {expired}")),
    ];
    for row in operations() {
        for route in row.about.http {
            let (method, path, body) = example(&sample, row, *route);
            for stranger in &strangers {
                let seen = site.call_as(stranger.as_deref(), method, &path, body.as_ref()).await;
                assert_eq!(seen.status, 401, "{method} {path} as {stranger:?}: {}", seen.text);
                assert_eq!(seen.headers[header::WWW_AUTHENTICATE], "Bearer");
                assert_eq!(seen.json()["code"], "unauthorized");
            }
            for (role, bearer) in &bearers {
                // Only the refusals are of interest here, and a call that may be made is made by one of them.
                if expects(row, *role, body.as_ref()) && *role != Role::Admin {
                    continue;
                }
                let seen = site.call_as(Some(bearer), method, &path, body.as_ref()).await;
                let allowed = expects(row, *role, body.as_ref());
                assert_eq!(seen.status != 403, allowed, "{method} {path} as {role}: {}", seen.text);
                assert!(seen.status != 500 && seen.status != 404, "{method} {path} as {role}: {}", seen.text);
            }
        }
    }
    let entries = admit(ListAudit::default(), &site.admin()).await.expect("the audit log").items;
    let over_http = entries.iter().filter(|entry| entry.principal == "the admin");
    assert!(over_http.clone().count() > 5);
    for entry in over_http {
        assert_eq!(entry.face, windlass_api::types::Face::Http);
        assert!(entry.request_id.is_some());
    }
    let refused = entries.iter().find(|entry| entry.principal == "the viewer").expect("a refused change");
    assert_eq!(refused.outcome, windlass_api::types::AuditOutcome::Refused);
}

#[tokio::test]
async fn replies_fit_the_published_schemas() {
    let sample = Sample::new("http-schemas");
    for row in operations() {
        for route in row.about.http {
            let site = Site::new(&sample, &format!("http-{}", row.about.name));
            let (method, path, body) = example(&sample, row, *route);
            let seen = site.call(method, &path, body.as_ref()).await;
            assert!(seen.status.is_success(), "{method} {path}: {} {}", seen.status, seen.text);
            let reply = seen.json();
            let validator = jsonschema::validator_for(row.reply.as_value()).expect("a schema");
            let problems: Vec<String> =
                validator.iter_errors(&reply).map(|error| error.to_string()).collect();
            assert!(problems.is_empty(), "{method} {path}: {problems:?} in {reply:#}");
        }
    }
}

#[tokio::test]
async fn malformed_requests_are_refused_with_a_problem() {
    let sample = Sample::new("http-malformed");
    let site = Site::new(&sample, "http-malformed");
    let bearer = format!("Bearer {}", site.token);
    let refused = async |request: Request<Body>, status: u16, code: &str| {
        let seen = site.send(request).await;
        let problem = seen.json();
        assert_eq!((seen.status.as_u16(), &problem["code"]), (status, &json!(code)), "{problem:#}");
        assert_eq!(seen.headers[header::CONTENT_TYPE], "application/problem+json");
        assert_eq!(problem["status"], status);
        assert_eq!(problem["type"], format!("/api/v1/codes/{code}"));
        assert_eq!(problem["instance"].as_str(), seen.headers["x-request-id"].to_str().ok());
        problem
    };
    let get = |path: &str| request(Some(&bearer), "GET", path, None);
    let post = |path: &str, body: Json| request(Some(&bearer), "POST", path, Some(&body));
    let with = |mut request: Request<Body>, name: &'static str, value: &str| {
        request.headers_mut().insert(name, value.parse().expect("a header"));
        request
    };
    let cancel = "/api/v1/workflow-runs/sample-waiting/cancel";
    refused(get("/api/v1/nothing"), 404, "no_route").await;
    refused(get("/api/v1/workflow-runs/../../etc/passwd"), 404, "no_route").await;
    refused(get("/api/v1/workflow-runs/%2e%2e%2f%2e%2e"), 404, "no_run").await;
    refused(get("/api/v1/workflow-runs/%zz"), 400, "bad_request").await;
    refused(get("/api/v1/workflow-runs/never"), 404, "no_run").await;
    refused(get("/api/v1/workflows/never"), 404, "no_workflow").await;
    refused(get("/api/v1/workflow-runs?limit=0"), 400, "bad_request").await;
    refused(get("/api/v1/workflow-runs?limit=many"), 400, "bad_request").await;
    refused(get("/api/v1/workflow-runs?limit=1&limit=2"), 400, "bad_request").await;
    refused(get("/api/v1/workflow-runs?cursor=x"), 400, "bad_cursor").await;
    refused(get("/api/v1/workflow-runs?stauts=failed"), 400, "unknown_member").await;
    let twice = refused(post(cancel, json!({"run_id": "other"})), 400, "bad_request").await;
    assert_eq!(twice["field"], "run_id");
    refused(post(cancel, json!([1])), 400, "bad_request").await;
    refused(post(cancel, json!({"reason": 1})), 400, "bad_request").await;
    refused(with(post(cancel, json!({})), "content-type", "text/plain"), 415, "unsupported_media_type").await;
    refused(with(post(cancel, json!({})), "idempotency-key", "two words"), 400, "bad_request").await;
    refused(with(get("/api/v1/workflows"), "host", "evil.example"), 403, "bad_host").await;
    refused(with(get("/api/v1/workflows"), "origin", "http://evil.example"), 403, "bad_origin").await;
    refused(with(get("/api/v1/workflows"), "origin", "null"), 403, "bad_origin").await;
    let deep = format!("{{\"reason\": {}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    let mut nested = post(cancel, json!({}));
    *nested.body_mut() = Body::from(deep);
    refused(nested, 400, "bad_request").await;
    let mut large = post(cancel, json!({}));
    *large.body_mut() = Body::from(vec![b' '; (16 << 20) + 1]);
    refused(large, 413, "too_large").await;
    let seen = site.call("DELETE", "/api/v1/workflow-runs", None).await;
    assert_eq!(
        (seen.status.as_u16(), &seen.headers[header::ALLOW]),
        (405, &"GET,HEAD".parse().expect("text"))
    );
    // None of these has changed anything.
    assert_eq!(
        site.call("GET", "/api/v1/workflow-runs/sample-waiting", None).await.json()["status"],
        "waiting"
    );
}

#[tokio::test]
async fn only_descriptions_and_health_need_no_token() {
    let sample = Sample::new("http-open");
    let site = Site::new(&sample, "http-open");
    for path in ["/healthz", "/readyz", "/openapi.json", "/docs"] {
        assert_eq!(site.call_as(None, "GET", path, None).await.status, 200, "{path}");
    }
    let described = site.call_as(None, "GET", "/openapi.json", None).await.json();
    assert_eq!(described, openapi(operations()));
    let mut text = serde_json::to_string_pretty(&described).expect("JSON");
    text.push('\n');
    check_copy("docs/reference/openapi.json", &text);
}

/// The names and numbers of the events in a stream.
fn events(text: &str) -> Vec<(u64, String)> {
    let messages = text.split("\n\n").filter(|message| message.starts_with("id: "));
    let event = |message: &str| {
        let mut lines = message.lines();
        let number = lines.next()?.strip_prefix("id: ")?.parse().ok()?;
        Some((number, lines.next()?.strip_prefix("event: ")?.to_owned()))
    };
    messages.filter_map(event).collect()
}

#[tokio::test]
async fn a_stream_continues_after_the_last_event() {
    let sample = Sample::new("http-stream");
    let site = Site::new(&sample, "http-stream");
    let bearer = format!("Bearer {}", site.token);
    let path = "/api/v1/workflow-runs/sample-finished/events";
    let follow = async |last: Option<u64>| {
        let mut request = request(Some(&bearer), "GET", path, None);
        request.headers_mut().insert(header::ACCEPT, "text/event-stream".parse().expect("a header"));
        if let Some(last) = last {
            request.headers_mut().insert("last-event-id", last.to_string().parse().expect("a header"));
        }
        site.send(request).await
    };
    let whole = follow(None).await;
    assert_eq!(whole.headers[header::CONTENT_TYPE], "text/event-stream");
    assert!(whole.text.starts_with("retry: 1000\n\n"), "{}", whole.text);
    let all = events(&whole.text);
    let numbers: Vec<u64> = all.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    assert_eq!(all.first().map(|(_, name)| name.as_str()), Some("started"));
    assert_eq!(all.last().map(|(_, name)| name.as_str()), Some("closed"));
    assert!(whole.text.contains("event: result\ndata: {\"type\":\"result\""), "{}", whole.text);
    let rest = events(&follow(Some(3)).await.text);
    assert_eq!(rest, all[3..]);
    let last = all.last().map(|(number, _)| *number);
    assert_eq!(follow(last).await.status, StatusCode::NO_CONTENT);
    let listed = site.call("GET", &format!("{path}?limit=500"), None).await.json();
    assert_eq!(listed["items"].as_array().map(Vec::len), Some(all.len()));
}

#[tokio::test]
async fn a_start_is_accepted_once_per_key() {
    let sample = Sample::new("http-start");
    let site = Site::new(&sample, "http-start");
    let bearer = format!("Bearer {}", site.token);
    let start = async |key: &str, body: Json| {
        let mut request = request(Some(&bearer), "POST", "/api/v1/workflows/build/run", Some(&body));
        request.headers_mut().insert("idempotency-key", key.parse().expect("a header"));
        site.send(request).await
    };
    let first = start("k", json!({"parameters": {}})).await;
    let run = first.json()["run_id"].as_str().expect("an id").to_owned();
    assert_eq!(first.headers[header::LOCATION], format!("/api/v1/workflow-runs/{run}"));
    let again = start("k", json!({"parameters": {}})).await;
    assert_eq!(again.json()["run_id"], json!(run));
    let other = start("k", json!({"parameters": {}, "run_id": "other"})).await;
    assert_eq!((other.status.as_u16(), &other.json()["code"]), (422, &json!("key_reused")));
    let waited = site.call("GET", &format!("/api/v1/workflow-executions/{run}?wait_seconds=30"), None).await;
    assert_eq!(waited.json()["status"], "success");
}

const HELLO: &str = "\
workflow: { id: hello, name: Hello }
config: { parameters: { who: { type: string, default: world } } }
stages:
  - { id: say, type: shell, run: \"echo hello ${{ parameters.who }}\" }
  - { id: ok, type: gate, depends_on: [say], gate: { timeout: none, message: Fine? } }
";

/// A server in a process of its own, which ends with this value.
struct Process(std::process::Child);

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_recipes_work_as_printed() {
    let scratch = Scratch::new("http-recipes");
    std::fs::write(scratch.path().join("hello.yaml"), HELLO).expect("a writable folder");
    let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
    command.args(["serve", "--listen", "127.0.0.1:0", "--json"]).current_dir(scratch.path());
    let mut child = command.stdout(Stdio::piped()).spawn().expect("the program is built");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let _process = Process(child);
    let listening: Json = serde_json::from_str(&lines.next().expect("a line").expect("text")).expect("JSON");
    let token = std::fs::read_to_string(listening["token_file"].as_str().expect("a path")).expect("a token");
    let page = std::fs::read_to_string(root().join("docs/reference/api.md")).expect("the page");
    let recipes: Vec<&str> =
        page.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(recipes.len() > 5);
    for recipe in recipes {
        let mut shell = Command::new("bash");
        shell.args(["-euo", "pipefail", "-c", recipe]).current_dir(scratch.path());
        shell.env("URL", listening["url"].as_str().expect("a URL")).env("TOKEN", token.trim());
        let output = shell.output().expect("bash runs");
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{recipe}\n{printed}\n{}", String::from_utf8_lossy(&output.stderr));
        assert!(printed.contains('{'), "{recipe}\n{printed}");
    }
}
