//! Moments that lie as a trained model's of the world do, made in no time.
//!
//! A video has sixteen clips and tells a few events one after the other. An event is somebody, doing something, somewhere: three
//! directions, each out of a list, so that events share parts and lie in clusters of clusters. A clip is its event, what its video
//! looks like, and what is its own; a moment is the mean of the clips from one to another, for all 136 pairs: neighbours in time
//! and of other lengths lie close, as they do for a model that looks at every scale. A question is an event and something of its
//! own. What is a video's, a clip's or a question's own lies in few dimensions, as it does in trained spaces: in all 256 of them
//! every moment would be as far from a question as any other, and no search could find what hardly differs.

use cuemark_core::{Rng, Span, VideoId};
use cuemark_search::{Embedding, IndexedMoment, VideoEntry};

/// Numbers per embedding.
pub(crate) const WIDTH: usize = 256;
/// Clips of a video.
const CLIPS: usize = 16;
/// Moments of a video.
pub(crate) const PER_VIDEO: usize = CLIPS * (CLIPS + 1) / 2;
/// **Seconds** of a clip, as in the built-in world.
const CLIP_SECONDS: f64 = 32.5 / 16.0;
/// Directions that each of the three parts of an event is drawn from.
const PARTS: [usize; 3] = [12, 8, 6];
/// Dimensions of what is a video's, a clip's or a question's own.
const OWN: usize = 8;
/// Its length, beside an event of about 1.
const LOOKS: f64 = 0.5;
const CLIP: f64 = 0.25;
const ASKED: f64 = 0.2;
const SEED: u64 = 23;

/// What everything is made of.
pub(crate) struct World {
    parts: [Vec<Vec<f32>>; 3],
    own: Vec<Vec<f32>>,
}

impl World {
    pub(crate) fn new() -> Self {
        let mut rng = Rng::stream(SEED, "parts");
        let mut each = 0;
        let parts = PARTS.map(|count| {
            each += 1;
            // The first part counts most: who it is tells moments apart better than where.
            (0..count).map(|_| direction(&mut rng, 1.0 / f64::from(each).sqrt() / 1.35)).collect()
        });
        let own = (0..OWN).map(|_| direction(&mut rng, 1.0)).collect();
        Self { parts, own }
    }

    /// Adds something of about `length` that is nobody else's.
    fn add_own(&self, numbers: &mut [f32], length: f64, rng: &mut Rng) {
        for own in &self.own {
            let share = (length * rng.normal() / (OWN as f64).sqrt()) as f32;
            numbers.iter_mut().zip(own).for_each(|(sum, x)| *sum += share * x);
        }
    }

    fn event(&self, rng: &mut Rng) -> Vec<f32> {
        let mut event = vec![0f32; WIDTH];
        for part in &self.parts {
            if let Some(part) = part.get(rng.below(part.len())) {
                add(&mut event, part);
            }
        }
        event
    }

    /// Video `number` and all its moments.
    pub(crate) fn video(&self, number: usize) -> (VideoEntry, Vec<IndexedMoment>) {
        let mut rng = Rng::stream(SEED ^ (number as u64) << 8, "video");
        let mut looks = vec![0f32; WIDTH];
        self.add_own(&mut looks, LOOKS, &mut rng);
        let mut event = self.event(&mut rng);
        let mut clips: Vec<Vec<f32>> = Vec::with_capacity(CLIPS);
        for clip in 0..CLIPS {
            // Four events a video on the average.
            if clip > 0 && rng.below(5) == 0 {
                event = self.event(&mut rng);
            }
            let mut numbers = event.clone();
            add(&mut numbers, &looks);
            self.add_own(&mut numbers, CLIP, &mut rng);
            clips.push(numbers);
        }
        let mut moments = Vec::with_capacity(PER_VIDEO);
        for start in 0..CLIPS {
            let mut sum = vec![0f32; WIDTH];
            for (end, clip) in clips.iter().enumerate().skip(start) {
                add(&mut sum, clip);
                let span = Span::new(start as f64 * CLIP_SECONDS, (end + 1) as f64 * CLIP_SECONDS);
                let moment = span.ok().zip(Embedding::unit(sum.clone()));
                moments.extend(moment.map(|(span, embedding)| IndexedMoment { span, embedding }));
            }
        }
        (entry(number), moments)
    }

    /// Question `number`.
    pub(crate) fn question(&self, number: usize) -> Option<Embedding> {
        let mut rng = Rng::stream(SEED ^ (number as u64) << 8, "question");
        let mut numbers = self.event(&mut rng);
        self.add_own(&mut numbers, ASKED, &mut rng);
        Embedding::unit(numbers)
    }
}

fn entry(number: usize) -> VideoEntry {
    VideoEntry::without_file(VideoId::new(format!("v{number:07}")), CLIPS as f64 * CLIP_SECONDS)
}

fn add(sum: &mut [f32], numbers: &[f32]) {
    sum.iter_mut().zip(numbers).for_each(|(sum, x)| *sum += x);
}

/// A vector of about `length` whose direction is like any other.
fn direction(rng: &mut Rng, length: f64) -> Vec<f32> {
    // Sums of uniform numbers are near enough to normal ones, and cost a tenth.
    let scale = length / (WIDTH as f64 / 3.0).sqrt();
    (0..WIDTH).map(|_| (scale * (2.0 * (rng.uniform() + rng.uniform()) - 2.0)) as f32).collect()
}
