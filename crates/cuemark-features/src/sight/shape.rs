//! Where each hue is, how large, and of what shape: the mean over a clip's frames.

use super::blobs::{Blob, Blobs, HUES};
use super::mean;

const PER_HUE: usize = 7;
/// Presence, place, size, two measures of shape and how close the nearest other hue is, for each hue.
pub(super) const WIDTH: usize = PER_HUE * HUES;

pub(super) fn describe(blobs: &[Blobs], row: &mut Vec<f32>) {
    for hue in 0..HUES {
        let seen: Vec<(Blob, &Blobs)> = blobs.iter().filter_map(|all| Some((all.get(hue)?, all))).collect();
        let over = |measure: fn(&Blob) -> f32| mean(seen.iter().map(|(blob, _)| measure(blob)));
        let presence = if blobs.is_empty() { 0.0 } else { seen.len() as f32 / blobs.len() as f32 };
        let per_hue: [f32; PER_HUE] = [
            presence,
            over(|blob| blob.x - 2.0 / 3.0),
            over(|blob| blob.y - 0.5),
            over(|blob| 5.0 * blob.spread),
            over(|blob| 2.0 * (blob.arms - 4.0 / 3.0)),
            over(|blob| blob.outline - 0.8),
            mean(seen.iter().map(|(blob, all)| closeness(hue, blob, all))),
        ];
        row.extend(per_hue);
    }
}

/// 1 when another hue's blob touches this one, falling to 0 as the nearest is farther away; 0 when there is none.
fn closeness(hue: usize, blob: &Blob, all: &Blobs) -> f32 {
    let others = all.by_hue().iter().enumerate().filter(|(other, _)| *other != hue).filter_map(|(_, other)| *other);
    let gaps = others.map(|other| {
        let apart = (blob.x - other.x).hypot(blob.y - other.y);
        // A disc reaches 1.41 spreads from its centre.
        (apart - std::f32::consts::SQRT_2 * (blob.spread + other.spread)).max(0.0)
    });
    gaps.min_by(f32::total_cmp).map_or(0.0, |gap| (-12.0 * gap).exp())
}
