//! The built-in world: films of known events that `world make` draws, with the exact truth about them.
//!
//! Our own JSON lines (`cuemark-jsonl`) below `splits/`, one query each; test-ood has its moments where the other
//! splits have few. How many there are is for whoever makes the world to say, so nothing is published to hold it to. Pools, graded
//! moments and clip ratings lie beside the splits, in files of their own.

use cuemark_formats::world_folder::WORLD;

use super::cuemark_jsonl::LAYOUT;
use crate::card::{DatasetCard, Expected, FileCard, QueryIds};

pub(crate) static CARD: DatasetCard = DatasetCard {
    name: WORLD,
    title: "The built-in synthetic world, from `world make`",
    origin: "yours",
    licence: "yours",
    ids: QueryIds::Published,
    files: &[
        FileCard::new("train", "splits/train.jsonl", &LAYOUT),
        FileCard::new("val", "splits/val.jsonl", &LAYOUT),
        FileCard::new("test-iid", "splits/test-iid.jsonl", &LAYOUT),
        FileCard::new("test-ood", "splits/test-ood.jsonl", &LAYOUT),
    ],
    sides: &[],
    overall: Expected::NOTHING,
};
