//! Our side of `cargo xtask bench joint`: times one answer and a training step of a network of moments and highlights at
//! the published size.
//!
//! `joint_step MODEL BATCH STEPS DEVICE FILE.safetensors [SETTINGS.toml]`
//!
//! Without settings the network is the published one.
//! Writes the parameters it starts from and its batch to the file, for `benches/peers/joint_step.py` to start from the same.
//! Prints one line of JSON: seconds of every step after a first that does not count, processor seconds of the same, and the
//! loss without dropout, by which both sides show that they compute the same.

mod measure;

use std::error::Error;

use candle_core::{DType, Device, Tensor};
use cuemark_core::{NormSpan, QueryId, Rng, VideoId};
use cuemark_models::{
    Batch, ClipLabels, Given, JointTargets, JointTruth, QueryBatch, RatedClip, Targets, VideoBatch, registry,
};
use cuemark_tensor::optim::{Adam, AdamConfig, WeightDecay};
use cuemark_tensor::{Params, Pass, Precision, on_threads};
use measure::{Seconds, number, step, told, write_start};

/// As the program people run has it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// SlowFast and CLIP side by side, CLIP's token states, clips of two seconds in 150 seconds, and the most tokens.
const VISUAL: usize = 2304 + 512;
const WORD: usize = 512;
const CLIPS: usize = 75;
const WORDS: usize = 32;
const HEADS: f32 = 8.0;
/// The published recipe.
const LIMIT: f64 = 0.1;
const RATE: f64 = 1e-4;
const DECAY: f64 = 1e-4;

#[allow(clippy::print_stdout)] // an example talks to the terminal
fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [name, batch, steps, device, file, settings @ ..] = words.as_slice() else {
        return Err("usage: joint_step MODEL BATCH STEPS DEVICE FILE.safetensors [SETTINGS.toml]".into());
    };
    let settings: toml::Table = settings.first().map_or(Ok(String::new()), std::fs::read_to_string)?.parse()?;
    let (size, steps): (usize, usize) = (batch.parse()?, steps.parse()?);
    let device = cuemark_tensor::device(device)?;
    cuemark_tensor::set_precision(Precision::Tf32);
    let params = Params::seeded(1, &device);
    let given = Given::widths(VISUAL, WORD, 0);
    let model = registry::find(name)?.build(&settings, &given, params.builder())?;
    let here = draw_batch(size)?;
    start(&params, &here, &settings, file)?;
    let batch = here.to_device(&device)?;
    let one = draw_batch(1)?;
    let loss = number(&model.loss(&batch, &Pass::answering())?.total)?;

    let mut adam = Adam::new(
        params.vars(),
        AdamConfig { weight_decay: WeightDecay::Decoupled(DECAY), ..AdamConfig::default() },
        &[],
    )?;
    let inference = Seconds::answering(steps, |_| {
        let one = one.to_device(&device)?;
        on_threads(&device, || model.answer(&one))?;
        Ok(())
    })?;
    let training = Seconds::of(steps, |number| {
        let pass = Pass::training(0, 1, Rng::new(number as u64));
        step(model.as_ref(), &batch, pass, &mut adam, [RATE, LIMIT])?;
        Ok(())
    })?;
    println!("{}", told(&inference, &training, loss, &params)?);
    Ok(())
}

/// Rows of length one, as the recipe has them.
fn draw_rows(rng: &mut Rng, shape: (usize, usize, usize)) -> candle_core::Result<Tensor> {
    let numbers: Vec<f32> = (0..shape.0 * shape.1 * shape.2).map(|_| rng.normal() as f32).collect();
    let rows = Tensor::from_vec(numbers, shape, &Device::Cpu)?;
    rows.broadcast_div(&rows.sqr()?.sum_keepdim(2)?.sqrt()?)
}

/// One to three windows a query, every clip of them rated.
fn draw_targets(size: usize, rng: &mut Rng) -> Result<Targets, Box<dyn Error>> {
    let (mut spans, mut windows, mut clips) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..size {
        let (mut of_query, mut rated) = (Vec::new(), Vec::new());
        for part in 0..1 + rng.below(3) {
            let first = 25 * part + rng.below(15);
            let last = first + 1 + rng.below(8);
            let share = |clip: usize| clip as f64 / CLIPS as f64;
            of_query.push(NormSpan::new(share(first), share(last + 1)).ok_or("a window outside of its video")?);
            rated.extend((first..=last).map(|clip| RatedClip { clip, total: rng.below(13) as f32, raters: 3 }));
        }
        spans.push(of_query[0]);
        windows.push(of_query);
        clips.push(ClipLabels::Rated(rated));
    }
    Ok(Targets { spans, relevance: None, joint: Some(JointTargets { windows, clips }), positives: None })
}

fn draw_batch(size: usize) -> Result<Batch, Box<dyn Error>> {
    let rng = &mut Rng::new(2);
    let ones = |width: usize| Tensor::ones((size, width), DType::F32, &Device::Cpu);
    let id = |number: usize| number.to_string();
    Ok(Batch {
        videos: VideoBatch {
            ids: (0..size).map(|number| VideoId::new(id(number))).collect(),
            visual: draw_rows(rng, (size, CLIPS, VISUAL))?,
            subtitle: None,
            audio: None,
            lengths: vec![CLIPS; size],
            mask: ones(CLIPS)?,
            durations: vec![150.0; size],
        },
        queries: QueryBatch {
            ids: (0..size).map(|number| QueryId::new(id(number))).collect(),
            video: (0..size).collect(),
            word_ids: Tensor::zeros((size, WORDS), DType::U32, &Device::Cpu)?,
            words: draw_rows(rng, (size, WORDS, WORD))?,
            lengths: vec![WORDS; size],
            mask: ones(WORDS)?,
            parses: None,
            phrases: None,
        },
        targets: Some(draw_targets(size, rng)?),
        other_videos: None,
        similarity: None,
        negatives: None,
    })
}

/// What the other side starts from.
fn start(params: &Params, batch: &Batch, settings: &toml::Table, file: &str) -> Result<(), Box<dyn Error>> {
    let heads = settings.get("network").and_then(|network| network.get("heads")).and_then(toml::Value::as_integer);
    let heads = heads.map_or(HEADS, |heads| heads as f32);
    let truth = JointTruth::draw("bench", batch, &Pass::answering())?;
    let counts: Vec<i64> = truth.windows.iter().map(|windows| windows.len() as i64).collect();
    let windows = truth.windows.concat();
    let flat = |pairs: &[[u32; 2]]| pairs.iter().flatten().map(|clip| i64::from(*clip)).collect::<Vec<_>>();
    // Clips that know where in the video they stand.
    let share = |clip: usize| clip as f32 / CLIPS as f32;
    let place: Vec<f32> = (0..CLIPS).flat_map(|clip| [share(clip), share(clip) + share(1)]).collect();
    let place = Tensor::from_vec(place, (1, CLIPS, 2), &Device::Cpu)?.repeat((batch.len(), 1, 1))?;
    let here = |numbers: Vec<i64>, shape: &[usize]| Tensor::from_vec(numbers, shape, &Device::Cpu);
    let pairs = [batch.len(), 2];
    let inputs = [
        ("video", Tensor::cat(&[&batch.videos.visual, &place], 2)?),
        ("video_mask", batch.videos.mask.clone()),
        ("text", batch.queries.words.clone()),
        ("text_mask", batch.queries.mask.clone()),
        ("windows", Tensor::from_vec(windows.concat(), (windows.len(), 2), &Device::Cpu)?),
        ("window_counts", here(counts, &[batch.len()])?),
        ("good", here(flat(&truth.pairs.positive), &pairs)?),
        ("bad", here(flat(&truth.pairs.negative), &pairs)?),
        ("totals", Tensor::new(truth.totals.clone(), &Device::Cpu)?),
        ("heads", Tensor::new(heads, &Device::Cpu)?),
    ];
    write_start(params, inputs, file)
}
