//! The Milvus engine against a real server, and against the embedded engine.
//!
//! One test, because a server takes its time to start: its parts are functions. The server is the Python package `milvus`,
//! which `cargo xtask test` installs.

use crate::words;

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::{Advise as _, Dialect, Progress, Rng, Span, VideoId};
use cuemark_formats::Overwrite;
use cuemark_search::engine::{Embedded, Milvus};
use cuemark_search::{
    AddOptions, Calibration, Effort, Embedding, Engine, EngineUrl, Filter, Hit, Index, IndexedMoment, Manifest,
    Nearest, Question, SearchError, Settling, VideoEntry, VideoState,
};

const WIDTH: usize = 32;
const VIDEOS: usize = 125;
const PER_VIDEO: usize = 200;
/// A server that takes longer to start does not start.
const STARTING: Duration = Duration::from_secs(300);

/// A server of our own, on a port of its own.
struct Server {
    python: Utf8PathBuf,
    folder: Utf8PathBuf,
    port: u16,
    running: Option<(Child, u32)>,
}

impl Server {
    fn new(python: Utf8PathBuf, folder: &Utf8Path) -> Self {
        // Free now; nobody else asks for it in between.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut server = Self { python, folder: folder.to_owned(), port, running: None };
        server.start();
        server
    }

    fn start(&mut self) {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/milvus_server.py");
        let programs = cuemark_testkit::scratch("milvus");
        let mut child = Command::new(&self.python)
            .args([script, self.folder.as_str(), &self.port.to_string(), programs.as_str()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let process = line.strip_prefix("READY ").unwrap_or_else(|| panic!("the server said {line:?}"));
        self.running = Some((child, process.trim().parse().unwrap()));
        self.wait_until_it_answers();
    }

    /// Waits until it says that a collection which never was is not there: its port opens long before it knows that, and on
    /// a machine that does much else the client's patience with a new address ends sooner.
    fn wait_until_it_answers(&self) {
        let began = Instant::now();
        loop {
            let told = Milvus::open(&self.url("nowhere")).err().unwrap().to_string();
            if told.ends_with("there is no such collection") {
                return;
            }
            assert!(began.elapsed() < STARTING, "the server does not answer: {told}");
        }
    }

    /// `kill -9`
    fn kill(&mut self) {
        let Some((mut child, process)) = self.running.take() else { return };
        assert!(Command::new("kill").args(["-9", &process.to_string()]).status().unwrap().success());
        drop(child.stdin.take());
        child.wait().unwrap();
    }

    fn url(&self, collection: &str) -> EngineUrl {
        format!("milvus://127.0.0.1:{}/{collection}", self.port).parse().unwrap()
    }

    fn create(&self, collection: &str) -> Milvus {
        let manifest = Manifest {
            layout: 1,
            cuemark: "test".to_owned(),
            encoder: "none".to_owned(),
            width: WIDTH,
            calibration: Calibration::default(),
            log: None,
            kept: Default::default(),
        };
        Milvus::create(&self.url(collection), &manifest, Overwrite::Never).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some((mut child, _)) = self.running.take() {
            // The script stops the server when its input ends.
            drop(child.stdin.take());
            let _ = child.wait();
        }
    }
}

fn entry(video: usize) -> VideoEntry {
    let tags = if video.is_multiple_of(3) { vec!["a \"third\"".to_owned()] } else { vec![] };
    VideoEntry { tags, ..VideoEntry::without_file(VideoId::new(format!("v{video}")), 500.0) }
}

fn numbers(rng: &mut Rng) -> Vec<f32> {
    (0..WIDTH).map(|_| rng.normal() as f32).collect()
}

/// Moments in clusters, as those of real videos are.
fn collection() -> Vec<(VideoEntry, Vec<IndexedMoment>)> {
    let mut rng = Rng::new(21);
    let topics: Vec<Vec<f32>> = (0..40).map(|_| numbers(&mut rng)).collect();
    let video = |video: usize| {
        let topic = rng.pick(&topics).unwrap().clone();
        let moment = |n: usize| {
            let near = topic.iter().map(|x| x + 0.6 * rng.normal() as f32).collect();
            let span = Span::new(n as f64, n as f64 + 2.5).unwrap();
            IndexedMoment { span, embedding: Embedding::unit(near).unwrap() }
        };
        (entry(video), (0..PER_VIDEO).map(moment).collect())
    };
    (0..VIDEOS).map(video).collect()
}

/// Half of them beside a moment, half anywhere.
fn queries(collection: &[(VideoEntry, Vec<IndexedMoment>)], count: usize) -> Vec<Embedding> {
    let mut rng = Rng::new(77);
    let query = |n: usize| {
        if n % 2 == 1 {
            return Embedding::unit(numbers(&mut rng)).unwrap();
        }
        let (_, moments) = rng.pick(collection).unwrap();
        let moment = rng.pick(moments).unwrap();
        let moved = moment.embedding.numbers().iter().map(|x| x + 0.08 * rng.normal() as f32);
        Embedding::unit(moved.collect()).unwrap()
    };
    (0..count).map(query).collect()
}

fn ask(count: usize, effort: Effort) -> Nearest {
    Nearest { count, filter: Filter::default(), effort }
}

/// Whether two lists are the same up to ties: the same scores, and every moment of one that is clearly better than the
/// worst is in the other.
fn assert_same(a: &[Hit], b: &[Hit], what: &str) {
    const TIE: f32 = 1e-5;
    assert_eq!(a.len(), b.len(), "{what}");
    for (a, b) in a.iter().zip(b) {
        assert!((a.score - b.score).abs() < TIE, "{what}: {a:?} {b:?}");
    }
    let Some(worst) = a.last().map(|hit| hit.score) else { return };
    for hit in a.iter().filter(|hit| hit.score > worst + TIE) {
        assert!(b.iter().any(|other| other.video == hit.video && other.span == hit.span), "{what}: {hit:?}");
    }
}

/// Whether both engines answer 1,000 questions with the same ten moments.
fn exact_modes_agree(embedded: &Embedded, flat: &Milvus, queries: &[Embedding]) {
    for (number, query) in queries.iter().enumerate() {
        let here = embedded.nearest(query, &ask(10, Effort::Exact)).unwrap();
        let there = flat.nearest(query, &ask(10, Effort::Exact)).unwrap();
        assert_same(&here, &there, &format!("query {number}"));
    }
}

fn recall(engine: &dyn Engine, embedded: &Embedded, queries: &[Embedding]) -> f64 {
    let (mut found, mut wanted) = (0, 0);
    for query in queries {
        let exact = embedded.nearest(query, &ask(10, Effort::Exact)).unwrap();
        let near = engine.nearest(query, &ask(10, Effort::Approximate)).unwrap();
        let same = |hit: &&Hit| near.iter().any(|other| other.video == hit.video && other.span == hit.span);
        found += exact.iter().filter(same).count();
        wanted += exact.len();
    }
    found as f64 / wanted as f64
}

fn filters_agree(embedded: &Embedded, engines: &[&Milvus], queries: &[Embedding]) {
    let filters = [
        Filter { tags: vec!["a \"third\"".to_owned()], ..Filter::default() },
        Filter { within: Some(Span::new(10.0, 30.0).unwrap()), ..Filter::default() },
        Filter::video("v7".into()),
        Filter { videos: Some(["v1", "v2", "nobody"].into_iter().map(Into::into).collect()), ..Filter::default() },
        Filter { tags: vec!["no such tag".to_owned()], ..Filter::default() },
        Filter { videos: Some(std::iter::empty().collect()), ..Filter::default() },
    ];
    for filter in filters {
        for query in queries {
            let ask = Nearest { count: 10, filter: filter.clone(), effort: Effort::Exact };
            let here = embedded.nearest(query, &ask).unwrap();
            for engine in engines {
                assert_same(&here, &engine.nearest(query, &ask).unwrap(), &format!("{filter:?} {}", engine.url()));
            }
        }
    }
}

fn the_catalogue_agrees(embedded: &Embedded, server: &Milvus) {
    assert_eq!(server.videos().unwrap(), embedded.videos().unwrap());
    for id in ["v0", "v99"] {
        assert_eq!(server.moments(&id.into()).unwrap(), embedded.moments(&id.into()).unwrap());
        let query = Embedding::unit(vec![1.0; WIDTH]).unwrap();
        let scores = |engine: &dyn Engine| engine.scores(&id.into(), &query).unwrap().unwrap();
        for ((span, here), (other, there)) in scores(embedded).into_iter().zip(scores(server)) {
            assert!(span == other && (here - there).abs() < 1e-5);
        }
    }
    assert_eq!(server.video(&"nobody".into()).unwrap(), None);
    assert_eq!(server.moments(&"nobody".into()).unwrap(), None);
    let status = server.status().unwrap();
    assert_eq!((status.videos, status.vanished, status.moments), (VIDEOS, 0, VIDEOS * PER_VIDEO));
    assert_eq!(server.sample(500).unwrap().len(), 500);
    assert_eq!(server.sample(500).unwrap(), server.sample(500).unwrap());
    assert_eq!(server.verify(&Progress::new()).unwrap(), []);
}

/// Replacing, marking, removing, and names that are meant to break out of a condition.
fn changes_are_seen(server: &Milvus) {
    let mut rng = Rng::new(4);
    let mut moments = |count: usize| -> Vec<IndexedMoment> {
        let embedding = |_| Embedding::unit(numbers(&mut rng)).unwrap();
        let moment = |(n, embedding)| IndexedMoment { span: Span::new(n as f64, n as f64 + 1.0).unwrap(), embedding };
        (0..count).map(embedding).enumerate().map(moment).collect()
    };
    let hostile = "x\" or id > 0 or video == \"\\ \n'šílený'";
    let entry = VideoEntry { id: hostile.into(), tags: vec!["\"] or true".to_owned()], ..entry(1) };
    let (first, second) = (moments(30), moments(20));
    let found = |moment: &IndexedMoment| {
        let hits = server.nearest(&moment.embedding, &ask(1, Effort::Approximate)).unwrap();
        hits.first().is_some_and(|hit| hit.video == entry.id && hit.span == moment.span && hit.score > 0.999)
    };
    server.put(&entry, &first).unwrap();
    assert!(found(&first[7]));
    assert_eq!(server.video(&entry.id).unwrap(), Some(entry.clone()));
    let tagged = Filter { tags: entry.tags.clone(), ..Filter::default() };
    let hits =
        server.nearest(&first[3].embedding, &Nearest { count: 99, filter: tagged, effort: Effort::Exact }).unwrap();
    assert_eq!(hits.len(), 30);

    // Beside another, and named twice: the later counts, and what was there before is gone.
    let beside = VideoEntry { id: "beside".into(), ..entry.clone() };
    let (passing, of_other) = (moments(5), moments(3));
    server
        .put_all(&[(entry.clone(), passing.clone()), (beside.clone(), of_other), (entry.clone(), second.clone())])
        .unwrap();
    assert!(found(&second[7]) && !found(&first[7]) && !found(&passing[1]));
    assert_eq!(server.moments(&beside.id).unwrap().unwrap().len(), 3);
    assert!(server.remove(&beside.id).unwrap());
    assert_eq!(server.moments(&entry.id).unwrap().unwrap().len(), 20);

    assert!(server.note(&entry.id, VideoState::Vanished, &["new".to_owned()]).unwrap());
    assert!(!found(&second[7]));
    assert_eq!(server.video(&entry.id).unwrap().unwrap().tags, ["new"]);
    assert!(server.note(&entry.id, VideoState::Present, &[]).unwrap());
    assert!(found(&second[7]));

    assert!(server.remove(&entry.id).unwrap());
    assert!(!server.remove(&entry.id).unwrap());
    assert!(!found(&second[7]));
    assert!(!server.note(&entry.id, VideoState::Present, &[]).unwrap());
    assert_eq!(server.videos().unwrap().len(), VIDEOS);
    assert_eq!(server.verify(&Progress::new()).unwrap(), []);
}

fn wrong_widths_and_addresses_are_refused(server: &Server, engine: &Milvus) {
    let wrong = Embedding::unit(vec![1.0; 3]).unwrap();
    assert!(matches!(engine.nearest(&wrong, &ask(1, Effort::Exact)), Err(SearchError::Width { .. })));
    let moment = IndexedMoment { span: Span::whole(1.0), embedding: wrong };
    assert!(matches!(engine.put(&entry(5), &[moment]), Err(SearchError::Width { .. })));
    let told = Milvus::open(&server.url("nowhere")).err().unwrap();
    assert!(told.to_string().ends_with("/nowhere: there is no such collection"), "{told}");
    let again = Milvus::create(&server.url("hnsw"), &Milvus::manifest(&server.url("hnsw")).unwrap(), Overwrite::Never);
    assert!(again.err().unwrap().to_string().contains("there already"));
}

/// Whether whole indexes, with their answers and probabilities, are the same on both engines.
fn answers_agree(server: &Server, folder: &Utf8Path) {
    let urls = [EngineUrl::File(folder.join("words")), server.url("words?index=flat")];
    let [here, there] = urls.map(|url| {
        let index = Index::create(&url, Box::new(words::films()), Overwrite::Never).unwrap();
        let options = AddOptions { tags: vec!["toy".to_owned()] };
        let added = index.add_stored(&words::names(), &options, &cuemark_core::Progress::new()).unwrap();
        assert_eq!(added.new, 4);
        drop(index);
        Index::open(&url, Box::new(words::films())).unwrap()
    });
    // A server keeps no log whose identity the manifest could name.
    assert_eq!(Manifest { log: None, ..here.manifest().clone() }, *there.manifest());
    for text in ["the red ball spins", "ball spins -red", "blue box", "box leaves"] {
        let question = Question { effort: Effort::Exact, least: 0.0, ..Question::new(text) };
        let (a, b) = (here.answer(&question).unwrap(), there.answer(&question).unwrap());
        assert_eq!(a.moments.len(), b.moments.len(), "{text}");
        for (a, b) in a.moments.iter().zip(&b.moments) {
            assert_eq!((&a.video, a.span), (&b.video, b.span), "{text}");
            assert!((a.probability - b.probability).abs() < 1e-3, "{text}: {} {}", a.probability, b.probability);
        }
    }
}

/// Kills the server while videos are put, twice, and looks whether anything acknowledged is missing.
fn nothing_acknowledged_is_lost(server: &mut Server) {
    const PUTS: usize = 40;
    const MOMENTS: usize = 500;
    let engine = server.create("crash?index=flat");
    let moments = |video: usize| -> Vec<IndexedMoment> {
        let mut rng = Rng::stream(video as u64, "crash");
        let embedding = |_| Embedding::unit(numbers(&mut rng)).unwrap();
        let moment = |(n, embedding)| IndexedMoment { span: Span::new(n as f64, n as f64 + 1.0).unwrap(), embedding };
        (0..MOMENTS).map(embedding).enumerate().map(moment).collect()
    };
    let acknowledged = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for video in 0..PUTS {
                // Waits for the server to come back by itself.
                engine.put(&entry(video), &moments(video)).unwrap();
                acknowledged.fetch_add(1, Ordering::SeqCst);
            }
        });
        let mut rng = Rng::new(9);
        for kill in 1..=2 {
            while acknowledged.load(Ordering::SeqCst) < kill * PUTS / 4 {
                assert!(!writer.is_finished(), "the writer gave up");
                std::thread::sleep(Duration::from_millis(5));
            }
            // Somewhere inside the next put.
            std::thread::sleep(Duration::from_millis((40.0 * rng.uniform()) as u64));
            server.kill();
            let safe = acknowledged.load(Ordering::SeqCst);
            assert!(safe < PUTS, "all were put before kill {kill}");
            server.start();
            let reader = Milvus::open(&server.url("crash")).unwrap();
            for video in (0..safe).step_by(5).chain(safe - 1..safe) {
                let found = reader.moments(&entry(video).id).unwrap();
                assert_eq!(found.map(|found| found.len()), Some(MOMENTS), "v{video} after kill {kill}");
            }
        }
        writer.join().unwrap();
    });
    assert_eq!(engine.verify(&Progress::new()).unwrap(), []);
    engine.settle(Settling::Anew, &Progress::new()).unwrap();
    let status = engine.status().unwrap();
    assert_eq!((status.videos, status.moments), (PUTS, MOMENTS * PUTS));
    for video in 0..PUTS {
        let wanted = moments(video).swap_remove(video);
        let hits = engine.nearest(&wanted.embedding, &ask(1, Effort::Exact)).unwrap();
        assert_eq!((&hits[0].video, hits[0].span), (&entry(video).id, wanted.span));
    }
}

#[test]
fn a_real_server_gives_the_same_answers_and_loses_nothing_when_killed() {
    let Some(python) = cuemark_testkit::python("milvus") else { return };
    let guard = tempfile::tempdir().unwrap();
    let folder = Utf8PathBuf::from_path_buf(guard.path().to_owned()).unwrap();
    let mut server = Server::new(python, &folder.join("server"));

    nothing_acknowledged_is_lost(&mut server);
    let collection = collection();
    let embedded = Embedded::create(&folder.join("embedded"), WIDTH, Overwrite::Never).unwrap();
    let (flat, hnsw) = (server.create("flat?index=flat"), server.create("hnsw"));
    for (entry, moments) in &collection {
        embedded.put(entry, moments).unwrap();
        flat.put(entry, moments).unwrap();
    }
    // All in a few requests: the same as one by one.
    hnsw.put_all(&collection).unwrap();
    for engine in [&embedded as &dyn Engine, &hnsw] {
        engine.settle(Settling::Fully, &Progress::new()).unwrap();
        assert!(engine.status().unwrap().in_graph > VIDEOS * PER_VIDEO / 2, "{}", engine.url());
    }
    let queries = queries(&collection, 1000);
    exact_modes_agree(&embedded, &flat, &queries);
    exact_modes_agree(&embedded, &hnsw, &queries[..2]);
    for engine in [&embedded as &dyn Engine, &hnsw] {
        let recall = recall(engine, &embedded, &queries[..300]);
        assert!(recall >= 0.95, "{}: recall {recall}", engine.url());
    }
    filters_agree(&embedded, &[&flat, &hnsw], &queries[..2]);
    the_catalogue_agrees(&embedded, &hnsw);
    changes_are_seen(&flat);
    wrong_widths_and_addresses_are_refused(&server, &flat);
    answers_agree(&server, &folder);

    let url = server.url("flat");
    drop(server);
    let told = Milvus::open(&url).err().unwrap();
    assert!(told.to_string().contains("connection refused"), "{told}");
    assert!(told.advice_in(Dialect::Terminal).unwrap().contains("is the server running"), "{told:?}");
}
