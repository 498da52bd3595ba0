//! YouCook2: one JSON file for all splits, `database` by video with `duration`, `subset`, `recipe_type`, `annotations`.
//!
//! An annotation is `{"segment": [90, 102], "id": 0, "sentence": "…"}`, whole seconds. 1,333 training videos with 10,337
//! pairs and 457 validation videos with 3,492, in mixed order; query numbers run through the whole file. The recipe
//! type stays with each query as `recipe_type`. No oddities: no row leaves its video, none is repeated.

use cuemark_core::{RawSpan, Split};
use cuemark_formats::json::Document;
use cuemark_formats::{Result, Source};
use indexmap::IndexMap;
use serde::Deserialize;

use crate::card::{DatasetCard, Expected, FileCard, QueryIds};
use crate::decode;
use crate::split_builder::SplitBuilder;
use crate::{Layout, ReadOptions};

const FILE: &str = "youcookii_annotations_trainval.json";

pub(crate) static CARD: DatasetCard = DatasetCard {
    name: "youcook2",
    title: "YouCook2: cooking videos of 5 min, a step of the recipe a moment",
    origin: "gingsi/coot-videotext",
    licence: "Apache-2.0 for the repository",
    ids: QueryIds::Running,
    files: &[
        FileCard::new("train", FILE, &LAYOUT).expecting(Expected::pairs(1333, 10_337)),
        FileCard::new("val", FILE, &LAYOUT).expecting(Expected::pairs(457, 3492)),
    ],
    sides: &[],
    overall: Expected::pairs(1790, 13_829).video_seconds(315.43).moment_seconds(19.63).words(8.77),
};

pub(crate) static LAYOUT: Layout = Layout {
    name: "youcook2",
    about: "{database: {VIDEO: {duration, subset, recipe_type, annotations}}}, seconds",
    looks_like: |peek| peek.opens_with("{") && peek.has(1, "database") && peek.has_all(3, &["subset", "annotations"]),
    read,
};

#[derive(Deserialize)]
struct Entry {
    duration: f64,
    subset: String,
    recipe_type: Option<serde_json::Value>,
    annotations: Vec<Annotation>,
}

#[derive(Deserialize)]
struct Annotation {
    segment: [f64; 2],
    sentence: String,
}

fn read(source: &Source, options: &ReadOptions) -> Result<Vec<Split>> {
    let document = Document::read(source)?;
    let top = document.root().entries()?;
    let database = top
        .iter()
        .find(|member| member.key() == "database")
        .ok_or_else(|| source.record(1, "database", "is missing"))?;
    let members = database.entries()?;
    let entries: Vec<Entry> = decode::members(&members)?;
    let mut splits: IndexMap<&str, SplitBuilder> = IndexMap::new();
    let mut number = 0;
    for (member, entry) in members.iter().zip(entries) {
        let (id, line) = (member.key(), member.line());
        let name = match entry.subset.as_str() {
            "training" => "train",
            "validation" => "val",
            "testing" => "test",
            other => {
                let problem = format!("`{other}` is none of training, validation, testing");
                return Err(member.record("subset", problem));
            }
        };
        let split = splits.entry(name).or_insert_with(|| SplitBuilder::new(source, options).named(name));
        let video = split.new_video(id, Some(entry.duration), || (line, format!("{id}.duration")))?;
        for (index, Annotation { segment: [start, end], sentence }) in entry.annotations.into_iter().enumerate() {
            let place = |_: &_| (line, format!("{id}.annotations[{index}].segment"));
            let truth = split.pair(number, &video, RawSpan::new(start, end), sentence, place)?;
            if let (Some(truth), Some(recipe)) = (truth, &entry.recipe_type) {
                truth.extra.insert("recipe_type", recipe.clone());
            }
            number += 1;
        }
    }
    Ok(splits.into_values().map(SplitBuilder::finish).collect())
}
