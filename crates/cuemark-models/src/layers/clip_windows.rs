//! Windows of clips and their mean features: candidates of the two-stage methods, moments of the dual encoders.

use candle_core::{Device, Result, Tensor};
use cuemark_core::{ClipRange, NormSpan};
use cuemark_tensor::MatrixProduct as _;
use cuemark_tensor::functional::l2_normalise;

use crate::Moments;

/// Every window of each of `lengths` clips that fits into `clips`, moving on by a `steps`-th of its length (at least one
/// clip), by length, then by start. The whole video when none fits.
pub fn sliding_windows(clips: usize, lengths: &[usize], steps: usize) -> Vec<ClipRange> {
    let of = |length: usize| {
        let stride = (length / steps.max(1)).max(1);
        let starts = (0..(clips + 1).saturating_sub(length)).step_by(stride);
        starts.filter_map(move |start| ClipRange::new(start, start + length))
    };
    let windows: Vec<ClipRange> = lengths.iter().copied().filter(|length| *length > 0).flat_map(of).collect();
    if windows.is_empty() { ClipRange::new(0, clips).into_iter().collect() } else { windows }
}

/// Windows of 1, 2, 4, … clips up to the whole video, each half over the one before it.
pub fn doubling_windows(clips: usize) -> Vec<ClipRange> {
    let lengths: Vec<usize> =
        std::iter::successors(Some(1), |length| Some(length * 2)).take_while(|n| *n <= clips).collect();
    sliding_windows(clips, &lengths, 2)
}

/// The window as fractions of `clips` clips.
pub fn window_span(window: ClipRange, clips: usize) -> Option<NormSpan> {
    NormSpan::new(window.first() as f64 / clips as f64, window.end() as f64 / clips as f64)
}

/// What clips must be multiplied with to give the mean of each window, `[windows, clips]`; rows of empty windows are zero.
///
/// # Errors
/// Those of the tensor operations.
pub fn window_means(windows: &[ClipRange], clips: usize, device: &Device) -> Result<Tensor> {
    let mut weights = vec![0f32; windows.len() * clips];
    for (row, window) in weights.chunks_exact_mut(clips.max(1)).zip(windows) {
        let share = 1.0 / window.len().max(1) as f32;
        row.iter_mut().take(window.end()).skip(window.first()).for_each(|weight| *weight = share);
    }
    Tensor::from_vec(weights, (windows.len(), clips), device)
}

/// Moments of a dual encoder: windows of 1, 2, 4, … clips of every video. The rows of all streams stand side by side, so
/// that products of unit vectors are the mean of the streams' cosines.
///
/// # Shapes
/// - streams `[videos, clips, width]` each; lengths the real clips of every video
///
/// # Errors
/// Those of the tensor operations.
pub fn stream_moments(streams: &[Tensor], lengths: &[usize]) -> Result<Vec<Moments>> {
    let of = |(video, clips): (usize, &usize)| {
        let rows = streams.iter().map(|rows| l2_normalise(&rows.get(video)?.narrow(0, 0, *clips)?));
        let rows = Tensor::cat(&rows.collect::<Result<Vec<_>>>()?, 1)?;
        let windows = doubling_windows(*clips);
        let embeddings = l2_normalise(&window_means(&windows, *clips, rows.device())?.times(&rows)?)?.detach();
        let spans = windows.iter().filter_map(|window| window_span(*window, *clips)).collect();
        Ok(Moments { spans, embeddings })
    };
    lengths.iter().enumerate().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(windows: &[ClipRange]) -> Vec<(usize, usize)> {
        windows.iter().map(|window| (window.first(), window.end())).collect()
    }

    #[test]
    fn windows_slide_by_a_part_of_their_length() {
        assert_eq!(bounds(&sliding_windows(20, &[10], 5)), [(0, 10), (2, 12), (4, 14), (6, 16), (8, 18), (10, 20)]);
        assert_eq!(bounds(&sliding_windows(4, &[3, 9], 5)), [(0, 3), (1, 4)]);
        assert_eq!(bounds(&sliding_windows(4, &[9], 5)), [(0, 4)]);
        assert_eq!(bounds(&doubling_windows(4)), [(0, 1), (1, 2), (2, 3), (3, 4), (0, 2), (1, 3), (2, 4), (0, 4)]);
    }

    #[test]
    fn means_are_right_by_hand() {
        let clips = Tensor::new(&[[1f32], [3.0], [8.0]], &Device::Cpu).unwrap();
        let windows = [ClipRange::new(0, 2).unwrap(), ClipRange::new(1, 3).unwrap(), ClipRange::new(2, 2).unwrap()];
        let means = window_means(&windows, 3, &Device::Cpu).unwrap().times(&clips).unwrap();
        assert_eq!(means.flatten_all().unwrap().to_vec1::<f32>().unwrap(), [2.0, 5.5, 0.0]);
    }
}
