//! What this index is: what a page needs to know to offer what can be done with it, and what can be found in it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Json;
use axum::extract::State;
use camino::Utf8Path;
use cuemark::{JudgedFile, Verdict};
use cuemark_core::Progress;
use cuemark_search::{EngineUrl, Index, SearchError, VideoState};
use rustc_hash::FxHashMap;
use serde::Serialize;
use utoipa::ToSchema;

use crate::Keeping;
use crate::app::App;
use crate::problem::Problem;

/// Tags that are listed, the commonest first.
const TAGS: usize = 200;
/// Moments that are looked at for what is most often recognised.
const SAMPLE: usize = 200;
/// Concepts and questions that are offered.
const OFFERED: usize = 40;

/// What this index is, and what this server lets be done with it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct About {
    /// Videos that can be found.
    videos: usize,
    /// Moments that can be found.
    moments: usize,
    /// Whether probabilities were fitted to answers with known truth; a guess otherwise.
    calibrated: bool,
    /// Tags of its videos, the commonest first.
    tags: Vec<Tag>,
    /// Folders that videos may be added from, by name: `paths` of a job may begin with one.
    folders: Vec<String>,
    /// Whether judgements are kept.
    judging: bool,
}

/// A tag.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Tag {
    tag: String,
    /// Videos that have it.
    videos: usize,
}

/// What one may ask for here and find.
#[derive(Debug, Clone, Default, Serialize, ToSchema)]
pub(crate) struct Offers {
    /// What is most often recognised in a sample of the moments, the commonest first; none for encoders that recognise nothing
    /// by name.
    concepts: Vec<String>,
    /// Questions to which somebody found a right answer, the latest first.
    asked: Vec<String>,
}

/// Names, and the state of the index (videos, moments) that they were counted in.
type Counted = ((usize, usize), Vec<String>);

/// What is recognised most often, and what that was taken from.
#[derive(Default)]
pub(crate) struct Recognised(Mutex<Option<Counted>>);

/// What this index is.
#[utoipa::path(get, path = "/api/v1/about", responses((status = 200, body = About), (status = 500, body = Problem)))]
pub(crate) async fn about(State(app): State<Arc<App>>) -> Result<Json<About>, Problem> {
    let (index, options) = (Arc::clone(&app.index), app.options.clone());
    let look = move |_: &Progress| -> Result<About, SearchError> {
        let status = index.engine().status()?;
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for entry in index.engine().videos()?.into_iter().filter(|entry| entry.state == VideoState::Present) {
            entry.tags.into_iter().for_each(|tag| *counts.entry(tag).or_default() += 1);
        }
        let mut tags: Vec<Tag> = counts.into_iter().map(|(tag, videos)| Tag { tag, videos }).collect();
        tags.sort_by_key(|tag| std::cmp::Reverse(tag.videos));
        tags.truncate(TAGS);
        let has_folder = matches!(index.engine().url(), EngineUrl::File(_));
        Ok(About {
            videos: status.videos,
            moments: status.moments,
            calibrated: index.calibration().is_fitted(),
            tags,
            folders: options.addable.iter().filter_map(|folder| name_of(folder)).collect(),
            judging: has_folder && options.keeping == Keeping::Judgements,
        })
    };
    Ok(Json(app.lookups.run(look).await?))
}

/// What a folder that may be added from is called to clients: its last name, since where it lies is nobody's business.
pub(crate) fn name_of(folder: &Utf8Path) -> Option<String> {
    folder.canonicalize_utf8().ok()?.file_name().map(str::to_owned)
}

/// What one may ask for here and find.
#[utoipa::path(get, path = "/api/v1/offers", responses((status = 200, body = Offers), (status = 503, body = Problem)))]
pub(crate) async fn offers(State(app): State<Arc<App>>) -> Result<Json<Offers>, Problem> {
    let shared = Arc::clone(&app);
    let look = move |progress: &Progress| -> Result<Offers, Problem> {
        let index = &shared.index;
        let concepts = shared.recognised.of(index, progress)?;
        // Without a folder, or with a damaged file, there is nothing to offer from it, and no reason to fail.
        let judged = JudgedFile::of(index).and_then(|file| file.read()).unwrap_or_default();
        let mut asked: Vec<String> = Vec::new();
        for said in judged.list.into_iter().rev().filter(|said| matches!(said.verdict, Verdict::Right(_))) {
            if asked.len() < OFFERED && !asked.contains(&said.query) {
                asked.push(said.query);
            }
        }
        Ok(Offers { concepts, asked })
    };
    Ok(Json(app.searches.run(look).await?))
}

impl Recognised {
    /// Looked up again when videos have come or gone.
    fn of(&self, index: &Index, progress: &Progress) -> Result<Vec<String>, Problem> {
        let status = index.engine().status()?;
        let now = (status.videos, status.moments);
        // Whoever comes while somebody is looking waits for that one's answer rather than look as well.
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, concepts)) = known.as_ref().filter(|(then, _)| *then == now) {
            return Ok(concepts.clone());
        }
        let mut counts: FxHashMap<String, f64> = FxHashMap::default();
        for moment in index.engine().sample(SAMPLE)? {
            progress.check().map_err(SearchError::from)?;
            // What speaks for a moment as an answer to itself is what is recognised in it.
            for seen in index.encoder().concepts(&moment, &moment) {
                *counts.entry(seen.concept).or_default() += seen.share;
            }
        }
        let mut concepts: Vec<(String, f64)> = counts.into_iter().collect();
        concepts.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let concepts: Vec<String> = concepts.into_iter().take(OFFERED).map(|(concept, _)| concept).collect();
        *known = Some((now, concepts.clone()));
        Ok(concepts)
    }
}
