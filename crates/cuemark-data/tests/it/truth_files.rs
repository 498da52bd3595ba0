//! Any truth file by itself, its layout told from its content.

use cuemark_core::RowPolicy;
use cuemark_core::{Advise as _, Dialect};
use cuemark_data::{DATASETS, DataError, Durations, ReadOptions, TruthFormat, read_truth};
use cuemark_formats::Source;

use crate::folders::{fixture, temporary};

#[test]
fn every_layout_is_told_from_its_content() {
    for card in DATASETS {
        for file in card.files {
            let names = std::iter::once(&file.path).chain(file.also);
            let Some(source) = names.into_iter().find_map(|name| Source::find(&fixture(card.name), name)) else {
                continue;
            };
            let told = TruthFormat::of(&source).unwrap().name();
            let wanted = match (card.name, file.split) {
                // The same layout by other names.
                ("activitynet-cd", "train") => "activitynet-captions",
                ("activitynet-cd", _) => "charades-cd",
                _ => file.layout.name,
            };
            assert_eq!(told, wanted, "{}", source.path());
        }
    }
    for (path, wanted) in [("csv/truth.csv", "csv"), ("trec-qrels/truth.qrels", "trec-qrels")] {
        assert_eq!(TruthFormat::of(&Source::new(fixture(path))).unwrap().name(), wanted);
    }
}

#[test]
fn a_truth_file_is_called_after_itself_and_holds_all_its_splits() {
    let source = Source::new(fixture("youcook2").join("youcookii_annotations_trainval.json"));
    let split = read_truth(&source, None, &ReadOptions::default()).unwrap();
    assert_eq!((split.name.as_str(), split.pairs()), ("youcookii_annotations_trainval", 4));
    let source = Source::new(fixture("csv/truth.csv"));
    let split = read_truth(&source, None, &ReadOptions::default()).unwrap();
    assert_eq!((split.file.as_str(), split.queries.len(), split.pairs()), ("truth.csv", 2, 3));
    let source = Source::new(fixture("trec-qrels/truth.qrels"));
    assert_eq!(read_truth(&source, None, &ReadOptions::default()).unwrap().pairs(), 3);
}

#[test]
fn the_given_layout_wins_over_the_guess() {
    // TACoS in frames looks like ActivityNet in seconds but for the names of its videos.
    let source = Source::new(fixture("tacos/val.json"));
    let guessed = read_truth(&source, None, &ReadOptions::default()).unwrap();
    assert_eq!(guessed.videos[0].duration, Some(200.0));
    let format = "activitynet-captions".parse().unwrap();
    let told = read_truth(&source, Some(format), &ReadOptions::default()).unwrap();
    assert_eq!(told.videos[0].duration, Some(5880.0));
}

#[test]
fn durations_given_beside_a_file_that_states_none_are_used() {
    let mut durations = Durations::read(&Source::new(fixture("charades-sta/Charades_duration.json"))).unwrap();
    durations.extend(Durations::read(&Source::new(fixture("tvr/tvr_video2dur_idx.json"))).unwrap());
    durations.extend(Durations::read(&Source::new(fixture("activitynet-captions/val_1.json"))).unwrap());
    assert_eq!(durations.len(), 8);
    assert_eq!(durations.get("show_s04e21_seg02_clip_18"), Some(57.35));
    assert_eq!(durations.get("v_ddddddddddd"), Some(60.0));
    let options = ReadOptions { bad_rows: RowPolicy::Keep, durations: Some(std::sync::Arc::new(durations)) };
    let (_folder, source) = temporary("truth.txt", b"K7L8M 1.0 2.0##person sits.\nZZZZZ 1.0 2.0##person stands.\n");
    let split = read_truth(&source, None, &options).unwrap();
    assert_eq!((split.videos[0].duration, split.videos[1].duration), (Some(18.03), None));
}

#[test]
fn what_is_no_truth_file_is_refused_with_the_names_there_are() {
    let (_folder, source) = temporary("notes.txt", b"nothing of the kind\n");
    let error = read_truth(&source, None, &ReadOptions::default()).unwrap_err();
    assert!(matches!(error, DataError::UnknownLayout { .. }));
    assert!(
        error
            .advice_in(Dialect::Terminal)
            .unwrap()
            .starts_with("name the layout with `--truth-format`: cuemark-jsonl, charades-sta, ")
    );
    let error = "charadessta".parse::<TruthFormat>().unwrap_err();
    assert_eq!(error.advice_in(Dialect::Terminal).unwrap(), "did you mean `charades-sta`?");
    let (_folder, source) = temporary("empty.json", b"{}");
    let error = read_truth(&source, Some("charades-cd".parse().unwrap()), &ReadOptions::default()).unwrap_err();
    assert!(matches!(error, DataError::NoQueries { .. }));
}
