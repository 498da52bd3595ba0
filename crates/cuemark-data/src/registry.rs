//! Every dataset by name.

use crate::readers::{
    activitynet_captions, activitynet_cd, charades_cd, charades_sta, cuemark_jsonl, didemo, human_reannotations,
    msr_vtt, mvmr, qvhighlights, tacos, tacos_2dtan, tacos_raw, tvr, tvr_ranking, tvsum, world, youcook2,
    youtube_highlights,
};
use crate::{DataError, DatasetCard, Result};

/// Every dataset, in the order the documentation lists them: one line per file in `readers/`.
pub static DATASETS: &[&DatasetCard] = &[
    &charades_sta::CARD,
    &charades_cd::CARD,
    &activitynet_captions::CARD,
    &activitynet_cd::CARD,
    &tacos::CARD,
    &tacos_2dtan::CARD,
    &tacos_raw::CARD,
    &didemo::CARD,
    &youcook2::CARD,
    &msr_vtt::CARD,
    &tvr::CARD,
    &tvr_ranking::CARD,
    &qvhighlights::CARD,
    &tvsum::CARD,
    &youtube_highlights::CARD,
    &mvmr::CARD,
    &human_reannotations::CARD,
    &cuemark_jsonl::CARD,
    &world::CARD,
];

/// The dataset called `name`.
///
/// # Errors
/// When there is none; the hint names the nearest.
pub fn find(name: &str) -> Result<&'static DatasetCard> {
    DATASETS.iter().copied().find(|card| card.name == name).ok_or_else(|| DataError::UnknownName {
        what: "dataset",
        name: name.to_owned(),
        known: DATASETS.iter().map(|card| card.name.to_owned()).collect(),
    })
}

#[cfg(test)]
mod tests {
    use cuemark_core::{Advise as _, Dialect};

    use super::*;
    use crate::TruthFormat;
    use std::collections::HashSet;

    #[test]
    fn every_reader_file_has_a_line_here() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/readers");
        for file in std::fs::read_dir(folder).unwrap() {
            let file = file.unwrap().file_name().into_string().unwrap();
            let stem = file.trim_end_matches(".rs");
            // A layout of anybody's own annotations, and no dataset.
            if stem != "mod" && stem != "label_studio" {
                let name = stem.replace('_', "-");
                assert!(DATASETS.iter().any(|card| card.name == name), "no line for readers/{file}");
            }
        }
    }

    #[test]
    fn names_of_datasets_and_of_their_splits_are_unique() {
        let names: HashSet<_> = DATASETS.iter().map(|card| card.name).collect();
        assert_eq!(names.len(), DATASETS.len());
        for card in DATASETS {
            let splits: HashSet<_> = card.files.iter().map(|file| file.split).collect();
            assert_eq!(splits.len(), card.files.len(), "{}", card.name);
        }
    }

    #[test]
    fn every_layout_of_a_dataset_can_be_asked_for_by_name() {
        for file in DATASETS.iter().flat_map(|card| card.files) {
            assert_eq!(file.layout.name.parse::<TruthFormat>().unwrap().name(), file.layout.name);
        }
    }

    #[test]
    fn a_misspelt_name_is_answered_with_the_nearest() {
        let error = find("charade-sta").unwrap_err();
        assert_eq!(error.to_string(), "there is no dataset called `charade-sta`");
        assert_eq!(error.advice_in(Dialect::Terminal).unwrap(), "did you mean `charades-sta`?");
        assert!(
            find("zzz")
                .unwrap_err()
                .advice_in(Dialect::Terminal)
                .unwrap()
                .starts_with("known names: charades-sta, charades-cd")
        );
    }
}
