//! ActivityNet-CD: ActivityNet Captions split anew so that test-ood has another distribution of locations.
//!
//! Laid out as ActivityNet Captions, one file per split, with `duration` or `video_duration`; the files go round
//! with and without `activitynet_` before their names. No counts are at hand to check them against.

use crate::Layout;
use crate::card::{DatasetCard, Expected, FileCard, QueryIds};
use crate::readers::activitynet_captions;

pub(crate) static CARD: DatasetCard = DatasetCard {
    name: "activitynet-cd",
    title: "ActivityNet-CD: ActivityNet Captions under changing distributions",
    origin: "yytzsy/grounding_changing_distribution",
    licence: "none stated",
    ids: QueryIds::Running,
    files: &[
        FileCard::new("train", "train.json", &LAYOUT).also(&["activitynet_train.json"]),
        FileCard::new("val", "val.json", &LAYOUT).also(&["activitynet_val.json"]),
        FileCard::new("test-iid", "test_iid.json", &LAYOUT).also(&["activitynet_test_iid.json"]),
        FileCard::new("test-ood", "test_ood.json", &LAYOUT).also(&["activitynet_test_ood.json"]),
    ],
    sides: &[],
    overall: Expected::NOTHING,
};

pub(crate) static LAYOUT: Layout = Layout {
    name: "activitynet-cd",
    about: "{VIDEO: {duration or video_duration, timestamps, sentences}}, seconds",
    looks_like: |_| false, // not to be told from `activitynet-captions`, which reads it as well
    read: activitynet_captions::LAYOUT.read,
};
