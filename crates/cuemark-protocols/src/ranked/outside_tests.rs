//! Every file that comes from outside: read as written, and damaged in many ways.

use camino::Utf8PathBuf;
use cuemark_core::{Rng, Span, Truth};
use cuemark_data::{ReadOptions, read_truth};
use cuemark_formats::Source;
use cuemark_testkit::fixture;

use super::rewrite::{RewriteFault, StandIns, read_queue};
use super::{candidates, label_studio};
use crate::Result;
use crate::pools::sheet;

fn pools() -> Vec<Truth> {
    let source = Source::new(fixture("protocols/pools/mvmr.json"));
    read_truth(&source, None, &ReadOptions::default()).unwrap().queries
}

#[test]
fn candidates_are_read_with_their_oddities() {
    let read = candidates::read(&Source::new(fixture("protocols/ranked/candidates.jsonl"))).unwrap();
    assert_eq!(read.len(), 3);
    assert_eq!((read[1].duration, read[1].caption.as_str()), (None, "Une femme lâche un verre."));
    assert!(read[2].span.is_empty());
}

#[test]
fn an_export_of_label_studio_is_read() {
    let read = label_studio::import(&Source::new(fixture("protocols/ranked/label_studio_export.json"))).unwrap();
    let ratings: Vec<_> = read.ratings.iter().map(|rating| (rating.pair_id, rating.worker, rating.relevance)).collect();
    assert_eq!(ratings, [(0, 2, 3), (0, 5, 4)]);
    // Frames 84 to 216 at 23.976 a second: 83 / 23.976 to 216 / 23.976.
    assert_eq!(read.spans[0].span, Span::new(83.0 / 23.976, 216.0 / 23.976).unwrap());
    assert_eq!(read.cancelled, 1);
}

#[test]
fn a_reviewed_queue_and_a_list_of_names_are_read() {
    let queue = read_queue(&Source::new(fixture("protocols/ranked/review.jsonl"))).unwrap();
    assert_eq!(queue[0].approved.as_deref(), Some("A woman drops a glass."));
    assert_eq!((&queue[1].faults[..], &queue[1].approved), (&[RewriteFault::NameLeft][..], &None));
    let names = StandIns::read(&Source::new(fixture("protocols/ranked/names.csv"))).unwrap();
    let nobody = cuemark_text::names::NameList::default();
    assert_eq!(names.replace("Bjarne greets Inspector Quill.", &nobody, 2.0), "A man greets an investigator.");
}

#[test]
fn a_filled_in_sheet_is_read() {
    let verdict = sheet::read(&Source::new(fixture("protocols/pools/sheet.csv")), &pools()).unwrap();
    assert_eq!((verdict.questions, verdict.answered), (4, 3));
    assert_eq!((verdict.false_positives, verdict.false_negatives), (0, 1));
}

/// Reads `name` with `read` after damaging it: one byte changed, cut short, or a stretch repeated.
fn damage(name: &str, read: &dyn Fn(&Source) -> Result<()>) {
    let good = std::fs::read(fixture(name)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = Utf8PathBuf::from_path_buf(folder.path().join("damaged")).unwrap();
    let mut rng = Rng::stream(1, name);
    let mut refused = 0;
    for round in 0..150 {
        let mut bytes = good.clone();
        match round % 3 {
            0 => {
                let place = rng.below(bytes.len());
                bytes[place] = rng.bits32() as u8;
            }
            1 => bytes.truncate(rng.below(good.len())),
            _ => {
                let stretch = good[rng.below(good.len())..].iter().take(40).copied().collect::<Vec<u8>>();
                let place = rng.below(bytes.len());
                bytes.splice(place..place, stretch);
            }
        }
        std::fs::write(&path, &bytes).unwrap();
        refused += usize::from(read(&Source::new(path.clone())).is_err());
    }
    assert!(refused > 30, "{name}: only {refused} of 150 damaged files were refused");
}

#[test]
fn damaged_files_are_refused_or_read_and_never_panic() {
    let pools = pools();
    damage("protocols/ranked/candidates.jsonl", &|source| candidates::read(source).map(|_| ()));
    damage("protocols/ranked/label_studio_export.json", &|source| label_studio::import(source).map(|_| ()));
    damage("protocols/ranked/review.jsonl", &|source| read_queue(source).map(|_| ()));
    damage("protocols/pools/sheet.csv", &|source| sheet::read(source, &pools).map(|_| ()));
}
