//! A stretch of a film as a file of its own.

use std::fs::File;
use std::io;
use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use camino::Utf8Path;
use cuemark_core::{Progress, Span, VideoId};
use cuemark_formats::Overwrite;
use cuemark_media::{Ffmpeg, OpenedVideo};
use cuemark_search::SearchError;
use serde::Deserialize;
use utoipa::IntoParams;

use super::Name;
use super::videos::known;
use crate::app::App;
use crate::film::Film;
use crate::problem::Problem;
use crate::stream;

/// The longest clip in seconds: what can be encoded while a client waits.
const LONGEST: f64 = 120.0;

/// Which stretch.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Stretch {
    /// Where it begins, in seconds.
    start: f64,
    /// Where it ends; at most 120 seconds later.
    end: f64,
}

/// A stretch of a video as MP4, encoded again so that it begins and ends where it should.
#[utoipa::path(get, path = "/api/v1/videos/{id}/clip", params(("id" = String, Path), Stretch), responses(
    (status = 200, content_type = "video/mp4"), (status = 400, body = Problem), (status = 404, body = Problem), (status = 410, body = Problem), (status = 422, body = Problem)))]
pub(crate) async fn clip(
    State(app): State<Arc<App>>,
    Name(id): Name,
    stretch: Result<Query<Stretch>, QueryRejection>,
) -> Result<Response, Problem> {
    let Query(Stretch { start, end }) = stretch.map_err(|error| Problem::bad(error.body_text()))?;
    let span = Span::new(start, end).map_err(|error| Problem::bad(error.to_string()))?;
    if span.is_empty() || span.len() > LONGEST {
        return Err(Problem::bad(format!("a clip lasts more than 0 and at most {LONGEST} seconds")));
    }
    let name = file_name(&id, span);
    let index = Arc::clone(&app.index);
    let cut = move |progress: &Progress| -> Result<(File, u64), Problem> {
        let entry = known(&index, VideoId::new(id))?;
        if span.start() >= entry.duration {
            return Err(Problem::bad(format!("the clip begins behind the end of the film, {} s", entry.duration)));
        }
        let film = Film::open(&entry)?;
        let path = entry.path.as_deref().unwrap_or(Utf8Path::new(""));
        let video = OpenedVideo::of(path, film.file).map_err(SearchError::Media)?;
        let failed = |_: io::Error| Problem::new(axum::http::StatusCode::INTERNAL_SERVER_ERROR, "no room for a clip");
        // The file loses its name before it is sent: whatever happens, nothing is left behind.
        let folder = tempfile::tempdir().map_err(failed)?;
        let out = folder.path().join("clip.mp4");
        let Some(out) = Utf8Path::from_path(&out) else { return Err(failed(io::ErrorKind::InvalidInput.into())) };
        let cut = Ffmpeg::on_path().cut(&video, span, out, Overwrite::Never, progress);
        cut.map_err(SearchError::Media)?;
        let file = File::open(out).map_err(failed)?;
        let bytes = file.metadata().map_err(failed)?.len();
        Ok((file, bytes))
    };
    let (file, bytes) = app.decoders.run(cut).await?;
    let headers = [
        (header::CONTENT_TYPE, "video/mp4".to_owned()),
        (header::CONTENT_LENGTH, bytes.to_string()),
        (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{name}\"")),
        (header::CACHE_CONTROL, "private, no-store".to_owned()),
    ];
    Ok((headers, stream::body(file, 0..bytes, &app.readers)).into_response())
}

/// A name that every system takes: letters, digits and dashes of the film's, and where the clip begins and ends.
fn file_name(id: &str, span: Span) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() || letter == '_' { letter } else { '-' };
    let film: String = id.chars().take(80).map(plain).collect();
    format!("{film}-{:.1}-{:.1}.mp4", span.start(), span.end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_clips_carry_nothing_but_letters() {
        let span = Span::new(2.0, 4.25).unwrap();
        assert_eq!(file_name("one", span), "one-2.0-4.2.mp4");
        assert_eq!(file_name("a\"; x=\r\n../b ü", span), "a---x------b---2.0-4.2.mp4");
        assert!(file_name(&"x".repeat(10_000), span).len() < 120);
    }
}
