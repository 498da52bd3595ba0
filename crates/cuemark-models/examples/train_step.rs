//! Our side of `cargo xtask bench train` and `bench threads`: times inference and training steps of a method that reads pairs of a
//! video and a query in words, as 2D-TAN and TMLGA.
//!
//! `train_step MODEL SETTINGS.toml BATCH STEPS DEVICE FILE.safetensors`
//!
//! Writes the parameters it starts from and its inputs to the file, for `benches/peers/train_step.py` or `tmlga_step.py` to start
//! from the same. Prints one line of JSON: seconds of every step after a first that does not count, processor seconds of the
//! same, and the loss before the first step, without dropout.

mod measure;

use std::error::Error;

use candle_core::{DType, Device, Tensor};
use cuemark_core::{NormSpan, QueryId, Rng, VideoId};
use cuemark_models::{Batch, Given, QueryBatch, Targets, VideoBatch, registry};
use cuemark_tensor::map::{CellsComputed, MapLayout, StackPlan, Support};
use cuemark_tensor::optim::{Adam, AdamConfig};
use cuemark_tensor::{Params, Pass, Precision, on_threads};
use measure::{Seconds, number, step, told, write_start};

/// As the program people run has it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Widths of the published features and word vectors, and a usual length of a query.
const VISUAL: usize = 500;
const WORD: usize = 300;
const WORDS: usize = 10;
/// The published gradient norm and learning rate.
const LIMIT: f64 = 10.0;
const RATE: f64 = 1e-4;

#[allow(clippy::print_stdout)] // an example talks to the terminal
fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [name, settings, batch, steps, device, file] = words.as_slice() else {
        return Err("usage: train_step MODEL SETTINGS.toml BATCH STEPS DEVICE FILE.safetensors".into());
    };
    let settings: toml::Table = std::fs::read_to_string(settings)?.parse()?;
    let (size, steps): (usize, usize) = (batch.parse()?, steps.parse()?);
    let device = cuemark_tensor::device(device)?;
    // PyTorch's convolutions do so unless told otherwise.
    cuemark_tensor::set_precision(Precision::Tf32);
    let params = Params::seeded(1, &device);
    let model = registry::find(name)?.build(&settings, &Given::widths(VISUAL, WORD, 0), params.builder())?;
    let batch = draw_batch(size, model.input().resample.rows(), &device)?;
    start(&params, &batch, file)?;

    let mut adam = Adam::new(params.vars(), AdamConfig::default(), &[])?;
    let loss = number(&model.loss(&batch, &Pass::answering())?.total)?;
    let inference = Seconds::answering(steps, |_| {
        on_threads(&device, || model.propose(&batch))?;
        Ok(())
    })?;
    let training = Seconds::of(steps, |number| {
        let pass = Pass::training(0, 1, Rng::new(number as u64));
        step(model.as_ref(), &batch, pass, &mut adam, [RATE, LIMIT])?;
        Ok(())
    })?;
    let mut line = told(&inference, &training, loss, &params)?;
    if settings.contains_key("map") {
        line["cells"] = cells(&settings)?;
    }
    println!("{line}");
    Ok(())
}

/// How many cells the stack computes, and how many the dense one would.
fn cells(settings: &toml::Table) -> Result<serde_json::Value, Box<dyn Error>> {
    let whole = |value: Option<&toml::Value>| value.and_then(toml::Value::as_integer).map(|n| n as usize);
    let map = settings.get("map").ok_or("no `map`")?;
    let counts = map.get("counts").and_then(toml::Value::as_array).ok_or("no `counts`")?;
    let counts: Vec<usize> = counts.iter().filter_map(|count| whole(Some(count))).collect();
    let layout = MapLayout::new(whole(map.get("clips")).ok_or("no `clips`")?, &counts)?;
    let (kernel, layers) = (whole(settings.get("kernel")), whole(settings.get("layers")));
    let support = match settings.get("support").and_then(toml::Value::as_str) {
        Some("valid") => Support::Valid,
        _ => Support::Exact,
    };
    let plan = StackPlan::new(&layout, kernel.ok_or("no `kernel`")?, layers.ok_or("no `layers`")?, support)?;
    let CellsComputed { dense, sparse, products } = plan.cells_computed();
    Ok(serde_json::json!({ "dense": dense, "sparse": sparse, "products": products }))
}

fn draw(rng: &mut Rng, shape: &[usize], device: &Device) -> candle_core::Result<Tensor> {
    let numbers: Vec<f32> = (0..shape.iter().product()).map(|_| rng.normal() as f32).collect();
    Tensor::from_vec(numbers, shape, device)
}

fn draw_batch(size: usize, rows: usize, device: &Device) -> Result<Batch, Box<dyn Error>> {
    let rng = &mut Rng::new(2);
    let ones = |width: usize| Tensor::ones((size, width), DType::F32, device);
    let spans = (0..size).map(|_| {
        let (a, b) = (rng.uniform(), rng.uniform());
        NormSpan::new(a.min(b), a.max(b)).ok_or("a span outside of its video")
    });
    let spans: Vec<NormSpan> = spans.collect::<Result<_, _>>()?;
    let id = |number: usize| number.to_string();
    Ok(Batch {
        videos: VideoBatch {
            ids: (0..size).map(|number| VideoId::new(id(number))).collect(),
            visual: draw(rng, &[size, rows, VISUAL], device)?,
            subtitle: None,
            audio: None,
            lengths: vec![rows; size],
            mask: ones(rows)?,
            durations: vec![30.0; size],
        },
        queries: QueryBatch {
            ids: (0..size).map(|number| QueryId::new(id(number))).collect(),
            video: (0..size).collect(),
            word_ids: Tensor::zeros((size, WORDS), DType::U32, device)?,
            words: draw(rng, &[size, WORDS, WORD], device)?,
            lengths: vec![WORDS; size],
            mask: ones(WORDS)?,
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
fn start(params: &Params, batch: &Batch, file: &str) -> Result<(), Box<dyn Error>> {
    let spans = batch.targets.iter().flat_map(|targets| &targets.spans);
    let spans: Vec<f32> = spans.flat_map(|span| [span.start() as f32, span.end() as f32]).collect();
    let inputs = [
        ("visual", batch.videos.visual.clone()),
        ("words", batch.queries.words.clone()),
        ("spans", Tensor::from_vec(spans, (batch.len(), 2), &Device::Cpu)?),
    ];
    write_start(params, inputs, file)
}
