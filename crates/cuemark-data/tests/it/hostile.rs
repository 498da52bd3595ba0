//! Files meant to break a reader: every one of them is read or refused with a named file, and none ends the process.

use cuemark_core::{Progress, Rng, RowPolicy};
use cuemark_data::subtitles::{SubtitleFormat, read_subtitles};
use cuemark_data::{
    DATASETS, DataError, Durations, ReadOptions, TruthFormat, check, load, read_ratings, read_reannotations, read_truth,
};
use cuemark_formats::{Limits, Source};

use crate::folders::{fixture, temporary};

const POLICIES: [RowPolicy; 4] = [RowPolicy::Keep, RowPolicy::Clamp, RowPolicy::Skip, RowPolicy::Error];

/// Gives `source` to every reader of this crate.
fn read_with_everything(source: &Source) {
    let _ = TruthFormat::of(source);
    for format in TruthFormat::ALL {
        read_with(*format, source);
    }
    let _ = Durations::read(source);
    let _ = read_ratings(source);
    let _ = read_reannotations(source);
    for format in [SubtitleFormat::TvrJsonl, SubtitleFormat::Srt, SubtitleFormat::WebVtt] {
        let _ = read_subtitles(source, Some(format), RowPolicy::Keep);
    }
}

fn read_with(format: TruthFormat, source: &Source) {
    for bad_rows in POLICIES {
        let options = ReadOptions { bad_rows, ..ReadOptions::default() };
        match read_truth(source, Some(format), &options) {
            Ok(split) => {
                // What was read keeps the promises of its types, however odd it is.
                for moment in split.queries.iter().flat_map(|truth| &truth.moments) {
                    let span = moment.moment.span;
                    assert!(0.0 <= span.start() && span.start() <= span.end() && span.end().is_finite());
                }
            }
            Err(error) => assert!(error.to_string().contains(source.path().as_str()), "{format}: {error}"),
        }
    }
}

/// The files of our own making with the name of what reads them.
fn fixtures() -> Vec<(TruthFormat, Source)> {
    let mut files = Vec::new();
    for card in DATASETS {
        for file in card.files {
            let mut names = std::iter::once(&file.path).chain(file.also);
            if let Some(source) = names.find_map(|name| Source::find(&fixture(card.name), name)) {
                files.push((file.layout.name.parse().unwrap(), source));
            }
        }
    }
    files
}

#[test]
fn odd_contents_never_end_the_process() {
    let deep = "[".repeat(100_000);
    let deep_object = "{\"a\":".repeat(100_000);
    let wide =
        format!("{{\"v\": {{\"duration\": 1, \"timestamps\": [{}], \"sentences\": []}}}}", "[0,1],".repeat(10_000));
    let contents: Vec<Vec<u8>> = [
        "",
        "\n\n\n",
        "null",
        "{}",
        "[]",
        "[[]]",
        "[{}]",
        "{\"v\": null}",
        "{\"v\": {}}",
        "{\"database\": {}}",
        "{\"videos\": [], \"sentences\": []}",
        "{\"v\": {\"duration\": NaN, \"timestamps\": [[NaN, 1]], \"sentences\": [\"x\"]}}",
        "{\"v\": {\"duration\": 1e308, \"timestamps\": [[-1e308, 1e308]], \"sentences\": [\"x\"]}}",
        "{\"v\": {\"duration\": -5, \"timestamps\": [[3, 1]], \"sentences\": [\"x\"]}}",
        "{\"v\": {\"duration\": 0, \"timestamps\": [[0, 0]], \"sentences\": [\"\"]}}",
        "{\"v\": {\"duration\": 1e999, \"timestamps\": [], \"sentences\": []}}",
        "{\"v\": {\"fps\": 0, \"num_frames\": 10, \"timestamps\": [[1, 2]], \"sentences\": [\"x\"]}}",
        "{\"v\": {\"fps\": 1e-308, \"num_frames\": 10, \"timestamps\": [[1, 2]], \"sentences\": [\"x\"]}}",
        "{\"v\": {\"fps\": -29.4, \"num_frames\": 10, \"timestamps\": [[1, 2]], \"sentences\": [\"x\"]}}",
        "A 1 2##x\nA NaN 2##x\n",
        "A inf -inf##x\n",
        "A -5 -2##x\nA 1e308 -1e308##x\n",
        "A 1 2 3##x\n",
        "no separator",
        "s1-d1.avi_1e308_-3:a#b#\n",
        "s1-d1.avi_NaN_3:#\n",
        ":",
        "#",
        "##",
        "a_b_c:",
        "HITId,video_id,description,start,end\nonly,three,columns\n",
        "pair_id,worker,relevance\n-1,2,3\n",
        "key,vid_key,video_id,sentence\n\"unclosed",
        "id,length\nA,-1\n",
        "id,length\nA,NaN\n",
        "qid,video,start,end\n1,a,NaN,3\n",
        "1 0 a:1-2 NaN\n",
        "WEBVTT\n\n99999999999999999999:00.000 --> 1:00.000\nx\n",
        "1\n00:00:02,000 --> 00:00:01,000\nback\n",
        "-->\n",
        &deep,
        &deep_object,
        &wide,
    ]
    .into_iter()
    .map(|text| text.as_bytes().to_vec())
    .chain([vec![0xff, 0xfe, 0x00], b"A 1 2##\xff\xfe\n".to_vec(), vec![0; 4096], b"{\"\xff\": 1}".to_vec()])
    .collect();
    for content in contents {
        let (_folder, source) = temporary("odd.file", &content);
        read_with_everything(&source);
    }
}

#[test]
fn truncated_files_never_end_the_process() {
    for (format, source) in fixtures() {
        let whole = std::fs::read(source.path()).unwrap();
        for cut in (0..whole.len()).step_by(1 + whole.len() / 40) {
            let (_folder, source) = temporary("cut.file", &whole[..cut]);
            read_with(format, &source);
        }
    }
}

#[test]
fn mutated_files_never_end_the_process() {
    let mut files: Vec<(Option<TruthFormat>, Source)> =
        fixtures().into_iter().map(|(format, source)| (Some(format), source)).collect();
    for path in [
        "charades-sta/Charades_v1_train.csv",
        "charades-sta/Charades_duration.json",
        "tvr/tvr_video2dur_idx.json",
        "tvr-ranking/raw_annotation.csv",
        "human-reannotations/charades_test_00.csv",
        "subtitles/tvr_subtitles.jsonl",
        "subtitles/film.srt",
        "subtitles/film.vtt",
    ] {
        files.push((None, Source::new(fixture(path))));
    }
    for (format, source) in files {
        let whole = std::fs::read(source.path()).unwrap();
        for seed in 0..60 {
            let (_folder, source) = temporary("mutated.file", &mutated(&whole, seed));
            match format {
                Some(format) => read_with(format, &source),
                None => read_with_everything(&source),
            }
            let _ = TruthFormat::of(&source);
        }
    }
}

/// `bytes` with a few of them changed, removed, doubled or replaced by something that parsers stumble over.
fn mutated(bytes: &[u8], seed: u64) -> Vec<u8> {
    const STUMBLES: &[&[u8]] = &[
        b"NaN", b"1e308", b"-1", b"null", b"[[[[", b"}}", b"\"", b"\\u0000", b"\xff", b"1e999", b"\n", b"##", b",",
        b"#",
    ];
    let mut rng = Rng::new(seed);
    let mut bytes = bytes.to_vec();
    for _ in 0..=rng.below(4) {
        let at = rng.below(bytes.len().max(1));
        match rng.below(5) {
            0 => bytes.insert(at.min(bytes.len()), rng.bits32() as u8),
            1 if at < bytes.len() => bytes[at] = rng.bits32() as u8,
            2 if at < bytes.len() => drop(bytes.remove(at)),
            3 => {
                let end = (at + rng.below(64)).min(bytes.len());
                let piece = bytes[at.min(end)..end].to_vec();
                bytes.splice(at..at, piece);
            }
            _ => {
                let stumble = rng.pick(STUMBLES).copied().unwrap_or_default();
                let end = (at + stumble.len()).min(bytes.len());
                bytes.splice(at..end, stumble.iter().copied());
            }
        }
    }
    bytes
}

/// The message for a file with these contents, without the folder it lies in.
fn refusal(format: &str, contents: &[u8]) -> String {
    let (_folder, source) = temporary("file", contents);
    let error = read_truth(&source, Some(format.parse().unwrap()), &ReadOptions::default()).unwrap_err();
    error.to_string().replace(source.path().as_str(), "file")
}

#[test]
fn refusals_name_the_line_the_field_and_the_value() {
    let cases: &[(&str, &str, &str)] = &[
        ("charades-sta", "A 1 2##x\nA 1 two##x\n", "file:2: `end`: `two` is no number"),
        ("charades-sta", "A 1 2##x\n\nA NaN 2##x\n", "file:3: `start`: NaN is not a finite number of seconds"),
        ("charades-sta", "A 1 2 x\n", "file:1: `query`: no `##` before the query"),
        (
            "activitynet-captions",
            "{\"v_a\": {\"duration\": 3,\n\"timestamps\": [[1, \"2\"]], \"sentences\": [\"x\"]}}",
            "file:2: `v_a.timestamps[0][1]`: invalid type: string \"2\", expected f64",
        ),
        (
            "activitynet-captions",
            "{\"v_a\": {\"duration\": 3, \"timestamps\": [[1, 2], [2, 3]], \"sentences\": [\"x\"]}}",
            "file:1: `v_a.sentences`: `sentences` has 1 entries and `timestamps` 2",
        ),
        (
            "activitynet-captions",
            "{\"v_a\": {\"timestamps\": [], \"sentences\": []}}",
            "file:1: `v_a.duration`: is missing",
        ),
        (
            "charades-cd",
            "{\"A\": {\"video_duration\": -2, \"timestamps\": [], \"sentences\": []}}",
            "file:1: `A.duration`: -2 is no duration in seconds",
        ),
        (
            "charades-cd",
            "{\"A\": {\"video_duration\": 2, \"timestamps\": [], \"sentences\": []},\n\"A\": {\"video_duration\": 2, \"timestamps\": [], \"sentences\": []}}",
            "file:2: `A`: this video stands in the file twice",
        ),
        (
            "tacos-2dtan",
            "{\"s1-d1\": {\"fps\": 0, \"num_frames\": 9, \"timestamps\": [], \"sentences\": []}}",
            "file:1: `s1-d1.fps`: 0 is no frame rate",
        ),
        ("tacos-raw", "s1-d1.avi_5:x#\n", "file:1: `segment`: is not `VIDEO_START_END:sentences`"),
        (
            "didemo",
            "[{\"annotation_id\": 1, \"video\": \"a\", \"num_segments\": 6, \"description\": \"x\", \"times\": [[0, 0]]},\n{\"annotation_id\": 1, \"video\": \"a\", \"num_segments\": 6, \"description\": \"x\", \"times\": []}]",
            "file:2: `[1].annotation_id`: query `1` stands on line 1 too",
        ),
        (
            "youcook2",
            "{\"database\": {\"a\": {\"duration\": 9, \"subset\": \"toast\", \"annotations\": []}}}",
            "file:1: `a.subset`: `toast` is none of training, validation, testing",
        ),
        (
            "msr-vtt",
            "{\"videos\": [], \"sentences\": [{\"sen_id\": 1, \"video_id\": \"video7\", \"caption\": \"x\"}]}",
            "file:1: `sentences[0].video_id`: no clip `video7`",
        ),
        (
            "tvr",
            "{\"desc_id\": 1, \"desc\": \"x\", \"vid_name\": \"a\", \"duration\": 9, \"ts\": [1, 2]}\n{\"desc_id\": 2, \"desc\": \"x\", \"vid_name\": \"a\", \"duration\": 8, \"ts\": [1, 2]}\n",
            "file:2: `duration`: `a` lasts 8 s here and 9 s further up",
        ),
        (
            "qvhighlights",
            "{\"qid\": 1, \"query\": \"x\", \"duration\": 150, \"vid\": \"a\", \"relevant_windows\": [[0, 2]], \"relevant_clip_ids\": [0], \"saliency_scores\": [[5, 0, 0]]}\n",
            "file:1: `saliency_scores`: grade 5 is not between 0 and 4",
        ),
        (
            "tvsum",
            "{\"qid\": 1, \"query\": \"x\", \"duration\": 2, \"vid\": \"a\", \"label\": [[1.0, 2.0], [3.0]], \"domain\": \"BK\"}\n",
            "file:1: `label`: `label[1]` has 1 entries and `label[0]` 2",
        ),
        (
            "tvsum",
            "{\"qid\": 1, \"query\": \"x\", \"duration\": 1, \"vid\": \"a\", \"label\": [[1.0, 0.5]], \"domain\": \"BK\"}\n",
            "file:1: `label`: score 0.5 of clip 0 is not one of 1 to 5",
        ),
        (
            "tvsum",
            "{\"qid\": 1, \"query\": \"x\", \"duration\": 9, \"vid\": \"a\", \"label\": [[1.0]], \"domain\": \"BK\"}\n",
            "file:1: `label`: 1 clips are scored, `duration` says 9",
        ),
        (
            "youtube-highlights",
            "{\"qid\": 1, \"query\": \"dog\", \"duration\": 9, \"vid\": \"a\", \"domain\": \"dog\", \"clip\": [[0, 100]], \"match\": [1, 1]}\n",
            "file:1: `match`: `match` has 2 entries and `clip` 1",
        ),
        (
            "youtube-highlights",
            "{\"qid\": 1, \"query\": \"dog\", \"duration\": 9, \"vid\": \"a\", \"domain\": \"dog\", \"clip\": [[0, 100]], \"match\": [2]}\n",
            "file:1: `match`: 2 is not one of 1, 0 and -1",
        ),
        (
            "tvr-ranking",
            "[{\"query_id\": 1, \"query\": \"x\", \"video_name\": \"a\", \"timestamp\": [0, 1], \"relevance\": -1}]",
            "file:1: `relevance`: relevance -1 is not between 0 and 100",
        ),
        (
            "mvmr",
            "{\"a\": {\"duration\": 9, \"timestamps\": [[0, 1]], \"sentences\": [\"x\"], \"pos_moments\": [], \"retrieval_pool\": [[]]}}",
            "file:1: `a.pos_moments`: `pos_moments` has 0 entries and `timestamps` 1",
        ),
        (
            "msr-vtt-jsfusion",
            "key,vid_key,video_id,sentence\na,b,c,d\ne,f\n",
            "file:3: `record`: has 2 columns where the header has 4",
        ),
    ];
    for (format, contents, message) in cases {
        assert_eq!(refusal(format, contents.as_bytes()), *message);
    }
    assert_eq!(refusal("charades-sta", b"A 1 2##x\nA 1 2##\xff\n"), "file:2: `text`: is not UTF-8");
}

#[test]
fn nothing_larger_than_the_limits_is_held() {
    let small = Limits { document: 1 << 10, line: 1 << 8 };
    let long = format!("A 1 2##{}\n", "x".repeat(2000));
    let (_folder, source) = temporary("long.txt", long.as_bytes());
    let read = |name: &str| {
        let source = source.clone().with_limits(small);
        read_truth(&source, Some(name.parse().unwrap()), &ReadOptions::default()).unwrap_err()
    };
    for format in ["charades-sta", "activitynet-captions", "tvr", "didemo", "msr-vtt-jsfusion", "qvhighlights"] {
        let error = read(format);
        assert!(matches!(error, DataError::Read(cuemark_formats::ReadError::TooLarge { .. })), "{format}: {error}");
    }
}

#[test]
fn a_check_of_broken_side_files_says_so_and_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let root = camino::Utf8PathBuf::from_path_buf(folder.path().to_owned()).unwrap();
    std::fs::write(root.join("raw_annotation.csv"), "pair_id,worker,relevance\n1,x,2\n").unwrap();
    let card = cuemark_data::find("tvr-ranking").unwrap();
    let report = check::check(&load(card, &root, &ReadOptions::default(), &Progress::new()).unwrap());
    assert_eq!(report.sides[0].verdict, check::CheckVerdict::Wrong);
    let problem = report.sides[0].problem.as_ref().unwrap();
    assert!(problem.contains("raw_annotation.csv:2: `worker`: "), "{problem}");
    assert!(!report.is_ok());
}
