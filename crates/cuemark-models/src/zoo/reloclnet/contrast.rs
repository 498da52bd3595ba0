//! The losses that pull what belongs together: frames with their sentence, videos with theirs.

use candle_core::{D, Tensor};
use cuemark_tensor::functional::{mask_out, softplus};

use super::{Context, ReLoClNet};
use crate::Result;
use crate::layers::{NOT_THERE, of_stream};
use crate::losses::index_entropy;

/// The losses of every query, `[queries]`, before weighting.
pub(super) struct PerQuery {
    pub(super) start: Tensor,
    pub(super) end: Tensor,
    pub(super) frame: Tensor,
    pub(super) video: Tensor,
}

impl ReLoClNet {
    /// # Shapes
    /// - inside `[queries, clips]`, 1 at the clips of each query's moment; positives the videos that count as its own
    pub(super) fn per_query(
        queries: &Tensor,
        context: &Context,
        logits: &(Tensor, Tensor),
        labels: &[(usize, usize)],
        inside: &Tensor,
        positives: &[Vec<usize>],
    ) -> Result<PerQuery> {
        let (starts, ends): (Vec<usize>, Vec<usize>) = labels.iter().copied().unzip();
        let frame = |number: usize| -> Result<Tensor> {
            let query = of_stream(queries, number)?.unsqueeze(1)?;
            let products = context.middle[number].broadcast_mul(&query)?.sum(2)?;
            frame_contrast(&products, inside, &context.mask)
        };
        Ok(PerQuery {
            start: index_entropy(&logits.0, &starts)?,
            end: index_entropy(&logits.1, &ends)?,
            frame: ((frame(0)? + frame(1)?)? * 0.5)?,
            video: video_contrast(&Self::middle_scores(queries, context)?, positives)?,
        })
    }

    pub(super) fn weigh(&self, losses: &PerQuery) -> Result<Tensor> {
        let contrast = ((&losses.frame * self.config.frame_weight)? + (&losses.video * self.config.video_weight)?)?;
        Ok((contrast + ((&losses.start + &losses.end)? * self.config.span_weight)?)?)
    }
}

/// The largest value over a video's clips of `compare(query, clips)`, mean of the streams, `[queries, videos]`.
pub(super) fn best_clips(
    queries: &Tensor,
    streams: &[Tensor],
    mask: &Tensor,
    compare: impl Fn(&Tensor, &Tensor) -> Result<Tensor>,
) -> Result<Tensor> {
    let (videos, clips) = mask.dims2()?;
    let of = |(number, rows): (usize, &Tensor)| -> Result<Tensor> {
        let all = compare(&of_stream(queries, number)?, &rows.flatten_to(1)?)?.reshape(((), videos, clips))?;
        Ok(mask_out(&all, &mask.unsqueeze(0)?, NOT_THERE)?.max(D::Minus1)?)
    };
    let scores = streams.iter().enumerate().map(of).collect::<Result<Vec<_>>>()?;
    Ok(Tensor::stack(&scores, 0)?.mean(0)?)
}

/// Jensen-Shannon estimate between clips inside and outside the moment, products `[queries, clips]` to `[queries]`.
fn frame_contrast(products: &Tensor, inside: &Tensor, mask: &Tensor) -> Result<Tensor> {
    let outside = (mask - (mask * inside)?)?;
    let surprise = softplus(&products.neg()?)?;
    let mean =
        |values: &Tensor, of: &Tensor| -> Result<Tensor> { Ok(((values * of)?.sum(1)? / (of.sum(1)? + 1e-12)?)?) };
    let ln2 = std::f64::consts::LN_2;
    let (inner, outer) = (surprise.affine(-1.0, ln2)?, ((&surprise + products)? - ln2)?);
    Ok((mean(&outer, &outside)? - mean(&inner, inside)?)?)
}

/// Noise-contrastive loss of each row of a square of scores against its row and column together; the true entry stands
/// twice in the denominator, as published. With several true entries their exponentials are summed.
pub(super) fn video_contrast(scores: &Tensor, positives: &[Vec<usize>]) -> Result<Tensor> {
    let (rows, columns) = scores.dims2()?;
    let mut keep = vec![0f32; rows * columns];
    for (row, positives) in positives.iter().enumerate() {
        positives.iter().filter(|column| **column < columns).for_each(|column| keep[row * columns + column] = 1.0);
    }
    let keep = Tensor::from_vec(keep, (rows, columns), scores.device())?;
    let all = Tensor::cat(&[scores, &scores.t()?.contiguous()?], 1)?.log_sum_exp(1)?;
    Ok((all - mask_out(scores, &keep, NOT_THERE)?.log_sum_exp(1)?)?)
}

/// 1 from each start to each end clip, both included, `[queries, clips]`.
pub(super) fn clips_inside(labels: &[(usize, usize)], clips: usize, like: &Tensor) -> Result<Tensor> {
    let of = |(start, end): &(usize, usize)| {
        let range = *start..=*end;
        (0..clips).map(move |clip| f32::from(u8::from(range.contains(&clip))))
    };
    let values: Vec<f32> = labels.iter().flat_map(of).collect();
    Ok(Tensor::from_vec(values, (labels.len(), clips), like.device())?)
}

#[cfg(test)]
mod tests {
    use cuemark_tensor::Device;

    use super::*;

    #[test]
    fn videos_that_answer_too_make_the_video_loss_smaller() {
        let scores = Tensor::new(&[[1f32, 2.0], [0.0, 1.0]], &Device::Cpu).unwrap();
        let one = video_contrast(&scores, &[vec![0], vec![1]]).unwrap().to_vec1::<f32>().unwrap();
        let two = video_contrast(&scores, &[vec![0, 1], vec![1]]).unwrap().to_vec1::<f32>().unwrap();
        let all = (1f32.exp() + 2f32.exp() + 1f32.exp() + 1.0).ln();
        assert!((one[0] - (all - 1.0)).abs() < 1e-5 && (two[0] - (all - (1f32.exp() + 2f32.exp()).ln())).abs() < 1e-5);
        assert_eq!(one[1], two[1]);
    }
}
