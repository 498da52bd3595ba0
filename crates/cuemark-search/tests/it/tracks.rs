//! What is said and written: found, fused with what is seen, and gone with its video.

use crate::words;

use std::sync::Mutex;

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::{Line, Progress, Rng, Span, Track, VideoId};
use cuemark_formats::Overwrite;
use cuemark_search::engine::Embedded;
use cuemark_search::{
    AddOptions, Answer, Became, Calibration, EmbeddedVideo, Encoder, Engine, EngineUrl, Filter, Index, Lines,
    LinesError, Question, SearchError, VideoEntry, VideoState,
};

fn folder() -> (tempfile::TempDir, Utf8PathBuf) {
    let guard = tempfile::tempdir().unwrap();
    let folder = Utf8PathBuf::from_path_buf(guard.path().canonicalize().unwrap()).unwrap();
    (guard, folder)
}

fn line(start: f64, text: &str) -> Line {
    let span = Span::new(start, start + 2.0).unwrap();
    Line { span, text: text.to_owned(), words: Vec::new(), confidence: 1.0 }
}

fn said(lines: &[(f64, &str)]) -> Vec<(Track, Line)> {
    lines.iter().map(|(start, text)| (Track::Said, line(*start, text))).collect()
}

/// The four films, with words: one is about a budget, two has a slip and a sign, three and four talk of other things.
fn index() -> (tempfile::TempDir, Index) {
    let (guard, folder) = folder();
    let url = EngineUrl::File(folder.join("index"));
    let index = Index::create(&url, Box::new(words::films()), Overwrite::Never).unwrap();
    index.add_stored(&words::names(), &AddOptions::default(), &Progress::new()).unwrap();
    let put = |id: &str, lines: &[(Track, Line)]| {
        let entry = index.engine().video(&id.into()).unwrap().unwrap();
        assert!(index.engine().amend(&entry, Some(lines)).unwrap());
    };
    put(
        "one",
        &said(&[
            (0.0, "Good morning everyone."),
            (20.0, "Today we talk about"),
            (22.0, "the budget of Lisbon."),
            (30.0, "Thank you all."),
        ]),
    );
    let mut two = said(&[(4.0, "my grandmothr had a parrot"), (25.0, "it was a good parrot")]);
    two.push((Track::Written, line(31.0, "EXIT ONLY")));
    put("two", &two);
    put("three", &said(&[(1.0, "the weather is fine today"), (5.0, "we should go for a walk")]));
    (guard, index)
}

fn first(index: &Index, question: &str) -> (String, f64, f64) {
    let answers = index.answer(&Question::new(question)).unwrap();
    let best = answers.likely().first().unwrap_or_else(|| panic!("{question}: {:?}", answers.moments));
    (best.video.to_string(), best.span.start(), best.span.end())
}

#[test]
fn what_is_said_is_found_where_it_is_said_in_any_form_with_a_slip_and_over_two_lines() {
    let (_guard, index) = index();
    assert_eq!(first(&index, "budgets"), ("one".to_owned(), 22.0, 24.0));
    assert_eq!(first(&index, "somebody talks about the budget of Lisbon"), ("one".to_owned(), 20.0, 24.0));
    assert_eq!(first(&index, "her grandmother's parrot"), ("two".to_owned(), 4.0, 6.0));
    assert_eq!(first(&index, "\"about the budget\""), ("one".to_owned(), 20.0, 24.0));
    let answers = index.answer(&Question::new("\"budget about the\"")).unwrap();
    assert!(answers.moments.is_empty(), "in another order: {:?}", answers.moments);
    let answers = index.answer(&Question::new("the budget of Lisbon")).unwrap();
    let because = &answers.moments[0].because[0];
    assert_eq!((because.track, because.text.as_str(), because.start), (Track::Said, "the budget of Lisbon.", 22.0));
    assert!(answers.unknown_words.is_empty(), "what was said is known: {:?}", answers.unknown_words);
}

#[test]
fn tracks_films_and_unwanted_words_are_kept_apart() {
    let (_guard, index) = index();
    assert_eq!(first(&index, "written: exit"), ("two".to_owned(), 31.0, 33.0));
    assert!(index.answer(&Question::new("said: exit")).unwrap().moments.is_empty());
    assert!(index.answer(&Question::new("seen: budget")).unwrap().moments.is_empty());
    let parrots = |question: &str| index.answer(&Question::new(question)).unwrap().moments.len();
    assert_eq!(
        (parrots("said: parrot"), parrots("said: parrot -good"), parrots("said: parrot -\"good parrot\"")),
        (2, 1, 1)
    );
    assert_eq!(parrots("said: parrot -\"parrot good\""), 2);
    let elsewhere = Question { filter: Filter::video("three".into()), ..Question::new("said: parrot") };
    assert!(index.answer(&elsewhere).unwrap().moments.is_empty());
    let nowhere = Question { filter: Filter::video("zero".into()), ..Question::new("said: parrot") };
    assert!(matches!(index.answer(&nowhere), Err(SearchError::UnknownVideo { .. })));
    let late = Filter { within: Some(Span::new(10.0, 40.0).unwrap()), ..Filter::default() };
    let late = index.answer(&Question { filter: late, ..Question::new("said: parrot") }).unwrap();
    assert_eq!(late.moments.iter().map(|answer| answer.span.start()).collect::<Vec<_>>(), [25.0]);
}

#[test]
fn what_is_seen_and_said_at_once_is_surer_than_either() {
    let (_guard, index) = index();
    let probability =
        |question: &str| index.answer(&Question { least: 0.0, ..Question::new(question) }).unwrap().moments[0].clone();
    let entry = index.engine().video(&"one".into()).unwrap().unwrap();
    index.engine().amend(&entry, Some(&said(&[(1.0, "look, the red ball spins")]))).unwrap();
    let (seen, said, both) =
        (probability("seen: red ball spins"), probability("said: red ball spins"), probability("red ball spins"));
    // The toy's stretch of what is seen is 8 s, that of the line 2 s.
    assert!(both.probability > seen.probability && both.probability > said.probability, "{both:?}");
    assert_eq!(both.because.len(), 2);
    let strip = index.strip(&Question::new("said: ball"), &"one".into()).unwrap();
    assert!(strip[2] > 0.2 && strip[40] == 0.0, "{strip:?}");
}

#[test]
fn what_the_cut_drops_does_not_stand_before_what_is_said_when_everything_is_asked_for() {
    let (_guard, index) = index();
    // Sure of what it sees, as a curve that nobody fitted may be, and a cut that nothing passes.
    let curve = Calibration { offset: 0.0, cut: Some(2.0), ..Calibration::default() };
    let ask = |least| {
        let answers = index.answer_by(&Question { least, ..Question::new("a ball in Lisbon") }, &curve);
        let answers = answers.unwrap();
        let said = |answer: &Answer| answer.because.iter().any(|because| because.track == Track::Said);
        (answers.moments.iter().map(said).collect::<Vec<_>>(), answers.good)
    };
    let (usual, good) = ask(Question::LEAST);
    assert!(usual.len() > 2 && usual[0] && good == 1, "{usual:?}, {good}");
    let (everything, good) = ask(0.0);
    assert_eq!(everything, usual, "in the same order");
    assert_eq!(good, everything.len(), "and all of it");
}

#[test]
fn words_go_with_their_video_and_come_with_it_for_readers_that_were_there_before() {
    let (_guard, folder) = folder();
    let folder = folder.join("index");
    let url = EngineUrl::File(folder.clone());
    let index = Index::create(&url, Box::new(words::films()), Overwrite::Never).unwrap();
    let reader = Index::open_without_encoder(&url).unwrap();
    let found = |question: &str| reader.answer(&Question::new(question)).unwrap().moments.len();
    assert_eq!(found("said: parrot"), 0);
    let entry = |id: &str| VideoEntry::without_file(id, 40.0);
    let see = || std::thread::sleep(std::time::Duration::from_millis(300));
    for id in ["a", "b", "c"] {
        index.engine().put_with_words(&entry(id), &[], &said(&[(1.0, "a parrot")])).unwrap();
    }
    see();
    assert_eq!((found("said: parrot"), reader.engine().status().unwrap().lines), (3, 3));
    index.engine().remove(&"a".into()).unwrap();
    index.engine().put_with_words(&entry("b"), &[], &said(&[(1.0, "a falcon")])).unwrap();
    index.engine().note(&"c".into(), VideoState::Vanished, &[]).unwrap();
    see();
    assert_eq!((found("said: parrot"), found("said: falcon")), (0, 1));
    index.engine().note(&"c".into(), VideoState::Present, &[]).unwrap();
    index.compact(&Progress::new()).unwrap();
    see();
    assert_eq!((found("said: parrot"), found("\"a falcon\"")), (1, 1));
    assert_eq!(reader.lines(&"b".into()).unwrap(), said(&[(1.0, "a falcon")]));
    assert!(matches!(reader.lines(&"a".into()), Err(SearchError::UnknownVideo { .. })));
    assert_eq!(Embedded::open(&folder).unwrap().verify(&Progress::new()).unwrap(), []);
}

/// Makes a moment of every film, but of those without pictures.
struct Watching(Mutex<usize>);

impl Encoder for Watching {
    fn name(&self) -> &str {
        "watching"
    }

    fn width(&self) -> usize {
        8
    }

    fn sentences(&self, sentences: &[&str]) -> cuemark_search::Result<Vec<cuemark_search::Embedding>> {
        words::films().sentences(sentences)
    }

    fn video(
        &self,
        _: &VideoId,
        file: Option<&Utf8Path>,
        progress: &Progress,
    ) -> cuemark_search::Result<EmbeddedVideo> {
        *self.0.lock().unwrap() += 1;
        let problem = "has no pictures".to_owned();
        if file.is_some_and(|file| file.as_str().contains("song")) {
            let advice = "listen to it".into();
            return Err(SearchError::Encoder { encoder: "watching".to_owned(), problem, advice });
        }
        words::films().video(&"two".into(), None, progress)
    }
}

/// Lines from a text file beside a film.
struct Notes;

impl Lines for Notes {
    fn track(&self) -> Track {
        Track::Said
    }

    fn source(&self, film: &Utf8Path) -> Option<String> {
        std::fs::read_to_string(film.with_extension("txt")).ok().map(|text| format!("{} bytes", text.len()))
    }

    fn of(&self, film: &Utf8Path, _: &Progress) -> Result<Vec<Line>, LinesError> {
        let text = std::fs::read_to_string(film.with_extension("txt"))?;
        if text.contains("unreadable") { Err("it is unreadable".into()) } else { Ok(vec![line(3.0, text.trim())]) }
    }
}

#[test]
fn films_are_known_again_by_content_and_their_words_are_read_when_they_change() {
    let (_guard, folder) = folder();
    let films = folder.join("films");
    std::fs::create_dir(&films).unwrap();
    let write = |name: &str, text: &str| std::fs::write(films.join(name), text).unwrap();
    write("a.mp4", "the bytes of a film");
    write("b.mp4", "those of another");
    write("song.mp4", "without pictures");
    write("song.txt", "a song about parrots");
    write("b.txt", "unreadable");
    let index =
        Index::create(&EngineUrl::File(folder.join("index")), Box::new(Watching(Mutex::new(0))), Overwrite::Never);
    let index = index.unwrap().reading(vec![Box::new(Notes)]);
    let add = || index.add_files(std::slice::from_ref(&films), &AddOptions::default(), &Progress::new()).unwrap();
    let added = add();
    assert_eq!((added.new, added.failed, added.lines), (3, 0, 1), "{added:?}");
    let problem = |id: &str| {
        index.engine().video(&id.into()).unwrap().unwrap().tracks.iter().find_map(|read| read.problem.clone())
    };
    assert!(problem("song").unwrap().contains("no pictures") && problem("b").unwrap().contains("unreadable"));
    assert_eq!(first(&index, "said: parrot"), ("song".to_owned(), 3.0, 5.0));
    assert_eq!(add().unchanged, 3);

    // Moved, renamed, touched: nothing is embedded again, and the name in the index stays.
    std::fs::create_dir(films.join("deep")).unwrap();
    std::fs::rename(films.join("a.mp4"), films.join("deep/renamed.mp4")).unwrap();
    std::fs::rename(films.join("song.mp4"), films.join("deep/song.mp4")).unwrap();
    write("b.mp4", "those of another");
    let added = add();
    assert_eq!((added.new, added.moved, added.unchanged, added.moments), (0, 2, 1, 0), "{added:?}");
    let became = added.videos.iter().find(|video| video.video == "a").map(|video| video.became.clone());
    assert_eq!(became, Some(Became::Moved { from: films.join("a.mp4") }));
    assert_eq!(first(&index, "said: parrot").0, "song", "words stay where their source is gone");

    // Words that come later are read without the film being embedded again; a copy is a film of its own.
    std::fs::write(films.join("deep/renamed.txt"), "about falcons").unwrap();
    std::fs::copy(films.join("b.mp4"), films.join("c.mp4")).unwrap();
    let added = add();
    assert_eq!((added.new, added.changed, added.lines), (1, 1, 1), "{added:?}");
    assert_eq!(first(&index, "said: falcon").0, "a");
    write("b.mp4", "other bytes by now");
    assert_eq!(add().changed, 1);
}

/// A hundred films with forty lines each, of words drawn by seed; a hundred questions, each with the words of one line or of two,
/// some of them left out, in another form, or with a slip.
#[test]
fn the_right_film_and_line_come_first_for_a_hundred_questions_on_what_is_said() {
    const NOUNS: [&str; 40] = [
        "river", "mountain", "teacher", "window", "bridge", "garden", "letter", "doctor", "engine", "castle",
        "village", "forest", "pocket", "kitchen", "lawyer", "island", "hammer", "blanket", "chicken", "tunnel",
        "candle", "sailor", "desert", "button", "harbour", "monkey", "painter", "rocket", "needle", "basket",
        "curtain", "diamond", "ladder", "mirror", "pirate", "saddle", "trumpet", "violin", "wagon", "zebra",
    ];
    const VERBS: [&str; 20] = [
        "opens",
        "carries",
        "forgets",
        "paints",
        "repairs",
        "follows",
        "watches",
        "sells",
        "hides",
        "borrows",
        "cleans",
        "builds",
        "catches",
        "describes",
        "ignores",
        "lifts",
        "measures",
        "orders",
        "pushes",
        "rescues",
    ];
    let (_guard, folder) = folder();
    let index =
        Index::create(&EngineUrl::File(folder.join("index")), Box::new(words::films()), Overwrite::Never).unwrap();
    let mut rng = Rng::new(24);
    let mut draw = |words: &[&str]| words[rng.below(words.len())].to_owned();
    let mut films = Vec::new();
    for film in 0..100 {
        let lines: Vec<(Track, Line)> = (0..40)
            .map(|n| {
                let text = format!("the {} {} my {} and {} it", draw(&NOUNS), draw(&VERBS), draw(&NOUNS), draw(&VERBS));
                (Track::Said, line(3.0 * f64::from(n), &text))
            })
            .collect();
        let entry = VideoEntry::without_file(VideoId::new(format!("film-{film}")), 120.0);
        index.engine().put_with_words(&entry, &[], &lines).unwrap();
        films.push((entry.id, lines));
    }
    let mut rng = Rng::new(42);
    let (mut right_film, mut right_line) = (0, 0);
    for asked in 0..100 {
        let (id, lines) = &films[rng.below(films.len())];
        let place = rng.below(lines.len() - 1);
        let (_, wanted) = &lines[place];
        let mut words: Vec<String> = wanted.text.split(' ').map(str::to_owned).collect();
        match asked % 4 {
            // As it was said.
            0 => {}
            // Somebody remembers it in other forms.
            1 => [1, 4].into_iter().for_each(|noun| words[noun].push('s')),
            // One slip.
            2 => words[1] = words[1].replacen(['e', 'a', 'i', 'o'], "u", 1),
            // With the line behind it.
            _ => words.extend(lines[place + 1].1.text.split(' ').take(3).map(str::to_owned)),
        }
        let question = Question { least: 0.0, ..Question::new(&format!("somebody says that {}", words.join(" "))) };
        let answers = index.answer(&question).unwrap();
        let best = answers.moments.first();
        right_film += usize::from(best.is_some_and(|best| best.video == *id));
        right_line += usize::from(best.is_some_and(|best| best.video == *id && best.span.iou(wanted.span) > 0.3));
    }
    println!("right film first: {right_film} of 100, right line: {right_line}");
    assert!(right_film >= 90 && right_line >= 85, "{right_film} {right_line}");
}
