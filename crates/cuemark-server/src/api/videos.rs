//! Videos: what there is, their bytes, their pictures.

use std::sync::{Arc, PoisonError};

use axum::Json;
use axum::body::Body;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use camino::Utf8PathBuf;
use cuemark_core::{Progress, VideoId};
use cuemark_media::{Ffmpeg, OpenedVideo, Partial};
use cuemark_search::{SearchError, VideoEntry, VideoState};
use serde::{Deserialize, Serialize};
use tower::ServiceExt as _;
use tower_http::services::ServeFile;
use utoipa::{IntoParams, ToSchema};

use super::off_thread;
use crate::app::{App, KEPT_THUMBNAILS};
use crate::problem::Problem;

/// A video.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Video {
    id: String,
    /// Seconds.
    duration: f64,
    tags: Vec<String>,
    /// `present` or `vanished`.
    state: &'static str,
    /// Whether there is a file to play.
    playable: bool,
    /// What of its file could not be read; left out of a whole film.
    #[serde(skip_serializing_if = "Option::is_none")]
    partial: Option<PartialRead>,
}

/// How far a damaged film could be read.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PartialRead {
    /// Seconds that could be read.
    read_seconds: f64,
    /// Seconds that the file states; `null` when it does not say.
    stated_seconds: Option<f64>,
    /// What the decoder complained of first.
    complaint: Option<String>,
}

/// Videos, sorted by name.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Videos {
    videos: Vec<Video>,
    /// How many there are in all.
    total: usize,
}

/// Which videos.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Page {
    /// The first, from 0.
    offset: Option<usize>,
    /// How many, up to 1000. Default: 100
    limit: Option<usize>,
}

/// Which picture.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Picture {
    /// Seconds. Default: 0
    at: Option<f64>,
    /// Pixels, 16 to 1280. Default: 320
    width: Option<usize>,
}

impl From<Partial> for PartialRead {
    fn from(partial: Partial) -> Self {
        let Partial { read_seconds, stated_seconds, complaint } = partial;
        Self { read_seconds, stated_seconds, complaint }
    }
}

impl From<VideoEntry> for Video {
    fn from(entry: VideoEntry) -> Self {
        let state = match entry.state {
            VideoState::Present => "present",
            VideoState::Vanished => "vanished",
        };
        Self {
            id: entry.id.to_string(),
            duration: entry.duration,
            tags: entry.tags,
            state,
            playable: entry.path.is_some(),
            partial: entry.partial.map(PartialRead::from),
        }
    }
}

/// Every video.
#[utoipa::path(get, path = "/api/v1/videos", params(Page), responses((status = 200, body = Videos), (status = 400, body = Problem)))]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    page: Result<Query<Page>, QueryRejection>,
) -> Result<Json<Videos>, Problem> {
    let Query(page) = page.map_err(|error| Problem::bad(error.body_text()))?;
    let index = Arc::clone(&app.index);
    let videos = off_thread(move || index.engine().videos()).await?;
    let total = videos.len();
    let chosen = videos.into_iter().skip(page.offset.unwrap_or(0)).take(page.limit.unwrap_or(100).min(1000));
    Ok(Json(Videos { videos: chosen.map(Video::from).collect(), total }))
}

/// One video.
#[utoipa::path(get, path = "/api/v1/videos/{id}", params(("id" = String, Path)), responses((status = 200, body = Video), (status = 404, body = Problem)))]
pub(crate) async fn one(State(app): State<Arc<App>>, Path(id): Path<String>) -> Result<Json<Video>, Problem> {
    Ok(Json(entry(&app, id).await?.into()))
}

async fn entry(app: &App, id: String) -> Result<VideoEntry, Problem> {
    let (index, video) = (Arc::clone(&app.index), VideoId::new(id));
    off_thread(move || index.engine().video(&video)?.ok_or(SearchError::UnknownVideo { video })).await
}

/// The file of a video: the one that was indexed, whatever the request says.
async fn file(app: &App, id: String) -> Result<Utf8PathBuf, Problem> {
    let nothing =
        || Problem::new(StatusCode::NOT_FOUND, "this video has no file").hint("it was indexed by its features");
    entry(app, id).await?.path.ok_or_else(nothing)
}

/// The bytes of a video, or a range of them.
#[utoipa::path(get, path = "/api/v1/videos/{id}/media", params(("id" = String, Path)), responses(
    (status = 200, description = "the whole file"), (status = 206, description = "a range of it"), (status = 404, body = Problem), (status = 416)))]
pub(crate) async fn media(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    let path = file(&app, id).await?;
    let mut response = match ServeFile::new(path).oneshot(request).await {
        Ok(response) => response.map(Body::new),
        Err(never) => match never {},
    };
    if response.status() == StatusCode::NOT_FOUND {
        return Err(
            Problem::new(StatusCode::NOT_FOUND, "the file has vanished").hint("`cuemark index verify` marks it")
        );
    }
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("private, max-age=60"));
    Ok(response)
}

/// A picture of a video.
#[utoipa::path(get, path = "/api/v1/videos/{id}/thumbnail", params(("id" = String, Path), Picture), responses(
    (status = 200, content_type = "image/jpeg"), (status = 400, body = Problem), (status = 404, body = Problem)))]
pub(crate) async fn thumbnail(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    picture: Result<Query<Picture>, QueryRejection>,
) -> Result<Response, Problem> {
    let Query(picture) = picture.map_err(|error| Problem::bad(error.body_text()))?;
    let (at, width) = (picture.at.unwrap_or(0.0), picture.width.unwrap_or(320));
    let sensible = (0.0..1e6).contains(&at) && (16..=1280).contains(&width);
    if !sensible {
        return Err(Problem::bad("`at` must be seconds of the video and `width` 16 to 1280 pixels"));
    }
    let path = file(&app, id.clone()).await?;
    let key = (id, (10.0 * at) as u64, width);
    let kept = app.thumbnails.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
    let bytes = match kept {
        Some(bytes) => bytes,
        None => {
            let Ok(_turn) = app.decoders.acquire().await else {
                return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the server is stopping"));
            };
            let picture = move || -> Result<Vec<u8>, SearchError> {
                Ok(Ffmpeg::on_path().thumbnail(&OpenedVideo::open(&path)?, at, width, &Progress::new())?)
            };
            let bytes = Arc::new(off_thread(picture).await?);
            let mut kept = app.thumbnails.lock().unwrap_or_else(PoisonError::into_inner);
            if kept.len() >= KEPT_THUMBNAILS {
                kept.clear();
            }
            kept.insert(key, Arc::clone(&bytes));
            bytes
        }
    };
    let headers = [(header::CONTENT_TYPE, "image/jpeg"), (header::CACHE_CONTROL, "private, max-age=3600")];
    Ok((headers, bytes.as_ref().clone()).into_response())
}
