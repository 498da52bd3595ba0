//! ActivityNet-CD: ActivityNet Captions split anew so that test-ood has another distribution of locations.
//!
//! Laid out as ActivityNet Captions, one file per split, with `duration` or `video_duration`; the files go round as
//! `anet_train.json` and under two other names. 10,984 videos and 51,415 pairs in train, 746 and 3,521 in val, 746 and
//! 3,443 in test-iid, 2,450 and 13,578 in test-ood.

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
        FileCard::new("train", "anet_train.json", &LAYOUT)
            .also(&["train.json", "activitynet_train.json"])
            .expecting(Expected::pairs(10_984, 51_415)),
        FileCard::new("val", "anet_val.json", &LAYOUT)
            .also(&["val.json", "activitynet_val.json"])
            .expecting(Expected::pairs(746, 3521)),
        FileCard::new("test-iid", "anet_test_iid.json", &LAYOUT)
            .also(&["test_iid.json", "activitynet_test_iid.json"])
            .expecting(Expected::pairs(746, 3443)),
        FileCard::new("test-ood", "anet_test_ood.json", &LAYOUT)
            .also(&["test_ood.json", "activitynet_test_ood.json"])
            .expecting(Expected::pairs(2450, 13_578)),
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
