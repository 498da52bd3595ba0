//! Errors as RFC 9457 describes them, with a hint.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use cuemark_core::{Advise as _, Dialect};
use cuemark_search::SearchError;
use serde::Serialize;
use utoipa::ToSchema;

/// What went wrong: `application/problem+json`.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Problem {
    /// What kind of problem, for programs.
    #[serde(rename = "type")]
    kind: &'static str,
    /// The same for people.
    title: &'static str,
    /// The HTTP status.
    status: u16,
    /// What exactly.
    detail: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        let kind = match status {
            StatusCode::BAD_REQUEST => "bad-request",
            StatusCode::UNAUTHORIZED => "unauthorized",
            StatusCode::FORBIDDEN => "forbidden",
            StatusCode::NOT_FOUND => "not-found",
            StatusCode::CONFLICT => "conflict",
            StatusCode::SERVICE_UNAVAILABLE => "busy",
            _ => "internal",
        };
        let title = status.canonical_reason().unwrap_or("Error");
        Self { kind, title, status: status.as_u16(), detail: detail.into(), hint: None }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn bad(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }
}

impl From<SearchError> for Problem {
    fn from(error: SearchError) -> Self {
        let status = match &error {
            SearchError::UnknownVideo { .. } => StatusCode::NOT_FOUND,
            SearchError::Question { .. } => StatusCode::BAD_REQUEST,
            SearchError::Locked { .. } => StatusCode::CONFLICT,
            SearchError::Server { .. } => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        // What lies where on the server's disk is nobody's business.
        let detail = match &error {
            SearchError::Media { .. } => "the video cannot be decoded".to_owned(),
            SearchError::Io { what, .. } => format!("cannot {what} a file of the index"),
            SearchError::Server { .. } => "the database of the index does not answer".to_owned(),
            _ if status == StatusCode::INTERNAL_SERVER_ERROR => "the index cannot be used".to_owned(),
            other => other.to_string(),
        };
        let hint = if status.is_server_error() { None } else { error.advice_in(Dialect::Http) };
        Self { hint, ..Self::new(status, detail) }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = serde_json::to_string(&self).unwrap_or_default();
        (status, [(header::CONTENT_TYPE, "application/problem+json")], body).into_response()
    }
}
