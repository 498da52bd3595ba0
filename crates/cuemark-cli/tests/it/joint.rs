//! QVHighlights from end to end: train, predict, score and report, on features shaped like the published ones.

use std::process::{Command, Output};

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::{ClipLen, Rng, VideoId};
use cuemark_features::{Features, Recipe, RowTime, StoreWriter, VideoFeatures};
use cuemark_formats::Overwrite;

/// Clips of a video, two seconds each.
const CLIPS: usize = 75;
/// Streams and their widths: two of clips, one of words.
const STREAMS: [(&str, usize); 3] = [("slowfast", 6), ("clip", 4), ("clip-text", 5)];

/// Every split asks for windows of all three ranges of length (up to 10, 30 and 150 s), so that every metric has queries.
fn write_vlogs(root: &Utf8Path) {
    let mut rng = Rng::new(3);
    let mut videos = Vec::new();
    for (file, first, count) in [("highlight_train_release", 0, 9), ("highlight_val_release", 9, 6)] {
        let mut lines = String::new();
        for number in first..first + count {
            let (start, clips) = (2 * (number % 9), [3, 10, 30][number % 3]);
            let liked: Vec<usize> = (start..start + clips).collect();
            let grades: Vec<[usize; 3]> = liked.iter().map(|clip| [1 + clip % 4, 4, 2]).collect();
            let vid = format!("tube{number}_0.0_150.0");
            let line = serde_json::json!({
                "qid": number, "query": "a dog runs", "duration": 2 * CLIPS, "vid": vid,
                "relevant_windows": [[2 * start, 2 * (start + clips)]], "relevant_clip_ids": liked, "saliency_scores": grades,
            });
            lines += &format!("{line}\n");
            let mut made = |(name, width): (&str, usize), rows: usize| {
                let value = |place: usize| {
                    let shift = if liked.contains(&(place / width)) { 1.0 } else { 0.0 };
                    (shift + 0.3 * rng.normal()) as f32
                };
                (name.to_owned(), Features::new(rows, width, (0..rows * width).map(value).collect()).unwrap())
            };
            let clips = vec![made(STREAMS[0], CLIPS), made(STREAMS[1], CLIPS)];
            let words = vec![made(STREAMS[2], 3)];
            videos.push(VideoFeatures { video: VideoId::from(vid.as_str()), streams: clips });
            videos.push(VideoFeatures { video: VideoId::from(number.to_string().as_str()), streams: words });
        }
        std::fs::write(root.join(format!("{file}.jsonl")), lines).unwrap();
    }
    let recipe = |(name, width): (&str, usize)| Recipe {
        extractor: name.to_owned(),
        weights: None,
        fps: None,
        row_time: RowTime::Clip(ClipLen::new(2.0).unwrap()),
        width,
        resize: None,
        settings: Default::default(),
    };
    let recipes = STREAMS.into_iter().map(|stream| (stream.0.to_owned(), recipe(stream))).collect();
    let writer = StoreWriter::create(&root.join("store"), recipes, Overwrite::Force).unwrap();
    writer.write_shard(0, &videos).unwrap();
}

fn cuemark(root: &Utf8Path, arguments: &[&str]) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_cuemark")).current_dir(root).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

#[test]
fn predictions_on_qvhighlights_are_accepted_by_its_preset_without_a_note_and_reported() {
    let folder = tempfile::tempdir().unwrap();
    let root = Utf8PathBuf::from_path_buf(folder.path().to_owned()).unwrap();
    write_vlogs(&root);
    let run = format!("{}/../../runs/qd-detr/qvhighlights.toml", env!("CARGO_MANIFEST_DIR"));
    let short = [
        "data.root=.",
        "data.features=store",
        "model.network={ hidden = 16, heads = 2, ffn = 24 }",
        "train.epochs=2",
        "train.batch=3",
        "eval.every=1.0",
    ];
    let mut train = vec!["train", run.as_str(), "--out", "run"];
    train.extend(short.iter().flat_map(|set| ["--set", set]));
    cuemark(&root, &train);
    cuemark(&root, &["predict", "run", "--split", "val", "--out", "val.jsonl"]);

    let scored =
        ["eval", "--truth", "highlight_val_release.jsonl", "--pred", "val.jsonl", "--preset", "qvhighlights", "--all"];
    let output = cuemark(&root, &scored);
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(!said.to_lowercase().contains("note"), "{said}");
    for metric in ["R@1,IoU=0.7", "mAP/long", "HL-mAP/VeryGood", "HL-Hit1/Fair"] {
        assert!(said.contains(metric), "{metric}: {said}");
    }

    cuemark(&root, &["report", "run", "--split", "val", "--out", "report"]);
    let page = std::fs::read_to_string(root.join("report/report.html")).unwrap();
    assert!(page.contains("HL-mAP/VeryGood") && page.contains("class=\"saliency\""));
}
