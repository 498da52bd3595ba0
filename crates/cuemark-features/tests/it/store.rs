//! Stores written, read back, and damaged in every way a disk or a stranger can.

use std::collections::BTreeMap;

use camino::Utf8PathBuf;
use cuemark_core::Advise as _;
use cuemark_core::{ClipLen, Rng, VideoId};
use cuemark_features::{FeatureError, FeatureStore, Features, Recipe, StoreWriter, VideoFeatures};
use cuemark_formats::Overwrite;

fn recipe(width: usize, clip_seconds: f64) -> Recipe {
    Recipe {
        extractor: "test".to_owned(),
        weights: None,
        fps: Some(6.0),
        row_time: ClipLen::new(clip_seconds).unwrap().into(),
        width,
        resize: Some([64, 48]),
        settings: BTreeMap::new(),
    }
}

fn recipes() -> BTreeMap<String, Recipe> {
    BTreeMap::from([("visual".to_owned(), recipe(3, 1.5)), ("subtitle".to_owned(), recipe(2, 2.0))])
}

fn folder() -> (tempfile::TempDir, Utf8PathBuf) {
    let guard = tempfile::tempdir().unwrap();
    let path = Utf8PathBuf::from_path_buf(guard.path().to_owned()).unwrap();
    (guard, path)
}

/// Numbers that say where they belong: video, row and column.
fn features(video: usize, rows: usize, width: usize) -> Features {
    let number = |at: usize| (video * 10_000 + at / width * 100 + at % width) as f32;
    Features::new(rows, width, (0..rows * width).map(number).collect()).unwrap()
}

fn video(number: usize) -> VideoFeatures {
    let mut streams = vec![("visual".to_owned(), features(number, 2 + number, 3))];
    if number.is_multiple_of(2) {
        streams.push(("subtitle".to_owned(), features(number, 4, 2)));
    }
    VideoFeatures { video: VideoId::new(format!("a/video {number}")), streams }
}

fn write(folder: &Utf8PathBuf) {
    let writer = StoreWriter::create(folder, recipes(), Overwrite::Never).unwrap();
    writer.write_shard(0, &[video(0), video(1)]).unwrap();
    writer.write_shard(1, &[video(3), video(2)]).unwrap();
}

#[test]
fn a_shard_that_somebody_shortens_in_place_gives_an_error() {
    let (_guard, folder) = folder();
    write(&folder);
    let store = FeatureStore::open(&folder).unwrap();
    let videos: Vec<_> = store.videos("visual").into_iter().cloned().collect();
    assert!(videos.iter().all(|video| store.get(video, "visual").is_ok()));
    for shard in ["shard-00000.safetensors", "shard-00001.safetensors"] {
        let file = std::fs::File::options().write(true).open(folder.join(shard)).unwrap();
        // Mapped, the next look at a number would end the process with SIGBUS.
        file.set_len(0).unwrap();
    }
    for video in &videos {
        let message = store.get(video, "visual").unwrap_err().to_string();
        assert!(message.contains("reaches past the end of the file"), "{message}");
    }
}

#[test]
fn every_video_and_stream_comes_back_as_it_went_in() {
    let (_guard, folder) = folder();
    write(&folder);
    let store = FeatureStore::open(&folder).unwrap();
    for number in 0..4 {
        for (stream, expected) in video(number).streams {
            assert_eq!(store.get(&video(number).video, &stream).unwrap(), expected);
            assert_eq!(store.rows(&video(number).video, &stream), Some(expected.rows()));
        }
    }
    assert_eq!(store.videos("visual").len(), 4);
    assert_eq!(store.videos("subtitle").len(), 2);
    assert_eq!(store.clip_len("visual").unwrap().seconds(), 1.5);
    assert_eq!(store.clip_len("subtitle").unwrap().seconds(), 2.0);
}

#[test]
fn what_is_not_there_is_named() {
    let (_guard, folder) = folder();
    write(&folder);
    let store = FeatureStore::open(&folder).unwrap();
    let message = store.get(&VideoId::new("nobody"), "visual").unwrap_err().to_string();
    assert!(message.contains("`nobody`") && message.contains("`visual`"), "{message}");
    let message = store.get(&VideoId::new("nobody"), "audio").unwrap_err().to_string();
    assert!(message.ends_with("has no stream `audio`; it has `subtitle`, `visual`"), "{message}");
    assert!(store.get(&video(1).video, "subtitle").is_err());
}

#[test]
fn an_empty_folder_is_no_store() {
    let (_guard, folder) = folder();
    let error = FeatureStore::open(&folder).unwrap_err();
    assert!(error.to_string().contains("holds no `.safetensors` shard"), "{error}");
    assert!(error.advice().is_some());
}

#[test]
fn the_same_features_give_the_same_bytes_in_any_order() {
    let ((_a, first), (_b, second)) = (folder(), folder());
    let bytes = |folder: &Utf8PathBuf, videos: &[VideoFeatures]| {
        let writer = StoreWriter::create(folder, recipes(), Overwrite::Never).unwrap();
        writer.write_shard(7, videos).unwrap();
        std::fs::read(folder.join("shard-00007.safetensors")).unwrap()
    };
    assert_eq!(bytes(&first, &[video(0), video(1)]), bytes(&second, &[video(1), video(0)]));
}

#[test]
fn stopped_work_is_resumed_and_other_recipes_are_refused() {
    let (_guard, folder) = folder();
    write(&folder);
    let again = StoreWriter::create(&folder, recipes(), Overwrite::Never).unwrap();
    assert!(again.has_shard(0) && again.has_shard(1) && !again.has_shard(2));
    assert!(again.write_shard(1, &[video(5)]).is_err(), "a finished shard is not replaced");
    let mut other = recipes();
    other.insert("visual".to_owned(), recipe(3, 1.0));
    let refused = StoreWriter::create(&folder, other.clone(), Overwrite::Never).unwrap_err();
    assert!(matches!(refused, FeatureError::OtherRecipe { .. }));
    let forced = StoreWriter::create(&folder, other, Overwrite::Force).unwrap();
    assert!(!forced.has_shard(0));
}

#[test]
fn features_that_do_not_fit_are_not_written() {
    let (_guard, folder) = folder();
    let writer = StoreWriter::create(&folder, recipes(), Overwrite::Never).unwrap();
    let visual =
        |features: Features| VideoFeatures { video: VideoId::new("v"), streams: vec![("visual".to_owned(), features)] };
    let wide = writer.write_shard(0, &[visual(features(0, 2, 4))]).unwrap_err().to_string();
    assert_eq!(wide, "video `v`: `visual` is 4 wide, its recipe says 3");
    let nan = Features::new(2, 3, vec![0.0, 0.0, 0.0, 0.0, f32::NAN, 0.0]).unwrap();
    let nan = writer.write_shard(0, &[visual(nan)]).unwrap_err().to_string();
    assert_eq!(nan, "video `v`: `visual` row 1 holds a number that is not finite");
    assert!(writer.write_shard(0, &[visual(features(0, 2, 3)), visual(features(1, 2, 3))]).is_err());
    assert!(!writer.has_shard(0));
}

#[test]
fn a_video_in_two_shards_is_refused() {
    let (_guard, folder) = folder();
    let writer = StoreWriter::create(&folder, recipes(), Overwrite::Never).unwrap();
    writer.write_shard(0, &[video(1)]).unwrap();
    writer.write_shard(1, &[video(1)]).unwrap();
    let message = FeatureStore::open(&folder).unwrap_err().to_string();
    assert!(message.contains("`visual/a/video 1`") && message.contains("shard-00000.safetensors too"), "{message}");
}

#[test]
fn rows_that_are_not_finite_are_counted_by_a_check_and_refused_by_a_read() {
    let (_guard, folder) = folder();
    write(&folder);
    let path = folder.join("shard-00000.safetensors");
    let mut bytes = std::fs::read(&path).unwrap();
    // The last number of the shard belongs to the last row of the tensor that sorts last: `visual/a/video 1`.
    let end = bytes.len();
    bytes[end - 4..].copy_from_slice(&f32::NAN.to_le_bytes());
    std::fs::write(&path, &bytes).unwrap();
    let store = FeatureStore::open(&folder).unwrap();
    let check = store.check().unwrap();
    assert_eq!((check.tensors, check.rows, check.bad_rows), (6, 2 + 3 + 4 + 5 + 4 + 4, 1));
    let message = store.get(&video(1).video, "visual").unwrap_err().to_string();
    assert!(message.ends_with("`visual/a/video 1`: row 2 holds a number that is not finite"), "{message}");
    assert!(store.get(&video(0).video, "visual").is_ok());
}

/// A shard whose header is `json` and whose data is `data` zeros.
fn crafted(json: &str, data: usize) -> Vec<u8> {
    let mut bytes = (json.len() as u64).to_le_bytes().to_vec();
    bytes.extend(json.as_bytes());
    bytes.resize(bytes.len() + data, 0);
    bytes
}

fn open_error(bytes: &[u8]) -> String {
    let (_guard, folder) = folder();
    std::fs::write(folder.join("shard-00000.safetensors"), bytes).unwrap();
    FeatureStore::open(&folder).map(|_| ()).unwrap_err().to_string()
}

const GOOD_META: &str = r#""__metadata__":{"cuemark":"{\"version\":1,\"streams\":{\"visual\":{\"extractor\":\"x\",\"clip_seconds\":1,\"width\":2}}}"}"#;

/// What [`GOOD_META`] says about the length of a clip.
const SECONDS: &str = r#"\"clip_seconds\":1,"#;

fn header(tensors: &str) -> String {
    format!("{{{GOOD_META},{tensors}}}")
}

#[test]
fn headers_that_lie_are_refused_with_a_reason() {
    let tensor = |name: &str, dtype: &str, shape: &str, offsets: &str| {
        header(&format!(r#""{name}":{{"dtype":"{dtype}","shape":{shape},"data_offsets":{offsets}}}"#))
    };
    let good = tensor("visual/v", "F32", "[3,2]", "[0,24]");
    let spanning = |tensor: &str, seconds: &str| {
        let covers = format!(r#"\"covers\":{{\"{tensor}\":{seconds}}},\"streams\""#);
        good.replace(SECONDS, r#"\"rows_span_duration\":true,"#).replace(r#"\"streams\""#, &covers)
    };
    let (_guard, folder) = folder();
    std::fs::write(folder.join("shard-00000.safetensors"), crafted(&good, 24)).unwrap();
    assert!(FeatureStore::open(&folder).is_ok(), "the pattern that the cases below break");
    std::fs::write(folder.join("shard-00000.safetensors"), crafted(&spanning("visual/v", "9"), 24)).unwrap();
    let store = FeatureStore::open(&folder).unwrap();
    assert_eq!(store.clip_len_of(&VideoId::from("v"), "visual").unwrap().seconds(), 3.0);

    for (bytes, reason) in [
        (crafted(&good, 23), "no safetensors"),
        (crafted(&good, 25), "no safetensors"),
        (crafted(&tensor("visual/v", "F32", "[3,2]", "[8,32]"), 32), "no safetensors"),
        (crafted(&tensor("visual/v", "F32", "[3,2]", "[24,0]"), 24), "no safetensors"),
        (crafted(&tensor("visual/v", "F32", "[4,2]", "[0,24]"), 24), "no safetensors"),
        (crafted(&tensor("visual/v", "F32", "[18446744073709551615,2]", "[0,24]"), 24), "no safetensors"),
        (crafted(&tensor("visual/v", "F32", "[2,3]", "[0,24]"), 24), "is 3 wide, its recipe says 2"),
        (crafted(&tensor("visual/v", "F32", "[6]", "[0,24]"), 24), "shape [6] is not [clips, width]"),
        (crafted(&tensor("visual/v", "BF16", "[6,2]", "[0,24]"), 24), "holds BF16, not F32 or F16"),
        (crafted(&tensor("audio/v", "F32", "[3,2]", "[0,24]"), 24), "no recipe for stream `audio`"),
        (crafted(&tensor("v", "F32", "[3,2]", "[0,24]"), 24), "is not named `STREAM/VIDEO`"),
        (crafted("{}", 0), "has no `cuemark` entry"),
        (crafted(&good.replace(r#"\"version\":1"#, r#"\"version\":9"#), 24), "layout version 9"),
        (crafted(&good.replace(r#"\"clip_seconds\":1,"#, ""), 24), "clip_seconds"),
        (crafted(&good.replace(SECONDS, r#"\"rows_span_duration\":true,"#), 24), "no seconds that its rows cover"),
        (crafted(&spanning("visual/v", "0"), 24), "3 rows cannot cover 0 seconds"),
        (crafted(&spanning("visual/other", "9"), 24), "no seconds that its rows cover"),
        (u64::MAX.to_le_bytes().to_vec(), "no safetensors"),
        (Vec::new(), "no safetensors"),
    ] {
        let message = open_error(&bytes);
        assert!(message.contains(reason), "{message:?} should say {reason:?}");
    }
}

#[test]
fn no_mutation_of_a_shard_makes_the_reader_panic() {
    let (_guard, folder) = folder();
    write(&folder);
    let original = std::fs::read(folder.join("shard-00000.safetensors")).unwrap();
    std::fs::remove_file(folder.join("shard-00001.safetensors")).unwrap();
    let mut rng = Rng::new(5);
    for _ in 0..2_000 {
        let mut bytes = original.clone();
        for _ in 0..=rng.below(4) {
            let at = rng.below(bytes.len());
            bytes[at] = rng.below(256) as u8;
        }
        bytes.truncate(if rng.chance(0.3) { rng.below(bytes.len()) } else { bytes.len() });
        std::fs::write(folder.join("shard-00000.safetensors"), &bytes).unwrap();
        if let Ok(store) = FeatureStore::open(&folder) {
            let _ = store.check();
            for video in store.videos("visual") {
                let _ = store.get(video, "visual");
            }
        }
    }
}

#[test]
fn rows_that_went_through_a_spool_make_the_same_shard() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| camino::Utf8PathBuf::from_path_buf(folder.path().join(name)).unwrap();
    let recipe = serde_json::from_str(r#"{"extractor":"x","clip_seconds":1.5,"width":3}"#).unwrap();
    let recipes = std::collections::BTreeMap::from([("visual".to_owned(), recipe)]);
    let writer = |name: &str| StoreWriter::create(&at(name), recipes.clone(), Overwrite::Never).unwrap();
    let (whole, streamed) = (writer("whole"), writer("streamed"));
    let (video, rows) = (VideoId::new("a \"video\"/x"), [[1.0, 2.0, 3.0], [-4.5, 0.0, 1e-3]]);
    let features = Features::new(2, 3, rows.concat()).unwrap();
    let videos = [VideoFeatures { video: video.clone(), streams: vec![("visual".to_owned(), features)] }];
    whole.write_shard(7, &videos).unwrap();
    let mut spool = streamed.spool(7, "visual").unwrap();
    assert!(spool.push(&video, &[1.0]).is_err());
    assert!(spool.push(&video, &[1.0, f32::NAN, 0.0]).is_err());
    rows.iter().for_each(|row| spool.push(&video, row).unwrap());
    streamed.write_spooled(7, &video, spool).unwrap();
    let shard = |name: &str| std::fs::read(at(name).join("shard-00007.safetensors")).unwrap();
    assert_eq!(shard("whole"), shard("streamed"));
    assert_eq!(streamed.finished().unwrap(), std::collections::BTreeMap::from([(7, vec![video])]));
    // Nothing else is left in the folder, also after rows that were given up.
    drop(streamed.spool(8, "visual").unwrap());
    assert_eq!(std::fs::read_dir(at("streamed")).unwrap().count(), 1);
}
