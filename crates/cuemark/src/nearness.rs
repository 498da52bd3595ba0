//! What a run file's `data.similarity` names, opened.

use std::sync::Arc;

use camino::Utf8Path;
use cuemark_core::{Progress, QueryId, VideoId};
use cuemark_train::{NearSentences, Nearness, RunFile};
use cuemark_world::WorldLog;

use crate::{Error, Result, SimilarityBy};

/// The similarity that training knows by itself: that of words.
const WORDS: &str = "tfidf";
/// The event log of the built-in world: what a perfect filter would say.
const LOG: &str = "log";

/// Opens what `run` compares its queries with videos by; `None` where training needs no help.
pub(crate) fn nearness(run: &RunFile, progress: &Progress) -> Result<Option<Arc<dyn Nearness>>> {
    Ok(match run.data.similarity.as_deref() {
        None | Some(WORDS) => None,
        Some(LOG) => {
            let Some(world) = run.data.root.as_ref().filter(|_| run.data.is_world()) else {
                let problem = "`log` is the event log of the built-in world, and the dataset is another";
                return Err(Error::setting("data.similarity", problem));
            };
            Some(Arc::new(EventLog::open(world)?))
        }
        Some(provider) => {
            let queries = run.data.split(&run.data.train)?.queries;
            let by = SimilarityBy { provider: Some(provider.to_owned()) };
            Some(Arc::new(NearSentences::of_training(by.between(&queries, &queries, progress)?.as_ref(), &queries)?))
        }
    })
}

/// 1 for every film that shows all that a query says, 0 for every other.
#[derive(Debug)]
struct EventLog(WorldLog);

impl EventLog {
    fn open(world: &Utf8Path) -> Result<Self> {
        Ok(Self(WorldLog::open(world)?))
    }
}

impl Nearness for EventLog {
    fn between(&self, query: &QueryId, video: &VideoId) -> f32 {
        f32::from(u8::from(self.0.shows(query, video).unwrap_or(false)))
    }
}

#[cfg(test)]
mod tests {
    use camino::Utf8PathBuf;
    use cuemark_world::WorldOptions;

    use super::*;

    fn run(text: &str) -> RunFile {
        let text = format!("[model]\nname = 'rmmn'\n[train]\nepochs = 1\nrate = 1e-3\n[data]\n{text}");
        RunFile::from_table("run.toml", text.parse().unwrap(), &[]).unwrap()
    }

    #[test]
    fn the_log_finds_every_film_that_shows_what_a_query_says_and_the_one_it_was_written_for() {
        let folder = tempfile::tempdir().unwrap();
        let world = Utf8PathBuf::from_path_buf(folder.path().join("world")).unwrap();
        let options = WorldOptions { videos: 60, ..WorldOptions::default() };
        cuemark_world::make(&options, &world, &Progress::new()).unwrap();
        let run = run(&format!("dataset = 'world'\nroot = '{world}'\nsimilarity = 'log'"));
        let near = nearness(&run, &Progress::new()).unwrap().unwrap();
        let train = run.data.split("train").unwrap();
        let mut elsewhere = 0;
        for truth in &train.queries {
            let own = &truth.video.as_ref().unwrap().id;
            assert_eq!(near.between(&truth.query.id, own), 1.0, "{}", truth.query.text);
            let others = train.videos.iter().filter(|video| video.id != *own);
            elsewhere += others.filter(|video| near.between(&truth.query.id, &video.id) == 1.0).count();
        }
        let pairs = train.queries.len() * (train.videos.len() - 1);
        assert!(elsewhere > 0 && elsewhere < pairs / 5, "{elsewhere} of {pairs}");
    }

    #[test]
    fn words_need_no_help_and_no_other_dataset_has_a_log() {
        let of = |text: &str| nearness(&run(text), &Progress::new());
        assert!(of("dataset = 'world'\nroot = 'w'\nsimilarity = 'tfidf'").unwrap().is_none());
        let refused = of("dataset = 'tacos'\nroot = 't'\nfeatures = 'f'\nsimilarity = 'log'").unwrap_err();
        assert!(refused.to_string().contains("event log of the built-in world"), "{refused}");
    }
}
