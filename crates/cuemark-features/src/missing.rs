//! What a person may have meant by a video that is not there.

use cuemark_core::VideoId;
use cuemark_core::nearest::likeness;

/// At most this many are named.
const NAMED: usize = 3;

/// Names that are like `video`, likest first; none when nothing comes close.
pub(crate) fn near(video: &VideoId, present: &[&VideoId]) -> Vec<VideoId> {
    let wanted = video.as_str();
    let mut likeness: Vec<(f64, &VideoId)> = present
        .iter()
        .map(|other| {
            let name = other.as_str();
            // Prefixes and file endings are what people leave out most.
            let contained = !wanted.is_empty() && !name.is_empty() && (name.contains(wanted) || wanted.contains(name));
            (if contained { 1.0 } else { likeness(wanted, name) }, *other)
        })
        .filter(|(like, _)| *like > 0.85)
        .collect();
    likeness.sort_by(|(a, left), (b, right)| b.total_cmp(a).then_with(|| left.cmp(right)));
    likeness.into_iter().take(NAMED).map(|(_, name)| name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_endings_and_slips_are_found_and_strangers_are_not() {
        let present = ["v_abcdefgh", "clip.mp4", "3MSZA", "other"].map(VideoId::from);
        let present: Vec<&VideoId> = present.iter().collect();
        let found = |video: &str| near(&video.into(), &present).iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(found("abcdefgh"), ["v_abcdefgh"]);
        assert_eq!(found("clip"), ["clip.mp4"]);
        assert_eq!(found("3MSZB"), ["3MSZA"]);
        assert!(found("zzzz").is_empty() && found("").is_empty());
    }
}
