//! From frames that may be speech to stretches of it.

use super::FRAME;

/// A frame this likely begins a stretch.
const BEGIN: f32 = 0.5;
/// One below this may end it.
const END: f32 = 0.35;
/// Frames without voice that end it: 0.6 s.
const SILENCE: usize = 19;
/// Frames with voice that it has at the least: 0.13 s.
const LEAST: usize = 4;
/// Frames after which it is cut where it is most silent: 26 s, so that one window holds it.
const MOST: usize = 812;
/// Frames at its end among which that place is looked for: 8 s.
const LATE: usize = 250;
/// Samples that are heard before and after it: 0.3 s. Consonants are quiet.
pub(crate) const AROUND: u64 = 4_800;

/// A stretch in which somebody speaks, in samples from the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Region {
    pub(crate) start: u64,
    pub(crate) end: u64,
}

/// Takes judgements frame by frame and gives stretches as they end.
#[derive(Debug, Default)]
pub(crate) struct Regions {
    /// Frames so far.
    frames: u64,
    open: Option<Open>,
    /// Where the last stretch ended, margin included.
    last_end: u64,
}

#[derive(Debug)]
struct Open {
    start: u64,
    judged: Vec<f32>,
    /// Frames since the last voiced one.
    silent: usize,
    voiced: usize,
}

impl Regions {
    /// The next judgement; a stretch that ended by it.
    pub(crate) fn push(&mut self, judged: f32) -> Option<Region> {
        let frame = self.frames;
        self.frames += 1;
        let Some(open) = &mut self.open else {
            if judged >= BEGIN {
                self.open = Some(Open { start: frame, judged: vec![judged], silent: 0, voiced: 1 });
            }
            return None;
        };
        open.judged.push(judged);
        if judged >= END {
            open.silent = 0;
            open.voiced += usize::from(judged >= BEGIN);
        } else {
            open.silent += 1;
        }
        if open.silent >= SILENCE {
            return self.close();
        }
        if open.judged.len() < MOST {
            return None;
        }
        let from = open.judged.len() - LATE;
        let least = |best: usize, at: usize| if open.judged[at] < open.judged[best] { at } else { best };
        let cut = (from..open.judged.len() - 1).fold(from, least) + 1;
        let rest = open.judged.split_off(cut);
        let rest = Open {
            start: open.start + cut as u64,
            silent: rest.iter().rev().take_while(|judged| **judged < END).count(),
            voiced: rest.iter().filter(|judged| **judged >= BEGIN).count(),
            judged: rest,
        };
        let began = open.start;
        let (start, end) = (self.reach_back(began), rest.start * FRAME as u64);
        self.open = Some(rest);
        self.last_end = end;
        Some(Region { start, end })
    }

    /// The stretch that the end of the sound ended.
    pub(crate) fn finish(&mut self) -> Option<Region> {
        self.close()
    }

    fn close(&mut self) -> Option<Region> {
        let open = self.open.take()?;
        if open.voiced < LEAST {
            return None;
        }
        let start = self.reach_back(open.start);
        let end = (open.start + (open.judged.len() - open.silent) as u64) * FRAME as u64 + AROUND;
        self.last_end = end;
        Some(Region { start, end })
    }

    fn reach_back(&self, frame: u64) -> u64 {
        (frame * FRAME as u64).saturating_sub(AROUND).max(self.last_end)
    }

    /// The first sample that may be part of a stretch that has not ended.
    pub(crate) fn wanted_from(&self) -> u64 {
        self.reach_back(self.open.as_ref().map_or(self.frames, |open| open.start))
    }

    /// Whether a stretch has begun and not ended.
    pub(crate) fn is_open(&self) -> bool {
        self.open.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(judged: impl IntoIterator<Item = f32>) -> Vec<Region> {
        let mut regions = Regions::default();
        let mut found: Vec<Region> = judged.into_iter().filter_map(|judged| regions.push(judged)).collect();
        found.extend(regions.finish());
        found
    }

    fn run(value: f32, frames: usize) -> impl Iterator<Item = f32> {
        std::iter::repeat_n(value, frames)
    }

    #[test]
    fn a_stretch_has_a_margin_on_both_sides() {
        let found = all(run(0.0, 50).chain(run(0.9, 20)).chain(run(0.0, 50)));
        assert_eq!(found, [Region { start: 50 * 512 - 4_800, end: 70 * 512 + 4_800 }]);
    }

    #[test]
    fn a_pause_for_breath_does_not_end_it_and_a_click_does_not_begin_it() {
        assert_eq!(all(run(0.9, 20).chain(run(0.0, 10)).chain(run(0.9, 20)).chain(run(0.0, 40))).len(), 1);
        assert_eq!(all(run(0.9, 20).chain(run(0.0, 30)).chain(run(0.9, 20))).len(), 2);
        assert_eq!(all(run(0.0, 20).chain(run(0.9, 2)).chain(run(0.0, 40))).len(), 0);
    }

    #[test]
    fn a_long_speech_is_cut_where_it_is_most_silent_and_nothing_is_lost() {
        let found = all(run(0.9, 700).chain([0.4]).chain(run(0.9, 2_000)).chain(run(0.0, 40)));
        assert_eq!(found[0].end, 701 * 512);
        assert!(found.windows(2).all(|pair| pair[0].end == pair[1].start));
        assert!(found.iter().all(|region| region.end - region.start <= 28 * 16_000));
        assert_eq!(found.last().unwrap().end, 2_701 * 512 + 4_800);
    }
}
