//! Our side of `cargo xtask bench zoo`: parameters, training step, inference of one query and memory of a model at the
//! size that its paper reports.
//!
//! `zoo_step MODEL|all|maps DEVICE STEPS [BATCH]`
//!
//! - `MODEL` is a name of the registry at its ActivityNet size (its first where it has none), `MODEL@N` its N-th
//!   published size from 0, `all` every model, `maps` every published size of the 2D-map family.
//! - `BATCH` pairs, or videos with three queries each, make a training step. Default: 2
//!
//! Prints one line of JSON per size. Each runs in a process of its own, so that its peak of memory is its own and one that
//! fails, or would take more than `ZOO_STEP_GIB` (20) of main memory, is told as `error` and does not end the others.
//! Inference is one query with one video: features start in main memory, the ranked and suppressed list ends there.

mod draw;
#[path = "../measure/gpu.rs"]
mod gpu;

use std::error::Error;
use std::io::Read as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use cuemark_core::Rng;
use cuemark_models::{Batch, Family, FullSize, Given, Model, ModelCard, registry, suppress};
use cuemark_tensor::optim::{Adam, AdamConfig, clip_factor, gradient_norm};
use cuemark_tensor::{Device, Params, Pass, Precision};
use serde_json::{Value, json};

use draw::{Draw, normal};

/// Words in the vocabulary of the uncased BERT family, as the counts of parameters assume.
const VOCABULARY: usize = 30_522;
/// Verbs that a confounder dictionary may ask for.
const VERBS: usize = 80;
/// Queries of each video of a batch that is made of videos.
const PER_VIDEO: usize = 3;
/// Answers that are kept of a query.
const ANSWERS: usize = 10;
/// How often the memory of a child is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// What is measured.
#[derive(Clone, Copy)]
struct Size {
    card: &'static ModelCard,
    place: usize,
    size: &'static FullSize,
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (which, device, steps, batch) = match words.as_slice() {
        [which, device, steps] => (which, device, steps, "2"),
        [which, device, steps, batch] => (which, device, steps, batch.as_str()),
        _ => return Err("usage: zoo_step MODEL|all|maps DEVICE STEPS [BATCH]".into()),
    };
    match sizes(which)?.as_slice() {
        [one] => print(&measure(*one, device, steps.parse()?, batch.parse()?).unwrap_or_else(|e| failed(*one, &*e))),
        many => many.iter().for_each(|one| print(&in_its_own_process(*one, device, steps, batch))),
    }
    Ok(())
}

#[allow(clippy::print_stdout)] // an example talks to the terminal
fn print(line: &Value) {
    println!("{line}");
}

fn sizes(which: &str) -> Result<Vec<Size>, Box<dyn Error>> {
    let quoted = |card: &'static ModelCard| {
        let place = card.full_sizes.iter().position(|size| size.dataset.starts_with("activitynet")).unwrap_or(0);
        card.full_sizes.get(place).map(|size| Size { card, place, size })
    };
    let every = |card: &&'static ModelCard| {
        let card: &'static ModelCard = card;
        card.full_sizes.iter().enumerate().map(move |(place, size)| Size { card, place, size })
    };
    let found: Vec<Size> = match which.split_once('@') {
        Some((name, place)) => {
            let (card, place): (_, usize) = (registry::find(name)?, place.parse()?);
            card.full_sizes.get(place).map(|size| Size { card, place, size }).into_iter().collect()
        }
        None if which == "all" => registry::MODELS.iter().filter_map(|card| quoted(card)).collect(),
        None if which == "maps" => {
            registry::MODELS.iter().filter(|card| card.family == Family::Map2d).flat_map(every).collect()
        }
        None => quoted(registry::find(which)?).into_iter().collect(),
    };
    if found.is_empty() { Err(format!("`{which}` has no such published size").into()) } else { Ok(found) }
}

fn named(size: Size) -> Value {
    json!({ "model": size.card.name, "dataset": size.size.dataset, "place": size.place })
}

fn with(size: Size, more: Value) -> Value {
    let mut line = named(size);
    if let (Some(line), Value::Object(more)) = (line.as_object_mut(), more) {
        line.extend(more);
    }
    line
}

fn failed(size: Size, error: &(dyn Error + 'static)) -> Value {
    with(size, json!({ "error": error.to_string().lines().next().unwrap_or_default() }))
}

/// Measures in a child, which is ended when it takes too much memory.
fn in_its_own_process(size: Size, device: &str, steps: &str, batch: &str) -> Value {
    watched(size, device, steps, batch).unwrap_or_else(|error| failed(size, &*error))
}

fn watched(size: Size, device: &str, steps: &str, batch: &str) -> Result<Value, Box<dyn Error>> {
    let limit: u64 = std::env::var("ZOO_STEP_GIB").ok().map_or(Ok(20), |gib| gib.parse())?;
    let mut child = Command::new(std::env::current_exe()?)
        .args([&format!("{}@{}", size.card.name, size.place), device, steps, batch])
        .stdout(Stdio::piped())
        .spawn()?;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        let held = memory(&format!("/proc/{}/status", child.id()), "VmRSS:").unwrap_or(0);
        if held > limit << 30 {
            child.kill()?;
            child.wait()?;
            return Err(format!("takes more than {limit} GiB of main memory").into());
        }
        std::thread::sleep(LOOK);
    };
    // One short line, which a pipe holds without a reader.
    let mut line = String::new();
    child.stdout.take().ok_or("no output")?.read_to_string(&mut line)?;
    if line.trim().is_empty() {
        return Err(format!("ended with {status}").into());
    }
    Ok(serde_json::from_str(line.trim())?)
}

fn measure(size: Size, device: &str, steps: usize, batch: usize) -> Result<Value, Box<dyn Error>> {
    cuemark_tensor::set_precision(Precision::default());
    let device = cuemark_tensor::device(device)?;
    let settings: toml::Table = size.size.settings.parse()?;
    let subtitle = settings.get("subtitle").and_then(toml::Value::as_integer).unwrap_or(0) as usize;
    let FullSize { visual, words, .. } = *size.size;
    let verbs = if words > 0 { Some(normal(&mut Rng::new(3), &[VERBS, words])?.to_device(&device)?) } else { None };
    let given = Given { subtitle, verbs, ..Given::widths(visual, words, VOCABULARY) };
    let params = Params::seeded(1, &device);
    let model = size.card.build(&settings, &given, params.builder())?;
    let input = model.input();
    let draw =
        |size: usize, per_video: usize, seed: u64| Draw { input: &input, given: &given, size, per_video }.batch(seed);
    let mut line = with(size, json!({ "parameters": params.count(), "clips": input.resample.rows(), "batch": batch }));

    let query = draw(1, 1, 2)?;
    let inference = timed(steps, || answer(model.as_ref(), &query, &device))?;
    let held_early = memory("/proc/self/status", "VmRSS:")?;
    timed(steps, || answer(model.as_ref(), &query, &device))?;
    let grown = memory("/proc/self/status", "VmRSS:")?.saturating_sub(held_early);
    let inference_peak = memory("/proc/self/status", "VmHWM:")?;

    let batch = draw(batch, PER_VIDEO, 4)?;
    let mut adam = Adam::new(params.trainable(), AdamConfig::default(), &[])?;
    let mut loss = 0.0;
    let training = timed(steps, || {
        loss = step(model.as_ref(), &batch.to_device(&device)?, &mut adam)?;
        Ok(device.synchronize()?)
    })?;
    let figures = json!({
        "queries": batch.len(), "loss": loss,
        "inference_s": inference, "training_s": training,
        "inference_peak_bytes": inference_peak, "inference_grown_bytes": grown,
        "peak_bytes": memory("/proc/self/status", "VmHWM:")?, "peak_gpu_bytes": gpu::peak_bytes(&device)?,
    });
    if let (Some(line), Value::Object(figures)) = (line.as_object_mut(), figures) {
        line.extend(figures);
    }
    Ok(line)
}

/// Seconds of each of `steps` times, after one that does not count.
fn timed(steps: usize, mut work: impl FnMut() -> Result<(), Box<dyn Error>>) -> Result<Vec<f64>, Box<dyn Error>> {
    work()?;
    let once = |_| {
        let began = Instant::now();
        work()?;
        Ok(began.elapsed().as_secs_f64())
    };
    (0..steps).map(once).collect()
}

/// One query from features in main memory to its ranked list.
fn answer(model: &dyn Model, query: &Batch, device: &Device) -> Result<(), Box<dyn Error>> {
    let proposals = model.propose(&query.to_device(device)?)?;
    let best = proposals.first().map(|list| suppress(list, model.nms().unwrap_or(1.0), ANSWERS, model.grid()));
    if best.is_none_or(|best| best.is_empty()) { Err("no answer".into()) } else { Ok(()) }
}

fn step(model: &dyn Model, batch: &Batch, adam: &mut Adam) -> Result<f64, Box<dyn Error>> {
    let loss = model.loss(batch, &Pass::training(0, 1, Rng::new(1)))?.total;
    let gradients = loss.backward()?;
    let factor = clip_factor(gradient_norm(adam.parameters(), &gradients)?, 10.0);
    adam.step(&gradients, 1e-4, factor)?;
    Ok(f64::from(loss.to_device(&Device::Cpu)?.to_scalar::<f32>()?))
}

/// A line of a process's status, in bytes.
fn memory(status: &str, field: &str) -> Result<u64, Box<dyn Error>> {
    let status = std::fs::read_to_string(status)?;
    let line = status.lines().find_map(|line| line.strip_prefix(field)).ok_or("no such line")?;
    Ok(line.trim().trim_end_matches("kB").trim().parse::<u64>()? * 1024)
}
