//! Clips on their way to an encoder.

use cuemark_media::Framing;

/// Clips of equally many pictures of one size, as bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clips {
    frames: usize,
    size: [usize; 2],
    rgb: Vec<u8>,
}

impl Clips {
    /// None yet; each will have `frames` pictures as `framing` makes them.
    pub fn new(frames: usize, framing: &Framing) -> Self {
        Self { frames: frames.max(1), size: framing.size(), rgb: Vec::new() }
    }

    /// From red, green and blue of each pixel, picture after picture; `None` unless they fill whole clips.
    pub fn from_rgb(frames: usize, size: [usize; 2], rgb: Vec<u8>) -> Option<Self> {
        let bytes = frames.checked_mul(3)?.checked_mul(size[0])?.checked_mul(size[1])?;
        (bytes > 0 && rgb.len().is_multiple_of(bytes)).then_some(Self { frames, size, rgb })
    }

    /// Appends the pictures of one more clip, which must be [`Clips::frames`] of [`Clips::picture_bytes`] each; what is
    /// too much is cut, what is missing stays black.
    pub fn push<'a>(&mut self, pictures: impl IntoIterator<Item = &'a [u8]>) {
        let (picture, end) = (self.picture_bytes(), self.rgb.len() + self.frames * self.picture_bytes());
        self.rgb.reserve(end - self.rgb.len());
        for rgb in pictures.into_iter().take(self.frames) {
            self.rgb.extend_from_slice(rgb.get(..picture).unwrap_or(rgb));
        }
        self.rgb.resize(end, 0);
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.rgb.len() / (self.frames * self.picture_bytes()).max(1)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.rgb.is_empty()
    }

    /// Pictures of each.
    pub fn frames(&self) -> usize {
        self.frames
    }

    /// Width and height of each picture.
    pub fn size(&self) -> [usize; 2] {
        self.size
    }

    /// Bytes of one picture.
    pub fn picture_bytes(&self) -> usize {
        3 * self.size[0] * self.size[1]
    }

    /// Red, green and blue of every pixel, picture after picture, clip after clip.
    pub fn rgb(&self) -> &[u8] {
        &self.rgb
    }

    /// The same clips, at most `count` at a time.
    pub fn parts(&self, count: usize) -> impl Iterator<Item = Part<'_>> {
        let bytes = count.max(1) * self.frames * self.picture_bytes().max(1);
        self.rgb.chunks(bytes).map(|rgb| Part { frames: self.frames, size: self.size, rgb })
    }

    /// The same clips with `count` pictures each, but no more than there are: the middle one of every `count`-th part.
    #[must_use]
    pub fn spread(&self, count: usize) -> Self {
        let count = count.clamp(1, self.frames);
        let picture = self.picture_bytes();
        let mut rgb = Vec::with_capacity(self.len() * count * picture);
        for clip in self.rgb.chunks_exact(self.frames * picture) {
            for part in 0..count {
                let place = (2 * part + 1) * self.frames / (2 * count) * picture;
                rgb.extend_from_slice(clip.get(place..place + picture).unwrap_or_default());
            }
        }
        Self { frames: count, size: self.size, rgb }
    }
}

/// Some clips of [`Clips`], where they lie.
#[derive(Debug, Clone, Copy)]
pub struct Part<'a> {
    /// Pictures of each clip.
    pub frames: usize,
    /// Width and height of each picture.
    pub size: [usize; 2],
    /// Red, green and blue of every pixel, picture after picture, clip after clip.
    pub rgb: &'a [u8],
}

impl<'a> From<&'a Clips> for Part<'a> {
    fn from(clips: &'a Clips) -> Self {
        Self { frames: clips.frames, size: clips.size, rgb: &clips.rgb }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_are_taken_evenly_from_each_clip() {
        let rgb = (0..2 * 3 * 3).collect::<Vec<u8>>();
        let clips = Clips::from_rgb(3, [1, 1], rgb).unwrap();
        assert_eq!((clips.len(), clips.spread(1).len()), (2, 2));
        assert_eq!(clips.spread(1).rgb(), [3, 4, 5, 12, 13, 14], "one: the middle");
        assert_eq!(clips.spread(9), clips, "no more than there are");
        let of_eight = Clips::from_rgb(8, [1, 1], (0..24).map(|byte| byte / 3).collect()).unwrap();
        let taken: Vec<u8> = of_eight.spread(4).rgb().iter().step_by(3).copied().collect();
        assert_eq!((of_eight.spread(4).frames(), taken), (4, vec![1, 3, 5, 7]));
        assert!(Clips::from_rgb(3, [1, 1], vec![0; 10]).is_none());
    }
}
