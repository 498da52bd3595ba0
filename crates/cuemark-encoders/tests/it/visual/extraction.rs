//! From files to stores, with an encoder that can be checked by eye: a row is the mean brightness of each frame of the clip.

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::{Advise as _, Dialect, Progress, VideoId};
use cuemark_encoders::extract::{ExtractOptions, ExtractReport, Shard, extract_to_store, extract_video};
use cuemark_encoders::visual::{Clips, EncoderOptions, Sampling};
use cuemark_encoders::weights::Cache;
use cuemark_encoders::{ClipEncoder, EncodeError, Result, joint, visual};
use cuemark_features::{FeatureStore, Recipe, RowTime};
use cuemark_formats::Overwrite;
use cuemark_media::{Ffmpeg, Filter, Framing, VideoFile, find_videos};

use super::videos::{make_film, pulled, shared_videos};

/// Rows of three numbers: how bright each frame is, in seconds of `make_film`.
struct Brightness;

impl ClipEncoder for Brightness {
    fn name(&self) -> &str {
        "brightness"
    }

    fn width(&self) -> usize {
        3
    }

    fn sampling(&self) -> Sampling {
        let framing = Framing::Stretch { width: 8, height: 6, filter: Filter::Bilinear };
        Sampling { fps: 2.0, frames: 3, stride: 3, framing }
    }

    fn recipe(&self) -> Recipe {
        Recipe {
            extractor: "brightness".to_owned(),
            weights: None,
            fps: Some(2.0),
            row_time: RowTime::Clip(self.sampling().clip_len().unwrap()),
            width: 3,
            resize: Some([8, 6]),
            settings: std::collections::BTreeMap::new(),
        }
    }

    fn encode(&self, clips: &Clips) -> Result<Vec<Vec<f32>>> {
        let bright = |picture: &[u8]| {
            let mean = picture.iter().map(|byte| f32::from(*byte)).sum::<f32>() / picture.len() as f32;
            mean * 219.0 / 255.0 / 40.0
        };
        let clip = |rgb: &[u8]| rgb.chunks(clips.picture_bytes()).map(bright).collect();
        Ok(clips.rgb().chunks(3 * clips.picture_bytes()).map(clip).collect())
    }
}

fn options(shard: Shard) -> ExtractOptions {
    ExtractOptions { overwrite: Overwrite::Never, shard, ffmpeg: Ffmpeg::on_path() }
}

fn extract(videos: &[VideoFile], store: &Utf8PathBuf, shard: Shard) -> Result<ExtractReport> {
    extract_to_store(videos, &Brightness, store, &options(shard), &Progress::new())
}

fn find(paths: &[Utf8PathBuf]) -> Vec<VideoFile> {
    find_videos(paths, &Progress::new()).unwrap().videos
}

#[test]
fn rows_follow_the_clock_and_finished_videos_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let root = Utf8PathBuf::from_path_buf(folder.path().to_owned()).unwrap();
    for (name, seconds) in [("a.mp4", 4), ("b.mp4", 3), ("c.mp4", 1)] {
        make_film(&root.join(name), seconds);
    }
    std::fs::write(root.join("d.mp4"), "no film").unwrap();
    let (videos, store) = (find(std::slice::from_ref(&root)), root.join("store"));
    // One of two processes first, then everything.
    let report = extract(&videos, &store, "2/2".parse().unwrap()).unwrap();
    assert_eq!((report.videos, report.rows, report.failed.len()), (2, 2, 1));
    let report = extract(&videos, &store, Shard::WHOLE).unwrap();
    assert_eq!((report.videos, report.resumed, report.rows), (4, 1, 4));
    assert_eq!(report.failed[0].video, VideoId::new("d"));
    assert!(report.failed[0].problem.contains("d.mp4"), "{:?}", report.failed);
    assert!(report.partial.is_empty(), "{:?}", report.partial);
    let open = FeatureStore::open(&store).unwrap();
    assert_eq!(open.videos("visual"), [&VideoId::new("a"), &VideoId::new("b"), &VideoId::new("c")]);
    assert_eq!(open.clip_len("visual").unwrap().seconds(), 1.5);
    let rows = |video: &str| open.get(&VideoId::new(video), "visual").unwrap();
    // Frames every half second; the last clip is filled up with the last frame.
    for (video, expected) in [("a", &[0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 3.5][..]), ("c", &[0.0, 0.5, 0.5])] {
        let rows = rows(video);
        assert_eq!(rows.data().len(), expected.len(), "{rows:?}");
        assert!(rows.data().iter().zip(expected).all(|(a, b)| (a - b).abs() < 0.03), "{rows:?}");
    }
    let again = extract(&videos, &store, Shard::WHOLE).unwrap();
    assert_eq!((again.resumed, again.rows), (3, 0));
    let in_memory = extract_video(&Ffmpeg::on_path(), &root.join("a.mp4"), &Brightness, &Progress::new()).unwrap();
    assert_eq!(in_memory.features, rows("a"));
    assert_eq!(in_memory.decoded.seconds, 4.0);
}

/// Fails at its second call.
struct Fails(std::sync::atomic::AtomicUsize);

impl ClipEncoder for Fails {
    fn name(&self) -> &str {
        "fails"
    }

    fn width(&self) -> usize {
        3
    }

    fn sampling(&self) -> Sampling {
        Brightness.sampling()
    }

    fn recipe(&self) -> Recipe {
        Brightness.recipe()
    }

    fn encode(&self, clips: &Clips) -> Result<Vec<Vec<f32>>> {
        match self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
            0 => Brightness.encode(clips),
            _ => Err(EncodeError::Sampling { problem: "no more".to_owned() }),
        }
    }
}

#[test]
fn an_encoder_that_fails_ends_the_work_and_leaves_no_half_video() {
    let folder = tempfile::tempdir().unwrap();
    let root = Utf8PathBuf::from_path_buf(folder.path().to_owned()).unwrap();
    // Long enough for more batches than may wait: without an end of its own the decoder would wait forever.
    make_film(&root.join("long.mp4"), 200);
    let videos = find(&[root.join("long.mp4")]);
    let (store, failing) = (root.join("store"), Fails(std::sync::atomic::AtomicUsize::new(0)));
    let error = extract_to_store(&videos, &failing, &store, &options(Shard::WHOLE), &Progress::new()).unwrap_err();
    assert_eq!(error.to_string(), "no more");
    assert_eq!(std::fs::read_dir(&store).unwrap().count(), 0);
}

#[test]
fn a_damaged_film_gives_its_rows_and_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let root = Utf8PathBuf::from_path_buf(folder.path().to_owned()).unwrap();
    make_film(&root.join("whole.mkv"), 6);
    let bytes = std::fs::read(root.join("whole.mkv")).unwrap();
    std::fs::write(root.join("cut.mkv"), &bytes[..bytes.len() * 2 / 3]).unwrap();
    let videos = find(&[root.join("cut.mkv")]);
    let report = extract(&videos, &root.join("store"), Shard::WHOLE).unwrap();
    assert_eq!((report.failed.len(), report.partial.len()), (0, 1), "{report:?}");
    assert!(report.rows >= 1 && report.partial[0].missing_seconds > 1.0, "{report:?}");
}

#[test]
fn an_unknown_encoder_and_one_without_weights_are_explained() {
    let options = EncoderOptions::default();
    let error = visual::open("i4d", &options).err().unwrap();
    assert_eq!(error.to_string(), "no encoder is called `i4d`");
    assert!(error.advice_in(Dialect::Terminal).unwrap().contains("i3d, "), "{:?}", error.advice_in(Dialect::Terminal));
    let error = visual::open("resnet152", &options).err().unwrap();
    assert!(matches!(error, EncodeError::NeedsWeights { encoder: "resnet152" }));
    let folder = tempfile::tempdir().unwrap();
    let path = Utf8PathBuf::from_path_buf(folder.path().join("weights.pth")).unwrap();
    std::fs::write(&path, "not weights at all").unwrap();
    let damaged = EncoderOptions { weights: Some(path.clone()), ..options };
    let error = visual::open("resnet152", &damaged).err().unwrap();
    assert!(error.to_string().contains("weights.pth"), "{error}");
    for (fps, frames, stride) in [(0.0, 1, 1), (f64::NAN, 1, 1), (1.0, 0, 1), (1.0, 4, 5), (1.0, 100_000, 1)] {
        let (fps, frames, stride) = (Some(fps), Some(frames), Some(stride));
        let asked = EncoderOptions { fps, frames, stride, weights: Some(path.clone()), ..EncoderOptions::default() };
        assert!(visual::open("resnet152", &asked).is_err());
    }
}

#[test]
fn concepts_find_the_film_and_the_clip_that_a_sentence_describes() {
    if [pulled("i3d"), pulled("efficientnet-lite0"), pulled("minilm")].iter().any(Option::is_none) {
        return;
    }
    let Some(videos) = shared_videos() else { return };
    let cache = cuemark_testkit::weights("i3d").map(Cache::at);
    let joint = joint("concepts", &EncoderOptions { cache, ..EncoderOptions::default() }).unwrap();
    let sentence = joint.text.encode(&["two men arm wrestling"]).unwrap().remove(0);
    let cosine = |row: &[f32]| {
        let dot: f32 = row.iter().zip(&sentence).map(|(a, b)| a * b).sum();
        dot / row.iter().map(|x| x * x).sum::<f32>().sqrt()
    };
    let scores = |film: &Utf8Path| -> Vec<f32> {
        let extracted = extract_video(&Ffmpeg::on_path(), film, joint.clips.as_ref(), &Progress::new()).unwrap();
        (0..extracted.features.rows()).filter_map(|row| extracted.features.row(row)).map(cosine).collect()
    };
    let best_of = |scores: &[f32]| (0..scores.len()).max_by(|a, b| scores[*a].total_cmp(&scores[*b])).unwrap();
    let mut best = Vec::new();
    for file in find(std::slice::from_ref(&videos)) {
        let scores = scores(&file.path);
        best.push((scores[best_of(&scores)], file.video.to_string(), scores));
    }
    best.sort_by(|a, b| b.0.total_cmp(&a.0));
    assert_eq!(best[0].1, "mmaction2_demo", "{best:?}");
    assert!(best[0].0 > 1.5 * best[1].0, "{best:?}");

    // One film of four seconds of each, in which the clip is known: they wrestle from 4 s to 8 s.
    let folder = tempfile::tempdir().unwrap();
    let film = Utf8PathBuf::from_path_buf(folder.path().join("joined.mkv")).unwrap();
    let parts = ["vtimellm_demo", "mmaction2_demo", "univtg_charades"].map(|name| videos.join(format!("{name}.mp4")));
    join_parts(&parts, 4, &film);
    let scores = scores(&film);
    let clip = joint.clips.sampling().clip_len().unwrap().seconds();
    let middle = (best_of(&scores) as f64 + 0.5) * clip;
    assert!((4.0..8.0).contains(&middle), "the best clip lies at {middle} s: {scores:?}");
}

/// The first `seconds` of each part, one after the other in one film.
fn join_parts(parts: &[Utf8PathBuf], seconds: u32, film: &Utf8Path) {
    let mut command = std::process::Command::new("ffmpeg");
    command.args(["-v", "error"]);
    for part in parts {
        command.args(["-t", &seconds.to_string(), "-i", part.as_str()]);
    }
    let alike = |part: usize| format!("[{part}:v]scale=340:256,setsar=1,fps=25[p{part}];");
    let names: String = (0..parts.len()).map(|part| format!("[p{part}]")).collect();
    let filter: String = (0..parts.len()).map(alike).collect();
    let filter = format!("{filter}{names}concat=n={}:v=1:a=0", parts.len());
    let status = command.args(["-filter_complex", &filter, film.as_str()]).status().unwrap();
    assert!(status.success(), "ffmpeg cannot join {parts:?}");
}

#[test]
fn the_worlds_eyes_are_encoders_like_any_other() {
    use cuemark_features::sight::{ClipView, Picture, Strength};
    let mut rng = cuemark_core::Rng::new(3);
    let rgb: Vec<u8> = (0..2 * 6 * 3 * 64 * 48).map(|_| (rng.bits32() >> 24) as u8).collect();
    let clips = Clips::from_rgb(6, [64, 48], rgb.clone()).unwrap();
    for (name, strength) in ["world-weak", "world-shape", "world-motion"].into_iter().zip(Strength::ALL) {
        let eyes = visual::open(name, &EncoderOptions::default()).unwrap();
        let rows = eyes.encode(&clips).unwrap();
        assert_eq!((eyes.name(), eyes.width(), eyes.recipe().extractor.as_str()), (name, strength.width(), name));
        let pictures: Vec<Picture> =
            rgb.chunks(3 * 64 * 48).map(|rgb| Picture { width: 64, height: 48, rgb }).collect();
        let seen: Vec<Vec<f32>> = pictures.chunks(6).map(|clip| ClipView::of(clip).seen(strength).to_vec()).collect();
        assert_eq!(rows, seen);
    }
    assert!(visual::open("world-blind", &EncoderOptions::default()).is_err());
}
