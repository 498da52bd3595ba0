//! What can be asked under `/api/v1`.

pub(crate) mod about;
pub(crate) mod clip;
pub(crate) mod jobs;
pub(crate) mod judged;
mod names;
pub(crate) mod search;
pub(crate) mod videos;

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{FromRequest, FromRequestParts, Path, Request, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use serde::Serialize;
use serde::de::DeserializeOwned;
use utoipa::{OpenApi, ToSchema};

use crate::app::App;
use crate::problem::Problem;

/// Whether the server works.
#[derive(Serialize, ToSchema)]
pub(crate) struct Health {
    /// `ok`
    status: &'static str,
    /// Version of the program.
    version: &'static str,
    /// Videos that can be found.
    videos: usize,
    /// Moments that can be found.
    moments: usize,
}

#[derive(OpenApi)]
#[openapi(
    info(title = "cuemark", description = "Find the moment that a sentence describes."),
    paths(
        health,
        about::about,
        about::offers,
        clip::clip,
        judged::list,
        judged::add,
        search::search,
        search::like,
        search::strip,
        videos::list,
        videos::one,
        videos::lines,
        videos::media,
        videos::thumbnail,
        jobs::list,
        jobs::start,
        jobs::one,
        jobs::stop,
        jobs::events
    )
)]
struct Description;

/// Whether the server works. Needs no token.
#[utoipa::path(get, path = "/api/v1/health", responses((status = 200, body = Health), (status = 500, body = Problem)))]
pub(crate) async fn health(State(app): State<Arc<App>>) -> Result<Json<Health>, Problem> {
    let index = Arc::clone(&app.index);
    let status = app.lookups.run(move |_| index.engine().status()).await?;
    let version = env!("CARGO_PKG_VERSION");
    Ok(Json(Health { status: "ok", version, videos: status.videos, moments: status.moments }))
}

/// The description of all this.
pub(crate) async fn openapi() -> Json<utoipa::openapi::OpenApi> {
    Json(Description::openapi())
}

/// Everything else.
pub(crate) async fn nowhere() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "there is nothing here").hint("`/api/v1/openapi.json` lists what there is")
}

/// The name in a path: `one` in `/videos/one`.
pub(crate) struct Name(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for Name {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Path::from_request_parts(parts, state).await {
            Ok(Path(name)) => Ok(Self(name)),
            Err(_) => Err(Problem::bad("the name in the path is not UTF-8")),
        }
    }
}

/// The JSON of a request's body.
pub(crate) struct Body<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let read: Result<Json<T>, JsonRejection> = Json::from_request(request, state).await;
        read.map(|Json(body)| Self(body)).map_err(|error| {
            let problem = Problem::new(error.status(), error.body_text());
            if error.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE {
                return problem.hint("send `Content-Type: application/json`");
            }
            problem
        })
    }
}
