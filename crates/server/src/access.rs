//! Who calls: the host and the origin of a request, then its token.

use crate::router::Server;
use axum::http::{HeaderMap, header};
use std::net::SocketAddr;
use windlass_api::operations::caller_of;
use windlass_api::types::Face;
use windlass_api::{Caller, Code, Refusal};

/// The hosts that a server answers for: the address that it listens on, and the usual names of a loopback address.
pub fn hosts(address: SocketAddr) -> Vec<String> {
    let mut hosts = vec![address.to_string()];
    if address.ip().is_loopback() {
        let port = address.port();
        hosts.extend([format!("localhost:{port}"), format!("127.0.0.1:{port}"), format!("[::1]:{port}")]);
    }
    hosts
}

/// Refuses requests under a foreign name, and those from pages of other sites.
pub fn check_site(server: &Server, headers: &HeaderMap) -> Result<(), Refusal> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let is_ours = |host: &str| server.hosts.iter().any(|ours| ours.eq_ignore_ascii_case(host));
    // Two of them would let a proxy and this server see different hosts.
    let is_single = headers.get_all(header::HOST).iter().count() == 1;
    if !is_single || !text(header::HOST).is_some_and(is_ours) {
        let refusal = Refusal::new(Code::BadHost, "the `Host` header names another server");
        return Err(refusal.help("use the address that `windlass serve` prints"));
    }
    match headers.get(header::ORIGIN) {
        None => Ok(()),
        Some(origin)
            if origin.to_str().ok().and_then(|text| text.strip_prefix("http://")).is_some_and(is_ours) =>
        {
            Ok(())
        }
        Some(_) => {
            let refusal = Refusal::new(Code::BadOrigin, "the request comes from a page of another site");
            Err(refusal.help("call the API from a program, or from a page of this server"))
        }
    }
}

/// The caller that the token of a request stands for.
pub async fn caller(server: &Server, headers: &HeaderMap) -> Result<Caller, Refusal> {
    let mut given = headers.get_all(header::AUTHORIZATION).iter();
    let text = match (given.next(), given.next()) {
        (Some(only), None) => only.to_str().ok().and_then(bearer),
        _ => None,
    };
    let Some(text) = text else { return Err(unauthorized()) };
    if server.token.is(text) {
        return Ok(Caller { face: Face::Http, ..Caller::user(&server.user) });
    }
    caller_of(&server.engine, text).await?.ok_or_else(unauthorized)
}

fn bearer(header: &str) -> Option<&str> {
    let (scheme, token) = header.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}

/// Missing, wrong, expired and revoked tokens look alike.
fn unauthorized() -> Refusal {
    let refusal = Refusal::new(Code::Unauthorized, "the request has no valid access token");
    refusal.help("send `Authorization: Bearer TOKEN`; the token of this server is in `server.token` in its data folder")
}
