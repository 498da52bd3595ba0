//! How the learning rate changes over a stage.

use serde::{Deserialize, Serialize};

/// How the learning rate changes over a stage.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Schedule {
    /// It does not. Default.
    #[default]
    Constant,
    /// Times `factor` after each of these epochs.
    Milestones {
        /// Epochs, from 1, after which the rate falls.
        epochs: Vec<usize>,
        /// What it is multiplied by. Default: 0.1
        #[serde(default = "tenth")]
        factor: f64,
        /// Epochs over which it rises to full, by the same part each; constant within an epoch. Default: 0
        #[serde(default, skip_serializing_if = "is_zero")]
        warm_up_epochs: usize,
    },
    /// Rises to full over the warm-up, then falls evenly to 0.
    Linear {
        /// Share of all steps that warms up. Default: 0
        #[serde(default)]
        warm_up: f64,
    },
    /// Rises to full over the warm-up, then falls along half a cosine to 0.
    Cosine {
        /// Share of all steps that warms up. Default: 0
        #[serde(default)]
        warm_up: f64,
    },
    /// Rises evenly to full over the first steps, then falls with the inverse root of the steps: `sqrt(warm_up_steps / step)`.
    InverseRoot {
        /// **Steps** of the warm-up.
        warm_up_steps: usize,
        /// Share of the full rate that the first step has. Default: 0
        #[serde(default)]
        from: f64,
    },
    /// Times `factor` after every epoch.
    Exponential {
        /// What it is multiplied by.
        factor: f64,
    },
    /// Times `factor` whenever `patience` evaluations in a row brought nothing better.
    Plateau {
        /// What it is multiplied by. Default: 0.5
        #[serde(default = "half")]
        factor: f64,
        /// Evaluations without anything better. Default: 3
        #[serde(default = "three")]
        patience: usize,
    },
}

fn tenth() -> f64 {
    0.1
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde hands out references
fn is_zero(count: &usize) -> bool {
    *count == 0
}

fn half() -> f64 {
    0.5
}

fn three() -> usize {
    3
}

/// Steps that a warm-up lasts at least, if it has so many.
const LEAST_WARM_UP: f64 = 200.0;

/// How far a stage has come.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Place {
    /// Steps done, this one not counted.
    pub(crate) step: usize,
    /// Steps of one epoch.
    pub(crate) per_epoch: usize,
    /// Steps of the whole stage.
    pub(crate) total: usize,
    /// Evaluations in a row that brought nothing better, summed up as falls so far.
    pub(crate) plateaus: usize,
}

impl Schedule {
    /// The factor on the stage's rate for the next step.
    // From the place alone, nothing is carried from step to step: a run that is taken up anywhere goes on with the same rate.
    pub(crate) fn factor(&self, at: Place) -> f64 {
        let epochs_done = at.step / at.per_epoch.max(1);
        match self {
            Self::Constant => 1.0,
            Self::Milestones { epochs, factor, warm_up_epochs } => {
                let fallen = factor.powi(epochs.iter().filter(|epoch| **epoch <= epochs_done).count() as i32);
                // By whole epochs, as the recipes have it whose schedulers are stepped once an epoch.
                let risen = (epochs_done + 1) as f64 / (*warm_up_epochs).max(1) as f64;
                fallen * risen.min(1.0)
            }
            Self::Exponential { factor } => factor.powi(epochs_done as i32),
            Self::Plateau { factor, .. } => factor.powi(at.plateaus as i32),
            Self::InverseRoot { warm_up_steps, from } => {
                let (step, warm) = (at.step as f64, (*warm_up_steps).max(1) as f64);
                if step < warm { from + (1.0 - from) * step / warm } else { (warm / step).sqrt() }
            }
            Self::Linear { warm_up } => warmed(at, *warm_up, |left| left),
            Self::Cosine { warm_up } => warmed(at, *warm_up, |left| 0.5 - 0.5 * (std::f64::consts::PI * left).cos()),
        }
    }

    /// As [`Schedule::factor`] where the clock may have come further than the steps that were `made`: the first steps on a GPU take
    /// seconds, and a warm-up that they used up would be none. So it lasts a number of steps, whatever the clock says.
    pub(crate) fn factor_by_clock(&self, at: Place, made: usize) -> f64 {
        let factor = self.factor(at);
        let (Self::Linear { warm_up } | Self::Cosine { warm_up }) = self else { return factor };
        let steps = (warm_up.clamp(0.0, 1.0) * at.total as f64).min(LEAST_WARM_UP);
        factor.min((made as f64 + 1.0) / steps.max(1.0))
    }

    /// Whether `stale` evaluations in a row make the rate fall.
    pub(crate) fn falls_after(&self, stale: usize) -> bool {
        // At every multiple, since `stale` goes on counting until something better comes.
        matches!(self, Self::Plateau { patience, .. } if stale > 0 && stale.is_multiple_of((*patience).max(1)))
    }
}

/// Up over the warm-up, then `down` of the share of steps that is left.
fn warmed(at: Place, warm_up: f64, down: impl Fn(f64) -> f64) -> f64 {
    let warm = (warm_up.clamp(0.0, 1.0) * at.total as f64).floor();
    let step = at.step as f64;
    if step < warm {
        // This step counts as done, or the first would be made at rate 0 and change nothing.
        return (step + 1.0) / warm;
    }
    let left = (at.total as f64 - step) / (at.total as f64 - warm).max(1.0);
    down(left.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn factor(schedule: &Schedule, step: usize) -> f64 {
        schedule.factor(Place { step, per_epoch: 10, total: 100, plateaus: 0 })
    }

    #[test]
    fn milestones_act_after_their_epoch() {
        let schedule = Schedule::Milestones { epochs: vec![2, 5], factor: 0.1, warm_up_epochs: 0 };
        assert_eq!(factor(&schedule, 19), 1.0);
        assert_eq!(factor(&schedule, 20), 0.1);
        assert!((factor(&schedule, 50) - 0.01).abs() < 1e-12);
    }

    /// Ten steps an epoch, UniVTG's way: (epoch + 1) / 4 of the rate in each of the first four, a tenth after the eighth.
    #[test]
    fn milestones_may_warm_up_epoch_by_epoch() {
        let schedule = Schedule::Milestones { epochs: vec![8], factor: 0.1, warm_up_epochs: 4 };
        let found: Vec<f64> = [0, 9, 10, 29, 30, 79, 80].iter().map(|step| factor(&schedule, *step)).collect();
        assert_eq!(found, [0.25, 0.25, 0.5, 0.75, 1.0, 1.0, 0.1]);
    }

    #[test]
    fn a_warm_up_rises_to_the_full_rate_and_the_rest_falls_to_nothing() {
        let schedule = Schedule::Linear { warm_up: 0.2 };
        assert_eq!(factor(&schedule, 0), 0.05);
        assert_eq!(factor(&schedule, 19), 1.0);
        assert_eq!(factor(&schedule, 20), 1.0);
        assert_eq!(factor(&schedule, 60), 0.5);
        let cosine = Schedule::Cosine { warm_up: 0.0 };
        assert_eq!(factor(&cosine, 0), 1.0);
        assert!((factor(&cosine, 50) - 0.5).abs() < 1e-12);
        assert!(factor(&cosine, 99) < 0.001);
    }

    /// One step took a tenth of the time: by the clock the warm-up is over, by steps it has just begun.
    #[test]
    fn a_slow_first_step_does_not_end_the_warm_up() {
        let at = |step| Place { step, per_epoch: 100, total: 10_000, plateaus: 0 };
        let schedule = Schedule::Cosine { warm_up: 0.05 };
        assert!(schedule.factor(at(1_000)) > 0.9);
        assert_eq!(schedule.factor_by_clock(at(1_000), 1), 0.01);
        assert_eq!(schedule.factor_by_clock(at(1_000), 300), schedule.factor(at(1_000)));
        // Where the clock keeps to the steps nothing changes, and a schedule without a warm-up never has one.
        (0..2_000)
            .step_by(50)
            .for_each(|step| assert_eq!(schedule.factor_by_clock(at(step), step), schedule.factor(at(step))));
        assert_eq!(Schedule::Cosine { warm_up: 0.0 }.factor_by_clock(at(0), 0), 1.0);
    }

    /// Half-way up from 0.1 to 1 is 0.55; four times the warm-up halves the rate.
    #[test]
    fn an_inverse_root_rises_evenly_and_falls_with_the_root() {
        let schedule = Schedule::InverseRoot { warm_up_steps: 20, from: 0.1 };
        for (step, wanted) in [(0, 0.1), (10, 0.55), (20, 1.0), (80, 0.5)] {
            assert!((factor(&schedule, step) - wanted).abs() < 1e-12, "{step}");
        }
        assert_eq!(factor(&Schedule::InverseRoot { warm_up_steps: 0, from: 0.0 }, 4), 0.5);
    }

    #[test]
    fn plateaus_act_at_every_multiple_of_their_patience() {
        let schedule = Schedule::Plateau { factor: 0.5, patience: 3 };
        let falls: Vec<usize> = (0..8).filter(|stale| schedule.falls_after(*stale)).collect();
        assert_eq!(falls, [3, 6]);
        assert!(!Schedule::Constant.falls_after(3));
    }
}
