//! Which protocol parts a dataset, and everything that it can be told: one value for every front end.

use camino::Utf8PathBuf;
use cuemark_core::{Progress, Truth};
use cuemark_data::Dataset;
use serde::{Deserialize, Serialize};

use super::{
    CdOptions, Centre, CentreOptions, CompositionOptions, Input, MadeSplits, OodCut, StandardOptions, StandardTest,
    Ties, cd, centre, composition, hash_inputs, standard,
};
use crate::{ProtocolError, Result};

/// Who parts a dataset into splits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum SplitProtocol {
    /// The published parts, with a validation split cut where none is published.
    Standard,
    /// Changing distribution: the rarest places are test-ood.
    Cd,
    /// The last tenth by moment centre is test-ood.
    Centre,
    /// Tests of seen queries, of known words together as never before, and of new words; no video is shared with training.
    Composition,
}

/// A protocol with its settings. Those of the other protocols are there, and count for nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct SplitRecipe {
    /// The recipe.
    #[cfg_attr(feature = "clap", arg(long, value_enum))]
    pub protocol: SplitProtocol,
    /// cd: the share of pairs that goes to test-ood.
    #[serde(default = "ood_share")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "SHARE", default_value_t = ood_share()))]
    pub ood_share: f64,
    /// cd: what that share is of.
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long, value_enum, default_value_t))]
    pub ood_cut: OodCut,
    /// cd: where a video goes whose pairs are evenly rare and common.
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long, value_enum, default_value_t))]
    pub ties: Ties,
    /// cd: a video with a moment longer than this share of it is never test-ood.
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long, value_name = "SHARE"))]
    pub max_ood_length: Option<f64>,
    /// centre: whose centre decides.
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long, value_enum, default_value_t))]
    pub centre: Centre,
    /// standard: which test split, for datasets that have a choice.
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long, value_enum, default_value_t))]
    pub test: StandardTest,
    /// Seed of the cut by video.
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", default_value_t = 0))]
    pub seed: u64,
}

fn ood_share() -> f64 {
    CdOptions::default().ood_share
}

impl SplitRecipe {
    /// A protocol as it is usually told.
    pub fn new(protocol: SplitProtocol) -> Self {
        Self {
            protocol,
            ood_share: ood_share(),
            ood_cut: OodCut::default(),
            ties: Ties::default(),
            max_ood_length: None,
            centre: Centre::default(),
            test: StandardTest::default(),
            seed: 0,
        }
    }

    /// Parts a dataset.
    ///
    /// # Errors
    /// Those of the protocol; when it was stopped.
    pub fn part(&self, dataset: &Dataset, progress: &Progress) -> Result<MadeSplits> {
        match self.protocol {
            SplitProtocol::Standard => {
                let options = StandardOptions { test: self.test, seed: self.seed };
                standard(dataset.card.name, &dataset.splits, &options)
            }
            SplitProtocol::Cd | SplitProtocol::Centre | SplitProtocol::Composition => {
                self.part_queries(&dataset.all().queries, progress)
            }
        }
    }

    /// Parts queries that lie in memory, all splits together.
    ///
    /// # Errors
    /// As [`SplitRecipe::part`]; for `standard`, which keeps the published parts and so needs a dataset that has some.
    pub fn part_queries(&self, queries: &[Truth], progress: &Progress) -> Result<MadeSplits> {
        match self.protocol {
            SplitProtocol::Cd => {
                let options = CdOptions {
                    ood_share: self.ood_share,
                    ood_cut: self.ood_cut,
                    ties: self.ties,
                    max_ood_length: self.max_ood_length,
                    seed: self.seed,
                };
                cd(queries, &options, progress)
            }
            SplitProtocol::Centre => centre(queries, &CentreOptions { centre: self.centre, seed: self.seed }),
            SplitProtocol::Composition => {
                composition(queries, &CompositionOptions { seed: self.seed, ..CompositionOptions::default() })
            }
            SplitProtocol::Standard => Err(ProtocolError::Option {
                option: "protocol",
                value: "standard".to_owned(),
                problem: "keeps the parts that a dataset was published in, and there are none".to_owned(),
            }),
        }
    }
}

/// Sizes and checksums of the files that a dataset was read from.
///
/// # Errors
/// When one cannot be read any more.
pub fn dataset_inputs(dataset: &Dataset) -> Result<Vec<Input>> {
    let mut files: Vec<Utf8PathBuf> = dataset.splits.iter().map(|split| split.file.clone().into()).collect();
    files.dedup();
    hash_inputs(&dataset.root, &files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::truth;

    #[test]
    fn a_recipe_parts_as_its_protocol_does() {
        let queries: Vec<Truth> = (0..60)
            .map(|n| {
                let start = f64::from(n % 9);
                truth(&n.to_string(), "someone waits", &format!("v{n}"), 10.0, start, start + 0.5)
            })
            .collect();
        let ids = |made: &MadeSplits| -> Vec<Vec<String>> {
            let of = |split: &cuemark_core::Split| split.queries.iter().map(|one| one.query.id.to_string()).collect();
            made.splits.iter().map(of).collect()
        };
        let mut recipe = SplitRecipe { seed: 3, ..SplitRecipe::new(SplitProtocol::Centre) };
        let progress = Progress::new();
        let made = recipe.part_queries(&queries, &progress).unwrap();
        let expected = centre(&queries, &CentreOptions { seed: 3, ..CentreOptions::default() }).unwrap();
        assert_eq!((made.protocol, ids(&made)), ("centre", ids(&expected)));
        recipe.protocol = SplitProtocol::Cd;
        recipe.ood_share = 0.4;
        let made = recipe.part_queries(&queries, &progress).unwrap();
        let options = CdOptions { ood_share: 0.4, seed: 3, ..CdOptions::default() };
        assert_eq!(ids(&made), ids(&cd(&queries, &options, &progress).unwrap()));
    }

    #[test]
    fn published_parts_are_not_made_of_queries_alone() {
        let refused = SplitRecipe::new(SplitProtocol::Standard).part_queries(&[], &Progress::new()).unwrap_err();
        assert!(refused.to_string().contains("standard"), "{refused}");
    }

    #[test]
    fn written_settings_that_are_left_out_are_the_usual_ones() {
        let written: SplitRecipe = serde_json::from_str(r#"{ "protocol": "cd" }"#).unwrap();
        assert_eq!(written, SplitRecipe::new(SplitProtocol::Cd));
    }
}
