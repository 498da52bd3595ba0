//! Negatives as relevant as the positives, drawn from the whole training split (RMMN's second stage).

use cuemark_core::Rng;
use cuemark_models::{HardNegatives, Negatives};
use cuemark_tensor::Pass;

use crate::batches::{Batches, query_batch};
use crate::examples::{Example, Examples};
use crate::{Result, Trained};

/// The most candidates that are kept for each query and each video: the most relevant ones.
const KEPT: usize = 100;

/// Queries that are compared with all videos at once: enough that putting the videos' codes together is not what takes the time.
const QUERIES_AT_ONCE: usize = 128;

/// Videos that are encoded at once.
const VIDEOS_AT_ONCE: usize = 64;

/// Who may be drawn against whom, with the relevance that a model saw.
pub(crate) struct Candidates {
    settings: HardNegatives,
    videos: Vec<Ranked>,
    queries: Vec<Ranked>,
}

/// The candidates of one query or video.
#[derive(Default)]
struct Ranked {
    /// Position and relevance, most relevant first.
    list: Vec<(usize, f64)>,
    /// Mean relevance of the positives.
    positive: f64,
    /// The relevance of the last that can stay, once there were so many.
    floor: Option<f64>,
}

/// A batch with what was drawn for it.
pub(crate) struct Drawn {
    /// The batch's own examples, then the drawn queries, each once.
    pub(crate) examples: Vec<usize>,
    /// For each of the own ones the drawn videos and queries.
    items: Vec<(Vec<usize>, Vec<usize>)>,
}

impl Candidates {
    /// Compares every training query with every training video.
    pub(crate) fn by(trained: &Trained, batches: &Batches, settings: HardNegatives) -> Result<Self> {
        let examples = &batches.examples;
        let Some(corpus) = trained.model.corpus() else {
            unreachable!("only models that search a corpus ask for negatives")
        };
        // Once for all queries: videos are what is dear to encode.
        let coded = trained.encode(corpus, &examples.videos, &batches.footage, VIDEOS_AT_ONCE)?;
        let codes: Vec<_> = coded.iter().map(|(code, _)| code).collect();
        let mut videos: Vec<Ranked> = Vec::with_capacity(examples.list.len());
        let mut queries: Vec<Ranked> = examples.videos.iter().map(|_| Ranked::default()).collect();
        let positions: Vec<usize> = (0..examples.list.len()).collect();
        for chunk in positions.chunks(QUERIES_AT_ONCE) {
            let list: Vec<&Example> = chunk.iter().map(|position| &examples.list[*position]).collect();
            let asked = trained.ready_queries(&query_batch(&list, vec![0; list.len()])?, &Pass::answering())?;
            let scores = match corpus.score_videos(&asked, &codes)? {
                Some(scores) => scores,
                None => {
                    // Models without a score of whole videos: the one that comes with their moments.
                    let answers = corpus.search(&asked, &codes)?;
                    answers.iter().map(|answers| answers.iter().map(|answer| answer.video_score).collect()).collect()
                }
            };
            for ((position, example), scores) in chunk.iter().zip(list).zip(scores) {
                let own = f64::from(scores[example.video]);
                let mut of_query = Ranked { positive: own, ..Ranked::default() };
                queries[example.video].positive += own / examples.of_video[example.video].len() as f64;
                for (video, relevance) in scores.iter().enumerate().filter(|(video, _)| *video != example.video) {
                    let relevance = f64::from(*relevance);
                    let of_video = &mut queries[video];
                    let (asks, answers) = (of_query.has_room(relevance), of_video.has_room(relevance));
                    // First what costs nothing: of all pairs of a large split few are among the most relevant.
                    if !asks && !answers {
                        continue;
                    }
                    // A video that shows what the query says is no negative, whoever it was written for: pushing it away
                    // would unlearn what the positives teach.
                    let is_near = batches.nearness.as_ref().is_some_and(|near| {
                        f64::from(near.between(&example.query, &examples.videos[video])) > settings.threshold
                    });
                    if is_near {
                        continue;
                    }
                    if asks {
                        of_query.push(video, relevance);
                    }
                    if answers {
                        of_video.push(*position, relevance);
                    }
                }
                of_query.cut();
                // One stays for every query of the split: room for those that were cut would be most of its memory.
                of_query.list.shrink_to_fit();
                videos.push(of_query);
            }
        }
        queries.iter_mut().for_each(Ranked::cut);
        Ok(Self { settings, videos, queries })
    }

    /// Draws negatives for the examples of a batch.
    pub(crate) fn draw(&self, examples: &Examples, own: &[usize], rng: &mut Rng) -> Drawn {
        let sampling = self.settings.sampling;
        let mut drawn = Drawn { examples: own.to_vec(), items: Vec::with_capacity(own.len()) };
        for position in own {
            let videos = self.videos[*position].draw(&sampling, sampling.videos, rng);
            let queries = self.queries[examples.list[*position].video].draw(&sampling, sampling.queries, rng);
            for query in &queries {
                // Two items may draw the same query, and in a second row it would count twice.
                if !drawn.examples.contains(query) {
                    drawn.examples.push(*query);
                }
            }
            drawn.items.push((videos, queries));
        }
        drawn
    }
}

impl Drawn {
    /// The drawn videos and queries by their places in the batch; videos that are not there yet are added.
    pub(crate) fn negatives(&self, examples: &[usize], videos: &mut Vec<usize>) -> Vec<Negatives> {
        let mut place_of = |video: &usize| {
            videos.iter().position(|known| known == video).unwrap_or_else(|| {
                videos.push(*video);
                videos.len() - 1
            })
        };
        let item = |(query, (of_videos, of_queries)): (usize, &(Vec<usize>, Vec<usize>))| Negatives {
            query,
            videos: of_videos.iter().map(&mut place_of).collect(),
            queries: of_queries.iter().filter_map(|query| examples.iter().position(|known| known == query)).collect(),
        };
        self.items.iter().enumerate().map(item).collect()
    }
}

impl Ranked {
    /// Whether a candidate that comes now could stay. Positions only rise, so one that is as relevant as the last is too late.
    fn has_room(&self, relevance: f64) -> bool {
        self.floor.is_none_or(|floor| relevance.total_cmp(&floor).is_gt())
    }

    /// Adds a candidate, now and then dropping those that cannot stay, so that memory is bounded.
    fn push(&mut self, position: usize, relevance: f64) {
        self.list.push((position, relevance));
        // Not at every push: each query is pushed to nearly every video, and every list would be sorted for each of them.
        if self.list.len() >= 4 * KEPT {
            self.cut();
        }
    }

    fn cut(&mut self) {
        // Ties by position, so that the same seed draws the same negatives.
        self.list.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        self.list.truncate(KEPT);
        self.floor = self.list.get(KEPT - 1).map(|(_, relevance)| *relevance);
    }

    fn draw(&self, sampling: &cuemark_models::Sampling, count: usize, rng: &mut Rng) -> Vec<usize> {
        let relevance: Vec<f64> = self.list.iter().map(|(_, relevance)| *relevance).collect();
        sampling.draw(&relevance, self.positive, count, rng).into_iter().map(|place| self.list[place].0).collect()
    }
}
