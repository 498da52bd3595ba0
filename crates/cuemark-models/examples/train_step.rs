//! Our side of `cargo xtask bench train`: times 2D-TAN's inference and training steps.
//!
//! `train_step SETTINGS.toml BATCH STEPS DEVICE FILE.safetensors`
//!
//! Writes the parameters it starts from and its inputs to the file, for `benches/peers/train_step.py` to start from the
//! same. Prints one line of JSON: seconds of every step after a first that does not count, processor seconds of the same,
//! and the loss of the first step.

use std::collections::HashMap;
use std::error::Error;
use std::time::Instant;

use candle_core::{DType, Device, Tensor};
use cuemark_core::{NormSpan, QueryId, Rng, VideoId};
use cuemark_models::{Batch, Given, Loss, Model, QueryBatch, Targets, VideoBatch, registry};
use cuemark_tensor::map::{CellsComputed, MapLayout, StackPlan, Support};
use cuemark_tensor::optim::{Adam, AdamConfig, clip_factor, gradient_norm};
use cuemark_tensor::{Params, Pass, Precision};

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
    let [settings, batch, steps, device, file] = words.as_slice() else {
        return Err("usage: train_step SETTINGS.toml BATCH STEPS DEVICE FILE.safetensors".into());
    };
    let settings: toml::Table = std::fs::read_to_string(settings)?.parse()?;
    let (size, steps): (usize, usize) = (batch.parse()?, steps.parse()?);
    let device = cuemark_tensor::device(device)?;
    // PyTorch's convolutions do so unless told otherwise.
    cuemark_tensor::set_precision(Precision::Tf32);
    let params = Params::seeded(1, &device);
    let model = (registry::find("2d-tan")?.build)(&settings, &Given::widths(VISUAL, WORD, 0), params.builder())?;
    let batch = draw_batch(size, model.input().resample.rows(), &device)?;
    write_start(&params, &batch, file)?;

    let mut adam = Adam::new(params.vars(), AdamConfig::default(), &[])?;
    let (mut inference, mut training) = (Seconds::default(), Seconds::default());
    for _ in 0..=steps {
        inference.time(|| {
            model.propose(&batch)?;
            Ok(())
        })?;
    }
    let mut first_loss = None;
    for _ in 0..=steps {
        training.time(|| {
            let loss = step(model.as_ref(), &batch, &mut adam)?;
            device.synchronize()?;
            first_loss.get_or_insert(loss);
            Ok(())
        })?;
    }
    let line = serde_json::json!({
        "inference_s": inference.wall(), "training_s": training.wall(),
        "inference_cpu_s": inference.cpu(), "training_cpu_s": training.cpu(),
        "loss": first_loss, "cells": cells(&settings)?, "parameters": params.count(), "peak_gpu_bytes": peak_gpu_bytes(&device)?,
    });
    println!("{line}");
    Ok(())
}

fn step(model: &dyn Model, batch: &Batch, adam: &mut Adam) -> Result<f64, Box<dyn Error>> {
    let Loss { total, .. } = model.loss(batch, &Pass::training(0, 1, Rng::new(1)))?;
    let gradients = total.backward()?;
    let norm = gradient_norm(adam.parameters(), &gradients)?;
    adam.step(&gradients, RATE, clip_factor(norm, LIMIT))?;
    Ok(f64::from(total.to_device(&Device::Cpu)?.to_scalar::<f32>()?))
}

/// How many cells the stack computes, and how many the dense one would.
fn cells(settings: &toml::Table) -> Result<serde_json::Value, Box<dyn Error>> {
    let number = |value: Option<&toml::Value>| value.and_then(toml::Value::as_integer).map(|n| n as usize);
    let map = settings.get("map").ok_or("no `map`")?;
    let counts = map.get("counts").and_then(toml::Value::as_array).ok_or("no `counts`")?;
    let counts: Vec<usize> = counts.iter().filter_map(|count| number(Some(count))).collect();
    let layout = MapLayout::new(number(map.get("clips")).ok_or("no `clips`")?, &counts)?;
    let (kernel, layers) = (number(settings.get("kernel")), number(settings.get("layers")));
    let support = match settings.get("support").and_then(toml::Value::as_str) {
        Some("valid") => Support::Valid,
        _ => Support::Exact,
    };
    let plan = StackPlan::new(&layout, kernel.ok_or("no `kernel`")?, layers.ok_or("no `layers`")?, support)?;
    let CellsComputed { dense, sparse, products } = plan.cells_computed();
    Ok(serde_json::json!({ "dense": dense, "sparse": sparse, "products": products }))
}

/// Seconds of repeated work; the first time does not count.
#[derive(Default)]
struct Seconds(Vec<(f64, f64)>);

impl Seconds {
    fn time(&mut self, work: impl FnOnce() -> Result<(), Box<dyn Error>>) -> Result<(), Box<dyn Error>> {
        let (wall, cpu) = (Instant::now(), processor_seconds()?);
        work()?;
        self.0.push((wall.elapsed().as_secs_f64(), processor_seconds()? - cpu));
        Ok(())
    }

    fn wall(&self) -> Vec<f64> {
        self.0.iter().skip(1).map(|(wall, _)| *wall).collect()
    }

    fn cpu(&self) -> Vec<f64> {
        self.0.iter().skip(1).map(|(_, cpu)| *cpu).collect()
    }
}

/// Processor time of all threads so far, in steps of 10 ms.
fn processor_seconds() -> Result<f64, Box<dyn Error>> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let after_name = stat.rsplit_once(')').ok_or("an unknown form of /proc/self/stat")?.1;
    let ticks = after_name.split_whitespace().skip(11).take(2).map(str::parse::<f64>);
    Ok(ticks.sum::<Result<f64, _>>()? / 100.0)
}

/// The most memory of the GPU that tensors held at once. 0 on a CPU.
#[allow(unused_variables)] // a build without GPU has none to count
fn peak_gpu_bytes(device: &Device) -> candle_core::Result<u64> {
    #[cfg(feature = "cuda")]
    if let Device::Cuda(device) = device {
        return cuemark_tensor::kernels::peak_bytes(device);
    }
    Ok(0)
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

fn write_start(params: &Params, batch: &Batch, file: &str) -> Result<(), Box<dyn Error>> {
    let mut tensors: HashMap<String, Tensor> = HashMap::new();
    for (name, var) in params.vars() {
        tensors.insert(name, var.as_detached_tensor());
    }
    let spans = batch.targets.iter().flat_map(|targets| &targets.spans);
    let spans: Vec<f32> = spans.flat_map(|span| [span.start() as f32, span.end() as f32]).collect();
    tensors.insert("in.visual".to_owned(), batch.videos.visual.clone());
    tensors.insert("in.words".to_owned(), batch.queries.words.clone());
    tensors.insert("in.spans".to_owned(), Tensor::from_vec(spans, (batch.len(), 2), &Device::Cpu)?);
    Ok(candle_core::safetensors::save(&tensors, file)?)
}
