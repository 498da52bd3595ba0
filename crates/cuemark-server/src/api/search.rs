//! Questions and answers.

use std::sync::Arc;
use std::time::Instant;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use cuemark_core::{Moment, Progress, Span, VideoId};
use cuemark_search::{Answer, Effort, Filter, Question, SearchError, Stages};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::Name;
use crate::app::App;
use crate::problem::Problem;

/// Characters of a question at most.
const LONGEST: usize = 1000;
/// Answers at most.
const MOST: usize = 100;
/// How often a question is asked again that a removal has disturbed.
const AGAIN: usize = 3;

/// A question.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Asked {
    /// The sentence; words that begin with `-` are not wanted.
    q: String,
    /// Answers, 1 to 100. Default: 10
    limit: Option<usize>,
    /// Names of videos to look in, separated by commas.
    video: Option<String>,
    /// Tags that a video must have, separated by commas.
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

/// Answers to a question, best first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Found {
    answers: Vec<FoundMoment>,
    /// How many of them are good enough; 0 means that nothing is.
    good: usize,
    /// Words that mean nothing to the encoder.
    unknown_words: Vec<String>,
    /// Milliseconds.
    took_ms: f64,
}

/// A moment.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FoundMoment {
    video: String,
    /// Seconds.
    start: f64,
    /// Seconds.
    end: f64,
    /// Length of the video in seconds.
    duration: f64,
    /// That it answers the question, 0 to 1.
    probability: f64,
    /// The cosine.
    score: f32,
    /// Words that speak for it, with their shares.
    words: Vec<Word>,
    /// What was recognised in it and speaks for it, with shares; none for encoders that recognise nothing by name.
    concepts: Vec<Concept>,
    /// Whether there is a file to play.
    playable: bool,
}

/// A word and its share in an answer.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Word {
    word: String,
    share: f64,
}

/// Something recognised and its share in an answer.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Concept {
    concept: String,
    share: f64,
}

/// Where along a video a question scores high.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Strip {
    /// Probabilities, evenly over the video.
    strip: Vec<f64>,
}

/// Finds the moments that a sentence describes.
#[utoipa::path(get, path = "/api/v1/search", params(Asked), responses(
    (status = 200, body = Found), (status = 400, body = Problem), (status = 404, body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn search(
    State(app): State<Arc<App>>,
    asked: Result<Query<Asked>, QueryRejection>,
) -> Result<Json<Found>, Problem> {
    let Query(asked) = asked.map_err(|error| Problem::bad(error.body_text()))?;
    answer(app, asked.question()?).await
}

/// Finds moments like one of the index.
#[utoipa::path(get, path = "/api/v1/moments/like", params(Like), responses(
    (status = 200, body = Found), (status = 400, body = Problem), (status = 404, body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn like(
    State(app): State<Arc<App>>,
    like: Result<Query<Like>, QueryRejection>,
) -> Result<Json<Found>, Problem> {
    let Query(like) = like.map_err(|error| Problem::bad(error.body_text()))?;
    let span = Span::new(like.start, like.end).map_err(|error| Problem::bad(error.to_string()))?;
    let like_moment = Some(Moment { video: VideoId::new(like.video), span });
    answer(app, Question { like: like_moment, limit: limit(like.limit)?, ..Question::default() }).await
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
    let question = asked.question()?;
    let index = Arc::clone(&app.index);
    let strip = app.searches.run(move |_| index.strip(&question, &VideoId::new(id))).await?;
    Ok(Json(Strip { strip }))
}

async fn answer(app: Arc<App>, question: Question) -> Result<Json<Found>, Problem> {
    let began = Instant::now();
    let index = Arc::clone(&app.index);
    let search = move |_: &Progress| {
        let answers = undisturbed(&question, || index.answer(&question))?;
        let moments = answers.moments.into_iter().map(|answer| {
            let entry = index.engine().video(&answer.video)?;
            let (duration, playable) = entry.map_or((0.0, false), |entry| (entry.duration, entry.path.is_some()));
            Ok(FoundMoment::new(answer, duration, playable))
        });
        let moments = moments.collect::<cuemark_search::Result<Vec<_>>>()?;
        Ok::<_, SearchError>(Found {
            answers: moments,
            good: answers.good,
            unknown_words: answers.unknown_words,
            took_ms: 0.0,
        })
    };
    let found = app.searches.run(search).await?;
    Ok(Json(Found { took_ms: began.elapsed().as_secs_f64() * 1e3, ..found }))
}

/// Asks again where a video was removed by somebody else between being found and being looked at. Who asks about a video by
/// its name is told that it is not there.
fn undisturbed<T>(question: &Question, mut ask: impl FnMut() -> Result<T, SearchError>) -> Result<T, SearchError> {
    let names_videos = question.like.is_some() || question.filter.videos.is_some();
    for _ in 0..AGAIN {
        match ask() {
            Err(SearchError::UnknownVideo { .. }) if !names_videos => {}
            answer => return answer,
        }
    }
    ask()
}

impl FoundMoment {
    fn new(answer: Answer, duration: f64, playable: bool) -> Self {
        let words = answer.words.into_iter().map(|word| Word { word: word.word, share: word.share });
        let concepts = answer.concepts.into_iter().map(|seen| Concept { concept: seen.concept, share: seen.share });
        Self {
            video: answer.video.to_string(),
            start: answer.span.start(),
            end: answer.span.end(),
            duration,
            probability: answer.probability,
            score: answer.score,
            words: words.collect(),
            concepts: concepts.collect(),
            playable,
        }
    }
}

impl Asked {
    fn question(&self) -> Result<Question, Problem> {
        if self.q.chars().count() > LONGEST {
            return Err(Problem::bad(format!("`q` is longer than {LONGEST} characters")));
        }
        let mut question = Question::new(&self.q);
        let list = |text: &Option<String>| -> Vec<String> {
            let names = text.as_deref().unwrap_or_default().split(',').map(str::trim);
            names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
        };
        let videos = list(&self.video);
        question.filter = Filter {
            videos: (!videos.is_empty()).then(|| videos.into_iter().map(VideoId::new).collect()),
            tags: list(&self.tag),
            within: self.within.as_deref().map(span).transpose()?,
        };
        question.limit = limit(self.limit)?;
        if let Some(least) = self.least {
            if !(0.0..=1.0).contains(&least) {
                return Err(Problem::bad(format!("`least` is {least}, not in 0 to 1")));
            }
            question.least = least;
        }
        question.effort = match self.mode.as_deref() {
            None | Some("approximate") => Effort::Approximate,
            Some("exact") => Effort::Exact,
            Some(other) => return Err(Problem::bad(format!("`mode` is `{other}`, not `approximate` or `exact`"))),
        };
        question.stages = match self.two_stage {
            None => Stages::One,
            Some(videos) if (1..=1000).contains(&videos) => Stages::Two { videos },
            Some(videos) => return Err(Problem::bad(format!("`two_stage` is {videos}, not in 1 to 1000"))),
        };
        Ok(question)
    }
}

fn limit(asked: Option<usize>) -> Result<usize, Problem> {
    match asked {
        None => Ok(10),
        Some(limit) if (1..=MOST).contains(&limit) => Ok(limit),
        Some(limit) => Err(Problem::bad(format!("`limit` is {limit}, not in 1 to {MOST}"))),
    }
}

fn span(text: &str) -> Result<Span, Problem> {
    let wrong = || Problem::bad(format!("`within` is `{text}`, not START-END in seconds"));
    let (start, end) = text.split_once('-').ok_or_else(wrong)?;
    let seconds = |text: &str| text.trim().parse::<f64>().map_err(|_| wrong());
    Span::new(seconds(start)?, seconds(end)?).map_err(|error| Problem::bad(format!("`within`: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_that_a_removal_has_disturbed_is_asked_again_and_one_that_names_the_video_is_not() {
        let unknown = || Err(SearchError::UnknownVideo { video: VideoId::new("gone") });
        let mut asked = 0;
        let mut ask = || {
            asked += 1;
            if asked < 3 { unknown() } else { Ok(asked) }
        };
        assert_eq!(undisturbed(&Question::new("ball"), &mut ask).unwrap(), 3);
        let mut named = Question::new("ball");
        named.filter.videos = Some([VideoId::new("gone")].into_iter().collect());
        let mut asked = 0;
        let told = undisturbed(&named, || {
            asked += 1;
            unknown()
        });
        assert!(told.is_err() && asked == 1);
        // And it has an end.
        assert!(undisturbed(&Question::new("ball"), || unknown()).is_err());
    }
}
