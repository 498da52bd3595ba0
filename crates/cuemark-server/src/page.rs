//! The page: plain files, in the program.

use std::sync::Arc;

use axum::Router;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use crate::app::App;

pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/", get(|| async { asset("text/html; charset=utf-8", include_str!("assets/index.html")) }))
        .route("/app.css", get(|| async { asset("text/css; charset=utf-8", include_str!("assets/app.css")) }))
        .route("/app.js", get(|| async { asset("text/javascript; charset=utf-8", include_str!("assets/app.js")) }))
        .route("/icon.svg", get(|| async { asset("image/svg+xml", include_str!("assets/icon.svg")) }))
}

fn asset(kind: &'static str, text: &'static str) -> Response {
    let mut response = text.into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    // A new version of the program should not meet an old page.
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}
