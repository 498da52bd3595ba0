//! Answering, with an encoder whose space can be worked out by hand: one axis per word.

use crate::words;

use camino::Utf8PathBuf;
use cuemark_core::{Advise as _, Dialect, Moment as Place, Progress, Span, VideoId};
use cuemark_formats::Overwrite;
use cuemark_search::engine::Embedded;
use cuemark_search::{
    AddOptions, EmbeddedVideo, Embedding, Encoder, Engine, EngineUrl, Filter, Index, IndexedMoment, Marking,
    MatchedConcept, Question, SearchError, Stages, VideoEntry, VideoState,
};

fn index() -> (tempfile::TempDir, Index) {
    let guard = tempfile::tempdir().unwrap();
    let folder = Utf8PathBuf::from_path_buf(guard.path().join("index")).unwrap();
    let index = Index::create(&EngineUrl::File(folder), Box::new(words::films()), Overwrite::Never).unwrap();
    let added =
        index.add_stored(&words::names(), &AddOptions { tags: vec!["toy".to_owned()] }, &Progress::new()).unwrap();
    assert_eq!((added.new, added.failed), (4, 0));
    (guard, index)
}

fn places(index: &Index, question: &Question) -> Vec<(String, f64)> {
    let answers = index.answer(question).unwrap();
    answers.moments.iter().map(|answer| (answer.video.to_string(), answer.span.start())).collect()
}

#[test]
fn the_moment_that_the_sentence_describes_comes_first_and_its_near_copy_is_merged() {
    let (_guard, index) = index();
    let found = places(&index, &Question::new("the red ball spins"));
    assert_eq!(found[0], ("one".to_owned(), 0.0));
    assert_eq!(found[1], ("two".to_owned(), 5.0));
    assert!(!found.contains(&("one".to_owned(), 1.0)), "overlaps the first answer by more than half");
}

#[test]
fn two_stages_find_it_too() {
    let (_guard, index) = index();
    let question = Question { stages: Stages::Two { videos: 2 }, ..Question::new("red ball spins") };
    assert_eq!(places(&index, &question)[0], ("one".to_owned(), 0.0));
}

#[test]
fn unwanted_words_push_their_moments_down() {
    let (_guard, index) = index();
    assert_eq!(places(&index, &Question::new("ball spins -red"))[0], ("two".to_owned(), 5.0));
    assert_eq!(places(&index, &Question::new("ball spins -blue"))[0], ("one".to_owned(), 0.0));
}

#[test]
fn more_like_a_moment_finds_others_and_not_itself() {
    let (_guard, index) = index();
    let like = Place { video: "one".into(), span: Span::new(0.0, 8.0).unwrap() };
    let found = places(&index, &Question { like: Some(like), ..Question::default() });
    assert_eq!(found[0], ("two".to_owned(), 5.0));
    assert!(!found.contains(&("one".to_owned(), 0.0)));
}

#[test]
fn filters_hold_inside_videos_too() {
    let (_guard, index) = index();
    let inside = Question { filter: Filter::video("three".into()), ..Question::new("red ball spins") };
    assert!(places(&index, &inside).iter().all(|(video, _)| video == "three"));
    let within = Some(Span::new(15.0, 40.0).unwrap());
    let late = Question { filter: Filter { within, ..Filter::default() }, ..Question::new("box jumps") };
    assert_eq!(places(&index, &late)[0], ("one".to_owned(), 20.0));
    let nowhere = Filter { tags: vec!["other".to_owned()], ..Filter::default() };
    assert!(places(&index, &Question { filter: nowhere, ..Question::new("box") }).is_empty());
    let unknown = Question { filter: Filter::video("zero".into()), ..Question::new("box") };
    assert!(matches!(index.answer(&unknown), Err(SearchError::UnknownVideo { .. })));
}

#[test]
fn a_question_that_everything_matches_alike_has_no_good_answer() {
    let (_guard, index) = index();
    let sure = index.answer(&Question::new("red ball spins")).unwrap();
    let vague = index.answer(&Question::new("stage")).unwrap();
    assert!(sure.moments[0].probability > vague.moments[0].probability);
    assert_eq!(vague.good, 0, "{:?}", vague.moments[0]);
}

#[test]
fn the_explanation_names_the_words_that_matter_and_those_it_does_not_know() {
    let (_guard, index) = index();
    let answers = index.answer(&Question::new("the red zebra ball")).unwrap();
    assert_eq!(answers.unknown_words, ["zebra"]);
    let best = &answers.moments[0];
    assert_eq!(best.video.as_str(), "one");
    let words: Vec<&str> = best.words.iter().map(|word| word.word.as_str()).collect();
    assert!(words.contains(&"red") && words.contains(&"ball") && !words.contains(&"the"), "{words:?}");
    assert!((best.words.iter().map(|word| word.share).sum::<f64>() - 1.0).abs() < 1e-9);
}

#[test]
fn a_filler_that_the_encoder_does_not_know_costs_nothing_and_a_word_is_missed_once() {
    let (_guard, index) = index();
    let of = |text: &str| index.answer(&Question::new(text)).unwrap();
    // `an` is none of the words that this encoder knows, and `zebra` describes something.
    let (plain, filled, missed) = (of("red ball spins"), of("an red ball spins"), of("zebra red ball spins zebra"));
    assert!(filled.unknown_words.is_empty(), "{:?}", filled.unknown_words);
    assert_eq!(filled.moments[0].probability, plain.moments[0].probability);
    assert_eq!(missed.unknown_words, ["zebra"]);
    assert!(missed.moments[0].probability < plain.moments[0].probability);
}

#[test]
fn a_question_that_means_nothing_to_the_encoder_has_no_answer() {
    let (_guard, index) = index();
    let answers = index.answer(&Question::new("the zebra")).unwrap();
    assert_eq!(answers.unknown_words, ["zebra"]);
    assert!(answers.moments.is_empty() && answers.good == 0, "{:?}", answers.moments);
}

#[test]
fn a_video_whose_every_moment_is_near_does_not_hide_the_others() {
    // Three hundred moments each, all of them better than any of the next video's; there are fewer candidates than that.
    let (guard, index) = index();
    let scores = |video: usize| (0..300).map(move |n| 1.0 - 0.05 * video as f32 - 0.0001 * n as f32);
    for video in 0..6 {
        let moment = |(n, red): (usize, f32)| IndexedMoment {
            span: Span::new(n as f64 / 300.0, 20.0 + n as f64 / 300.0).unwrap(),
            embedding: Embedding::unit(vec![red, 0.0, 0.0, 0.0, 0.0, 0.0, (1.0 - red * red).sqrt(), 0.0]).unwrap(),
        };
        let entry = VideoEntry {
            tags: vec!["long".to_owned()],
            ..VideoEntry::without_file(VideoId::new(format!("long-{video}")), 40.0)
        };
        index.engine().put(&entry, &scores(video).enumerate().map(moment).collect::<Vec<_>>()).unwrap();
    }
    let filter = Filter { tags: vec!["long".to_owned()], ..Filter::default() };
    let found = places(&index, &Question { filter, limit: 4, ..Question::new("red") });
    let videos: Vec<&str> = found.iter().map(|(video, _)| video.as_str()).collect();
    assert_eq!(videos, ["long-0", "long-1", "long-2", "long-3"]);
    drop(guard);
}

#[test]
fn a_word_that_the_encoder_does_not_know_makes_an_answer_less_likely() {
    let (_guard, index) = index();
    let likely = |text: &str| index.answer(&Question::new(text)).unwrap().moments[0].probability;
    assert!((likely("red zebra") - 0.5 * likely("red")).abs() < 1e-6);
}

#[test]
fn the_strip_is_high_where_the_answer_lies() {
    let (_guard, index) = index();
    let strip = index.strip(&Question::new("blue box jumps"), &"one".into()).unwrap();
    let cell = |seconds: f64| strip[(seconds / 40.0 * strip.len() as f64) as usize];
    assert!(cell(25.0) > cell(4.0) && cell(4.0) >= cell(15.0), "{strip:?}");
}

#[test]
fn an_empty_question_is_refused_with_a_hint() {
    let (_guard, index) = index();
    let refused = index.answer(&Question::default()).unwrap_err();
    assert!(refused.advice_in(Dialect::Terminal).unwrap().contains("sentence"));
}

#[test]
fn vanished_files_are_marked_and_no_longer_found() {
    let (guard, index) = index();
    let file = Utf8PathBuf::from_path_buf(guard.path().join("one.mp4")).unwrap();
    std::fs::write(&file, b"not looked into by this encoder").unwrap();
    let added = index.add_files(std::slice::from_ref(&file), &AddOptions::default(), &Progress::new()).unwrap();
    // The stored video has that name already and no file, so the file gets a name of its own, which has no events.
    assert_eq!((added.new, added.failed), (0, 1));
    let mut entry = index.engine().video(&"one".into()).unwrap().unwrap();
    entry.path = Some(file.clone());
    let moments = index.engine().moments(&entry.id).unwrap().unwrap();
    index.engine().put(&entry, &moments).unwrap();
    assert_eq!(index.look_for_files(Marking::Mark).unwrap().changed, ["one".into()]);
    std::fs::remove_file(&file).unwrap();
    assert_eq!(index.look_for_files(Marking::Mark).unwrap().vanished, ["one".into()]);
    assert_eq!(index.engine().video(&"one".into()).unwrap().unwrap().state, VideoState::Vanished);
    assert_eq!(places(&index, &Question::new("red ball spins"))[0].0, "two");
}

/// The words' own space, whose first look at what speaks for an answer takes a video out of the index.
struct Removing {
    words: words::Words,
    folder: Utf8PathBuf,
    removed: std::sync::atomic::AtomicBool,
}

impl Encoder for Removing {
    fn name(&self) -> &str {
        "removing"
    }

    fn width(&self) -> usize {
        self.words.width()
    }

    fn sentences(&self, sentences: &[&str]) -> cuemark_search::Result<Vec<Embedding>> {
        self.words.sentences(sentences)
    }

    fn video(
        &self,
        id: &VideoId,
        file: Option<&camino::Utf8Path>,
        progress: &Progress,
    ) -> cuemark_search::Result<EmbeddedVideo> {
        self.words.video(id, file, progress)
    }

    // Asked for each answer behind its embedding, so the second best goes after it was found and before it is explained.
    fn concepts(&self, _: &Embedding, _: &Embedding) -> Vec<MatchedConcept> {
        if !self.removed.swap(true, std::sync::atomic::Ordering::SeqCst) {
            let other = Embedded::open(&self.folder).unwrap();
            assert!(other.remove(&"two".into()).unwrap());
            // The same video with fewer moments: the first that was found is not there any more.
            let moments = other.moments(&"three".into()).unwrap().unwrap();
            let entry = other.video(&"three".into()).unwrap().unwrap();
            other.put(&entry, &moments[1..]).unwrap();
            // Readers look for what others wrote every quarter of a second.
            std::thread::sleep(std::time::Duration::from_millis(400));
        }
        Vec::new()
    }
}

#[test]
fn a_video_that_is_removed_or_replaced_while_it_is_found_is_no_answer_and_no_error() {
    let guard = tempfile::tempdir().unwrap();
    let folder = Utf8PathBuf::from_path_buf(guard.path().join("index")).unwrap();
    let encoder =
        Removing { words: words::films(), folder: folder.clone(), removed: std::sync::atomic::AtomicBool::new(true) };
    let url = EngineUrl::File(folder.clone());
    let index = Index::create(&url, Box::new(encoder), Overwrite::Never).unwrap();
    index.add_stored(&words::names(), &AddOptions::default(), &Progress::new()).unwrap();
    let question = Question::new("red ball spins");
    let before = places(&index, &question);
    assert!(before.iter().any(|(video, _)| video == "two"), "{before:?}");
    assert!(before.contains(&("three".to_owned(), 0.0)), "{before:?}");
    drop(index);

    let encoder = Removing { words: words::films(), folder, removed: std::sync::atomic::AtomicBool::new(false) };
    let index = Index::open(&url, Box::new(encoder)).unwrap();
    let seen = places(&index, &question);
    assert!(seen.iter().all(|(video, start)| video != "two" && (video.as_str(), *start) != ("three", 0.0)), "{seen:?}");
    assert_eq!(seen[0], ("one".to_owned(), 0.0));
}
