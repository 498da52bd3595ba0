//! The token that requests must bring where there is one.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::app::App;
use crate::problem::Problem;

/// The cookie that the page keeps the token in: a `<video>` cannot send a header.
const COOKIE: &str = "cuemark_token=";

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

/// Compares in constant time: how long it takes depends on what was given and on nothing of the token, not even its length.
fn is_equal(given: &str, token: &str) -> bool {
    let (given, token) = (given.as_bytes(), token.as_bytes());
    let wanted = token.iter().chain(&[0]).cycle();
    let differences = given.iter().zip(wanted).fold(0u8, |found, (a, b)| found | (a ^ b));
    (differences == 0) & (given.len() == token.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_must_be_equal() {
        assert!(is_equal("abc", "abc"));
        for wrong in ["", "ab", "abd", "abcd", "abcabc", "abc\0abc"] {
            assert!(!is_equal(wrong, "abc"), "{wrong}");
        }
    }
}
