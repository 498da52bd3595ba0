//! What can be asked under `/api/v1`.

pub(crate) mod jobs;
pub(crate) mod search;
pub(crate) mod videos;

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Serialize;
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
        search::search,
        search::like,
        search::strip,
        videos::list,
        videos::one,
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
    let status = off_thread(move || index.engine().status()).await?;
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

/// Runs something that computes or reads files, off the threads that serve.
pub(crate) async fn off_thread<T: Send + 'static>(
    work: impl FnOnce() -> cuemark_search::Result<T> + Send + 'static,
) -> Result<T, Problem> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => Ok(done?),
        Err(_) => Err(Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the request could not be finished")),
    }
}
