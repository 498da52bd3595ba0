//! Right or wrong: what people say of answers, kept in the folder of the index.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use cuemark::{Asking, JudgedFile, Judgement, Verdict};
use cuemark_core::{Advice, Progress, Span, VideoId};
use cuemark_search::{Index, SearchError};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::Body;
use crate::app::App;
use crate::problem::Problem;
use crate::{Keeping, ServerOptions};

/// How far behind the stated end of a film an end may lie: players round.
const SLACK: f64 = 0.5;

/// What somebody says of an answer.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewJudgement {
    /// The question.
    query: String,
    /// The answer's video.
    video: String,
    /// Where the answer begins, as it was given, in seconds.
    start: f64,
    /// Where it ends.
    end: f64,
    verdict: Said,
    /// Where the moment really begins and ends, in seconds; the answer's own ends when left out. For right answers only.
    span: Option<[f64; 2]>,
}

/// Whether an answer is right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Said {
    /// It answers the question.
    Right,
    /// It does not.
    Wrong,
    /// What was said before does not count.
    None,
}

/// What counts of what was said of one answer.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Judged {
    video: String,
    /// Where the answer begins, as it was given, in seconds.
    start: f64,
    /// Where it ends.
    end: f64,
    verdict: Said,
    /// Where the moment lies, of a right answer.
    span: Option<[f64; 2]>,
}

/// What was said of the answers to a question.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct JudgedList {
    judged: Vec<Judged>,
    /// Judgements on all questions together.
    total: usize,
    /// Lines of the file that cannot be read.
    damaged: usize,
}

/// Which question.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct About {
    /// The question.
    q: String,
}

impl From<&Judgement> for Judged {
    fn from(said: &Judgement) -> Self {
        let (verdict, span) = match said.verdict {
            Verdict::Right(span) => (Said::Right, Some([span.start(), span.end()])),
            Verdict::Wrong => (Said::Wrong, None),
            Verdict::TakenBack => (Said::None, None),
        };
        Self { video: said.video.to_string(), start: said.found.start(), end: said.found.end(), verdict, span }
    }
}

/// What was said of the answers to a question.
#[utoipa::path(get, path = "/api/v1/judged", params(About), responses(
    (status = 200, body = JudgedList), (status = 400, body = Problem), (status = 409, body = Problem)))]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    about: Result<Query<About>, QueryRejection>,
) -> Result<Json<JudgedList>, Problem> {
    let Query(about) = about.map_err(|error| Problem::bad(error.body_text()))?;
    let index = Arc::clone(&app.index);
    let read = move |_: &Progress| -> Result<_, Problem> {
        let all = JudgedFile::of(&index).and_then(|file| file.read()).map_err(not_kept)?;
        let judged = all.on(&about.q).map(Judged::from).collect();
        Ok(JudgedList { judged, total: all.list.len(), damaged: all.damaged })
    };
    Ok(Json(app.lookups.run(read).await?))
}

/// Says of an answer that it is right, wrong, or that nothing is said any more. Of what was said about the same answer to the same
/// question the last counts.
#[utoipa::path(post, path = "/api/v1/judged", request_body = NewJudgement, responses(
    (status = 201, body = Judged), (status = 400, body = Problem), (status = 403, body = Problem), (status = 404, body = Problem),
    (status = 409, body = Problem), (status = 507, body = Problem)))]
pub(crate) async fn add(
    State(app): State<Arc<App>>,
    Body(said): Body<NewJudgement>,
) -> Result<(StatusCode, Json<Judged>), Problem> {
    check_allowed(&app.options)?;
    let index = Arc::clone(&app.index);
    let write = move |_: &Progress| -> Result<_, Problem> {
        let judgement = understood(&index, said)?;
        JudgedFile::of(&index).and_then(|file| file.add(&judgement)).map_err(not_kept)?;
        Ok(Judged::from(&judgement))
    };
    Ok((StatusCode::CREATED, Json(app.lookups.run(write).await?)))
}

fn check_allowed(options: &ServerOptions) -> Result<(), Problem> {
    match options.keeping {
        Keeping::Judgements => Ok(()),
        Keeping::Nothing => Err(Problem::new(StatusCode::FORBIDDEN, "this server keeps nothing")
            .advise(&Advice::say("start it without the setting ").setting("read_only"))),
    }
}

fn understood(index: &Index, said: NewJudgement) -> Result<Judgement, Problem> {
    let query = said.query.trim().to_owned();
    if query.is_empty() || query.chars().count() > Asking::LONGEST {
        return Err(Problem::bad(format!("`query` is empty or longer than {} characters", Asking::LONGEST)));
    }
    let video = VideoId::new(said.video);
    let Some(entry) = index.engine().video(&video)? else { return Err(SearchError::UnknownVideo { video }.into()) };
    let inside = |name: &str, start: f64, end: f64| {
        let span = Span::new(start, end).map_err(|error| Problem::bad(format!("`{name}`: {error}")))?;
        if span.is_empty() || span.end() > entry.duration + SLACK {
            let problem = format!("`{name}`: {start} to {end} s is no stretch of a film of {} s", entry.duration);
            return Err(Problem::bad(problem));
        }
        Ok(span)
    };
    let found = inside("start", said.start, said.end)?;
    let verdict = match (said.verdict, said.span) {
        (Said::Right, Some([start, end])) => Verdict::Right(inside("span", start, end)?),
        (Said::Right, None) => Verdict::Right(found),
        (Said::Wrong, None) => Verdict::Wrong,
        (Said::None, None) => Verdict::TakenBack,
        (Said::Wrong | Said::None, Some(_)) => return Err(Problem::bad("only what is right has a `span`")),
    };
    Ok(Judgement { query, video, found, verdict })
}

/// Why a judgement could not be kept, without telling where it would be.
fn not_kept(error: cuemark::Error) -> Problem {
    use std::io::ErrorKind::{PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    match error {
        cuemark::Error::Nothing { problem, .. } if problem.contains("no folder") => {
            Problem::new(StatusCode::CONFLICT, problem).of_kind("not-kept")
        }
        cuemark::Error::Nothing { .. } => {
            let full = "the file of judgements is full or was made by something else";
            Problem::new(StatusCode::INSUFFICIENT_STORAGE, full).of_kind("full").hint("move `judged.jsonl` away")
        }
        cuemark::Error::Search(SearchError::Io { source, .. }) => match source.kind() {
            PermissionDenied | ReadOnlyFilesystem => {
                Problem::new(StatusCode::CONFLICT, "the folder of the index cannot be written").of_kind("not-kept")
            }
            StorageFull | QuotaExceeded => {
                Problem::new(StatusCode::INSUFFICIENT_STORAGE, "the disk is full").of_kind("full")
            }
            _ => Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the file of judgements cannot be used"),
        },
        cuemark::Error::Search(SearchError::Locked { .. }) => {
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "another process is writing judgements")
        }
        other => other.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_cannot_be_written_and_a_full_disk_are_told_apart_and_no_path_is_told() {
        let refused = |kind: std::io::ErrorKind| {
            let path = "/home/me/films/judged.jsonl".into();
            not_kept(SearchError::Io { what: "write", path, source: kind.into() }.into())
        };
        for (kind, status) in [
            (std::io::ErrorKind::PermissionDenied, 409),
            (std::io::ErrorKind::ReadOnlyFilesystem, 409),
            (std::io::ErrorKind::StorageFull, 507),
            (std::io::ErrorKind::Other, 500),
        ] {
            let problem = refused(kind);
            assert_eq!(problem.status(), status, "{kind}");
            assert!(!serde_json::to_string(&problem).unwrap().contains("/home/me"), "{kind}");
        }
        let locked = not_kept(SearchError::Locked { path: "/home/me".into() }.into());
        assert_eq!(locked.status(), 503);
    }
}
