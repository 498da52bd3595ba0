//! A film of two hours and a model that sees 150 seconds: answers come from all of it, and memory stays within bounds.

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::{ClipLen, Progress, Query, Rng, Span, Split, Truth, Video, VideoId};
use cuemark_features::{FeatureVariant, Features, Recipe, RowTime, StoreWriter, VideoFeatures};
use cuemark_formats::Overwrite;
use cuemark_tensor::Device;
use cuemark_train::{Among, PredictOptions, RunFile, RunFolder, Start, TrainOptions, Trained, train};

/// As wide as CLIP and SlowFast side by side.
const WIDTH: usize = 2816;
/// Clips of two seconds in a film of two hours.
const FILM: usize = 3600;
/// Clips of a training video.
const SHORT: usize = 20;
/// What the answers may cost beside the features of the film: 40 MiB as stored, the same again in half-overlapping stretches
/// (twice), and one more for reading.
const MOST: u64 = 400 << 20;

/// Bytes that the process has held at most.
fn peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().trim_end_matches("kB").trim().parse::<u64>().ok()? * 1024)
}

fn features(rows: usize, rng: &mut Rng) -> Features {
    // One drawn row, scaled by place: a film's worth of normal numbers would take longer to draw than to answer.
    let row: Vec<f32> = (0..WIDTH).map(|_| rng.normal() as f32).collect();
    let data = (0..rows).flat_map(|place| row.iter().map(move |number| number + (place % 7) as f32)).collect();
    Features::new(rows, WIDTH, data).unwrap()
}

fn write_store(folder: &Utf8Path) {
    let mut rng = Rng::new(1);
    let videos = (0..4).map(|n| (format!("short{n}"), SHORT)).chain([("film".to_owned(), FILM)]);
    let videos: Vec<VideoFeatures> = videos
        .map(|(name, rows)| VideoFeatures {
            video: VideoId::from(name.as_str()),
            streams: vec![("visual".to_owned(), features(rows, &mut rng))],
        })
        .collect();
    let recipe = Recipe {
        extractor: "made-up".to_owned(),
        weights: None,
        fps: None,
        row_time: RowTime::Clip(ClipLen::new(2.0).unwrap()),
        width: WIDTH,
        resize: None,
        settings: Default::default(),
    };
    let writer = StoreWriter::create(folder, [("visual".to_owned(), recipe)].into(), Overwrite::Never).unwrap();
    writer.write_shard(0, &videos).unwrap();
}

fn write_truth(path: &Utf8Path) {
    let line = |n: usize| {
        let id = format!("q{n}");
        format!(
            "{}\n",
            serde_json::json!({ "qid": id, "query": "a dog runs", "video": format!("short{}", n % 4), "duration": 40.0, "spans": [[4, 12]] })
        )
    };
    std::fs::write(path, (0..8).map(line).collect::<String>()).unwrap();
}

fn asked(span: Span, id: &str) -> Truth {
    let query = Query { id: id.into(), text: "a dog runs".to_owned() };
    Truth::single(query, Video::new("film", 2.0 * FILM as f64), [span])
}

#[test]
fn two_hours_are_answered_in_stretches_and_in_bounded_memory() {
    let guard = tempfile::tempdir().unwrap();
    let root = Utf8PathBuf::from_path_buf(guard.path().to_owned()).unwrap();
    write_store(&root.join("store"));
    write_truth(&root.join("pairs.jsonl"));
    let run = format!(
        "[model]\nname = 'moment-detr'\nnetwork = {{ hidden = 16, heads = 2, ffn = 24 }}\n[data]\ntrain = '{root}/pairs.jsonl'\n\
         val = '{root}/pairs.jsonl'\nfeatures = '{root}/store'\nword_width = 8\n[train]\nepochs = 1\nbatch = 4\nrate = 1e-3"
    );
    let run = RunFile::from_table("run.toml", run.parse().unwrap(), &[]).unwrap();
    let folder = RunFolder::new(root.join("run"));
    let options = TrainOptions { device: Device::Cpu, folder, start: Start::Fresh(Overwrite::Never), nearness: None };
    train(&run, &options, &Progress::new()).unwrap();

    let trained = Trained::open(&RunFolder::new(root.join("run")), &Device::Cpu).unwrap();
    // One moment near the end, one of ten minutes, which no stretch of 150 seconds overlaps by half.
    let late = asked(Span::new(7000.0, 7030.0).unwrap(), "late");
    let long = asked(Span::new(1000.0, 1600.0).unwrap(), "long");
    let videos = late.video.iter().cloned().collect();
    let split = Split { name: "film".to_owned(), queries: vec![late, long], videos, ..Split::default() };
    let options =
        PredictOptions { answers: 10, batch: 8, among: Among::Own, window: None, variant: FeatureVariant::Seen };
    let before = peak();
    let predicted = trained.predict(&split, &options, &Progress::new()).unwrap();
    let grown = peak().zip(before).map(|(after, before)| after.saturating_sub(before));
    assert!(grown.is_none_or(|grown| grown < MOST), "{} MiB", grown.unwrap_or(0) >> 20);

    let reach = predicted.out_of_reach;
    assert_eq!((reach.moments, reach.past_the_end, reach.too_long), (2, 0, 1));
    for list in &predicted.predictions.tasks[0].queries {
        assert_eq!(list.saliency.as_ref().unwrap().len(), FILM, "every clip of the film is scored");
        assert_eq!(list.ranked.len(), 10);
        for (n, answer) in list.ranked.iter().enumerate() {
            assert!(answer.span.len() <= 150.0 + 1e-6, "no stretch is longer");
            let overlaps = |other: &cuemark_core::Prediction| other.span.iou(answer.span) > 0.7;
            assert!(!list.ranked[..n].iter().any(overlaps), "stretches are merged");
        }
    }
}
