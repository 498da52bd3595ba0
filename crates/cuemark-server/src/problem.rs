//! Errors as RFC 9457 describes them, with advice.

use std::collections::BTreeMap;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use cuemark_core::{Advice, Advise as _, Dialect};
use cuemark_search::SearchError;
use serde::Serialize;
use utoipa::ToSchema;

/// The form that every error has.
const FORM: &str = "application/problem+json";

/// What went wrong: `application/problem+json`.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
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
    /// The settings that the hint names, with the value that helps, or null where only the asker knows it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    settings: BTreeMap<String, Option<String>>,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        let title = status.canonical_reason().unwrap_or("Error");
        let (status, kind) = (status.as_u16(), kind(status));
        Self { kind, title, status, detail: detail.into(), hint: None, settings: BTreeMap::new() }
    }

    pub(crate) fn bad(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    /// Of a kind that the status alone does not tell.
    pub(crate) fn of_kind(mut self, kind: &'static str) -> Self {
        self.kind = kind;
        self
    }

    /// What to do about it, in words alone.
    pub(crate) fn hint(self, words: &'static str) -> Self {
        self.advise(&Advice::say(words))
    }

    /// What to do about it.
    pub(crate) fn advise(mut self, advice: &Advice) -> Self {
        self.hint = Some(advice.render(Dialect::Http));
        self.settings = advice.settings().map(|(name, value)| (name.to_owned(), value.map(str::to_owned))).collect();
        self
    }

    #[cfg(test)]
    pub(crate) fn status(&self) -> u16 {
        self.status
    }
}

/// What kind of problem a status stands for.
fn kind(status: StatusCode) -> &'static str {
    match status {
        StatusCode::BAD_REQUEST => "bad-request",
        StatusCode::UNAUTHORIZED => "unauthorized",
        StatusCode::FORBIDDEN => "forbidden",
        StatusCode::NOT_FOUND => "not-found",
        StatusCode::METHOD_NOT_ALLOWED => "method-not-allowed",
        StatusCode::REQUEST_TIMEOUT => "timeout",
        StatusCode::CONFLICT => "conflict",
        StatusCode::GONE => "gone",
        StatusCode::PAYLOAD_TOO_LARGE => "too-large",
        StatusCode::UNSUPPORTED_MEDIA_TYPE => "unsupported-media-type",
        StatusCode::RANGE_NOT_SATISFIABLE => "range-not-satisfiable",
        StatusCode::UNPROCESSABLE_ENTITY => "unprocessable",
        StatusCode::TOO_MANY_REQUESTS => "too-many-requests",
        StatusCode::SERVICE_UNAVAILABLE => "busy",
        StatusCode::INSUFFICIENT_STORAGE => "full",
        status if status.is_client_error() => "bad-request",
        _ => "internal",
    }
}

/// Gives an error that a library below us made the form of a problem; everything else stays as it is.
pub(crate) fn in_form(response: Response) -> Response {
    let status = response.status();
    let is_error = status.is_client_error() || status.is_server_error();
    if !is_error || response.headers().get(header::CONTENT_TYPE).is_some_and(|form| form == FORM) {
        return response;
    }
    let allowed = response.headers().get(header::ALLOW).cloned();
    let detail = match (status, allowed.as_ref().and_then(|methods| methods.to_str().ok())) {
        (StatusCode::METHOD_NOT_ALLOWED, Some(methods)) => format!("this path takes {methods} and nothing else"),
        (StatusCode::METHOD_NOT_ALLOWED, None) => "this path does not take such requests".to_owned(),
        (StatusCode::REQUEST_TIMEOUT, _) => "the request took too long".to_owned(),
        (StatusCode::PAYLOAD_TOO_LARGE, _) => "the body is too large".to_owned(),
        _ if status.is_server_error() => "the request could not be finished".to_owned(),
        _ => "the request cannot be understood".to_owned(),
    };
    let mut formed = Problem::new(status, detail).into_response();
    if let Some(methods) = allowed {
        formed.headers_mut().insert(header::ALLOW, methods);
    }
    formed
}

impl From<SearchError> for Problem {
    fn from(error: SearchError) -> Self {
        let status = match &error {
            SearchError::UnknownVideo { .. } => StatusCode::NOT_FOUND,
            SearchError::Question { .. } | SearchError::Limit { .. } => StatusCode::BAD_REQUEST,
            SearchError::Locked { .. } => StatusCode::CONFLICT,
            // The film is at fault, not the server.
            SearchError::Media(_) => StatusCode::UNPROCESSABLE_ENTITY,
            SearchError::Server { .. } => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        // What lies where on the server's disk is nobody's business.
        let detail = match &error {
            SearchError::Media(_) => "the video cannot be decoded".to_owned(),
            SearchError::Io { what, .. } => format!("cannot {what} a file of the index"),
            SearchError::Locked { .. } => "another process is writing the index".to_owned(),
            SearchError::Server { .. } => "the database of the index does not answer".to_owned(),
            _ if status == StatusCode::INTERNAL_SERVER_ERROR => "the index cannot be used".to_owned(),
            other => other.to_string(),
        };
        let problem = Self::new(status, detail);
        // Commands of the program are no use to whoever asks over the network.
        match &error {
            SearchError::UnknownVideo { .. } => problem.hint("`GET /api/v1/videos` lists those that are"),
            SearchError::Locked { .. } | SearchError::Question { .. } | SearchError::Limit { .. } => {
                error.advice().map_or_else(|| problem.clone(), |advice| problem.clone().advise(&advice))
            }
            _ => problem,
        }
    }
}

impl From<cuemark::Error> for Problem {
    fn from(error: cuemark::Error) -> Self {
        match error {
            cuemark::Error::Search(error) => error.into(),
            error @ cuemark::Error::Setting { .. } => {
                let problem = Self::bad(error.to_string());
                error.advice().map_or_else(|| problem.clone(), |advice| problem.clone().advise(&advice))
            }
            _ => Self::new(StatusCode::INTERNAL_SERVER_ERROR, "the request could not be finished"),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = serde_json::to_string(&self).unwrap_or_default();
        let mut response = (status, [(header::CONTENT_TYPE, FORM)], body).into_response();
        if matches!(status, StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS) {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_is_said_as_fields_of_a_request_and_its_settings_can_be_read_by_programs() {
        let advice = Advice::say("start the server with ").set_any("allow_add", "DIR").and(" or ").set_to("mode", "x");
        let problem = serde_json::to_value(Problem::bad("no").advise(&advice)).unwrap();
        assert_eq!(problem["hint"], "start the server with `\"allow_add\"` or `\"mode\": \"x\"`");
        assert_eq!(problem["settings"], serde_json::json!({ "allow_add": null, "mode": "x" }));
        let bare = serde_json::to_value(Problem::bad("no")).unwrap();
        assert!(bare.get("hint").is_none() && bare.get("settings").is_none());
    }

    #[test]
    fn every_kind_of_refusal_has_a_type_of_its_own_and_none_is_called_internal() {
        for code in 400..500 {
            assert_ne!(kind(StatusCode::from_u16(code).unwrap()), "internal", "{code}");
        }
        assert_eq!(kind(StatusCode::UNSUPPORTED_MEDIA_TYPE), "unsupported-media-type");
        assert_eq!(kind(StatusCode::UNPROCESSABLE_ENTITY), "unprocessable");
    }

    #[test]
    fn paths_on_the_disk_are_not_told() {
        let error = SearchError::Locked { path: "/home/me/films".into() };
        assert!(!serde_json::to_string(&Problem::from(error)).unwrap().contains("/home/me"));
    }
}
