//! The network of a fixture, and what it gives for the fixture's inputs.

use candle_core::Tensor;
use candle_nn::VarBuilder;
use cuemark_tensor::Device;

use super::rollout::{actor_critic, returns};
use super::window::{Window, leaf_reward, pick_units, root_reward};
use super::{BRANCHES, TspPrl, TspPrlConfig};
use crate::check::{Fixture, Trace};
use crate::{Given, Result};

pub(super) fn check(fixture: &Fixture, vb: &VarBuilder) -> Result<Trace> {
    let wide = fixture.numbers("iou_hidden")?;
    let config = TspPrlConfig {
        window_units: fixture.number("window_units")?,
        hidden: fixture.number("hidden")?,
        align_hidden: [wide.first().copied().unwrap_or(0), wide.get(1).copied().unwrap_or(0)],
        discount: fixture.real("discount")?,
        entropy_weight: fixture.real("entropy_weight")?,
        ..TspPrlConfig::default()
    };
    let sentence = fixture.input("sentence")?;
    let given = Given::widths(fixture.number("unit_feature")?, sentence.dim(1)?, 0);
    let net = TspPrl::new(&config, &given, vb.clone())?;
    let (global, local) = (fixture.input("global_feature")?, fixture.input("local_feature")?);
    let fixed = net.fix(&global, &sentence)?;
    let outputs = net.forward(&fixed, &local, &fixture.input("location")?, &fixture.input("hidden")?)?;

    let mut trace = Trace::new();
    trace.out("hidden", &outputs.hidden);
    trace.out("iou_logit", &outputs.align);
    let (policy, value) = outputs.of(None)?;
    trace.out("root_policy", &policy);
    trace.out("root_value", &value);
    for (branch, (_, name, _)) in BRANCHES.iter().enumerate() {
        let (policy, value) = outputs.of(Some(branch))?;
        trace.out(&format!("{name}_policy"), &policy);
        trace.out(&format!("{name}_value"), &value);
    }
    let table =
        |rows: Vec<f32>, columns: usize| Tensor::from_vec(rows.clone(), (rows.len() / columns, columns), &Device::Cpu);
    let actions = fixture.counts("env_action")?;
    let moves = actions.chunks_exact(6).flat_map(|row| {
        let window = Window { start: row[2] as i64, end: row[3] as i64, units: row[5] as i64 };
        let (next, goes_on) = window.moved(row[0], row[1], row[4] as i64);
        [next.start as f32, next.end as f32, f32::from(u8::from(goes_on))]
    });
    trace.out("env_window", &table(moves.collect(), 3)?);
    let lengths = fixture.tensor("out.ten_index")?.dim(0)?;
    let picked = (1..=lengths).flat_map(|length| pick_units(length, config.window_units));
    trace.out("ten_index", &table(picked.map(|unit| unit as f32).collect(), config.window_units)?);
    let reals = |name: &str| -> Result<Vec<f64>> {
        Ok(fixture.input(name)?.flatten_all()?.to_vec1::<f32>()?.into_iter().map(f64::from).collect())
    };
    let (before, now, reached) = (reals("prev_iou")?, reals("cur_iou")?, reals("branch_iou")?);
    let changes = before.iter().zip(&now);
    let leaf: Vec<f32> = changes.clone().map(|(before, now)| leaf_reward(*before, *now) as f32).collect();
    let best = reached.chunks_exact(BRANCHES.len()).map(|row| row.iter().copied().fold(f64::NEG_INFINITY, f64::max));
    let root: Vec<f32> =
        changes.zip(best).map(|((before, now), best)| root_reward(*before, *now, best) as f32).collect();
    trace.out("leaf_reward", &Tensor::new(leaf, &Device::Cpu)?);
    trace.out("root_reward", &Tensor::new(root, &Device::Cpu)?);
    let (rewards, values) = (fixture.input("reward")?.to_vec1::<f32>()?, fixture.input("value")?);
    let last = values.to_vec1::<f32>()?.last().copied().unwrap_or(0.0);
    let expected = Tensor::new(returns(&rewards, last, config.discount as f32), values.device())?;
    let (log_probs, entropies) = (fixture.input("log_prob")?, fixture.input("entropy")?);
    let (policy, value) = actor_critic(&log_probs, &values, &entropies, &expected, config.entropy_weight)?;
    trace.loss("policy", &policy.mean_all()?);
    trace.loss("value", &value.mean_all()?);
    Ok(trace)
}
