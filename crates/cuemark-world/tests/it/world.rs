//! Whole worlds: made twice, stopped and resumed, audited, spoiled and found out.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::{Progress, RowPolicy, Truth};
use cuemark_features::FeatureStore;
use cuemark_formats::{Overwrite, Source, read_truth, write_truth};
use cuemark_text::{ParseFile, ParseProvider};
use cuemark_world::{
    AuditFigure, Reels, SPLITS, WorldLog, WorldOptions, audit, grade_agreement, grade_candidates, make, oracle,
    pool_quality,
};

fn folder() -> (tempfile::TempDir, Utf8PathBuf) {
    let guard = tempfile::tempdir().unwrap();
    let path = Utf8PathBuf::from_path_buf(guard.path().join("world")).unwrap();
    (guard, path)
}

fn small() -> WorldOptions {
    WorldOptions { videos: 80, length: 12.0, seed: 11, ..WorldOptions::default() }
}

/// A world with enough queries to say something about where they lie, in short films that are quickly rendered.
fn with_bias(bias: f64) -> (tempfile::TempDir, Utf8PathBuf) {
    let (guard, folder) = folder();
    make(&WorldOptions { videos: 700, length: 10.0, bias, noise: 0.0, ..small() }, &folder, &Progress::new()).unwrap();
    (guard, folder)
}

/// Every file of a folder, by its path in it.
fn files(folder: &Utf8Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(at) = open.pop() {
        for entry in at.read_dir_utf8().unwrap() {
            let path = entry.unwrap().into_path();
            if path.is_dir() {
                open.push(path);
            } else {
                found.insert(path.strip_prefix(folder).unwrap().to_string(), std::fs::read(&path).unwrap());
            }
        }
    }
    found
}

fn truths(path: Utf8PathBuf) -> Vec<Truth> {
    read_truth(&Source::new(path), RowPolicy::Error).unwrap().queries
}

fn split(world: &Utf8Path, name: &str) -> Vec<Truth> {
    truths(world.join("splits").join(format!("{name}.jsonl")))
}

#[test]
fn the_same_options_give_the_same_bytes_on_one_thread_or_many() {
    let ((_a, first), (_b, second), (_c, other)) = (folder(), folder(), folder());
    make(&small(), &first, &Progress::new()).unwrap();
    let alone = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    alone.install(|| make(&small(), &second, &Progress::new())).unwrap();
    let (first, second) = (files(&first), files(&second));
    assert!(first.len() > 12, "{:?}", first.keys());
    assert_eq!(first.keys().collect::<Vec<_>>(), second.keys().collect::<Vec<_>>());
    for (name, bytes) in &first {
        assert!(second[name] == *bytes, "{name} differs");
    }
    make(&WorldOptions { seed: 12, ..small() }, &other, &Progress::new()).unwrap();
    assert!(files(&other)["events.jsonl"] != first["events.jsonl"]);
}

#[test]
fn a_sound_world_passes_its_audit() {
    let (_guard, world) = folder();
    let report = make(&small(), &world, &Progress::new()).unwrap();
    let audit = audit(&world).unwrap();
    assert_eq!(audit.faults, Vec::<String>::new());
    assert_eq!(audit.manifest, report);
    assert_eq!(report.splits.iter().map(|split| split.videos).sum::<usize>(), 80);
    assert_eq!((audit.pools.precision.value, audit.pools.recall.value, audit.pools.unclaimed), (1.0, 1.0, 0));
    assert_eq!(audit.graded.exact.value, 1.0);
    assert!(audit.graded.moments > 100);
}

#[test]
fn features_cover_every_video_at_every_strength() {
    let (_guard, world) = folder();
    make(&small(), &world, &Progress::new()).unwrap();
    let mut widths = Vec::new();
    for strength in ["weak", "shape", "motion"] {
        let store = FeatureStore::open(&world.join(format!("features-{strength}"))).unwrap();
        assert_eq!(store.clip_len("visual").unwrap().seconds(), 1.0);
        widths.push(store.recipe("visual").unwrap().width);
        assert_eq!(store.check().unwrap().bad_rows, 0);
        for truth in SPLITS.iter().flat_map(|name| split(&world, name)) {
            let video = truth.video.unwrap();
            let clips = store.rows(&video.id, "visual").unwrap();
            let seconds = video.duration.unwrap();
            assert!((clips as f64 - seconds).abs() <= 1.0, "{clips} clips in {seconds} s");
            assert_eq!(store.rows(&video.id, "subtitle"), Some(clips));
        }
    }
    assert!(widths[0] < widths[1] && widths[1] < widths[2], "{widths:?}");
}

#[test]
fn clips_are_rated_and_ratings_of_other_clips_are_found_out() {
    let (_guard, world) = folder();
    let report = make(&WorldOptions { disagreement: 0.0, ..small() }, &world, &Progress::new()).unwrap();
    let counted = report.ratings.unwrap();
    let found = audit(&world).unwrap();
    let quality = found.ratings.unwrap();
    assert_eq!((quality.clips, quality.off, quality.apart), (counted.clips, 0.0, 0.0));
    assert!(found.faults.is_empty() && quality.clips > 400, "{:?}", found.faults);

    let path = world.join("highlights/val.jsonl");
    let spoiled =
        std::fs::read_to_string(&path).unwrap().replacen("\"relevant_clip_ids\":[", "\"relevant_clip_ids\":[99,", 1);
    std::fs::write(&path, spoiled).unwrap();
    let faults = audit(&world).unwrap().faults;
    assert!(faults.len() == 1 && faults[0].contains("ratings of other clips"), "{faults:?}");
    std::fs::remove_file(&path).unwrap();
    assert_eq!(audit(&world).unwrap().ratings, None, "a world of before has none");

    let apart = WorldOptions { disagreement: 1.0, ..small() };
    make(&WorldOptions { overwrite: Overwrite::Force, ..apart }, &world, &Progress::new()).unwrap();
    let quality = audit(&world).unwrap().ratings.unwrap();
    assert!(quality.off > 0.3 && quality.apart > 0.5, "{quality:?}");
}

#[test]
fn parses_cover_every_query_and_spell_it() {
    let (_guard, world) = folder();
    make(&small(), &world, &Progress::new()).unwrap();
    let parses = ParseFile::read(&Source::new(world.join("parses.jsonl"))).unwrap();
    let splits = SPLITS.iter().flat_map(|name| split(&world, name));
    for truth in splits.chain(truths(world.join("graded.jsonl"))) {
        let parse = parses.parse(&truth.query).unwrap();
        let words: Vec<&str> = parse.tokens.iter().map(|token| token.text.as_str()).collect();
        assert_eq!(words.join(" "), truth.query.text);
        assert!(parse.check().is_ok());
    }
}

#[test]
fn the_oracle_is_right_on_every_split() {
    let (_guard, world) = folder();
    make(&small(), &world, &Progress::new()).unwrap();
    for name in SPLITS {
        let answers = oracle(&world, name).unwrap();
        for (list, truth) in answers.tasks[0].queries.iter().zip(split(&world, name)) {
            assert_eq!(list.query, truth.query.id);
            assert_eq!(list.ranked[0].span, truth.moments[0].moment.span);
        }
    }
}

#[test]
fn without_bias_test_ood_lies_like_test_iid_and_with_bias_it_does_not() {
    let (_guard, flat) = with_bias(0.0);
    let flat = audit(&flat).unwrap();
    let (_guard, steep) = with_bias(1.0);
    let steep = audit(&steep).unwrap();
    let [flat_train, flat_ood] = flat.locations.as_slice() else { panic!() };
    let [steep_train, steep_ood] = steep.locations.as_slice() else { panic!() };
    assert!(flat_ood.p_value > 0.01, "{flat_ood:?}");
    assert!(steep_ood.p_value < 0.002 && steep_ood.distance > 2.0 * steep_ood.by_chance, "{steep_ood:?}");
    assert!(flat_train.p_value > 0.01 && steep_train.p_value > 0.01, "{flat_train:?} {steep_train:?}");
    for gap in flat.oracle.iter().chain(&steep.oracle) {
        assert_eq!((gap.iid.value, gap.ood.value), (1.0, 1.0), "{}", gap.metric);
    }
    assert!(flat.faults.is_empty() && steep.faults.is_empty());
}

/// R@1, IoU=0.5 of one guess for all, which never looks at a video.
fn blind_guess(world: &Utf8Path, name: &str) -> Vec<f64> {
    let train = split(world, "train");
    let fraction = |truth: &Truth| {
        let (span, whole) = (truth.moments[0].moment.span, truth.duration().unwrap());
        (span.start() / whole, span.end() / whole)
    };
    // The most crowded of the training moments: the one with the most others that it would be right for.
    let hit = |a: (f64, f64), b: (f64, f64)| {
        let shared = (a.1.min(b.1) - a.0.max(b.0)).max(0.0);
        shared / (a.1.max(b.1) - a.0.min(b.0)) >= 0.5
    };
    let places: Vec<(f64, f64)> = train.iter().map(fraction).collect();
    let best = places.iter().max_by_key(|a| places.iter().filter(|b| hit(**a, **b)).count()).unwrap();
    split(world, name).iter().map(|truth| f64::from(u8::from(hit(*best, fraction(truth))))).collect()
}

#[test]
fn a_blind_guess_has_a_gap_exactly_when_there_is_bias() {
    let (_guard, flat) = with_bias(0.0);
    let gap = AuditFigure::of_difference(&blind_guess(&flat, "test-iid"), &blind_guess(&flat, "test-ood"), 1);
    assert!(gap.holds_zero(), "{gap:?}");
    let (_guard, steep) = with_bias(1.0);
    let gap = AuditFigure::of_difference(&blind_guess(&steep, "test-iid"), &blind_guess(&steep, "test-ood"), 1);
    assert!(gap.interval.low > 0.15, "{gap:?}");
}

#[test]
fn a_spoiled_world_is_found_out() {
    let (_guard, world) = folder();
    make(&small(), &world, &Progress::new()).unwrap();
    let path = world.join("splits/test-iid.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    let moved = lines[0].replace("\"spans\":[[", "\"spans\":[[0");
    lines[0] = &moved;
    lines.pop();
    // `[[02.5` is no JSON number: the file is refused with its line.
    std::fs::write(&path, lines.join("\n")).unwrap();
    assert!(audit(&world).unwrap_err().to_string().contains("test-iid.jsonl:1"));

    let mut spoiled = truths_from(&text);
    let moment = &mut spoiled[0].moments[0].moment;
    moment.span = cuemark_core::Span::new(moment.span.start() + 0.5, moment.span.end() + 0.5).unwrap();
    spoiled.pop();
    let mut file = cuemark_formats::WholeFile::create(&path, Overwrite::Force).unwrap();
    write_truth(&spoiled, &mut file).unwrap();
    file.finish().unwrap();
    let faults = audit(&world).unwrap().faults;
    assert_eq!(faults.len(), 2, "{faults:?}");
    assert!(faults[0].contains("split `test-iid` holds") && faults[1].contains("another one than its truth"));
}

fn truths_from(text: &str) -> Vec<Truth> {
    let guard = tempfile::tempdir().unwrap();
    let path = Utf8PathBuf::from_path_buf(guard.path().join("t.jsonl")).unwrap();
    std::fs::write(&path, text).unwrap();
    truths(path)
}

#[test]
fn finished_worlds_and_strangers_files_are_left_alone() {
    let (_guard, world) = folder();
    make(&small(), &world, &Progress::new()).unwrap();
    let before = files(&world);
    let refused = make(&small(), &world, &Progress::new()).unwrap_err();
    assert!(refused.to_string().ends_with("manifest.json` exists already"), "{refused}");
    assert!(files(&world) == before);

    let (_guard, strangers) = folder();
    std::fs::create_dir_all(strangers.join("splits")).unwrap();
    std::fs::write(strangers.join("splits/train.jsonl"), "mine").unwrap();
    assert!(make(&small(), &strangers, &Progress::new()).is_err());
    assert_eq!(files(&strangers).len(), 1);
    make(&WorldOptions { overwrite: Overwrite::Force, ..small() }, &strangers, &Progress::new()).unwrap();
    assert!(audit(&strangers).unwrap().faults.is_empty());
}

#[test]
fn stopped_work_is_resumed_with_the_same_result() {
    let (_guard, world) = folder();
    make(&small(), &world, &Progress::new()).unwrap();
    let whole = files(&world);
    // As if it had been stopped after the first of two shards.
    std::fs::rename(world.join("manifest.json"), world.join("unfinished.json")).unwrap();
    std::fs::write(world.join("unfinished.json"), serde_json::to_string(&small()).unwrap()).unwrap();
    std::fs::remove_file(world.join("features-shape/shard-00001.safetensors")).unwrap();
    let other = make(&WorldOptions { bias: 0.1, ..small() }, &world, &Progress::new()).unwrap_err();
    assert!(other.to_string().contains("unfinished world of other options"), "{other}");
    make(&small(), &world, &Progress::new()).unwrap();
    assert!(files(&world) == whole);
}

#[test]
fn wrong_pools_and_grades_are_measured_as_wrong() {
    let (_guard, world) = folder();
    make(&small(), &world, &Progress::new()).unwrap();
    let log = WorldLog::open(&world).unwrap();
    let mut pools = truths(world.join("pools.jsonl"));
    let claimed: usize = pools.iter().map(|truth| videos_of(truth).len()).sum();
    // One video too many is claimed in one pool, and all are forgotten in another.
    let wrong =
        pools[0].pool.as_ref().unwrap().iter().find(|video| !videos_of(&pools[0]).contains(video)).unwrap().clone();
    let span = pools[0].moments[0].moment.span;
    pools[0].moments.push(cuemark_core::GradedMoment::right(wrong, span));
    let forgotten = videos_of(&pools[1]).len();
    pools[1].moments.clear();
    let quality = pool_quality(&log, &pools).unwrap();
    let right = (claimed - forgotten) as f64;
    assert_eq!(quality.precision.value, right / (right + 1.0));
    assert_eq!(quality.recall.value, right / claimed as f64);
    assert_eq!(quality.unclaimed, forgotten);

    let mut graded = truths(world.join("graded.jsonl"));
    let all: usize = graded.iter().map(|truth| truth.moments.len()).sum();
    let grade = graded[0].moments[0].relevance.unwrap().value();
    graded[0].moments[0].relevance = cuemark_core::Relevance::new(grade + 2.0);
    let agreement = grade_agreement(&log, &graded).unwrap();
    assert_eq!(agreement.moments, all);
    assert_eq!(agreement.within_one.value, (all - 1) as f64 / all as f64);
    assert!((agreement.mean_error - 2.0 / all as f64).abs() < 1e-12);
}

fn videos_of(truth: &Truth) -> Vec<&cuemark_core::VideoId> {
    let mut videos: Vec<_> = truth.moments.iter().map(|graded| &graded.moment.video).collect();
    videos.sort();
    videos.dedup();
    videos
}

#[test]
fn the_oracles_candidates_have_the_best_grades_first() {
    let (_guard, world) = folder();
    make(&small(), &world, &Progress::new()).unwrap();
    let grades = grade_candidates(&WorldLog::open(&world).unwrap(), &oracle(&world, "test-iid").unwrap()).unwrap();
    assert_eq!(grades.queries, split(&world, "test-iid").len());
    assert!(grades.by_grade[4] >= grades.queries);
    assert!(grades.mean_by_tens.is_sorted_by(|a, b| a >= b), "{:?}", grades.mean_by_tens);
}

#[test]
fn queries_of_another_world_are_named() {
    let (_guard, world) = folder();
    make(&small(), &world, &Progress::new()).unwrap();
    let mut stranger = split(&world, "val");
    stranger[0].query.id = cuemark_core::QueryId::new("nobody's");
    let error = pool_quality(&WorldLog::open(&world).unwrap(), &stranger).unwrap_err();
    assert_eq!(error.to_string(), "query `nobody's` is not in the world's log");
}

#[test]
fn reels_are_real_videos_of_the_right_length() {
    if std::process::Command::new("ffprobe").arg("-version").output().is_err() {
        eprintln!("SKIPPED (no ffmpeg): reels_are_real_videos_of_the_right_length");
        return;
    }
    let (_guard, world) = folder();
    let options = WorldOptions { videos: 8, reels: Reels::Mp4, length: 10.0, ..small() };
    make(&options, &world, &Progress::new()).unwrap();
    let log = WorldLog::open(&world).unwrap();
    for film in log.films() {
        let path = world.join(format!("videos/{}.mp4", film.video));
        let entries = "stream=codec_name,width,height:format=duration";
        let probe = std::process::Command::new("ffprobe")
            .args(["-v", "error", "-show_entries", entries, "-of", "csv=p=0", path.as_str()])
            .output()
            .unwrap();
        let said = String::from_utf8(probe.stdout).unwrap();
        let mut lines = said.lines();
        assert_eq!(lines.next(), Some("h264,320,240"));
        let seconds: f64 = lines.next().unwrap().parse().unwrap();
        assert!((seconds - film.duration).abs() < 0.2, "{seconds} {}", film.duration);
    }
    assert_eq!(world.join("videos").read_dir_utf8().unwrap().count(), 8);
}
