//! Videos: what there is, their bytes, their pictures.

use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use camino::Utf8Path;
use cuemark_core::{Line, Progress, Track, VideoId};
use cuemark_media::{Ffmpeg, MediaError, OpenedVideo, Partial};
use cuemark_search::{Index, SearchError, TrackRead, VideoEntry, VideoState};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::Name;
use crate::app::App;
use crate::film::Film;
use crate::problem::Problem;
use crate::{Wanted, stream, thumbnails};

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
    /// What was read of its words, and which of its tracks could not be read; left out where nothing was kept about it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tracks: Vec<ReadTrack>,
}

/// What became of one track of a video.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ReadTrack {
    /// `seen`, `said` or `written`.
    track: &'static str,
    /// Lines that were found.
    lines: usize,
    /// Why it could not be read; `null` when it could.
    problem: Option<String>,
}

/// A line that is said or written.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TimedLine {
    /// `said` or `written`.
    track: &'static str,
    /// Seconds.
    start: f64,
    /// Seconds.
    end: f64,
    text: String,
}

/// What is said and written in a video, those that are said first, each track in the order of time.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TimedLines {
    lines: Vec<TimedLine>,
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

impl From<TrackRead> for ReadTrack {
    fn from(read: TrackRead) -> Self {
        // What a recogniser said may name files of this machine.
        let problem = read.problem.map(|_| "it could not be read; the server's owner sees why".to_owned());
        Self { track: read.track.name(), lines: read.lines, problem }
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
            tracks: entry.tracks.into_iter().map(ReadTrack::from).collect(),
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
    let videos = app.lookups.run(move |_| index.engine().videos()).await?;
    let total = videos.len();
    let chosen = videos.into_iter().skip(page.offset.unwrap_or(0)).take(page.limit.unwrap_or(100).min(1000));
    Ok(Json(Videos { videos: chosen.map(Video::from).collect(), total }))
}

/// One video.
#[utoipa::path(get, path = "/api/v1/videos/{id}", params(("id" = String, Path)), responses((status = 200, body = Video), (status = 404, body = Problem)))]
pub(crate) async fn one(State(app): State<Arc<App>>, Name(id): Name) -> Result<Json<Video>, Problem> {
    Ok(Json(entry(&app, id).await?.into()))
}

/// What is said and written in a video.
#[utoipa::path(get, path = "/api/v1/videos/{id}/lines", params(("id" = String, Path)), responses((status = 200, body = TimedLines), (status = 404, body = Problem)))]
pub(crate) async fn lines(State(app): State<Arc<App>>, Name(id): Name) -> Result<Json<TimedLines>, Problem> {
    let (index, video) = (Arc::clone(&app.index), VideoId::new(id));
    let lines = app.lookups.run(move |_| index.lines(&video)).await?;
    let timed = |(track, line): (Track, Line)| TimedLine {
        track: track.name(),
        start: line.span.start(),
        end: line.span.end(),
        text: line.text,
    };
    Ok(Json(TimedLines { lines: lines.into_iter().map(timed).collect() }))
}

async fn entry(app: &App, id: String) -> Result<VideoEntry, Problem> {
    let (index, video) = (Arc::clone(&app.index), VideoId::new(id));
    app.lookups.run(move |_| known(&index, video)).await
}

pub(crate) fn known(index: &Index, video: VideoId) -> Result<VideoEntry, SearchError> {
    index.engine().video(&video)?.ok_or(SearchError::UnknownVideo { video })
}

/// The bytes of a video, or a range of them.
#[utoipa::path(get, path = "/api/v1/videos/{id}/media", params(("id" = String, Path)), responses(
    (status = 200, description = "the whole file"), (status = 206, description = "a range of it"), (status = 304, description = "as it was"),
    (status = 404, body = Problem), (status = 410, body = Problem), (status = 416, body = Problem)))]
pub(crate) async fn media(
    State(app): State<Arc<App>>,
    Name(id): Name,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let index = Arc::clone(&app.index);
    let open = move |_: &Progress| -> Result<_, Problem> {
        let entry = known(&index, VideoId::new(id))?;
        Ok((Film::open(&entry)?, kind(entry.path.as_deref())))
    };
    let (film, kind) = app.lookups.run(open).await?;
    let said = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let (tag, length) = (film.tag(), film.bytes);
    let common = [
        (header::CONTENT_TYPE, kind.to_owned()),
        (header::ACCEPT_RANGES, "bytes".to_owned()),
        (header::CACHE_CONTROL, "private, max-age=60".to_owned()),
        (header::ETAG, tag.clone()),
    ];
    if said(header::IF_NONE_MATCH).is_some_and(|known| known == tag) {
        return Ok((StatusCode::NOT_MODIFIED, common).into_response());
    }
    // A range of another version of the file would not fit to what the client has.
    let range = said(header::RANGE).filter(|_| headers.get(header::IF_RANGE).is_none_or(|version| version == &tag));
    let (status, part) = match range.map_or(Wanted::Whole, |range| Wanted::read(range, length)) {
        Wanted::Whole => (StatusCode::OK, 0..length),
        Wanted::Part(part) => (StatusCode::PARTIAL_CONTENT, part),
        Wanted::Outside => {
            let refused = Problem::new(StatusCode::RANGE_NOT_SATISFIABLE, format!("the file has {length} bytes"));
            return Ok(([(header::CONTENT_RANGE, format!("bytes */{length}"))], refused).into_response());
        }
    };
    let of_part = [(header::CONTENT_LENGTH, (part.end - part.start).to_string())];
    let mut response = (status, common, of_part, stream::body(film.file, part.clone(), &app.readers)).into_response();
    if status == StatusCode::PARTIAL_CONTENT {
        let place = format!("bytes {}-{}/{length}", part.start, part.end.saturating_sub(1));
        if let Ok(place) = HeaderValue::from_str(&place) {
            response.headers_mut().insert(header::CONTENT_RANGE, place);
        }
    }
    Ok(response)
}

/// What a browser should take the file for.
fn kind(path: Option<&Utf8Path>) -> &'static str {
    let ending = path.and_then(Utf8Path::extension).unwrap_or_default().to_ascii_lowercase();
    match ending.as_str() {
        "mp4" | "m4v" => "video/mp4",
        "webm" => "video/webm",
        "mov" => "video/quicktime",
        "mkv" => "video/x-matroska",
        "avi" => "video/x-msvideo",
        "mpg" | "mpeg" => "video/mpeg",
        "ts" => "video/mp2t",
        _ => "application/octet-stream",
    }
}

/// A picture of a video.
#[utoipa::path(get, path = "/api/v1/videos/{id}/thumbnail", params(("id" = String, Path), Picture), responses(
    (status = 200, content_type = "image/jpeg"), (status = 400, body = Problem), (status = 404, body = Problem), (status = 410, body = Problem), (status = 422, body = Problem)))]
pub(crate) async fn thumbnail(
    State(app): State<Arc<App>>,
    Name(id): Name,
    picture: Result<Query<Picture>, QueryRejection>,
) -> Result<Response, Problem> {
    let Query(picture) = picture.map_err(|error| Problem::bad(error.body_text()))?;
    let (at, width) = (picture.at.unwrap_or(0.0), picture.width.unwrap_or(320));
    if !(0.0..1e6).contains(&at) {
        return Err(Problem::bad(format!("`at` is {at}, not seconds of a video")));
    }
    if !(16..=1280).contains(&width) {
        return Err(Problem::bad(format!("`width` is {width}, not 16 to 1280 pixels")));
    }
    let entry = entry(&app, id).await?;
    let ends = entry.duration;
    let nothing = move || {
        let detail = format!("there is no picture at {at} s: the video ends at {ends} s");
        Problem::new(StatusCode::NOT_FOUND, detail).of_kind("past-the-end")
    };
    if at >= ends {
        return Err(nothing());
    }
    let key = thumbnails::Picture::new(&entry, at, width);
    let bytes = match app.thumbnails.get(&key) {
        Some(bytes) => bytes,
        None => {
            let decode = move |progress: &Progress| -> Result<_, Problem> {
                // The decoder gets the open file: whatever lies at its name by then is not looked at.
                let film = Film::open(&entry)?;
                let path = entry.path.as_deref().unwrap_or(Utf8Path::new(""));
                let video = OpenedVideo::of(path, film.file).map_err(SearchError::Media)?;
                match Ffmpeg::on_path().thumbnail(&video, at, width, progress) {
                    // The last picture may lie a little before the end.
                    Err(MediaError::NoPicture { .. }) => Err(nothing()),
                    picture => Ok(picture.map_err(SearchError::Media)?),
                }
            };
            let bytes = Bytes::from(app.decoders.run(decode).await?);
            app.thumbnails.put(key, bytes.clone());
            bytes
        }
    };
    let headers = [(header::CONTENT_TYPE, "image/jpeg"), (header::CACHE_CONTROL, "private, max-age=3600")];
    Ok((headers, bytes).into_response())
}
