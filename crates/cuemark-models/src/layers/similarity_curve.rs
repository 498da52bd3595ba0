//! Start and end of a moment read off the curve of how alike a query and each clip are, and the search of many videos that
//! rests on it: the part of XML that ReLoCLNet kept as it is.

use candle_core::{Result, Tensor};
use candle_nn::VarBuilder;
use cuemark_tensor::MatrixProduct as _;
use cuemark_tensor::functional::{l2_normalise, mask_out};

use super::{Conv1d, EndClip, NOT_THERE, PairLimits, Steps, as_proposals, best_pairs, probabilities};
use crate::{Code, VideoAnswer};

/// Videos whose rows are multiplied with the queries at once.
const CHUNK: usize = 128;
/// Moments that are kept of one video.
const KEPT: usize = 200;

/// Two learnt filters over a curve: one answers with start logits, one with end logits.
#[derive(Debug, Clone)]
pub struct SimilarityCurve {
    starts: Conv1d,
    ends: Conv1d,
    reach: usize,
}

/// How logits become moments.
#[derive(Debug, Clone, Copy)]
pub struct CurveRules {
    /// Which pairs are allowed.
    pub pairs: PairLimits,
    /// What an end clip stands for.
    pub end_clip: EndClip,
    /// A moment's score is multiplied with the power of e to this times its video's score.
    pub sharpness: f64,
}

/// What a query asks of one stream.
#[derive(Debug, Clone)]
pub struct StreamQuery {
    /// `[queries, hidden]`, compared by cosine with whole videos.
    pub whole: Tensor,
    /// `[queries, hidden]`, whose products with clips are the curve.
    pub curve: Tensor,
}

impl StreamQuery {
    /// What `vectors [queries, streams, hidden]` ask of every stream; `curve` gives the vectors that a stream's curve is made with.
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn of_streams(vectors: &Tensor, curve: impl Fn(usize) -> crate::Result<Tensor>) -> crate::Result<Vec<Self>> {
        let of = |stream: usize| Ok(Self { whole: of_stream(vectors, stream)?, curve: curve(stream)? });
        (0..vectors.dim(1)?).map(of).collect()
    }
}

/// `[queries, streams, hidden]` to the vectors of one stream, `[queries, hidden]`.
///
/// # Errors
/// When there is no such stream.
pub fn of_stream(vectors: &Tensor, stream: usize) -> Result<Tensor> {
    vectors.narrow(1, stream, 1)?.squeeze(1)?.contiguous()
}

/// `[queries, streams, hidden]` to one unit vector for each query, whose products with a moment's are the mean of the streams'
/// cosines.
///
/// # Errors
/// Those of the tensor operations.
pub fn unit_queries(vectors: &Tensor) -> Result<Tensor> {
    Ok(l2_normalise(&l2_normalise(vectors)?.flatten_from(1)?)?.detach())
}

/// Logits of every query in every video, one row each, query by query; rows run past a video's end.
#[derive(Default)]
struct Curves {
    starts: Vec<Vec<f32>>,
    ends: Vec<Vec<f32>>,
}

impl SimilarityCurve {
    /// Filters `kernel` clips wide, parameters under `PREFIX_st_predictor` and `PREFIX_ed_predictor`.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped, and for a kernel without a middle.
    pub fn new(kernel: usize, prefix: &str, vb: VarBuilder) -> Result<Self> {
        if kernel.is_multiple_of(2) {
            candle_core::bail!("a kernel of {kernel} clips has no middle");
        }
        let steps = Steps { padding: kernel / 2, ..Steps::default() };
        let filter =
            |name: &str| Conv1d::without_bias(1, 1, kernel, steps, vb.pp(format!("{prefix}_{name}_predictor")));
        Ok(Self { starts: filter("st")?, ends: filter("ed")?, reach: kernel / 2 })
    }

    /// # Shapes
    /// - curve `[.., clips]`; mask, broadcast to it, 1 where a clip is real
    /// - returns start and end logits of the curve's shape
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn logits(&self, curve: &Tensor, mask: &Tensor) -> Result<(Tensor, Tensor)> {
        let clips = curve.dim(curve.rank() - 1)?;
        let rows = curve.reshape(((), clips, 1))?;
        let filtered = |filter: &Conv1d| mask_out(&filter.forward(&rows)?.reshape(curve.shape())?, mask, NOT_THERE);
        Ok((filtered(&self.starts)?, filtered(&self.ends)?))
    }

    /// Every allowed pair of each row's real clips as ranked proposals, scored by the product of the two probabilities.
    ///
    /// # Shapes
    /// - logits `[queries, clips]`, `lengths` real ones of each
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn rank(
        starts: &Tensor,
        ends: &Tensor,
        lengths: &[usize],
        rules: &CurveRules,
    ) -> Result<Vec<Vec<crate::Proposal>>> {
        let (starts, ends) = (starts.to_vec2::<f32>()?, ends.to_vec2::<f32>()?);
        let rank =
            |((starts, ends), length): ((&Vec<f32>, &Vec<f32>), &usize)| moments(starts, ends, *length, 1.0, rules);
        Ok(starts.iter().zip(&ends).zip(lengths).map(rank).collect())
    }

    /// What a search keeps of each video: of every stream the real rows that whole videos are scored by, of unit length, then
    /// of every stream the rows under the curve, with as many past the end as a filter reaches.
    ///
    /// # Shapes
    /// - whole and curve `[videos, clips, hidden]` per stream
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn encode(&self, whole: &[Tensor], curve: &[Tensor], lengths: &[usize]) -> Result<Vec<Code>> {
        let of = |(video, length): (usize, &usize)| {
            let whole = whole.iter().map(|rows| l2_normalise(&rows.get(video)?.narrow(0, 0, *length)?));
            let curve = curve.iter().map(|rows| {
                let rows = rows.get(video)?;
                rows.narrow(0, 0, rows.dim(0)?.min(length + self.reach))?.contiguous()
            });
            Ok(Code(whole.chain(curve).map(|rows| Ok(rows?.detach())).collect::<Result<_>>()?))
        };
        lengths.iter().enumerate().map(of).collect()
    }

    /// The best cosine of any clip of a video, mean of the streams: `[query][video]`.
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn score_videos(queries: &[StreamQuery], videos: &[&Code]) -> Result<Vec<Vec<f32>>> {
        let count = queries.first().map_or(Ok(0), |stream| stream.whole.dim(0))?;
        let mut scores = vec![Vec::with_capacity(videos.len()); count];
        for chunk in videos.chunks(CHUNK) {
            let mut sums = vec![vec![0f32; chunk.len()]; count];
            for (number, stream) in queries.iter().enumerate() {
                let asked = l2_normalise(&stream.whole)?;
                for (sums, row) in sums.iter_mut().zip(products(&asked, chunk, number)?) {
                    let mut rest = row.as_slice();
                    for (sum, code) in sums.iter_mut().zip(chunk) {
                        let (own, after) = rest.split_at(code.0[number].dim(0)?.min(rest.len()));
                        *sum += own.iter().copied().fold(f32::NEG_INFINITY, f32::max) / queries.len() as f32;
                        rest = after;
                    }
                }
            }
            scores.iter_mut().zip(sums).for_each(|(all, sums)| all.extend(sums));
        }
        Ok(scores)
    }

    /// The moments of every video for every query, given the videos' own scores.
    ///
    /// # Errors
    /// Those of the tensor operations.
    pub fn search(
        &self,
        queries: &[StreamQuery],
        videos: &[&Code],
        scores: &[Vec<f32>],
        rules: &CurveRules,
    ) -> Result<Vec<Vec<VideoAnswer>>> {
        let mut answers = vec![Vec::with_capacity(videos.len()); scores.len()];
        for (number, chunk) in videos.chunks(CHUNK).enumerate() {
            let curves = self.curves(queries, chunk)?;
            for (query, answers) in answers.iter_mut().enumerate() {
                for (place, code) in chunk.iter().enumerate() {
                    let row = query * chunk.len() + place;
                    let score = scores[query].get(number * CHUNK + place).copied().unwrap_or(0.0);
                    let factor = (rules.sharpness * f64::from(score)).exp() as f32;
                    let moments = moments(&curves.starts[row], &curves.ends[row], code.0[0].dim(0)?, factor, rules);
                    answers.push(VideoAnswer { video_score: score, moments });
                }
            }
        }
        Ok(answers)
    }

    fn curves(&self, queries: &[StreamQuery], videos: &[&Code]) -> Result<Curves> {
        let streams = queries.len();
        let lengths = videos.iter().map(|code| code.0[streams].dim(0)).collect::<Result<Vec<usize>>>()?;
        let longest = lengths.iter().copied().max().unwrap_or(0);
        let mut sum: Option<Tensor> = None;
        for (number, stream) in queries.iter().enumerate() {
            let rows = Tensor::cat(&videos.iter().map(|code| &code.0[streams + number]).collect::<Vec<_>>(), 0)?;
            let product = stream.curve.times(&rows.t()?)?;
            sum = Some(match sum {
                Some(sum) => (sum + product)?,
                None => product,
            });
        }
        let Some(sum) = sum else { return Ok(Curves::default()) };
        let device = sum.device().clone();
        let mut padded = Vec::new();
        for row in (sum / streams as f64)?.to_vec2::<f32>()? {
            let mut rest = row.as_slice();
            for length in &lengths {
                let (own, after) = rest.split_at((*length).min(rest.len()));
                padded.extend_from_slice(own);
                padded.extend(std::iter::repeat_n(0.0, longest - length));
                rest = after;
            }
        }
        let rows = padded.len() / longest.max(1);
        let curve = Tensor::from_vec(padded, (rows, longest), &device)?;
        let (starts, ends) = self.logits(&curve, &Tensor::ones((1, longest), curve.dtype(), &device)?)?;
        Ok(Curves { starts: starts.to_vec2()?, ends: ends.to_vec2()? })
    }
}

/// Products of the queries with the rows that the codes keep at `place`, one video after another.
fn products(queries: &Tensor, videos: &[&Code], place: usize) -> Result<Vec<Vec<f32>>> {
    let rows = Tensor::cat(&videos.iter().map(|code| &code.0[place]).collect::<Vec<_>>(), 0)?;
    queries.times(&rows.t()?)?.to_vec2()
}

fn moments(starts: &[f32], ends: &[f32], length: usize, factor: f32, rules: &CurveRules) -> Vec<crate::Proposal> {
    let (starts, ends) = (probabilities(&starts[..length]), probabilities(&ends[..length]));
    let pairs = best_pairs(rules.pairs, length, KEPT, |start, end| factor * starts[start] * ends[end]);
    as_proposals(&pairs, rules.end_clip, length)
}
