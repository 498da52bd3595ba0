//! The embedded engine: exactness, recall, filters, replacing, damage.

use camino::Utf8PathBuf;
use cuemark_core::{Progress, Rng, Span, VideoId};
use cuemark_formats::Overwrite;
use cuemark_search::engine::Embedded;
use cuemark_search::{
    Effort, Embedding, Engine, Filter, Hit, IndexedMoment, Nearest, SearchError, Settling, VideoEntry, VideoState,
};

const WIDTH: usize = 48;

/// Moments in clusters, as those of real videos are: neighbours in time are alike.
struct Collection {
    _guard: tempfile::TempDir,
    folder: Utf8PathBuf,
    engine: Embedded,
    moments: Vec<(VideoId, IndexedMoment)>,
}

fn unit(rng: &mut Rng) -> Vec<f32> {
    (0..WIDTH).map(|_| rng.normal() as f32).collect()
}

fn collection(videos: usize, per_video: usize) -> Collection {
    let guard = tempfile::tempdir().unwrap();
    let folder = Utf8PathBuf::from_path_buf(guard.path().join("index")).unwrap();
    let engine = Embedded::create(&folder, WIDTH, Overwrite::Never).unwrap();
    let mut rng = Rng::new(21);
    let topics: Vec<Vec<f32>> = (0..40).map(|_| unit(&mut rng)).collect();
    let mut moments = Vec::new();
    for video in 0..videos {
        let topic = rng.pick(&topics).unwrap().clone();
        let of_video: Vec<IndexedMoment> = (0..per_video)
            .map(|n| {
                let near = topic.iter().map(|x| x + 0.6 * rng.normal() as f32).collect();
                let span = Span::new(n as f64, n as f64 + 2.0).unwrap();
                IndexedMoment { span, embedding: Embedding::unit(near).unwrap() }
            })
            .collect();
        let entry = entry(video);
        engine.put(&entry, &of_video).unwrap();
        moments.extend(of_video.into_iter().map(|moment| (entry.id.clone(), moment)));
    }
    Collection { _guard: guard, folder, engine, moments }
}

fn entry(video: usize) -> VideoEntry {
    let tags = if video.is_multiple_of(3) { vec!["third".to_owned()] } else { vec![] };
    VideoEntry { tags, ..VideoEntry::without_file(VideoId::new(format!("v{video}")), 500.0) }
}

fn ask(count: usize, effort: Effort) -> Nearest {
    Nearest { count, filter: Filter::default(), effort }
}

fn queries(count: usize) -> Vec<Embedding> {
    let mut rng = Rng::new(77);
    (0..count).map(|_| Embedding::unit(unit(&mut rng)).unwrap()).collect()
}

/// Straight from the definition, over the full-precision vectors.
fn by_hand(collection: &Collection, query: &Embedding, count: usize) -> Vec<(VideoId, Span, f32)> {
    let mut all: Vec<(VideoId, Span, f32)> = collection
        .moments
        .iter()
        .map(|(video, moment)| (video.clone(), moment.span, moment.embedding.cosine(query)))
        .collect();
    all.sort_by(|a, b| b.2.total_cmp(&a.2));
    all.truncate(count);
    all
}

#[test]
fn exact_search_finds_what_the_definition_says_to_the_precision_of_halves() {
    let collection = collection(60, 50);
    for query in queries(30) {
        let found = collection.engine.nearest(&query, &ask(10, Effort::Exact)).unwrap();
        for (hit, (_, _, score)) in found.iter().zip(by_hand(&collection, &query, 10)) {
            assert!((hit.score - score).abs() < 2e-3, "{} {score}", hit.score);
        }
        assert!(found.windows(2).all(|pair| pair[0].score >= pair[1].score));
    }
}

fn recall(collection: &Collection, queries: &[Embedding], effort: Effort) -> f64 {
    let (mut found, mut wanted) = (0, 0);
    for query in queries {
        let exact = collection.engine.nearest(query, &ask(10, Effort::Exact)).unwrap();
        let near = collection.engine.nearest(query, &ask(10, effort)).unwrap();
        found += exact.iter().filter(|hit| near.contains(hit)).count();
        wanted += exact.len();
    }
    found as f64 / wanted as f64
}

#[test]
fn the_graph_finds_nearly_all_of_what_exact_search_does() {
    let collection = collection(500, 50);
    collection.engine.settle(Settling::Fully, &Progress::new()).unwrap();
    assert_eq!(collection.engine.status().unwrap().in_graph, 25_000);
    let mut rng = Rng::new(3);
    let beside: Vec<Embedding> = (0..100)
        .map(|_| {
            let (_, moment) = rng.pick(&collection.moments).unwrap().clone();
            let moved = moment.embedding.numbers().iter().map(|x| x + 0.08 * rng.normal() as f32);
            Embedding::unit(moved.collect()).unwrap()
        })
        .collect();
    let usual = recall(&collection, &beside, Effort::Approximate);
    assert!(usual >= 0.99, "recall {usual}");
    // Directions that have nothing to do with any moment are the hardest case and take more effort.
    let far = recall(&collection, &queries(100), Effort::Expansion(512));
    assert!(far >= 0.95, "recall {far}");
}

#[test]
fn moments_that_eight_bits_do_not_tell_apart_are_told_apart_by_the_log() {
    let mut collection = collection(120, 50);
    // Two hundred that differ in a number too small for eight bits, and in others that the question does not ask for. Which ten are
    // best, forty that look best by eight bits would not say.
    let mut rng = Rng::new(9);
    let alike: Vec<IndexedMoment> = (0..200)
        .map(|n| {
            let mut numbers = vec![0.0; WIDTH];
            (numbers[0], numbers[1]) = (1.0, 0.003 * n as f32 / 200.0);
            numbers[2..].iter_mut().for_each(|x| *x = if rng.uniform() < 0.5 { 0.05 } else { -0.05 });
            let span = Span::new(f64::from(n), f64::from(n) + 1.0).unwrap();
            IndexedMoment { span, embedding: Embedding::unit(numbers).unwrap() }
        })
        .collect();
    let entry = entry(9_999);
    collection.engine.put(&entry, &alike).unwrap();
    collection.moments.extend(alike.into_iter().map(|moment| (entry.id.clone(), moment)));
    collection.engine.settle(Settling::Fully, &Progress::new()).unwrap();
    let mut question = vec![0.0; WIDTH];
    (question[0], question[1]) = (0.8, 0.6);
    let found = recall(&collection, &[Embedding::unit(question).unwrap()], Effort::Approximate);
    assert!(found >= 0.9, "recall {found}");
}

#[test]
fn a_graph_that_grew_finds_what_one_made_at_once_does() {
    let collection = collection(500, 50);
    let engine = &collection.engine;
    engine.settle(Settling::Fully, &Progress::new()).unwrap();
    let mut rng = Rng::new(5);
    let late: Vec<IndexedMoment> = (0..200)
        .map(|n| IndexedMoment {
            span: Span::new(f64::from(n), f64::from(n) + 1.0).unwrap(),
            embedding: Embedding::unit(unit(&mut rng)).unwrap(),
        })
        .collect();
    engine.put(&entry(9999), &late).unwrap();
    let check = |when: &str| {
        let mut missed = 0;
        for moment in &late {
            let hits = engine.nearest(&moment.embedding, &ask(1, Effort::Approximate)).unwrap();
            missed += usize::from(hits[0].span != moment.span);
        }
        assert!(missed <= 2, "{when}: {missed} of 200 missed");
    };
    check("beside the graph");
    engine.settle(Settling::Fully, &Progress::new()).unwrap();
    assert_eq!(engine.status().unwrap().in_graph, 25_200);
    check("in the graph");
}

#[test]
fn filters_leave_out_what_they_should_in_every_mode() {
    let collection = collection(500, 50);
    collection.engine.settle(Settling::Fully, &Progress::new()).unwrap();
    let within = Span::new(10.0, 30.0).unwrap();
    let filters = [
        Filter { tags: vec!["third".to_owned()], ..Filter::default() },
        Filter { within: Some(within), ..Filter::default() },
        Filter::video("v7".into()),
        Filter { tags: vec!["no such tag".to_owned()], ..Filter::default() },
    ];
    for filter in filters {
        let allowed = |hit: &Hit| {
            let entry = collection.engine.video(&hit.video).unwrap().unwrap();
            filter.admits(&entry) && filter.admits_span(hit.span)
        };
        for query in queries(5) {
            let exact = Nearest { count: 10, filter: filter.clone(), effort: Effort::Exact };
            let exact = collection.engine.nearest(&query, &exact).unwrap();
            let near = Nearest { count: 10, filter: filter.clone(), effort: Effort::Approximate };
            let near = collection.engine.nearest(&query, &near).unwrap();
            assert!(exact.iter().chain(&near).all(allowed), "{filter:?}");
            assert_eq!(exact.len(), near.len(), "{filter:?}");
            let both = exact.iter().filter(|hit| near.contains(hit)).count();
            assert!(both * 10 >= exact.len() * 8, "{filter:?}: {both}");
        }
    }
}

#[test]
fn replaced_removed_and_vanished_videos_are_not_found() {
    let collection = collection(20, 10);
    let engine = &collection.engine;
    let (id, moment) = collection.moments[35].clone();
    let found = |engine: &Embedded| {
        let hits = engine.nearest(&moment.embedding, &ask(1, Effort::Exact)).unwrap();
        hits[0].video == id && hits[0].span == moment.span
    };
    assert!(found(engine));
    assert!(engine.note(&id, VideoState::Vanished, &[]).unwrap());
    assert!(!found(engine));
    assert!(engine.note(&id, VideoState::Present, &["new".to_owned()]).unwrap());
    assert!(found(engine));
    assert_eq!(engine.video(&id).unwrap().unwrap().tags, ["new"]);
    engine.put(&engine.video(&id).unwrap().unwrap(), &[]).unwrap();
    assert!(!found(engine));
    assert!(engine.remove(&id).unwrap());
    assert!(!engine.remove(&id).unwrap());
    let status = engine.status().unwrap();
    assert_eq!((status.videos, status.moments, status.dead), (19, 190, 10));
    let again = Embedded::open(&collection.folder).unwrap();
    assert_eq!(again.status().unwrap(), status);
}

#[test]
fn one_process_writes_at_a_time_and_readers_see_what_it_adds() {
    let collection = collection(3, 5);
    let other = Embedded::open(&collection.folder).unwrap();
    assert!(matches!(other.remove(&"v0".into()), Err(SearchError::Locked { .. })));
    collection.engine.put(&entry(50), &[]).unwrap();
    other.refresh().unwrap();
    assert!(other.video(&"v50".into()).unwrap().is_some());
    collection.engine.settle(Settling::WhenWorthIt, &Progress::new()).unwrap();
    assert!(other.remove(&"v0".into()).unwrap());
}

#[test]
fn damage_is_found_and_a_damaged_graph_is_not_used() {
    let collection = collection(500, 50);
    collection.engine.settle(Settling::Fully, &Progress::new()).unwrap();
    drop(collection.engine);
    let graph = collection.folder.join("graph-1.hnsw");
    let mut bytes = std::fs::read(&graph).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&graph, &bytes).unwrap();
    let engine = Embedded::open(&collection.folder).unwrap();
    assert_eq!(engine.status().unwrap().in_graph, 0);
    assert_eq!(engine.verify(&Progress::new()).unwrap().len(), 1);
    engine.settle(Settling::Anew, &Progress::new()).unwrap();
    assert_eq!(engine.verify(&Progress::new()).unwrap(), []);
    assert_eq!(engine.status().unwrap().in_graph, 25_000);
    drop(engine);
    let log = collection.folder.join("moments.log");
    let mut bytes = std::fs::read(&log).unwrap();
    // Inside the vectors of some record: opening does not look there, verifying does.
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&log, &bytes).unwrap();
    let faults = Embedded::open(&collection.folder).and_then(|engine| engine.verify(&Progress::new())).unwrap();
    assert_eq!(faults.len(), 1, "{faults:?}");
}

#[test]
fn compacting_gives_back_what_nobody_can_find_and_changes_no_answer() {
    let collection = collection(600, 50);
    let engine = &collection.engine;
    for video in 0..80 {
        assert!(engine.remove(&entry(video).id).unwrap());
    }
    let again = engine.moments(&entry(100).id).unwrap().unwrap();
    engine.put(&entry(100), &again).unwrap();
    engine.note(&entry(101).id, VideoState::Vanished, &["kept".to_owned()]).unwrap();
    engine.settle(Settling::Fully, &Progress::new()).unwrap();
    let reader = Embedded::open(&collection.folder).unwrap();
    let answers = |engine: &Embedded, effort| -> Vec<Vec<Hit>> {
        queries(20).iter().map(|query| engine.nearest(query, &ask(10, effort)).unwrap()).collect()
    };
    let (exact, before) = (answers(engine, Effort::Exact), engine.status().unwrap());
    let old_graph = std::fs::read(collection.folder.join("graph-1.hnsw")).unwrap();
    let old_name = std::fs::read(collection.folder.join("graph.json")).unwrap();
    assert_eq!(before.dead, 81 * 50);
    // Two bytes a number and sixteen a span, at least.
    assert!(before.waste.unwrap() >= 81 * 50 * (2 * WIDTH as u64 + 16));
    let length = || std::fs::metadata(collection.folder.join("moments.log")).unwrap().len();
    let length_before = length();

    let done = engine.compact(&Progress::new()).unwrap();
    let after = engine.status().unwrap();
    assert!(length_before - length() >= before.waste.unwrap());
    assert_eq!(done.freed, length_before - length());
    assert_eq!(done.graph, Some(engine.graph_bytes()));
    assert_eq!((after.dead, after.waste), (0, Some(0)));
    assert_eq!((after.videos, after.vanished, after.moments), (before.videos, before.vanished, before.moments));
    assert_eq!(after.in_graph, 520 * 50, "a vanished video's moments are kept");
    assert_eq!(answers(engine, Effort::Exact), exact);
    assert!(recall(&collection, &queries(20), Effort::Expansion(512)) > 0.95);
    assert_eq!(engine.verify(&Progress::new()).unwrap(), []);
    assert_eq!(engine.video(&entry(101).id).unwrap().unwrap().tags, ["kept"]);

    // A reader keeps what it has mapped, and begins anew when it looks again.
    assert_eq!(answers(&reader, Effort::Exact), exact);
    reader.refresh().unwrap();
    assert_eq!(reader.status().unwrap(), after);
    assert_eq!(answers(&reader, Effort::Approximate), answers(engine, Effort::Approximate));
    assert_eq!(Embedded::open(&collection.folder).unwrap().status().unwrap(), after);

    // Killed behind the new log and before its graph: the old one numbers other moments and is not used.
    std::fs::write(collection.folder.join("graph-1.hnsw"), old_graph).unwrap();
    std::fs::write(collection.folder.join("graph.json"), old_name).unwrap();
    let without = Embedded::open(&collection.folder).unwrap();
    assert_eq!(without.status().unwrap().in_graph, 0);
    assert_eq!(answers(&without, Effort::Approximate), exact);
    assert_eq!(without.verify(&Progress::new()).unwrap(), []);
    without.settle(Settling::WhenWorthIt, &Progress::new()).unwrap();
    assert_eq!(without.status().unwrap().in_graph, 520 * 50);
}

#[test]
fn a_compaction_that_was_cut_short_is_forgotten_and_a_damaged_video_is_not_hidden_by_one() {
    let collection = collection(5, 20);
    assert!(collection.engine.remove(&entry(0).id).unwrap());
    collection.engine.settle(Settling::WhenWorthIt, &Progress::new()).unwrap();
    let unfinished = collection.folder.join("moments.part");
    std::fs::write(&unfinished, "half a log").unwrap();
    let engine = Embedded::open(&collection.folder).unwrap();
    assert_eq!(engine.verify(&Progress::new()).unwrap(), []);
    engine.put(&entry(7), &[]).unwrap();
    assert!(!unfinished.exists());
    drop(engine);
    let log = collection.folder.join("moments.log");
    let mut bytes = std::fs::read(&log).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&log, &bytes).unwrap();
    let engine = Embedded::open(&collection.folder).unwrap();
    assert!(matches!(engine.compact(&Progress::new()), Err(SearchError::Damaged { .. })));
    assert!(!unfinished.exists());
    assert_eq!(std::fs::read(&log).unwrap(), bytes);
}

#[test]
fn damaged_numbers_do_not_push_themselves_into_answers() {
    let collection = collection(1, 400);
    // Something behind it: damage at the very end would count as never written.
    collection.engine.put(&entry(1), &[]).unwrap();
    drop(collection.engine);
    let log = collection.folder.join("moments.log");
    let mut bytes = std::fs::read(&log).unwrap();
    // The largest bit of an exponent, in every other moment from the middle of the vectors on.
    let middle = (bytes.len() / 2) | 1;
    for place in (middle..middle + 40 * 4 * WIDTH).step_by(4 * WIDTH) {
        bytes[place] ^= 0x40;
    }
    std::fs::write(&log, &bytes).unwrap();
    let engine = Embedded::open(&collection.folder).unwrap();
    for query in queries(20) {
        let found = engine.nearest(&query, &ask(10, Effort::Exact)).unwrap();
        assert!(found.len() == 10 && found.iter().all(|hit| hit.score <= 1.01), "{found:?}");
        let scores = engine.scores(&entry(0).id, &query).unwrap().unwrap();
        assert!(scores.iter().all(|(_, score)| score.abs() <= 1.01));
    }
    assert_eq!(engine.verify(&Progress::new()).unwrap().len(), 1);
}

#[test]
fn embeddings_of_another_width_are_refused() {
    let collection = collection(1, 1);
    let wrong = Embedding::unit(vec![1.0; 3]).unwrap();
    assert!(matches!(collection.engine.nearest(&wrong, &ask(1, Effort::Exact)), Err(SearchError::Width { .. })));
    let moment = IndexedMoment { span: Span::whole(1.0), embedding: wrong };
    assert!(matches!(collection.engine.put(&entry(5), &[moment]), Err(SearchError::Width { .. })));
}

#[test]
fn nothing_is_found_in_an_empty_index() {
    let collection = collection(0, 0);
    assert!(collection.engine.nearest(&queries(1)[0], &ask(5, Effort::Approximate)).unwrap().is_empty());
    collection.engine.settle(Settling::Anew, &Progress::new()).unwrap();
    assert!(collection.engine.sample(10).unwrap().is_empty());
}
