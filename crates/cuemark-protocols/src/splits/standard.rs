//! Standard splits (`standard`): the published ones, with a validation split where none was published.
//!
//! | dataset | train | val | test |
//! |---|---|---|---|
//! | charades-sta | train less val | 10 % of train's videos | test |
//! | youcook2 | train less val | 10 % of train's videos | val |
//! | tvr | train less val | 1/8 of train's videos | val |
//! | activitynet-captions | train | val_1 | val_2 |
//! | the same, merged test | train less val | 10 % of train's videos | val_1+val_2 |
//! | any other | as published; 10 % of train's videos for val where no val is there | | |

use cuemark_core::{QueryId, Rng, Split, Truth, VideoId};
use serde::{Deserialize, Serialize};

use super::{MadeSplits, Options, SplitFindings, new_split};
use crate::{ProtocolError, Result};

/// What `standard` can be told.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct StandardOptions {
    /// Which test split, for datasets that have a choice. Default: usual
    pub test: StandardTest,
    /// Seed of the videos that val takes from train. Default: 0
    pub seed: u64,
}

/// Which test split, for datasets that have a choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum StandardTest {
    /// The one that most papers use.
    #[default]
    Usual,
    // Val is then cut from train.
    /// ActivityNet Captions: both validation files together.
    Merged,
}

/// Where the splits came from.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StandardFound {
    /// Videos that val took from train; 0 when a val was published.
    pub val_videos_from_train: usize,
    /// The published splits that test holds.
    pub test_from: Vec<String>,
}

/// A rule: where val comes from and which published splits are test.
struct Rule {
    val: Val,
    tests: &'static [&'static str],
}

enum Val {
    Published(&'static str),
    /// One video in this many of train's.
    OneIn(usize),
}

/// The standard splits of the dataset called `dataset`, from its `published` ones.
///
/// Test splits keep their names when there are several; a single one is called `test`.
///
/// # Errors
/// When the dataset's training split, or every test split, is not there; when train has too few videos to part with one.
pub fn standard(dataset: &str, published: &[Split], options: &StandardOptions) -> Result<MadeSplits> {
    let rule = rule_for(dataset, published, options.test)?;
    let find = |name: &'static str| {
        let known = || published.iter().map(|split| split.name.clone()).collect();
        published
            .iter()
            .find(|split| split.name == name)
            .ok_or_else(|| ProtocolError::NoSplit { split: name, known: known() })
    };
    let whole_train = find("train")?;
    let (train, val, taken) = match rule.val {
        Val::Published(name) => (whole_train.queries.clone(), find(name)?.queries.clone(), 0),
        Val::OneIn(n) => hold_out_videos(&whole_train.queries, n, options.seed)?,
    };
    let tests = rule.tests.iter().copied().map(find).collect::<Result<Vec<&Split>>>()?;
    let mut splits = vec![new_split("train", train), new_split("val", val)];
    match (tests.as_slice(), dataset) {
        ([one], _) => splits.push(new_split("test", one.queries.clone())),
        (several, "activitynet-captions") => splits.push(new_split("test", joined(several))),
        (several, _) => splits.extend(several.iter().map(|split| new_split(&split.name, split.queries.clone()))),
    }
    let test_from = tests.iter().map(|split| split.name.clone()).collect();
    Ok(MadeSplits {
        protocol: "standard",
        version: 1,
        seed: options.seed,
        splits,
        options: Options::Standard(options.clone()),
        found: SplitFindings::Standard(StandardFound { val_videos_from_train: taken, test_from }),
    })
}

fn rule_for(dataset: &str, published: &[Split], test: StandardTest) -> Result<Rule> {
    let there = |name: &str| published.iter().any(|split| split.name == name);
    if test == StandardTest::Merged && dataset != "activitynet-captions" {
        let problem = format!("is a choice for activitynet-captions only, not for {dataset}");
        return Err(ProtocolError::Option { option: "test", value: "merged".to_owned(), problem });
    }
    Ok(match (dataset, test) {
        ("charades-sta", _) => Rule { val: Val::OneIn(10), tests: &["test"] },
        ("youcook2", _) => Rule { val: Val::OneIn(10), tests: &["val"] },
        ("tvr", _) => Rule { val: Val::OneIn(8), tests: &["val"] },
        ("activitynet-captions", StandardTest::Usual) => Rule { val: Val::Published("val_1"), tests: &["val_2"] },
        ("activitynet-captions", StandardTest::Merged) => Rule { val: Val::OneIn(10), tests: &["val_1", "val_2"] },
        _ => Rule {
            val: if there("val") { Val::Published("val") } else { Val::OneIn(10) },
            tests: if there("test-iid") { &["test-iid", "test-ood"] } else { &["test"] },
        },
    })
}

/// Takes one video in `n` out of `truths`, at random; at least one.
fn hold_out_videos(truths: &[Truth], n: usize, seed: u64) -> Result<(Vec<Truth>, Vec<Truth>, usize)> {
    let mut videos: Vec<&VideoId> = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for truth in truths {
        let video = truth.video.as_ref().ok_or_else(|| ProtocolError::NoVideo { query: truth.query.id.clone() })?;
        if seen.insert(&video.id) {
            videos.push(&video.id);
        }
    }
    if videos.len() < 2 {
        return Err(ProtocolError::TooFew {
            what: "a validation split cut from train",
            needed: 2,
            found: videos.len(),
        });
    }
    Rng::stream(seed, "validation videos").shuffle(&mut videos);
    let taken = (videos.len() / n).max(1);
    let held_out: std::collections::HashSet<&VideoId> = videos[..taken].iter().copied().collect();
    let is_held_out = |truth: &&Truth| truth.video.as_ref().is_some_and(|video| held_out.contains(&video.id));
    let (val, train): (Vec<&Truth>, Vec<&Truth>) = truths.iter().partition(is_held_out);
    Ok((train.into_iter().cloned().collect(), val.into_iter().cloned().collect(), taken))
}

/// Queries of several files in one split: their running numbers get the file's name in front.
fn joined(splits: &[&Split]) -> Vec<Truth> {
    let prefixed = |split: &Split, truth: &Truth| {
        let mut truth = truth.clone();
        truth.query.id = QueryId::new(format!("{}:{}", split.name, truth.query.id));
        truth
    };
    splits.iter().flat_map(|split| split.queries.iter().map(move |truth| prefixed(split, truth))).collect()
}

#[cfg(test)]
mod tests {
    use cuemark_core::{Advise as _, Dialect};

    use super::*;
    use crate::splits::shared_videos;
    use crate::testing::habits;

    fn published(names: &[&str]) -> Vec<Split> {
        let truths = habits(10 * names.len());
        names.iter().zip(truths.chunks(20)).map(|(name, truths)| new_split(name, truths.to_vec())).collect()
    }

    fn names(made: &MadeSplits) -> Vec<&str> {
        made.splits.iter().map(|split| split.name.as_str()).collect()
    }

    #[test]
    fn a_published_validation_split_stays_as_it_is() {
        let splits = published(&["train", "val", "test"]);
        let made = standard("tacos", &splits, &StandardOptions::default()).unwrap();
        assert_eq!(names(&made), ["train", "val", "test"]);
        assert!(made.splits.iter().zip(&splits).all(|(made, published)| made.queries == published.queries));
    }

    #[test]
    fn without_one_a_tenth_of_the_training_videos_is_held_out() {
        let made = standard("charades-sta", &published(&["train", "test"]), &StandardOptions::default()).unwrap();
        assert_eq!(made.splits[1].videos.len(), 1);
        assert_eq!(made.splits[0].queries.len() + made.splits[1].queries.len(), 20);
        assert!(shared_videos(&made.splits).iter().all(|pair| pair.videos == 0));
        let other = StandardOptions { seed: 5, ..StandardOptions::default() };
        let other = standard("charades-sta", &published(&["train", "test"]), &other).unwrap();
        assert_ne!(made.splits[1].queries, other.splits[1].queries);
    }

    #[test]
    fn test_splits_of_a_biased_dataset_keep_their_names() {
        let splits = published(&["train", "val", "test-iid", "test-ood"]);
        let made = standard("charades-cd", &splits, &StandardOptions::default()).unwrap();
        assert_eq!(names(&made), ["train", "val", "test-iid", "test-ood"]);
    }

    #[test]
    fn activitynet_can_be_tested_on_both_validation_files() {
        let mut splits = published(&["train", "val_1", "val_2"]);
        splits[2].queries = splits[1].queries.clone();
        let options = StandardOptions { test: StandardTest::Merged, seed: 0 };
        let made = standard("activitynet-captions", &splits, &options).unwrap();
        assert_eq!(made.splits[2].queries[0].query.id.as_str(), "val_1:10-0");
        assert_eq!(made.splits[2].queries[20].query.id.as_str(), "val_2:10-0");
        assert!(matches!(standard("tacos", &splits, &options), Err(ProtocolError::Option { .. })));
    }

    #[test]
    fn a_missing_split_is_named() {
        let error = standard("tvr", &published(&["val"]), &StandardOptions::default()).unwrap_err();
        assert_eq!(
            (error.to_string().as_str(), error.advice_in(Dialect::Terminal).unwrap().as_str()),
            ("there is no split called `train`", "found: val")
        );
    }
}
