//! One dataset, one file: its row format, its published counts and its oddities at the top of each.

pub(crate) mod activitynet_captions;
pub(crate) mod activitynet_cd;
pub(crate) mod charades_cd;
pub(crate) mod charades_sta;
pub(crate) mod cuemark_jsonl;
pub(crate) mod didemo;
pub(crate) mod human_reannotations;
pub(crate) mod label_studio;
pub(crate) mod msr_vtt;
pub(crate) mod mvmr;
pub(crate) mod qvhighlights;
pub(crate) mod tacos;
pub(crate) mod tacos_2dtan;
pub(crate) mod tacos_raw;
pub(crate) mod tvr;
pub(crate) mod tvr_ranking;
pub(crate) mod tvsum;
pub(crate) mod world;
pub(crate) mod youcook2;
pub(crate) mod youtube_highlights;
