//! Who may ask, and what every answer carries.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::app::App;
use crate::problem::Problem;

/// The cookie that the page keeps the token in: a `<video>` cannot send a header.
const COOKIE: &str = "cuemark_token=";

/// What the page may do: nothing but talk to this server.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; media-src 'self'; \
     connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// Counts, refuses other people's names for this machine, and adds the headers that every answer carries.
pub(crate) async fn everything(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let began = Instant::now();
    let is_ours = app.options.token.is_some() || is_loopback_name(request.headers());
    let searching = request.uri().path() == "/api/v1/search";
    let mut response = if is_ours {
        next.run(request).await
    } else {
        Problem::new(StatusCode::FORBIDDEN, "the request names another host")
            .hint("without a token only requests to localhost, 127.0.0.1 or [::1] are answered")
            .into_response()
    };
    app.metrics.count(response.status(), searching.then(|| began.elapsed()));
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}

/// A page elsewhere can give its own name this machine's address; the browser then still sends that name.
fn is_loopback_name(headers: &HeaderMap) -> bool {
    let Some(host) = headers.get(header::HOST).and_then(|host| host.to_str().ok()) else { return true };
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    matches!(name, "localhost" | "127.0.0.1" | "::1")
}

/// Lets requests with the right token pass.
pub(crate) async fn token(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let Some(token) = &app.options.token else { return next.run(request).await };
    let headers = request.headers();
    let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok()).unwrap_or_default();
    let bearer = text(header::AUTHORIZATION).strip_prefix("Bearer ");
    let cookie = text(header::COOKIE).split("; ").find_map(|cookie| cookie.strip_prefix(COOKIE));
    if [bearer, cookie].into_iter().flatten().any(|given| is_equal(given, token)) {
        return next.run(request).await;
    }
    let mut refused = Problem::new(StatusCode::UNAUTHORIZED, "the request brings no token, or a wrong one")
        .hint("send `Authorization: Bearer TOKEN`")
        .into_response();
    refused.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    refused
}

/// Compares without telling by the time it takes how much was right.
fn is_equal(given: &str, token: &str) -> bool {
    let (given, token) = (given.as_bytes(), token.as_bytes());
    let differences = given.iter().zip(token).fold(0u8, |found, (a, b)| found | (a ^ b));
    given.len() == token.len() && differences == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_are_answered() {
        let named = |host: &'static str| HeaderMap::from_iter([(header::HOST, HeaderValue::from_static(host))]);
        for host in ["localhost", "localhost:7878", "127.0.0.1:1", "[::1]:7878"] {
            assert!(is_loopback_name(&named(host)), "{host}");
        }
        for host in ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example:80", "[::2]:1", ""] {
            assert!(!is_loopback_name(&named(host)), "{host}");
        }
    }

    #[test]
    fn tokens_must_be_equal() {
        assert!(is_equal("abc", "abc"));
        for wrong in ["", "ab", "abd", "abcd"] {
            assert!(!is_equal(wrong, "abc"), "{wrong}");
        }
    }
}
