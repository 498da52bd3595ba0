//! Clip features from spoken lines, as a viewer with subtitles has them.

use cuemark_core::digest::fnv1a;
use cuemark_core::{ClipLen, ClipRange};
use cuemark_features::Features;

use crate::Line;

/// Numbers per clip: words are hashed into so many places.
pub(crate) const WIDTH: usize = 64;

/// For each clip, which words are spoken in it, as a row of length 1; clips without speech are zero rows.
pub(crate) fn features(lines: &[Line], clip_len: ClipLen, clips: usize) -> Features {
    let mut data = vec![0.0f32; clips * WIDTH];
    for line in lines {
        let touched = ClipRange::touching(line.span, clip_len, clips);
        for row in data.chunks_exact_mut(WIDTH).take(touched.end()).skip(touched.first()) {
            for word in line.text.split_whitespace() {
                let (place, sign) = place_of(&word.to_lowercase());
                if let Some(number) = row.get_mut(place) {
                    *number += sign;
                }
            }
        }
    }
    for row in data.chunks_exact_mut(WIDTH) {
        let norm = row.iter().map(|number| number * number).sum::<f32>().sqrt();
        if norm > 0.0 {
            row.iter_mut().for_each(|number| *number /= norm);
        }
    }
    Features::new(clips, WIDTH, data).unwrap_or_else(|| unreachable!("made to measure"))
}

/// The word's place and sign (FNV-1a).
fn place_of(word: &str) -> (usize, f32) {
    let hash = fnv1a(word.as_bytes());
    ((hash % WIDTH as u64) as usize, if hash >> 63 == 0 { 1.0 } else { -1.0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use cuemark_core::Span;

    #[test]
    fn only_clips_that_a_line_touches_have_words() {
        let line = Line { actor: 0, span: Span::new(1.5, 2.5).unwrap(), text: "look at the moon".to_owned() };
        let features = features(&[line], ClipLen::new(1.0).unwrap(), 5);
        let spoken: Vec<bool> = (0..5).map(|clip| features.row(clip).unwrap().iter().any(|n| *n != 0.0)).collect();
        assert_eq!(spoken, [false, true, true, false, false]);
        let norm: f32 = features.row(1).unwrap().iter().map(|number| number * number).sum();
        assert!((norm - 1.0).abs() < 1e-6);
    }
}
