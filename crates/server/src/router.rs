//! The routes: one for each route of an operation, and the few paths that need no token.

use crate::answer::answer;
use crate::problem::Problem;
use crate::token_file::TokenFile;
use crate::{PREFIX, access, docs, document};
use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, get, on};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};
use tokio_util::sync::CancellationToken;
use windlass_api::operations::operations;
use windlass_api::{Code, Method, Refusal};
use windlass_runtime::{Clock, Engine, new_id};

/// What every request needs.
#[derive(Clone, Debug)]
pub struct Server {
    pub engine: Arc<Engine>,
    /// Whom the token of the data folder stands for.
    pub user: String,
    pub token: TokenFile,
    /// Where workflows are looked up by name; none means around the data folder.
    pub workflows: Vec<PathBuf>,
    /// The names in the `Host` header that are this server's.
    pub hosts: Vec<String>,
    /// Canceled when the server is about to end, so that streams end.
    pub stopping: CancellationToken,
}

impl Server {
    pub fn new(engine: Arc<Engine>, token: TokenFile, user: &str, address: SocketAddr) -> Self {
        Self {
            engine,
            user: user.to_owned(),
            token,
            workflows: Vec::new(),
            hosts: access::hosts(address),
            stopping: CancellationToken::new(),
        }
    }

    #[must_use]
    pub fn with_workflows(self, workflows: Vec<PathBuf>) -> Self {
        Self { workflows, ..self }
    }
}

/// The id of a request: what the client sent, or a new one.
#[derive(Clone, Debug)]
pub struct RequestId(pub Arc<str>);

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const REQUEST_ID_BYTES_MAX: usize = 64;

/// Pages load nothing, and no other page shows them inside itself.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'";

/// Another name for the path of runs.
const RUNS: &str = "/workflow-runs";
const RUNS_ALIAS: &str = "/workflow-executions";

static DESCRIBED: LazyLock<String> = LazyLock::new(|| document::openapi(operations()).to_string());
static EXPLAINED: LazyLock<String> = LazyLock::new(|| docs::page(operations()));

/// Every operation with a route, and what describes the server.
pub fn router(server: Server) -> Router {
    let server = Arc::new(server);
    let mut router = Router::new();
    for row in operations() {
        for route in row.about.http {
            let (path, alias) = (format!("{PREFIX}{}", route.path), route.path.strip_prefix(RUNS));
            let paths = [Some(path), alias.map(|rest| format!("{PREFIX}{RUNS_ALIAS}{rest}"))];
            for path in paths.into_iter().flatten() {
                let route = *route;
                let handler =
                    move |state: State<Arc<Server>>, request: Request| answer(state.0, row, route, request);
                router = router.route(&path, on(filter(route.method), handler));
            }
        }
    }
    router
        .route("/openapi.json", get(async || text("application/json", &DESCRIBED)))
        .route("/docs", get(async || text("text/html; charset=utf-8", &EXPLAINED)))
        .route("/healthz", get(healthy))
        .route("/readyz", get(ready))
        .fallback(
            |request: Request| async move { refuse(&request, Code::NoRoute, "the API has no such path") },
        )
        .method_not_allowed_fallback(|request: Request| async move {
            refuse(&request, Code::MethodNotAllowed, "the path has no such method")
        })
        .layer(middleware::from_fn_with_state(server.clone(), around))
        .with_state(server)
}

fn filter(method: Method) -> MethodFilter {
    match method {
        Method::Get => MethodFilter::GET,
        Method::Post => MethodFilter::POST,
        Method::Put => MethodFilter::PUT,
        Method::Delete => MethodFilter::DELETE,
    }
}

/// Gives each request an id and each response the headers that keep browsers from guessing; refuses foreign sites.
async fn around(State(server): State<Arc<Server>>, mut request: Request, next: Next) -> Response {
    let id = RequestId(request_id(&request));
    request.extensions_mut().insert(id.clone());
    let mut response = match access::check_site(&server, request.headers()) {
        Ok(()) => next.run(request).await,
        Err(refusal) => Problem { refusal, request_id: id.0.to_string() }.into_response(),
    };
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    if let Ok(id) = HeaderValue::from_str(&id.0) {
        headers.insert(REQUEST_ID, id);
    }
    response
}

fn request_id(request: &Request) -> Arc<str> {
    let given = request.headers().get(REQUEST_ID).and_then(|id| id.to_str().ok());
    let given = given.filter(|id| (1..=REQUEST_ID_BYTES_MAX).contains(&id.len()));
    given
        .map_or_else(|| new_id(&Clock::Real).map(|id| id.to_string()).unwrap_or_default(), str::to_owned)
        .into()
}

fn refuse(request: &Request, code: Code, message: &str) -> Response {
    let id = request.extensions().get::<RequestId>().map(|id| id.0.to_string()).unwrap_or_default();
    let refusal = Refusal::new(code, message).help("`/openapi.json` describes every path");
    Problem { refusal, request_id: id }.into_response()
}

fn text(kind: &'static str, text: &'static str) -> Response {
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}

async fn healthy() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], r#"{"status":"ok"}"#).into_response()
}

/// A server that is about to end takes no more work.
async fn ready(State(server): State<Arc<Server>>) -> Response {
    match server.stopping.is_cancelled() {
        false => healthy().await,
        true => {
            let body = ([(header::CONTENT_TYPE, "application/json")], r#"{"status":"stopping"}"#);
            (StatusCode::SERVICE_UNAVAILABLE, body).into_response()
        }
    }
}
