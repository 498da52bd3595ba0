//! Adding videos while the server runs.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::sse::{Event, KeepAlive, Sse};
use camino::Utf8PathBuf;
use futures_util::Stream;
use futures_util::stream::unfold;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::app::App;
use crate::jobs::{Job, JobState};
use crate::problem::Problem;

/// Videos to add.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewJob {
    /// Files and folders on the server, inside a folder that it was allowed to add from.
    paths: Vec<String>,
    /// Tags for them.
    #[serde(default)]
    tags: Vec<String>,
}

/// Every job, oldest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct JobList {
    jobs: Vec<JobState>,
}

/// Every job of this server.
#[utoipa::path(get, path = "/api/v1/jobs", responses((status = 200, body = JobList)))]
pub(crate) async fn list(State(app): State<Arc<App>>) -> Json<JobList> {
    Json(JobList { jobs: app.jobs.list() })
}

/// Adds videos.
#[utoipa::path(post, path = "/api/v1/jobs", request_body = NewJob, responses(
    (status = 202, body = JobState), (status = 400, body = Problem), (status = 403, body = Problem), (status = 409, body = Problem)))]
pub(crate) async fn start(
    State(app): State<Arc<App>>,
    wanted: Result<Json<NewJob>, JsonRejection>,
) -> Result<(StatusCode, Json<JobState>), Problem> {
    let Json(wanted) = wanted.map_err(|error| Problem::new(error.status(), error.body_text()))?;
    if wanted.paths.is_empty() || wanted.paths.len() > 1000 || wanted.tags.len() > 100 {
        return Err(Problem::bad("name 1 to 1000 paths and at most 100 tags"));
    }
    let paths = wanted.paths.iter().map(|path| allowed(&app, path)).collect::<Result<Vec<_>, _>>()?;
    match app.jobs.start(Arc::clone(&app.index), paths, wanted.tags) {
        Some(job) => Ok((StatusCode::ACCEPTED, Json(job.state()))),
        None => Err(Problem::new(StatusCode::CONFLICT, "another job is adding videos").hint("wait for it, or stop it")),
    }
}

/// The real path, when it lies inside a folder that may be added from. Links and `..` are followed before looking.
fn allowed(app: &App, path: &str) -> Result<Utf8PathBuf, Problem> {
    // One answer for what is not there and for what may not be seen.
    let refused = || {
        Problem::new(StatusCode::FORBIDDEN, "a path is not inside a folder that videos may be added from")
            .hint("start the server with `--allow-add DIR`")
    };
    let real = Utf8PathBuf::from(path).canonicalize_utf8().map_err(|_| refused())?;
    let inside = |folder: &Utf8PathBuf| folder.canonicalize_utf8().is_ok_and(|folder| real.starts_with(folder));
    if app.options.addable.iter().any(inside) { Ok(real) } else { Err(refused()) }
}

fn find(app: &App, id: &str) -> Result<Arc<Job>, Problem> {
    let job = id.parse().ok().and_then(|id| app.jobs.get(id));
    job.ok_or_else(|| Problem::new(StatusCode::NOT_FOUND, "there is no such job"))
}

/// One job.
#[utoipa::path(get, path = "/api/v1/jobs/{id}", params(("id" = u64, Path)), responses((status = 200, body = JobState), (status = 404, body = Problem)))]
pub(crate) async fn one(State(app): State<Arc<App>>, Path(id): Path<String>) -> Result<Json<JobState>, Problem> {
    Ok(Json(find(&app, &id)?.state()))
}

/// Asks a job to stop after the video it is at.
#[utoipa::path(delete, path = "/api/v1/jobs/{id}", params(("id" = u64, Path)), responses((status = 202, body = JobState), (status = 404, body = Problem)))]
pub(crate) async fn stop(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
) -> Result<(StatusCode, Json<JobState>), Problem> {
    let job = find(&app, &id)?;
    job.stop();
    Ok((StatusCode::ACCEPTED, Json(job.state())))
}

/// The job's state at once and after every change, until it is over: server-sent events.
#[utoipa::path(get, path = "/api/v1/jobs/{id}/events", params(("id" = u64, Path)), responses(
    (status = 200, content_type = "text/event-stream"), (status = 404, body = Problem)))]
pub(crate) async fn events(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Problem> {
    let job = find(&app, &id)?;
    let stream = unfold((job.watch(), Next::Now), |(mut watch, next)| async move {
        match next {
            Next::Over => return None,
            Next::Now => {}
            Next::Changed => watch.changed().await.ok()?,
        }
        let state = watch.borrow_and_update().clone();
        let next = if state.phase.is_over() { Next::Over } else { Next::Changed };
        let event = Event::default().event("job").json_data(&state).unwrap_or_default();
        Some((Ok(event), (watch, next)))
    });
    Ok(Sse::new(stream).keep_alive(KeepAlive::new().interval(Duration::from_secs(15))))
}

/// When the next event is due.
enum Next {
    Now,
    Changed,
    Over,
}
