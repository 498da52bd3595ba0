//! How each hue moves, grows and turns from one frame of a clip to the next.

use super::blobs::{Blob, Blobs, HUES};
use super::mean;

const PER_HUE: usize = 8;
/// Signed and unsigned motion across and down, signed and unsigned growth, turning, and the highest rise, per hue.
pub(super) const WIDTH: usize = PER_HUE * HUES;

pub(super) fn describe(blobs: &[Blobs], row: &mut Vec<f32>) {
    for hue in 0..HUES {
        let steps: Vec<(Blob, Blob)> = blobs
            .windows(2)
            .filter_map(|pair| match pair {
                [before, after] => Some((before.get(hue)?, after.get(hue)?)),
                _ => None,
            })
            .collect();
        let over = |measure: fn(&Blob, &Blob) -> f32| mean(steps.iter().map(|(before, after)| measure(before, after)));
        let heights: Vec<f32> = blobs.iter().filter_map(|all| Some(all.get(hue)?.y)).collect();
        let lowest = heights.iter().copied().max_by(f32::total_cmp).unwrap_or(0.0);
        let highest = heights.iter().copied().min_by(f32::total_cmp).unwrap_or(0.0);
        let per_hue: [f32; PER_HUE] = [
            over(|before, after| 20.0 * (after.x - before.x)),
            over(|before, after| 20.0 * (after.x - before.x).abs()),
            over(|before, after| 20.0 * (after.y - before.y)),
            over(|before, after| 20.0 * (after.y - before.y).abs()),
            over(|before, after| 10.0 * growth(before, after)),
            over(|before, after| 10.0 * growth(before, after).abs()),
            over(turning),
            4.0 * (lowest - highest),
        ];
        row.extend(per_hue);
    }
}

/// Change of the logarithm of the spread.
fn growth(before: &Blob, after: &Blob) -> f32 {
    if before.spread > 0.0 && after.spread > 0.0 { (after.spread / before.spread).ln().clamp(-1.0, 1.0) } else { 0.0 }
}

/// How far the dark mark has moved around the centre.
fn turning(before: &Blob, after: &Blob) -> f32 {
    (after.mark_x - before.mark_x).hypot(after.mark_y - before.mark_y)
}
