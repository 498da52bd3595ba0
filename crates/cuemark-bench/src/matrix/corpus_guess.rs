//! Answers over a whole corpus by somebody who sees no video: chance, and what the words alone are worth.

use std::collections::HashMap;

use camino::Utf8Path;
use cuemark_core::{Extra, Moment, Prediction, Predictions, QueryPredictions, Rng, Span, Truth, VideoId};
use cuemark_data::{ReadOptions, read_truth};
use cuemark_formats::{PredictionOptions, Source, read_predictions};
use cuemark_text::similarity::{Tfidf, top_k};

use crate::{BenchError, Result};

/// Who answers queries over a corpus without looking at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CorpusGuess {
    /// Any stretch of any film: chance.
    RandomSpans,
    /// Captioned moments of any film, whatever was asked: who knows where events are and not what was asked for.
    RandomMoments,
    /// The moments whose captions are likest to the query: who reads captions and looks at nothing. It is they who were graded.
    CaptionOrder,
    /// Captioned moments by how well they answer, known from the log; which of them were graded is not known to it.
    PerfectReader,
}

impl CorpusGuess {
    /// All of them, the weakest first.
    pub const ALL: [Self; 4] = [Self::RandomSpans, Self::RandomMoments, Self::CaptionOrder, Self::PerfectReader];

    /// Its name in matrices and results.
    pub fn name(self) -> &'static str {
        match self {
            Self::RandomSpans => "random-spans",
            Self::RandomMoments => "random-moments",
            Self::CaptionOrder => "caption-order",
            Self::PerfectReader => "perfect-reader",
        }
    }

    /// The guess called so.
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|guess| guess.name() == name)
    }

    /// `answers` moments for each query, from the folder of a corpus ([`cuemark_world::write_ranked`]).
    pub(super) fn answer(self, folder: &Utf8Path, queries: &[Truth], answers: usize, seed: u64) -> Result<Predictions> {
        if self == Self::PerfectReader {
            let list = Source::new(folder.join("perfect-reader.jsonl"));
            return Ok(read_predictions(&list, &PredictionOptions::default())?.1);
        }
        let captions = read_truth(&Source::new(folder.join("captions.jsonl")), None, &ReadOptions::default())?.queries;
        let described: Vec<&Moment> =
            captions.iter().filter_map(|truth| Some(&truth.moments.first()?.moment)).collect();
        let durations: HashMap<&VideoId, f64> = captions
            .iter()
            .filter_map(|truth| truth.video.as_ref())
            .filter_map(|video| Some((&video.id, video.duration?)))
            .collect();
        let nothing =
            || BenchError::Cell { folder: folder.to_owned(), problem: "holds no captioned moment".to_owned() };
        let texts = |truths: &[Truth]| truths.iter().map(|truth| truth.query.text.clone()).collect::<Vec<_>>();
        let likest = match self {
            Self::CaptionOrder => top_k(&Tfidf::new(&texts(queries), &texts(&captions)), answers)
                .unwrap_or_else(|_| unreachable!("words in memory can always be compared")),
            _ => Vec::new(),
        };
        let mut lists = Vec::with_capacity(queries.len());
        for (place, truth) in queries.iter().enumerate() {
            let mut rng = Rng::stream(seed, &format!("{} for {}", self.name(), truth.query.id));
            let drawn = |rng: &mut Rng| -> Result<Moment> {
                let moment = *rng.pick(&described).ok_or_else(nothing)?;
                match (self, durations.get(&moment.video)) {
                    (Self::RandomSpans, Some(duration)) => {
                        let (a, b) = (rng.between(0.0, *duration), rng.between(0.0, *duration));
                        let span = Span::new(a.min(b), a.max(b)).unwrap_or(moment.span);
                        Ok(Moment { video: moment.video.clone(), span })
                    }
                    _ => Ok(moment.clone()),
                }
            };
            let moments = match likest.get(place) {
                Some(near) => near.iter().map(|near| captions[near.index as usize].moments[0].moment.clone()).collect(),
                None => (0..answers).map(|_| drawn(&mut rng)).collect::<Result<Vec<_>>>()?,
            };
            let answer = |moment: Moment| Prediction { video: Some(moment.video), span: moment.span, score: None };
            lists.push(QueryPredictions {
                query: truth.query.id.clone(),
                ranked: moments.into_iter().map(answer).collect(),
                saliency: None,
                extra: Extra::default(),
            });
        }
        Ok(Predictions::any(lists))
    }
}

#[cfg(test)]
mod tests {
    use cuemark_core::{Query, Video};
    use cuemark_formats::{Overwrite, WholeFile, write_truth};

    use super::*;

    #[test]
    fn guesses_answer_from_captions_and_their_order_is_that_of_the_words() {
        let folder = tempfile::tempdir().unwrap();
        let folder = Utf8Path::from_path(folder.path()).unwrap();
        let caption = |id: &str, text: &str| {
            let query = Query { id: id.into(), text: text.to_owned() };
            Truth::single(query, Video::new(format!("v{id}").as_str(), 30.0), [Span::new(1.0, 4.5).unwrap()])
        };
        let captions =
            [caption("0", "a star jumps"), caption("1", "a ball rolls"), caption("2", "the ball rolls left")];
        let mut file = WholeFile::create(folder.join("captions.jsonl"), Overwrite::Never).unwrap();
        write_truth(&captions, &mut file).unwrap();
        file.finish().unwrap();
        let asked = [Truth::bare(Query { id: "q".into(), text: "a ball rolls".to_owned() })];
        let of = |guess: CorpusGuess| {
            let found = guess.answer(folder, &asked, 3, 0).unwrap();
            found.for_task(cuemark_core::Task::Any).unwrap()[0].ranked.clone()
        };
        let order: Vec<String> =
            of(CorpusGuess::CaptionOrder).iter().map(|one| one.video.as_ref().unwrap().to_string()).collect();
        assert_eq!(order, ["v1", "v2", "v0"]);
        assert!(of(CorpusGuess::RandomMoments).iter().all(|one| one.span == Span::new(1.0, 4.5).unwrap()));
        assert!(of(CorpusGuess::RandomSpans).iter().all(|one| one.span.end() <= 30.0));
        assert_eq!(CorpusGuess::find("caption-order"), Some(CorpusGuess::CaptionOrder));
        assert_eq!(CorpusGuess::find("bias-mode"), None);
    }
}
