//! Pseudo events: where a video changes, seen from its features alone.

use cuemark_tensor::MatrixProduct as _;

use crate::Result;
use crate::layers::detr::{JointInputs, Padding};

/// The pseudo events of a batch.
pub(super) struct Events {
    /// How much the video changes at every clip, by sample, padding included.
    pub(super) scores: Vec<Vec<f32>>,
    /// Centre and width of every event in the order of time, by sample.
    pub(super) spans: Vec<Vec<[f32; 2]>>,
}

/// Weight of the clips around one: likeness before and after it counts, likeness across it counts against.
const KERNEL: [f32; 5] = [1.0, 1.0, 0.0, -1.0, -1.0];
/// The ends of a video are always borders.
const END: f32 = 100.0;

/// The events of every video. With padding let through, as published, padded clips lower the mean that a border must reach.
pub(super) fn events(inputs: &JointInputs, padding: Padding) -> Result<Events> {
    let video = inputs.video.detach();
    let norm = (video.sqr()?.sum_keepdim(2)?.sqrt()? + 1e-8)?;
    let rows = video.broadcast_div(&norm)?;
    let alike = rows.times(&rows.t()?.contiguous()?)?.to_vec3::<f32>()?;
    let mut events = Events { scores: Vec::new(), spans: Vec::new() };
    for (alike, clips) in alike.iter().zip(&inputs.clips) {
        let scores = changes(alike);
        events.spans.push(spans(&scores, *clips, padding));
        events.scores.push(scores);
    }
    Ok(events)
}

fn changes(alike: &[Vec<f32>]) -> Vec<f32> {
    let at = |row: usize, column: usize| {
        let inside = |place: usize| place.checked_sub(2);
        let row = inside(row).and_then(|row| alike.get(row));
        row.zip(inside(column)).and_then(|(row, column)| row.get(column)).copied().unwrap_or(0.0)
    };
    let change = |clip: usize| {
        let pairs = (0..5).flat_map(|a| (0..5).map(move |b| (a, b)));
        pairs.map(|(a, b)| KERNEL[a] * KERNEL[b] * at(clip + a, clip + b)).sum()
    };
    (0..alike.len()).map(change).collect()
}

fn spans(scores: &[f32], clips: usize, padding: Padding) -> Vec<[f32; 2]> {
    let counted = if padding == Padding::Leaks { scores.len() } else { clips.min(scores.len()) };
    if counted == 0 || clips == 0 {
        return Vec::new();
    }
    let least = scores[..counted].iter().sum::<f32>() / counted as f32;
    let mut scores = scores[..counted].to_vec();
    (scores[0], scores[clips - 1]) = (END, END);
    let is_border = |clip: &usize| {
        let [before, after] = [(clip + counted - 1) % counted, (clip + 1) % counted];
        scores[*clip] >= scores[before] && scores[*clip] >= scores[after] && scores[*clip] >= least
    };
    let borders: Vec<usize> = (0..clips).filter(is_border).collect();
    let event = |pair: &[usize]| {
        let [first, last] = [pair[0] as f32, pair[1] as f32];
        [(first + last) / 2.0 / clips as f32, (last - first) / clips as f32]
    };
    borders.windows(2).map(event).collect()
}

#[cfg(test)]
mod tests {
    use cuemark_tensor::{Device, Tensor};

    use super::*;

    fn of(rows: &[[f32; 2]]) -> Events {
        let flat: Vec<f32> = rows.iter().flatten().copied().collect();
        let video = Tensor::from_vec(flat, (1, rows.len(), 2), &Device::Cpu).unwrap();
        let inputs = JointInputs {
            video_mask: Tensor::ones((1, rows.len()), video.dtype(), &Device::Cpu).unwrap(),
            video,
            clips: vec![rows.len()],
            text: Tensor::zeros((1, 1, 1), cuemark_tensor::DType::F32, &Device::Cpu).unwrap(),
            text_mask: Tensor::ones((1, 1), cuemark_tensor::DType::F32, &Device::Cpu).unwrap(),
            words: vec![1],
        };
        events(&inputs, Padding::Masked).unwrap()
    }

    #[test]
    fn two_constant_halves_are_two_events() {
        let mut rows = vec![[1f32, 0.0]; 5];
        rows.extend([[0f32, 1.0]; 5]);
        let spans = &of(&rows).spans[0];
        // A clip is weighed with the two on either side of it, so both clips beside the change stand out alike.
        let ends: Vec<f32> = spans.iter().map(|[centre, width]| 10.0 * (centre + width / 2.0)).collect();
        assert!(ends.iter().any(|end| (end - 5.0).abs() < 1e-4), "{spans:?}");
        assert!((ends[ends.len() - 1] - 9.0).abs() < 1e-4, "the last border is the last clip: {spans:?}");
    }

    #[test]
    fn a_video_of_one_clip_has_no_event() {
        assert!(of(&[[1.0, 0.5]]).spans[0].is_empty());
    }
}
