//! Who may ask, and what every answer carries.

mod host;
mod origin;
mod token;

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::app::App;
use crate::problem;

pub(crate) use token::token;

/// What the page may do: nothing but talk to this server.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; media-src 'self'; \
     connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// Headers of every answer, refusals included.
const ALWAYS: [(HeaderName, &str); 4] = [
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::REFERRER_POLICY, "no-referrer"),
    // No page of another origin may show, play or measure what is answered here.
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// Counts, refuses other people's names for this machine and other people's pages, gives every error the form of a problem,
/// and adds the headers that every answer carries.
pub(crate) async fn everything(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let began = Instant::now();
    let searching = request.uri().path() == "/api/v1/search";
    let allowed = host::check(&request, app.options.token.as_deref()).and_then(|()| origin::check(&request));
    let response = match allowed {
        Ok(()) => next.run(request).await,
        Err(refused) => refused.into_response(),
    };
    let mut response = problem::in_form(response);
    app.metrics.count(response.status(), searching.then(|| began.elapsed()));
    for (name, value) in ALWAYS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}
