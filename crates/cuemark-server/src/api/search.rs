//! Questions and answers.

use std::sync::Arc;
use std::time::Instant;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use cuemark::{Asking, Found, Shown};
use cuemark_core::{Progress, VideoId};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::Name;
use super::names::names;
use crate::app::App;
use crate::problem::Problem;

/// Answers at most: fewer than elsewhere, since strangers may ask.
const MOST: usize = 100;

/// A question.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Asked {
    /// What to look for. `"these words"` must be said or written, `-word` and `-"these words"` must not; `said:`, `written:` and
    /// `seen:` say where to look.
    q: String,
    /// Answers, 1 to 100. Default: 10
    limit: Option<usize>,
    /// Names of videos to look in, separated by commas; `\\,` is a comma of a name.
    video: Option<String>,
    /// Tags that a video must have, separated by commas; `\\,` is a comma of a tag.
    tag: Option<String>,
    /// `START-END` in seconds: only moments inside.
    within: Option<String>,
    /// Answers below this probability do not count as good. Default: 0.1
    least: Option<f64>,
    /// `exact` looks at every moment.
    mode: Option<String>,
    /// Choose so many videos first.
    two_stage: Option<usize>,
}

/// A moment to find more like.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Like {
    /// Its video.
    video: String,
    /// Where it begins, in seconds.
    start: f64,
    /// Where it ends, in seconds.
    end: f64,
    /// Answers, 1 to 100. Default: 10
    limit: Option<usize>,
}

/// Answers to a question, the good ones first, and how long they took.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Answered {
    #[serde(flatten)]
    found: Found,
    /// Milliseconds.
    took_ms: f64,
}

/// Where along a video a question scores high.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Strip {
    /// Probabilities, evenly over the video.
    strip: Vec<f64>,
}

/// Finds the moments that a sentence describes.
#[utoipa::path(get, path = "/api/v1/search", params(Asked), responses(
    (status = 200, body = Answered), (status = 400, body = Problem), (status = 404, body = Problem), (status = 429, body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn search(
    State(app): State<Arc<App>>,
    asked: Result<Query<Asked>, QueryRejection>,
) -> Result<Json<Answered>, Problem> {
    let Query(asked) = asked.map_err(|error| Problem::bad(error.body_text()))?;
    answer(app, asked.asking()?).await
}

/// Finds moments like one of the index.
#[utoipa::path(get, path = "/api/v1/moments/like", params(Like), responses(
    (status = 200, body = Answered), (status = 400, body = Problem), (status = 404, body = Problem), (status = 429, body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn like(
    State(app): State<Arc<App>>,
    like: Result<Query<Like>, QueryRejection>,
) -> Result<Json<Answered>, Problem> {
    let Query(like) = like.map_err(|error| Problem::bad(error.body_text()))?;
    let moment = format!("{}:{}-{}", like.video, like.start, like.end);
    answer(app, Asking { like: Some(moment), limit: limit(like.limit)?, ..Asking::default() }).await
}

/// Where along a video a question scores high.
#[utoipa::path(get, path = "/api/v1/videos/{id}/strip", params(("id" = String, Path), Asked), responses(
    (status = 200, body = Strip), (status = 400, body = Problem), (status = 404, body = Problem)))]
pub(crate) async fn strip(
    State(app): State<Arc<App>>,
    Name(id): Name,
    asked: Result<Query<Asked>, QueryRejection>,
) -> Result<Json<Strip>, Problem> {
    let Query(asked) = asked.map_err(|error| Problem::bad(error.body_text()))?;
    let question = asked.asking()?.question()?;
    let index = Arc::clone(&app.index);
    let strip = app.searches.run(move |_| index.strip(&question, &VideoId::new(id))).await?;
    Ok(Json(Strip { strip }))
}

async fn answer(app: Arc<App>, asking: Asking) -> Result<Json<Answered>, Problem> {
    let began = Instant::now();
    let index = Arc::clone(&app.index);
    let found = app.searches.run(move |_: &Progress| asking.ask(&index, Shown::All)).await?;
    Ok(Json(Answered { found: found.without_paths(), took_ms: began.elapsed().as_secs_f64() * 1e3 }))
}

impl Asked {
    fn asking(self) -> Result<Asking, Problem> {
        let exact = match self.mode.as_deref() {
            None | Some("approximate") => false,
            Some("exact") => true,
            Some(other) => return Err(Problem::bad(format!("`mode` is `{other}`, not `approximate` or `exact`"))),
        };
        Ok(Asking {
            videos: names(&self.video.unwrap_or_default()),
            tags: names(&self.tag.unwrap_or_default()),
            within: self.within,
            limit: limit(self.limit)?,
            least: self.least.unwrap_or(Asking::LEAST),
            exact,
            two_stage: self.two_stage,
            ..Asking::sentence(self.q)
        })
    }
}

fn limit(asked: Option<usize>) -> Result<usize, Problem> {
    match asked {
        None => Ok(Asking::LIMIT),
        Some(limit) if (1..=MOST).contains(&limit) => Ok(limit),
        Some(limit) => Err(Problem::bad(format!("`limit` is {limit}, not in 1 to {MOST}"))),
    }
}
