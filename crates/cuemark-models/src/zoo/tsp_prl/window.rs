//! The window that the policies move, and what a move is worth.

/// Units that stand for a window of fewer than ten, by its length.
const SHORT_WINDOWS: [[usize; 10]; 9] = [
    [0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    [0, 0, 0, 0, 0, 1, 1, 1, 1, 1],
    [0, 0, 0, 1, 1, 1, 1, 2, 2, 2],
    [0, 0, 1, 1, 1, 2, 2, 2, 3, 3],
    [0, 0, 1, 1, 2, 2, 3, 3, 4, 4],
    [0, 1, 1, 2, 2, 3, 3, 4, 4, 5],
    [0, 1, 2, 2, 3, 3, 4, 4, 5, 6],
    [0, 1, 2, 3, 4, 4, 5, 5, 6, 7],
    [0, 1, 2, 3, 4, 4, 5, 6, 7, 8],
];

/// A window in units, `start..=end`, inside a video of `units`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) start: i64,
    pub(super) end: i64,
    pub(super) units: i64,
}

impl Window {
    /// The middle half of a video.
    pub(super) fn initial(units: usize) -> Self {
        let units = units as i64;
        let quarter = units / 4;
        let start = (quarter - 1).max(0);
        Self { start, end: (units - quarter - 1).clamp((start + 1).min(units - 1), (units - 1).max(0)), units }
    }

    /// The window after an action, and whether the episode goes on: it ends where a window is or becomes empty.
    pub(super) fn moved(self, branch: usize, action: usize, tenth: i64) -> (Self, bool) {
        let Self { start, end, units } = self;
        let (centre, width) = ((start + end).div_euclid(2), (end - start) as f64);
        let step = if branch < 3 { tenth } else { 1 };
        let step = if branch % 2 == 1 { -step } else { step };
        let (mut next, mut last) = match (branch, action) {
            (0, _) => {
                let half = (width * [0.6, 0.75, 0.417, 0.333][action.min(3)]) as i64;
                (centre - half, centre + half)
            }
            (_, 0) => (start + step, end + step),
            (_, 1) => (start + step, end),
            _ => (start, end + step),
        };
        if next < 0 {
            next = 0;
        }
        if last >= units {
            last = units - 1;
        }
        (Self { start: next, end: last, units }, end > start && last > next)
    }

    /// Intersection over hull with a moment in units; negative when they are apart.
    pub(super) fn overlap(self, moment: (f64, f64)) -> f64 {
        let (start, end) = (self.start as f64, self.end as f64);
        (end.min(moment.1) - start.max(moment.0)) / (end.max(moment.1) - start.min(moment.0)).max(1e-9)
    }

    /// Start and end as parts of the video.
    pub(super) fn location(self) -> [f32; 2] {
        let last = (self.units - 1).max(1) as f32;
        [self.start as f32 / last, self.end as f32 / last]
    }

    /// The units that stand for it.
    pub(super) fn picked(self, count: usize) -> Vec<usize> {
        let length = usize::try_from(self.end - self.start + 1).unwrap_or(1).max(1);
        let first = usize::try_from(self.start).unwrap_or(0);
        pick_units(length, count).into_iter().map(|unit| first + unit).collect()
    }
}

/// `count` of `length` units, evenly spread; short windows repeat some.
pub(super) fn pick_units(length: usize, count: usize) -> Vec<usize> {
    if length < count {
        return match SHORT_WINDOWS.get(length.saturating_sub(1)).filter(|_| count == 10) {
            Some(table) => table.to_vec(),
            None => (0..count).map(|place| place * length / count).collect(),
        };
    }
    (1..=count).map(|place| place * length / (count + 1)).collect()
}

/// What the leaf policy earns when the overlap goes from `before` to `now`.
pub(super) fn leaf_reward(before: f64, now: f64) -> f64 {
    match (now > before && before >= 0.0, now) {
        (true, now) if now > 0.5 => 1.0 + now,
        (true, _) => 1.0,
        (false, now) if now >= 0.0 && now <= before => -0.1,
        _ => -1.0,
    }
}

/// What the root policy earns; `best` is the largest overlap that the greedy leaf of any branch would reach.
pub(super) fn root_reward(before: f64, now: f64, best: f64) -> f64 {
    let first = if (now - best).abs() < 1e-6 { 1.0 } else { now - best };
    first + (now - before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_windows_are_the_middle_half_and_never_empty() {
        let bounds = |units| (Window::initial(units).start, Window::initial(units).end);
        assert_eq!((bounds(40), bounds(8), bounds(3), bounds(2)), ((9, 29), (1, 5), (0, 2), (0, 1)));
        assert_eq!(bounds(1), (0, 0));
    }

    #[test]
    fn an_improvement_from_apart_still_costs() {
        assert_eq!(leaf_reward(-0.2, 0.4), -1.0);
        assert_eq!(leaf_reward(0.2, 0.6), 1.6);
        assert_eq!(leaf_reward(0.4, 0.4), -0.1);
    }
}
