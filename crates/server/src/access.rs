//! Who may use the server, and the headers of each response.
//!
//! A page of another site may send requests to this address, under its own name (DNS rebinding) or
//! under ours. The first is refused by its `Host`, the second by its `Origin` and because it has
//! no token.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, CACHE_CONTROL, HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::app::App;
use crate::error::ApiError;

/// Headers of every response. Scripts, styles and images come from this server alone; nothing of a
/// transcript is executed or loaded.
const HEADERS: [(&str, &str); 7] = [
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; \
         connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("permissions-policy", "camera=(), geolocation=(), microphone=()"),
];

/// Refuses requests for other hosts, of other origins, and to the API without the token.
pub(crate) async fn guard(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let is_api = request.uri().path().split('/').nth(1) == Some("api");
    let allowed = check_host(request.headers(), app.port).and_then(|()| match is_api {
        true => check_token(request.headers(), &app),
        false => Ok(()),
    });
    let mut response = match allowed {
        Ok(()) => next.run(request).await,
        Err(error) => error.into_response(),
    };
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    if is_api {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    response
}

fn check_host(headers: &HeaderMap, port: u16) -> Result<(), ApiError> {
    let names = [format!("127.0.0.1:{port}"), format!("localhost:{port}"), format!("[::1]:{port}")];
    let is_own = |host: &str| names.iter().any(|name| name.eq_ignore_ascii_case(host));
    let refused = |code, what: &str| {
        ApiError::new(StatusCode::FORBIDDEN, code, format!("the request is for another {what}"))
            .with_hint("use the address that `quipu serve` prints")
    };
    let mut hosts = headers.get_all(HOST).iter();
    if !hosts.next().and_then(|host| host.to_str().ok()).is_some_and(is_own) || hosts.next().is_some() {
        return Err(refused("host.refused", "host"));
    }
    let is_same_origin = |origin: &HeaderValue| {
        origin.to_str().ok().and_then(|origin| origin.strip_prefix("http://")).is_some_and(is_own)
    };
    if !headers.get_all(ORIGIN).iter().all(is_same_origin) {
        return Err(refused("origin.refused", "origin"));
    }
    Ok(())
}

fn check_token(headers: &HeaderMap, app: &App) -> Result<(), ApiError> {
    let sent = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
    match sent {
        Some(sent) if app.token.matches(sent) => Ok(()),
        _ => Err(ApiError::new(StatusCode::UNAUTHORIZED, "token.refused", "the token is missing or wrong")
            .with_hint("open the address that `quipu serve` prints, with its #token=")),
    }
}
