//! Every reader on small files of our own making; the numbers were counted by hand.

use camino::Utf8PathBuf;
use cuemark_core::RowFault::{Empty, EndsAfterVideo, Repeated, Reversed, StartsAfterVideo};
use cuemark_core::{Advise as _, Dialect, Progress};
use cuemark_core::{NormSpan, RowFault, RowPolicy, Span, Split, VideoId};
use cuemark_data::check::{CheckVerdict, check};
use cuemark_data::subtitles::{SubtitleFormat, read_subtitles};
use cuemark_data::{
    DATASETS, DataError, Rating, ReadOptions, complete_pools, find, load, read_ranked_pairs, read_ratings,
    read_reannotations, stats,
};
use cuemark_formats::{Overwrite, Source, WholeFile};

use crate::folders::{faults, fixture, fixture_dataset, temporary};

/// Split, videos, queries, pairs, faults.
type Row = (&'static str, usize, usize, usize, &'static [(RowFault, usize)]);

const COUNTED: &[(&str, &[Row])] = &[
    (
        "charades-sta",
        &[
            ("train", 5, 8, 8, &[(Reversed, 1), (StartsAfterVideo, 1), (EndsAfterVideo, 1), (Repeated, 1)]),
            ("test", 1, 2, 2, &[]),
        ],
    ),
    (
        "charades-cd",
        &[
            ("train", 2, 3, 3, &[(EndsAfterVideo, 1)]),
            ("val", 1, 2, 2, &[]),
            ("test-iid", 1, 1, 1, &[]),
            ("test-ood", 1, 3, 3, &[(StartsAfterVideo, 2)]),
        ],
    ),
    (
        "activitynet-captions",
        &[
            ("train", 2, 5, 5, &[(Reversed, 1), (Empty, 1), (EndsAfterVideo, 1)]),
            ("val_1", 2, 3, 3, &[]),
            ("val_2", 1, 1, 1, &[]),
        ],
    ),
    ("activitynet-cd", &[("train", 1, 1, 1, &[]), ("test-ood", 1, 2, 2, &[])]),
    (
        "tacos",
        &[("train", 2, 5, 5, &[(EndsAfterVideo, 1), (Repeated, 1)]), ("val", 1, 1, 1, &[]), ("test", 1, 1, 1, &[])],
    ),
    ("tacos-2dtan", &[("train", 2, 4, 4, &[(EndsAfterVideo, 1), (Repeated, 1)]), ("val", 1, 1, 1, &[])]),
    ("tacos-raw", &[("train", 2, 5, 5, &[(Repeated, 1)]), ("val", 1, 1, 1, &[])]),
    ("didemo", &[("val", 2, 3, 15, &[(EndsAfterVideo, 1)]), ("test", 1, 1, 5, &[])]),
    ("youcook2", &[("train", 2, 3, 3, &[]), ("val", 1, 1, 1, &[])]),
    (
        "msr-vtt",
        &[
            ("train", 1, 3, 3, &[(Repeated, 1)]),
            ("val", 1, 1, 1, &[]),
            ("test", 2, 1, 1, &[]),
            ("molef-val", 2, 3, 3, &[(EndsAfterVideo, 1)]),
            ("jsfusion-test", 2, 2, 0, &[]),
        ],
    ),
    ("tvr", &[("val", 2, 4, 4, &[(Repeated, 1)]), ("test-public", 0, 2, 0, &[])]),
    ("tvr-ranking", &[("val", 2, 2, 4, &[])]),
    (
        "qvhighlights",
        &[("train", 2, 2, 3, &[]), ("val", 1, 1, 1, &[]), ("test", 2, 2, 3, &[]), ("test-release", 2, 2, 0, &[])],
    ),
    ("tvsum", &[("train", 2, 2, 0, &[]), ("val", 1, 1, 0, &[])]),
    ("youtube-highlights", &[("train", 1, 1, 0, &[]), ("val", 2, 2, 0, &[])]),
    ("mvmr", &[("charades-test", 3, 4, 7, &[(EndsAfterVideo, 1)]), ("tacos-test", 2, 3, 4, &[(Repeated, 1)])]),
    ("human-reannotations", &[]),
    ("cuemark-jsonl", &[("train", 1, 2, 2, &[(EndsAfterVideo, 1)]), ("val", 2, 1, 2, &[])]),
    (
        "world",
        &[("train", 2, 3, 3, &[]), ("val", 1, 1, 1, &[]), ("test-iid", 1, 1, 1, &[]), ("test-ood", 1, 1, 1, &[])],
    ),
];

fn ids(split: &Split) -> Vec<&str> {
    split.queries.iter().map(|truth| truth.query.id.as_str()).collect()
}

fn texts(split: &Split) -> Vec<&str> {
    split.queries.iter().map(|truth| truth.query.text.as_str()).collect()
}

fn span(start: f64, end: f64) -> Span {
    Span::new(start, end).unwrap()
}

/// The only moment of query number `index`.
fn only_span(split: &Split, index: usize) -> Span {
    let [moment] = &split.queries[index].moments[..] else { panic!("query {index} has not one moment") };
    moment.moment.span
}

#[test]
fn every_dataset_is_read_as_counted_by_hand() {
    assert_eq!(COUNTED.len(), DATASETS.len(), "a dataset has no fixture");
    for (name, rows) in COUNTED {
        let dataset = fixture_dataset(name);
        let found: Vec<_> = dataset
            .splits
            .iter()
            .map(|split| (split.name.as_str(), split.videos.len(), split.queries.len(), split.pairs(), faults(split)))
            .collect();
        let wanted = rows
            .iter()
            .map(|&(split, videos, queries, pairs, faults)| (split, videos, queries, pairs, faults.to_vec()));
        assert_eq!(found, wanted.collect::<Vec<_>>(), "{name}");
        let absent = dataset.card.files.len() - rows.len();
        assert_eq!(dataset.absent.len(), absent, "{name}");
    }
}

#[test]
fn sentences_and_their_leading_spaces_are_kept_as_written() {
    let dataset = fixture_dataset("activitynet-captions");
    assert_eq!(texts(&dataset.splits[0])[1], " She carries it down to the sea.");
    assert_eq!(texts(&dataset.splits[0])[2], " The waves are high at the café on the shore.");
    let dataset = fixture_dataset("tvr");
    assert_eq!(texts(&dataset.splits[1])[0], "Ann hands Bob a purple bag. ");
}

#[test]
fn charades_durations_come_from_the_csv_then_from_the_json_and_never_from_a_guess() {
    let dataset = fixture_dataset("charades-sta");
    let durations: Vec<_> = dataset.splits[0].videos.iter().map(|video| (video.id.as_str(), video.duration)).collect();
    let wanted =
        [("A1B2C", Some(20.5)), ("D3E4F", Some(15.25)), ("G5H6J", Some(28.0)), ("K7L8M", Some(18.03)), ("N9P0Q", None)];
    assert_eq!(durations, wanted);
}

#[test]
fn each_policy_does_what_its_name_says_and_ids_count_rows_before_any_is_dropped() {
    let read = |policy| {
        let options = ReadOptions { bad_rows: policy, ..ReadOptions::default() };
        load(find("charades-sta").unwrap(), &fixture("charades-sta"), &options, &Progress::new())
    };
    let keep = read(RowPolicy::Keep).unwrap();
    assert_eq!(only_span(&keep.splits[0], 2), span(7.0, 8.0));
    assert_eq!(only_span(&keep.splits[0], 1), span(10.0, 21.0));
    let clamp = read(RowPolicy::Clamp).unwrap();
    assert_eq!(only_span(&clamp.splits[0], 1), span(10.0, 20.5));
    let skip = read(RowPolicy::Skip).unwrap();
    assert_eq!(ids(&skip.splits[0]), ["0", "4", "5", "6", "7"]);
    assert_eq!(skip.splits[0].rows.dropped, 3);
    let DataError::Read(error) = read(RowPolicy::Error).unwrap_err() else { panic!("another error") };
    let message = error.to_string();
    assert!(
        message.ends_with("charades_sta_train.txt:2: `end`: end 21 s is after the video's end at 20.5 s"),
        "{message}"
    );
    assert_eq!(
        error.advice_in(Dialect::Terminal).unwrap(),
        "pass `--bad-rows keep` to swap such rows or `skip` to leave them out; either way they are counted"
    );
}

#[test]
fn a_bad_row_of_a_json_file_is_named_by_line_and_path() {
    let options = ReadOptions { bad_rows: RowPolicy::Error, ..ReadOptions::default() };
    let root = fixture("activitynet-captions");
    let error = load(find("activitynet-captions").unwrap(), &root, &options, &Progress::new()).unwrap_err().to_string();
    assert!(
        error.ends_with("train.json:2: `v_aaaaaaaaaaa.timestamps[2]`: end 82.74 s is after the video's end at 82.73 s"),
        "{error}"
    );
}

#[test]
fn both_lists_of_a_twice_annotated_video_survive_a_join() {
    let dataset = fixture_dataset("activitynet-captions");
    let merged = dataset.split("val_1+val_2").unwrap();
    assert_eq!(ids(&merged), ["val_1:0", "val_1:1", "val_1:2", "val_2:0"]);
    assert_eq!(merged.videos.len(), 2);
    assert_eq!(merged.name, "val_1+val_2");
    assert_eq!(ids(&dataset.split("val_2").unwrap()), ["0"]);
    let unknown = dataset.split("val_1+test").unwrap_err();
    assert_eq!(unknown.to_string(), "there is no split called `test`");
}

#[test]
fn published_ids_stay_as_they_are_in_a_join_unless_two_are_the_same() {
    let qvh = fixture_dataset("qvhighlights");
    assert_eq!(ids(&qvh.all()), ["8737", "8740", "2579", "3158", "7920"]);
    let twice = qvh.split("test+test-release").unwrap();
    assert_eq!(ids(&twice)[..2], ["highlight_test_with_gt:3158", "highlight_test_with_gt:7920"]);
    assert_eq!(ids(&fixture_dataset("youcook2").all()), ["0", "1", "3", "2"]);
}

#[test]
fn frames_become_seconds() {
    let dataset = fixture_dataset("tacos");
    assert_eq!(dataset.splits[0].videos[0].duration, Some(100.0));
    assert_eq!(only_span(&dataset.splits[0], 3), span(20.0, 40.0));
    let dataset = fixture_dataset("tacos-2dtan");
    assert_eq!(only_span(&dataset.splits[1], 0), span(10.0, 20.0));
}

#[test]
fn the_two_layouts_of_full_tacos_hold_the_same_pairs() {
    let pairs = |name: &str| -> Vec<(String, Span)> {
        let dataset = fixture_dataset(name);
        let split = dataset.split("train").unwrap();
        split.queries.iter().enumerate().map(|(n, t)| (t.query.text.clone(), only_span(&split, n))).collect()
    };
    assert_eq!(pairs("tacos"), pairs("tacos-raw"));
}

#[test]
fn didemo_chunks_are_inclusive_and_every_annotator_counts() {
    let dataset = fixture_dataset("didemo");
    let truth = &dataset.splits[0].queries[0];
    let spans: Vec<_> = truth.moments.iter().map(|graded| graded.moment.span).collect();
    assert_eq!(spans, [span(5.0, 10.0), span(5.0, 10.0), span(5.0, 15.0), span(0.0, 5.0)]);
    assert_eq!((truth.query.id.as_str(), truth.duration()), ("901", Some(30.0)));
    assert_eq!(dataset.splits[0].queries[1].moments.len(), 7);
}

#[test]
fn youcook2_numbers_run_through_the_file_and_recipes_stay_with_their_queries() {
    let dataset = fixture_dataset("youcook2");
    assert_eq!(ids(&dataset.splits[0]), ["0", "1", "3"]);
    assert_eq!(ids(&dataset.splits[1]), ["2"]);
    assert_eq!(dataset.splits[1].queries[0].extra.get("recipe_type").unwrap(), "405");
}

#[test]
fn msr_vtt_clips_are_moments_of_the_videos_they_were_cut_from() {
    let dataset = fixture_dataset("msr-vtt");
    let train = &dataset.splits[0];
    assert_eq!(ids(train), ["0", "3", "1"]);
    assert_eq!(train.videos[0].id.as_str(), "SRCAAAAAAA1");
    assert_eq!(only_span(train, 1), span(137.72, 149.44));
    assert_eq!(train.queries[1].extra.get("clip").unwrap(), "video0");
    let molef = dataset.split("molef-val").unwrap();
    assert_eq!((ids(&molef), molef.videos[1].duration), (vec!["0", "1", "2"], Some(200.0)));
    let jsfusion = dataset.split("jsfusion-test").unwrap();
    assert_eq!((ids(&jsfusion), texts(&jsfusion)[1]), (vec!["ret0", "ret1"], "a cat, mostly, sleeps"));
    // Other words for the same clips are not counted over all splits.
    assert_eq!(dataset.all().queries.len(), 5);
}

#[test]
fn tvr_queries_keep_their_kind_and_may_lack_a_video() {
    let dataset = fixture_dataset("tvr");
    let kinds: Vec<_> = dataset.splits[0].queries.iter().map(|truth| truth.kind.as_deref().unwrap()).collect();
    assert_eq!(kinds, ["v", "vt", "v", "t"]);
    let public = &dataset.splits[1].queries[0];
    assert!(public.video.is_none() && public.moments.is_empty());
}

#[test]
fn graded_pairs_of_one_query_come_together_in_file_order() {
    let dataset = fixture_dataset("tvr-ranking");
    let split = &dataset.splits[0];
    assert_eq!(ids(split), ["54251", "60001"]);
    let grades: Vec<_> = split.queries[0].moments.iter().map(|graded| graded.relevance.unwrap().value()).collect();
    assert_eq!(grades, [4.0, 0.0, 3.0]);
    assert!(split.queries[0].video.is_none() && split.queries[0].pool.is_none());
    assert_eq!(split.queries[0].right().count(), 2);
    let pairs = read_ranked_pairs(&Source::new(fixture("tvr-ranking").join("val.json"))).unwrap();
    assert_eq!((pairs.len(), pairs[3].pair_id, pairs[3].similarity), (4, Some(3), Some(0.5)));
}

#[test]
fn ratings_come_one_by_one_even_where_a_worker_rates_twice() {
    let ratings = read_ratings(&Source::new(fixture("tvr-ranking").join("raw_annotation.csv"))).unwrap();
    assert_eq!(ratings.len(), 10);
    assert_eq!(ratings[6..8], [Rating { pair_id: 2, worker: 21, relevance: 2 }; 2]);
    let (_folder, wrong) = temporary("raw_annotation.csv", b"pair_id,worker,relevance\n0,4,4\n1,2,5\n");
    let message = read_ratings(&wrong).unwrap_err().to_string();
    assert!(message.ends_with("raw_annotation.csv:3: `relevance`: grade 5 is not between 0 and 4"), "{message}");
}

#[test]
fn qvhighlights_ratings_stay_with_their_clips() {
    let dataset = fixture_dataset("qvhighlights");
    let highlights = dataset.splits[0].queries[0].highlights.as_ref().unwrap();
    assert_eq!(highlights.clips, [0, 1, 5]);
    assert_eq!(highlights.ratings[1], [0, 2, 3]);
    assert_eq!(highlights.clip_len.seconds(), 2.0);
    assert!(dataset.splits[3].queries.iter().all(|truth| truth.highlights.is_none()));
}

#[test]
fn tvsum_scores_are_grades_and_its_durations_are_clips() {
    let dataset = fixture_dataset("tvsum");
    let truth = &dataset.splits[0].queries[0];
    let highlights = truth.highlights.as_ref().unwrap();
    assert_eq!((truth.duration(), truth.kind.as_deref(), truth.moments.len()), (Some(8.0), Some("BK"), 0));
    assert_eq!((&highlights.clips[..], highlights.clip_len.seconds()), (&[0, 1, 2, 3][..], 2.0));
    assert_eq!(highlights.ratings, [[0, 1, 0], [4, 3, 2], [2, 1, 1], [0, 0, 4]]);
}

#[test]
fn youtube_windows_are_highlights_where_they_match() {
    let dataset = fixture_dataset("youtube-highlights");
    let truth = &dataset.splits[1].queries[0];
    let highlights = truth.highlights.as_ref().unwrap();
    assert_eq!(
        (truth.query.text.as_str(), truth.kind.as_deref(), truth.duration()),
        ("surfing", Some("surfing"), Some(9.5))
    );
    assert_eq!(highlights.ratings, [[1], [0], [1], [0], [0]]);
    assert_eq!(highlights.clip_len.seconds(), 9.5 / 5.0);
}

#[test]
fn mvmr_queries_have_their_own_moment_first_then_the_others_and_a_pool() {
    let dataset = fixture_dataset("mvmr");
    let truth = &dataset.splits[0].queries[0];
    let moments: Vec<_> =
        truth.moments.iter().map(|graded| (graded.moment.video.as_str(), graded.moment.span)).collect();
    assert_eq!(moments, [("R2S3T", span(1.5, 7.25)), ("U4V5W", span(2.0, 9.5)), ("X6Y7Z", span(0.0, 3.0))]);
    assert_eq!(truth.pool.as_ref().unwrap()[0], VideoId::from("R2S3T"));
    let complete: Vec<_> = complete_pools(&dataset.splits[0]).map(|truth| truth.query.id.as_str()).collect();
    assert_eq!(complete, ["0", "2"]);
    let tacos = &dataset.splits[1].queries[0];
    assert_eq!(tacos.moments[1].moment.span, span(20.0, 30.0));
}

#[test]
fn five_people_are_read_as_fractions_under_the_datasets_own_video_names() {
    let folder = fixture("human-reannotations");
    let charades = read_reannotations(&Source::new(folder.join("charades_test_00.csv"))).unwrap();
    assert_eq!(charades.len(), 2);
    assert_eq!((charades[0].video.as_str(), charades[0].spans.len()), ("R2S3T", 5));
    assert_eq!(charades[0].spans[0], NormSpan::new(0.55, 0.81).unwrap());
    assert_eq!(charades[1].text, "person throws, then folds a towel.");
    let activitynet = read_reannotations(&Source::new(folder.join("activitynet_test_00.csv"))).unwrap();
    assert_eq!((activitynet[0].video.as_str(), activitynet[0].text.as_str()), ("v_ccccccccccc", " He climbs."));
    for (row, problem) in [
        ("50,101", "`end`: 101 is not between"),
        ("-1,5", "`start`: -1"),
        ("9,5", "`end`: 5 % is before"),
        ("NaN,5", "`start`: NaN"),
    ] {
        let text = format!("HITId,video_id,description,start,end\nH,v.mp4,d,{row}\n");
        let (_folder, source) = temporary("charades_test_00.csv", text.as_bytes());
        let message = read_reannotations(&source).unwrap_err().to_string();
        assert!(message.contains(problem), "{message}");
    }
}

#[test]
fn subtitles_are_read_alike_from_all_three_layouts() {
    let read = |file: &str, format| {
        let source = Source::new(fixture("subtitles").join(file));
        assert_eq!(SubtitleFormat::of(&source).unwrap(), format);
        read_subtitles(&source, None, RowPolicy::Keep).unwrap()
    };
    let lines = |track: &cuemark_data::subtitles::Track| -> Vec<(f64, f64, String)> {
        track.lines.iter().map(|line| (line.span.start(), line.span.end(), line.text.clone())).collect()
    };
    let tvr = read("tvr_subtitles.jsonl", SubtitleFormat::TvrJsonl);
    assert_eq!((tvr.tracks.len(), tvr.rows.met(Reversed)), (2, 1));
    assert_eq!(tvr.tracks[0].video.as_str(), "show_s01e03_seg02_clip_19");
    assert_eq!(lines(&tvr.tracks[0])[1], (3.0, 3.5, "(Bob:) Là-bas.".to_owned()));
    let srt = read("film.srt", SubtitleFormat::Srt);
    let wanted = [
        (1.0, 4.5, "Where is it?".to_owned()),
        (5.25, 7.0, "- Over there.\n- Là-bas.".to_owned()),
        (3600.5, 3601.0, "1 < 2".to_owned()),
    ];
    assert_eq!((srt.tracks[0].video.as_str(), lines(&srt.tracks[0])), ("film", wanted.to_vec()));
    let vtt = read("film.vtt", SubtitleFormat::WebVtt);
    let wanted = [(1.0, 4.5, "Where is it?".to_owned()), (5.25, 7.0, "Bread & butter <3\nLà-bas.".to_owned())];
    assert_eq!(lines(&vtt.tracks[0]), wanted);
}

#[test]
fn compressed_files_are_found_by_their_plain_names() {
    let folder = tempfile::tempdir().unwrap();
    let root = Utf8PathBuf::from_path_buf(folder.path().to_owned()).unwrap();
    for (name, ending) in [("train.json", "gz"), ("val_1.json", "zst")] {
        let text = std::fs::read(fixture("activitynet-captions").join(name)).unwrap();
        WholeFile::write_all_to(root.join(format!("{name}.{ending}")), Overwrite::Never, &text).unwrap();
    }
    let dataset =
        load(find("activitynet-captions").unwrap(), &root, &ReadOptions::default(), &Progress::new()).unwrap();
    let files: Vec<_> = dataset.splits.iter().map(|split| (split.file.as_str(), split.pairs())).collect();
    assert_eq!(files, [("train.json.gz", 5), ("val_1.json.zst", 3)]);
    assert_eq!(dataset.absent.iter().map(|file| file.split).collect::<Vec<_>>(), ["val_2"]);
}

#[test]
fn a_folder_with_nothing_of_the_dataset_is_an_error_with_a_hint() {
    let error = load(find("tacos").unwrap(), &fixture("tvr"), &ReadOptions::default(), &Progress::new()).unwrap_err();
    assert!(error.to_string().ends_with("none of the files of `tacos` is here"));
    assert_eq!(
        error.advice_in(Dialect::Terminal).unwrap(),
        "`--root` (in a run file `data.root`) is the dataset's own folder, the one that holds `train.json`"
    );
}

#[test]
fn check_says_what_is_wrong_what_is_absent_and_what_nobody_published() {
    let report = check(&fixture_dataset("qvhighlights"));
    // Our small files are not the published ones, and check must notice.
    assert!(!report.is_ok());
    assert!(report.splits.iter().all(|split| split.verdict == CheckVerdict::Wrong));
    let report = check(&fixture_dataset("activitynet-cd"));
    let verdicts: Vec<_> = report.splits.iter().map(|split| split.verdict).collect();
    assert_eq!(verdicts, [CheckVerdict::Wrong, CheckVerdict::Absent, CheckVerdict::Absent, CheckVerdict::Wrong]);
    let report = check(&fixture_dataset("cuemark-jsonl"));
    assert!(report.is_ok() && report.splits.iter().any(|split| split.verdict == CheckVerdict::Unpublished));
    let mut report = check(&fixture_dataset("charades-sta"));
    report.root = "[folder]".to_owned();
    insta::assert_json_snapshot!(report);
}

#[test]
fn stats_count_each_video_and_distinct_moment_once() {
    let dataset = fixture_dataset("activitynet-captions");
    let stats = stats::stats(&dataset, &|_| Vec::new());
    let videos: Vec<_> = stats.splits.iter().map(|split| split.videos).collect();
    assert_eq!((videos, stats.overall.videos), (vec![2, 2, 1], 4));
    assert_eq!((stats.overall.queries, stats.overall.moments), (9, 9));
    insta::assert_json_snapshot!(stats.splits[0]);
}
