//! Adding videos while the server runs.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::sse::{Event, KeepAlive, Sse};
use camino::{Utf8Component, Utf8Path, Utf8PathBuf};
use cuemark_core::{Advice, Progress};
use futures_util::Stream;
use futures_util::stream::unfold;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::about::name_of;
use super::{Body, Name};
use crate::app::App;
use crate::jobs::{Job, JobState};
use crate::problem::Problem;

/// Videos to add.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewJob {
    /// Files and folders on the server, inside a folder that it was allowed to add from: whole paths, or the name of such a folder
    /// (`GET /api/v1/about` lists them) and what lies below it.
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
    Body(wanted): Body<NewJob>,
) -> Result<(StatusCode, Json<JobState>), Problem> {
    if wanted.paths.is_empty() || wanted.paths.len() > 1000 || wanted.tags.len() > 100 {
        return Err(Problem::bad("name 1 to 1000 paths and at most 100 tags"));
    }
    // Looking at paths may take a while on a slow disk.
    let (looking, asked) = (Arc::clone(&app), wanted.paths);
    let look = move |_: &Progress| asked.iter().map(|path| allowed(&looking, path)).collect::<Result<Vec<_>, _>>();
    let paths = app.lookups.run(look).await?;
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
            .advise(&Advice::say("start the server with the setting ").set_any("allow_add", "DIR"))
    };
    let path = below_a_named_folder(app, Utf8Path::new(path)).unwrap_or_else(|| path.into());
    let real = path.canonicalize_utf8().map_err(|_| refused())?;
    let inside = |folder: &Utf8PathBuf| folder.canonicalize_utf8().is_ok_and(|folder| real.starts_with(folder));
    if app.options.addable.iter().any(inside) { Ok(real) } else { Err(refused()) }
}

/// Where `NAME/and/so/on` lies, when a folder that may be added from is called so: clients need not know where that is.
fn below_a_named_folder(app: &App, path: &Utf8Path) -> Option<Utf8PathBuf> {
    let mut parts = path.components();
    let Some(Utf8Component::Normal(name)) = parts.next() else { return None };
    let folder = app.options.addable.iter().find(|folder| name_of(folder).as_deref() == Some(name))?;
    Some(folder.join(parts.as_path()))
}

fn find(app: &App, id: &str) -> Result<Arc<Job>, Problem> {
    let job = id.parse().ok().and_then(|id| app.jobs.get(id));
    job.ok_or_else(|| Problem::new(StatusCode::NOT_FOUND, "there is no such job"))
}

/// One job.
#[utoipa::path(get, path = "/api/v1/jobs/{id}", params(("id" = u64, Path)), responses((status = 200, body = JobState), (status = 404, body = Problem)))]
pub(crate) async fn one(State(app): State<Arc<App>>, Name(id): Name) -> Result<Json<JobState>, Problem> {
    Ok(Json(find(&app, &id)?.state()))
}

/// Asks a job to stop (cancel): it ends within the video it is at, what was added before stays.
#[utoipa::path(delete, path = "/api/v1/jobs/{id}", params(("id" = u64, Path)), responses((status = 202, body = JobState), (status = 404, body = Problem)))]
pub(crate) async fn stop(State(app): State<Arc<App>>, Name(id): Name) -> Result<(StatusCode, Json<JobState>), Problem> {
    let job = find(&app, &id)?;
    job.stop();
    Ok((StatusCode::ACCEPTED, Json(job.state())))
}

/// The job's state at once and after every change, until it is over: server-sent events.
#[utoipa::path(get, path = "/api/v1/jobs/{id}/events", params(("id" = u64, Path)), responses(
    (status = 200, content_type = "text/event-stream"), (status = 404, body = Problem)))]
pub(crate) async fn events(
    State(app): State<Arc<App>>,
    Name(id): Name,
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
