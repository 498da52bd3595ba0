//! Three small videos in every published layout, as the libraries of other people wrote them (`fixtures/features/make.py`).

use std::sync::Arc;

use cuemark_core::{Advise as _, Dialect};
use cuemark_core::{ClipLen, VideoId};
use cuemark_features::{FeatureError, FeatureSource, Joined, Layout, OpenOptions, RowTime, open};
use cuemark_testkit::fixture;

const VIDEOS: [(&str, usize); 3] = [("3MSZA", 2), ("a b.mp4", 3), ("v_long", 5)];

/// Number `c` of row `r` of video `v` is 100 v + 10 r + c.
fn number(video: usize, row: usize, column: usize) -> f32 {
    (100 * video + 10 * row + column) as f32
}

fn rows(video: usize, rows: std::ops::Range<usize>) -> Vec<f32> {
    rows.flat_map(|row| (0..4).map(move |column| number(video, row, column))).collect()
}

fn opened(path: &str, options: &OpenOptions) -> Arc<dyn FeatureSource> {
    open(&fixture("features").join(path), options).unwrap()
}

fn layout(source: &dyn FeatureSource) -> Layout {
    source.origin("visual").unwrap().layout
}

fn holds_the_three_videos(path: &str, expected: Layout) {
    let source = opened(path, &OpenOptions::default());
    assert_eq!(layout(source.as_ref()), expected);
    let names: Vec<&str> = source.videos("visual").iter().map(|video| video.as_str()).collect();
    assert_eq!(names, VIDEOS.map(|(name, _)| name), "{path}");
    for (at, (name, count)) in VIDEOS.iter().enumerate() {
        let features = source.get(&VideoId::from(*name), "visual").unwrap();
        assert_eq!((features.rows(), features.width()), (*count, 4), "{path}: {name}");
        assert_eq!(features.data(), rows(at, 0..*count), "{path}: {name}");
    }
}

#[test]
fn numpy_arrays_of_every_shape_order_and_kind_are_read() {
    holds_the_three_videos("npy", Layout::Npy);
}

#[test]
fn archives_are_read_by_the_names_of_their_arrays() {
    holds_the_three_videos("npz", Layout::Npz);
    let array = |name: &str| OpenOptions { array: Some(name.to_owned()), ..OpenOptions::default() };
    let query = VideoId::from("qid7");
    let words = opened("npz-queries", &OpenOptions::default()).get(&query, "visual").unwrap();
    assert_eq!((words.rows(), words.data()), (2, rows(0, 0..2).as_slice()));
    let pooled = opened("npz-queries", &array("pooler_output")).get(&query, "visual").unwrap();
    assert_eq!((pooled.rows(), pooled.data()), (1, rows(2, 0..1).as_slice()));
    let error = opened("npz-queries", &array("nothing")).get(&query, "visual").unwrap_err();
    assert!(error.to_string().contains("holds no array `nothing`; it holds `last_hidden_state.npy`"), "{error}");
    let prefix = OpenOptions { prefix: Some("qid".to_owned()), ..OpenOptions::default() };
    assert_eq!(opened("npz-queries", &prefix).videos("visual"), [&VideoId::from("7")]);
}

#[test]
fn lines_of_numbers_are_read() {
    holds_the_three_videos("csv", Layout::Csv);
}

#[test]
fn big_files_are_read_in_the_order_of_each_video() {
    holds_the_three_videos("bigfile", Layout::BigFile);
}

#[test]
fn pytorch_files_are_read_one_or_many() {
    holds_the_three_videos("videos.pt", Layout::Pt);
    holds_the_three_videos("pt-files", Layout::PtFiles);
}

#[test]
fn hdf5_is_read_flat_nested_and_one_file_per_video() {
    holds_the_three_videos("flat.h5", Layout::Hdf5);
    holds_the_three_videos("nested.hdf5", Layout::Hdf5);
    holds_the_three_videos("hdf5-files", Layout::Hdf5Files);
    let array = OpenOptions { array: Some("frames".to_owned()), ..OpenOptions::default() };
    let error = opened("nested.hdf5", &array).get(&"v_long".into(), "visual").unwrap_err();
    assert!(error.to_string().contains("not floating-point numbers"), "{error}");
}

/// Every number, byte order, filter and index of chunks that h5py writes; the numbers are those of video `v_long`.
#[test]
fn hdf5_is_read_whatever_h5py_was_told() {
    let expected = opened("csv", &OpenOptions::default()).get(&"v_long".into(), "visual").unwrap();
    for name in ["storage.h5", "storage-latest.h5"] {
        let store = opened(name, &OpenOptions::default());
        let videos = store.videos("visual");
        assert_eq!(videos.len(), 10, "{name}");
        for video in videos {
            let found = store.get(video, "visual").unwrap();
            assert_eq!(found.data(), expected.data(), "{name}: {video}");
        }
    }
}

/// Numbers and groups that lie in other files are not looked for.
#[test]
fn hdf5_never_leads_out_of_its_file() {
    let store = opened("outside.h5", &OpenOptions::default());
    let videos: Vec<String> = store.videos("visual").iter().map(ToString::to_string).collect();
    assert_eq!(videos, ["elsewhere", "here"]);
    assert!(store.get(&"here".into(), "visual").is_ok());
    assert!(store.get(&"elsewhere".into(), "visual").is_err());
}

#[cfg(feature = "lmdb")]
#[test]
fn lmdb_is_read_with_both_kinds_of_values() {
    holds_the_three_videos("lmdb", Layout::Lmdb);
}

#[cfg(not(feature = "lmdb"))]
#[test]
fn without_lmdb_the_error_says_how_to_build_with_it() {
    let error = open(&fixture("features/lmdb"), &OpenOptions::default()).unwrap_err();
    assert!(matches!(error, FeatureError::NotBuilt { feature: "lmdb", .. }), "{error}");
}

#[test]
fn windows_of_one_length_are_rows_in_the_order_of_their_start() {
    let error = open(&fixture("features/npy-windows"), &OpenOptions::default()).unwrap_err();
    assert!(error.to_string().ends_with("holds windows of 64, 128 frames"), "{error}");
    let of = |frames| OpenOptions { window: Some(frames), ..OpenOptions::default() };
    let source = opened("npy-windows", &of(64));
    assert_eq!(layout(source.as_ref()), Layout::NpyWindows);
    assert_eq!(source.get(&"s1-d1.avi".into(), "visual").unwrap().data(), rows(2, 0..3));
    assert_eq!(source.get(&"s2-d2.avi".into(), "visual").unwrap().data(), rows(1, 0..3));
    assert_eq!(opened("npy-windows", &of(128)).videos("visual").len(), 1);
}

#[test]
fn a_clip_length_is_what_somebody_said_or_an_error() {
    let video = VideoId::from("v_long");
    let unstated = opened("npy", &OpenOptions::default());
    let error = unstated.clip_len(&video, "visual", 5).unwrap_err();
    assert!(
        matches!(error, FeatureError::NoClipLen { .. })
            && error.advice_in(Dialect::Terminal).unwrap().contains("--clip-length")
    );
    let stated = OpenOptions { row_time: ClipLen::new(1.5).map(RowTime::Clip), ..OpenOptions::default() };
    assert_eq!(opened("npy", &stated).clip_len(&video, "visual", 5).unwrap().seconds(), 1.5);
    let durations = Arc::new([(video.clone(), 20.0)].into_iter().collect());
    let spanning = OpenOptions { row_time: Some(RowTime::SpanDuration), durations, ..OpenOptions::default() };
    let spanning = opened("npy", &spanning);
    assert_eq!(spanning.clip_len(&video, "visual", 5).unwrap().seconds(), 4.0);
    let error = spanning.clip_len(&"3MSZA".into(), "visual", 2).unwrap_err().to_string();
    assert_eq!(error, "no duration of video `3MSZA`, which its rows are said to span");
}

#[test]
fn a_missing_video_is_named_with_those_like_it_and_no_name_leads_out_of_the_folder() {
    let source = opened("npy", &OpenOptions::default());
    let error = source.get(&"long".into(), "visual").unwrap_err();
    assert!(error.to_string().contains("video `long`"), "{error}");
    assert!(
        error.advice_in(Dialect::Terminal).unwrap().ends_with("like it are `v_long`"),
        "{:?}",
        error.advice_in(Dialect::Terminal)
    );
    for outside in ["../npy/v_long", "/etc/passwd", "", ".", "../csv/v_long"] {
        assert!(matches!(source.get(&outside.into(), "visual"), Err(FeatureError::Missing { .. })), "{outside}");
    }
    assert!(matches!(source.get(&"v_long".into(), "subtitle"), Err(FeatureError::NoStream { .. })));
}

#[test]
fn streams_of_several_places_are_read_as_one() {
    let named = |stream: &str| OpenOptions { stream: stream.to_owned(), ..OpenOptions::default() };
    let visual = opened("npy", &named("visual"));
    let joined = Joined::new(vec![Arc::clone(&visual), opened("csv", &named("subtitle"))]).unwrap();
    assert_eq!(joined.streams(), ["subtitle", "visual"]);
    assert_eq!(joined.origin("subtitle").unwrap().layout, Layout::Csv);
    let video = VideoId::from("v_long");
    assert_eq!(joined.get(&video, "visual").unwrap(), joined.get(&video, "subtitle").unwrap());
    let error = joined.get(&video, "audio").unwrap_err().to_string();
    assert!(error.ends_with("has no stream `audio`; it has `subtitle`, `visual`"), "{error}");
    assert!(matches!(Joined::new(vec![Arc::clone(&visual), visual]), Err(FeatureError::StreamTwice { .. })));
}

#[test]
fn layouts_are_named_as_they_are_written() {
    for layout in Layout::ALL {
        assert_eq!(layout.name().parse::<Layout>().unwrap(), *layout);
    }
    let error = "hdf6".parse::<Layout>().unwrap_err();
    assert!(error.contains("there are safetensors, hdf5"), "{error}");
}
