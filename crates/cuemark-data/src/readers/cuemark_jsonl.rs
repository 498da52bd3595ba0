//! Your own annotations, and what cuemark writes: JSON lines in our own layout, one query each, in seconds.
//!
//! `{"qid", "query", "video", "duration", "spans": [[2.4, 9.1]]}`; the codec is in `cuemark-formats`. A folder of such
//! files (made by `data convert`, `split make`, `world make`, or by hand) is a dataset like any other.

use crate::Layout;
use crate::card::{DatasetCard, Expected, FileCard, QueryIds};
use crate::truth_file::unnamed;

pub(crate) static CARD: DatasetCard = DatasetCard {
    name: "cuemark-jsonl",
    title: "Your own annotations in cuemark's JSON lines",
    origin: "yours",
    licence: "yours",
    ids: QueryIds::Published,
    files: &[
        FileCard::new("train", "train.jsonl", &LAYOUT),
        FileCard::new("val", "val.jsonl", &LAYOUT),
        FileCard::new("test", "test.jsonl", &LAYOUT),
        FileCard::new("test-iid", "test-iid.jsonl", &LAYOUT),
        FileCard::new("test-ood", "test-ood.jsonl", &LAYOUT),
    ],
    sides: &[],
    overall: Expected::NOTHING,
};

pub(crate) static LAYOUT: Layout = Layout {
    name: "cuemark-jsonl",
    about: "{qid, query, video, duration, spans} or {qid, query, moments, pool} a line, seconds",
    looks_like: |peek| {
        let answers = ["video", "spans", "moments", "pool"].iter().any(|key| peek.has(1, key));
        peek.opens_with("{") && peek.has_all(1, &["qid", "query"]) && answers
    },
    read: |source, options| Ok(vec![unnamed(cuemark_formats::read_truth(source, options.bad_rows)?)]),
};
