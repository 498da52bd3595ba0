//! Conversion: what goes in comes out, changed only as asked, and stopped work is resumed.

use std::collections::BTreeMap;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::{ClipLen, Progress, VideoId};
use cuemark_features::{
    ConvertOptions, FeatureError, FeatureSource, FeatureStore, Features, Normalise, OpenOptions, Pca, Precision,
    Recipe, Resample, RowTime, StoreWriter, VideoFeatures, compare, convert, open, sample_rows,
};
use cuemark_formats::Overwrite;
use cuemark_testkit::fixture;
use proptest::prelude::*;

fn folder() -> (tempfile::TempDir, Utf8PathBuf) {
    let guard = tempfile::tempdir().unwrap();
    let path = Utf8PathBuf::from_path_buf(guard.path().to_owned()).unwrap();
    (guard, path)
}

fn clip(seconds: f64) -> RowTime {
    RowTime::Clip(ClipLen::new(seconds).unwrap())
}

fn published(layout: &str, row_time: Option<RowTime>) -> Arc<dyn FeatureSource> {
    let durations = [("3MSZA", 8.0), ("a b.mp4", 9.0), ("v_long", 10.0)];
    let durations = Arc::new(durations.map(|(video, seconds)| (VideoId::from(video), seconds)).into_iter().collect());
    open(&fixture("features").join(layout), &OpenOptions { row_time, durations, ..OpenOptions::default() }).unwrap()
}

fn converted(source: &dyn FeatureSource, out: &Utf8Path, options: &ConvertOptions) -> FeatureStore {
    convert(source, out, options, &Progress::new()).unwrap();
    FeatureStore::open(out).unwrap()
}

#[test]
fn published_features_become_a_store_that_says_how_it_was_made() {
    let (_guard, folder) = folder();
    let source = published("npy", Some(clip(1.5)));
    let store = converted(source.as_ref(), &folder, &ConvertOptions::default());
    assert_eq!(store.clip_len("visual").unwrap().seconds(), 1.5);
    assert_eq!(store.recipe("visual").unwrap().extractor, "npy");
    assert_eq!(store.recipe("visual").unwrap().settings["layout"], "npy");
    for video in source.videos("visual") {
        assert_eq!(store.get(video, "visual").unwrap(), source.get(video, "visual").unwrap());
    }
    let same = compare(source.as_ref(), &store, "visual", &Progress::new()).unwrap();
    assert_eq!((same.clips, same.mean, same.min, same.only_first, same.only_second), (10, Some(1.0), Some(1.0), 0, 0));
}

#[test]
fn without_a_clip_length_nothing_is_written() {
    let (_guard, folder) = folder();
    let out = folder.join("store");
    let error =
        convert(published("npy", None).as_ref(), &out, &ConvertOptions::default(), &Progress::new()).unwrap_err();
    assert!(matches!(error, FeatureError::NoClipLen { .. }), "{error}");
    assert!(!out.exists());
}

#[test]
fn rows_that_span_a_duration_keep_it() {
    let (_guard, folder) = folder();
    let source = published("npy", Some(RowTime::SpanDuration));
    let store = converted(source.as_ref(), &folder, &ConvertOptions::default());
    assert_eq!(store.clip_len_of(&"3MSZA".into(), "visual").unwrap().seconds(), 4.0);
    assert_eq!(store.clip_len_of(&"v_long".into(), "visual").unwrap().seconds(), 2.0);
    assert!(matches!(store.clip_len("visual"), Err(FeatureError::ClipLenByVideo { .. })));
}

#[test]
fn resampled_rows_share_the_time_and_cut_rows_take_it_with_them() {
    let source = published("npy", Some(clip(2.0)));
    let with = |rule| {
        let (guard, folder) = folder();
        let options = ConvertOptions { resample: Some(rule), ..ConvertOptions::default() };
        (converted(source.as_ref(), &folder, &options), guard)
    };
    let video = VideoId::from("v_long");
    // Five clips of two seconds make four rows of two and a half.
    let (binned, _guard) = with(Resample::MeanBins { rows: 4 });
    assert_eq!(binned.clip_len_of(&video, "visual").unwrap().seconds(), 2.5);
    assert_eq!(binned.rows(&video, "visual"), Some(4));
    assert_eq!(binned.recipe("visual").unwrap().settings["resample"], "mean-bins:4");
    let (cut, _guard) = with(Resample::Cut { rows: 4 });
    assert_eq!(cut.clip_len("visual").unwrap().seconds(), 2.0);
    assert_eq!(cut.rows(&video, "visual"), Some(4));
    // Cutting rows that span a duration leaves them as long as they were.
    let (_guard, folder) = folder();
    let options = ConvertOptions { resample: Some(Resample::Cut { rows: 4 }), ..ConvertOptions::default() };
    let spanning = converted(published("npy", Some(RowTime::SpanDuration)).as_ref(), &folder, &options);
    assert_eq!(spanning.clip_len_of(&video, "visual").unwrap().seconds(), 2.0);
    assert_eq!(spanning.clip_len_of(&"3MSZA".into(), "visual").unwrap().seconds(), 4.0);
}

#[test]
fn rows_are_projected_then_normalised_then_resampled() {
    let (_guard, folder) = folder();
    let source = published("npy", Some(clip(1.0)));
    let sample = sample_rows(source.as_ref(), "visual", 100, 7).unwrap();
    assert_eq!((sample.rows(), sample.width()), (10, 4), "every row there is");
    let pca = Pca::fit(&sample, 2).unwrap();
    let resample = Some(Resample::Cut { rows: 1 });
    let options =
        ConvertOptions { pca: Some(pca.clone()), normalise: Normalise::L2, resample, ..ConvertOptions::default() };
    let store = converted(source.as_ref(), &folder, &options);
    let video = VideoId::from("v_long");
    let by_hand = Normalise::L2.apply(pca.apply(&source.get(&video, "visual").unwrap()).unwrap());
    assert_eq!(store.get(&video, "visual").unwrap().data(), by_hand.row(0).unwrap());
    let recipe = store.recipe("visual").unwrap();
    assert_eq!((recipe.width, recipe.settings["normalise"].as_str()), (2, "l2"));
    assert!(recipe.settings["pca"].starts_with("2 of 4, "), "{recipe:?}");
}

#[test]
fn half_precision_keeps_three_digits_in_half_the_room() {
    let (full, half) = (folder(), folder());
    let source = published("npy", Some(clip(1.0)));
    let store =
        converted(source.as_ref(), &half.1, &ConvertOptions { precision: Precision::F16, ..Default::default() });
    converted(source.as_ref(), &full.1, &ConvertOptions::default());
    // Whole numbers up to 2048 are exact.
    assert_eq!(store.get(&"v_long".into(), "visual").unwrap(), source.get(&"v_long".into(), "visual").unwrap());
    let numbers = |folder: &Utf8Path| {
        let bytes = std::fs::read(folder.join("shard-00000.safetensors")).unwrap();
        bytes.len() as u64 - 8 - u64::from_le_bytes(*bytes.first_chunk().unwrap())
    };
    assert_eq!((numbers(&full.1), numbers(&half.1)), (10 * 4 * 4, 10 * 4 * 2));
    let writer = StoreWriter::create(&half.1.join("large"), recipes(1), Overwrite::Never).unwrap();
    let large = VideoFeatures {
        video: "v".into(),
        streams: vec![("visual".to_owned(), Features::new(1, 1, vec![70_000.0]).unwrap())],
    };
    let error = writer.with_precision(Precision::F16).write_shard(0, &[large]).unwrap_err().to_string();
    assert_eq!(error, "video `v`: `visual` holds 70000, more than `f16` can");
}

fn recipes(width: usize) -> BTreeMap<String, Recipe> {
    let recipe = Recipe {
        extractor: "test".to_owned(),
        weights: None,
        fps: None,
        row_time: clip(1.0),
        width,
        resize: None,
        settings: BTreeMap::new(),
    };
    BTreeMap::from([("visual".to_owned(), recipe)])
}

fn many(folder: &Utf8Path, videos: usize) -> FeatureStore {
    let writer = StoreWriter::create(folder, recipes(2), Overwrite::Never).unwrap();
    let video = |at: usize| VideoFeatures {
        video: VideoId::new(format!("v{at:04}")),
        streams: vec![("visual".to_owned(), Features::new(2, 2, vec![at as f32; 4]).unwrap())],
    };
    writer.write_shard(0, &(0..videos).map(video).collect::<Vec<_>>()).unwrap();
    FeatureStore::open(folder).unwrap()
}

#[test]
fn stopped_work_is_resumed_and_other_videos_are_not_mixed_in() {
    let (_guard, folder) = folder();
    let source = many(&folder.join("in"), 150);
    let out = folder.join("out");
    let run = |source: &dyn FeatureSource, overwrite| {
        convert(source, &out, &ConvertOptions { overwrite, ..ConvertOptions::default() }, &Progress::new())
    };
    let first = run(&source, Overwrite::Never).unwrap();
    assert_eq!((first.videos, first.resumed, first.rows), (150, 0, 300));
    let bytes = |shard: &str| std::fs::read(out.join(shard)).unwrap();
    let before = bytes("shard-00001.safetensors");
    std::fs::remove_file(out.join("shard-00001.safetensors")).unwrap();
    let second = run(&source, Overwrite::Never).unwrap();
    assert_eq!((second.videos, second.resumed, second.rows), (150, 150 - 64, 128));
    assert_eq!(bytes("shard-00001.safetensors"), before);
    let fewer = many(&folder.join("fewer"), 149);
    let error = run(&fewer, Overwrite::Never).unwrap_err();
    assert!(error.to_string().contains("shard 2 holds other videos"), "{error}");
    assert_eq!(run(&fewer, Overwrite::Force).unwrap().resumed, 0);
    assert_eq!(FeatureStore::open(&out).unwrap().videos("visual").len(), 149);
    let error = convert(&fewer, &folder.join("fewer"), &ConvertOptions::default(), &Progress::new()).unwrap_err();
    assert!(error.to_string().contains("is what the features are read from"), "{error}");
}

#[test]
fn a_video_of_another_width_is_named() {
    let (_guard, folder) = folder();
    std::fs::write(folder.join("a.csv"), "1,2\n").unwrap();
    std::fs::write(folder.join("b.csv"), "1,2,3\n").unwrap();
    let source = open(&folder, &OpenOptions { row_time: Some(clip(1.0)), ..OpenOptions::default() }).unwrap();
    let out = folder.join("store");
    let error = convert(source.as_ref(), &out, &ConvertOptions::default(), &Progress::new()).unwrap_err().to_string();
    assert_eq!(error, "video `b`: `visual` is 3 wide, its recipe says 2");
    assert_eq!(out.read_dir().unwrap().count(), 0, "no half of a store");
    assert!(sample_rows(source.as_ref(), "visual", 100, 0).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn a_store_converted_is_the_store(
        videos in prop::collection::btree_map("[a-z /.é]{1,12}", prop::collection::vec(-1e4f32..1e4, 3..30), 1..6),
        seconds in 0.1f64..10.0,
    ) {
        let (_guard, folder) = folder();
        let mut recipes = recipes(3);
        recipes.get_mut("visual").unwrap().row_time = clip(seconds);
        let writer = StoreWriter::create(&folder.join("in"), recipes, Overwrite::Never).unwrap();
        let videos: Vec<VideoFeatures> = videos.into_iter().map(|(video, mut data)| {
            data.truncate(data.len() / 3 * 3);
            let features = Features::new(data.len() / 3, 3, data).unwrap();
            VideoFeatures { video: VideoId::new(video), streams: vec![("visual".to_owned(), features)] }
        }).collect();
        writer.write_shard(0, &videos).unwrap();
        let source = FeatureStore::open(&folder.join("in")).unwrap();
        let store = converted(&source, &folder.join("out"), &ConvertOptions::default());
        prop_assert_eq!(store.recipes(), source.recipes());
        prop_assert_eq!(store.videos("visual").len(), videos.len());
        for VideoFeatures { video, streams } in &videos {
            prop_assert_eq!(&store.get(video, "visual").unwrap(), &streams[0].1);
        }
    }
}
