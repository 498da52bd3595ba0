//! Our side of `cargo xtask bench text`: times one answer and a training step of MMN with DistilBERT, drawn from a seed and
//! fine-tuned, at the size that MMN was published with for Charades-STA.
//!
//! `text_step VIDEOS STEPS DEVICE FILE.safetensors [SETTINGS.toml]`
//!
//! Without settings the network is the published one for Charades-STA.
//! Writes the parameters it starts from and its batch to the file, for `benches/peers/mmn_step.py` to start from the same.
//! Prints one line of JSON: seconds of every step after a first that does not count, processor seconds of the same, and the
//! loss without dropout, by which both sides show that they compute the same.

mod measure;

use std::error::Error;

use candle_core::{DType, Device, Tensor};
use cuemark_core::{NormSpan, QueryId, Rng, VideoId};
use cuemark_models::{Batch, Given, QueryBatch, Targets, VideoBatch, registry};
use cuemark_tensor::optim::{Adam, AdamConfig, WeightDecay};
use cuemark_tensor::{Params, Pass, Precision, on_threads};
use measure::{Seconds, number, step, told, write_start};
use serde_json::json;

/// As the program people run has it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The vocabulary of the uncased base models, and the numbers of its two markers.
const VOCABULARY: usize = 30_522;
const MARKERS: (u32, u32) = (101, 102);
/// Charades-STA has about two sentences a video, of some ten tokens with the markers.
const SENTENCES: usize = 2;
const TOKENS: std::ops::Range<usize> = 8..15;
/// The published recipe. DistilBERT is frozen in the first four epochs; this is a step of the fifth.
const RATE: f64 = 1e-4;
const BETAS: (f64, f64) = (0.9, 0.99);
const DECAY: f64 = 1e-5;
const LIMIT: f64 = 5.0;
const EPOCH: usize = 5;

#[allow(clippy::print_stdout)] // an example talks to the terminal
fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [videos, steps, device, file, settings @ ..] = words.as_slice() else {
        return Err("usage: text_step VIDEOS STEPS DEVICE FILE.safetensors [SETTINGS.toml]".into());
    };
    let (videos, steps): (usize, usize) = (videos.parse()?, steps.parse()?);
    let device = cuemark_tensor::device(device)?;
    cuemark_tensor::set_precision(Precision::Tf32);
    let card = registry::find("mmn")?;
    let size = card.full_sizes.iter().find(|size| size.dataset == "charades-sta").ok_or("no size for Charades-STA")?;
    let settings: toml::Table =
        settings.first().map_or_else(|| Ok(size.settings.to_owned()), std::fs::read_to_string)?.parse()?;
    let params = Params::seeded(1, &device);
    let model = card.build(&settings, &Given::widths(size.visual, 0, VOCABULARY), params.builder())?;
    let rows = model.input().resample.rows();
    let here = draw_batch(videos, SENTENCES, (rows, size.visual))?;
    start(&params, &here, &settings, file)?;
    let (batch, one) = (here.to_device(&device)?, draw_batch(1, 1, (rows, size.visual))?);
    let loss = number(&model.loss(&batch, &Pass::answering())?.total)?;

    let config = AdamConfig {
        beta1: BETAS.0,
        beta2: BETAS.1,
        weight_decay: WeightDecay::Decoupled(DECAY),
        ..AdamConfig::default()
    };
    let mut adam = Adam::new(params.trainable(), config, &[])?;
    adam.set_rates(&|name| model.rate(name, &Pass::training(0, EPOCH, Rng::new(0))));
    let inference = Seconds::answering(steps, |_| {
        let one = one.to_device(&device)?;
        on_threads(&device, || model.propose(&one))?;
        Ok(())
    })?;
    let training = Seconds::of(steps, |number| {
        let pass = Pass::training(0, EPOCH, Rng::new(number as u64));
        step(model.as_ref(), &batch, pass, &mut adam, [RATE, LIMIT])?;
        Ok(())
    })?;
    println!("{}", told(&inference, &training, loss, &params)?);
    Ok(())
}

fn draw_batch(videos: usize, each: usize, shape: (usize, usize)) -> Result<Batch, Box<dyn Error>> {
    let rng = &mut Rng::new(2);
    let ((rows, width), queries) = (shape, videos * each);
    let lengths: Vec<usize> = (0..queries).map(|_| TOKENS.start + rng.below(TOKENS.len())).collect();
    let longest = TOKENS.end - 1;
    let mut tokens = Vec::with_capacity(queries * longest);
    for length in &lengths {
        let between = (2..*length).map(|_| 1_000 + rng.below(VOCABULARY - 1_000) as u32);
        let sentence = std::iter::once(MARKERS.0).chain(between.collect::<Vec<_>>()).chain([MARKERS.1]);
        tokens.extend(sentence.chain(std::iter::repeat(0)).take(longest));
    }
    let span = |_| {
        let (a, b) = (rng.uniform(), rng.uniform());
        NormSpan::new(a.min(b), a.max(b)).ok_or("a span outside of its video")
    };
    let spans: Vec<NormSpan> = (0..queries).map(span).collect::<Result<_, _>>()?;
    let numbers: Vec<f32> = (0..videos * rows * width).map(|_| rng.normal() as f32).collect();
    let cpu = &Device::Cpu;
    Ok(Batch {
        videos: VideoBatch {
            ids: (0..videos).map(|number| VideoId::new(number.to_string())).collect(),
            visual: Tensor::from_vec(numbers, (videos, rows, width), cpu)?,
            subtitle: None,
            audio: None,
            lengths: vec![rows; videos],
            mask: Tensor::ones((videos, rows), DType::F32, cpu)?,
            durations: vec![30.0; videos],
        },
        queries: QueryBatch {
            ids: (0..queries).map(|number| QueryId::new(number.to_string())).collect(),
            video: (0..queries).map(|query| query / each).collect(),
            word_ids: Tensor::from_vec(tokens, (queries, longest), cpu)?,
            words: Tensor::zeros((queries, longest, 0), DType::F32, cpu)?,
            mask: Tensor::ones((queries, longest), DType::F32, cpu)?,
            lengths,
            parses: None,
            phrases: None,
        },
        targets: Some(Targets { spans, relevance: None, joint: None, positives: None }),
        other_videos: None,
        similarity: None,
        negatives: None,
    })
}

/// What the other side starts from.
fn start(params: &Params, batch: &Batch, settings: &toml::Table, file: &str) -> Result<(), Box<dyn Error>> {
    let whole = |numbers: &[usize]| Tensor::new(numbers.iter().map(|n| *n as i64).collect::<Vec<_>>(), &Device::Cpu);
    let spans = batch.targets.iter().flat_map(|targets| &targets.spans);
    let spans: Vec<f32> = spans.flat_map(|span| [span.start() as f32, span.end() as f32]).collect();
    let (map, matching) = (&settings["network"]["map"], &settings["matching"]);
    let text = settings["network"].get("text").and_then(|text| text.get("heads"));
    let heads = text.and_then(toml::Value::as_integer).unwrap_or(12);
    let about = json!({
        "clips": map["clips"], "counts": map["counts"], "heads": heads,
        "margin": matching["margin"], "weight": matching["weight"], "rate": RATE,
    });
    let about = about.to_string().into_bytes();
    let inputs = [
        ("visual", batch.videos.visual.clone()),
        ("tokens", batch.queries.word_ids.to_dtype(DType::I64)?),
        ("lengths", whole(&batch.queries.lengths)?),
        ("video", whole(&batch.queries.video)?),
        ("spans", Tensor::from_vec(spans, (batch.len(), 2), &Device::Cpu)?),
        ("about", Tensor::new(about, &Device::Cpu)?),
    ];
    write_start(params, inputs, file)
}
