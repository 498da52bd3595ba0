//! MSR-VTT: 10,000 clips cut from 7,180 web videos, read as moments of the videos they were cut from.
//!
//! Three layouts:
//! - `videodatainfo` JSON: `videos` (`video_id`, `url`, `start time`, `end time`, `split`, `category`; the keys have
//!   spaces) and `sentences` (`sen_id`, `video_id`, `caption`). The video is the source video (from the URL), the moment
//!   the clip; the clip's name and category stay with the query as `clip` and `category`. 6,513 train, 497 val and 2,990
//!   test clips; the Italian release has 142,200 captions of 7,110 of them. The query id is `sen_id`.
//! - MoLEF's list of `[video, duration, [start, end], sentence, tokens, token ids, relation matrix]`: 6,320 val pairs of
//!   234 source videos, numbered in file order.
//! - JSFUSION's CSV `key,vid_key,video_id,sentence`: one caption for each of 1,000 test clips, without times; the video
//!   is the clip itself and the query id is `key`.
//!
//! Oddities: only MoLEF's file states durations, of source videos, and 20 of its rows end up to 3.21 s after them; 2,890
//! of the 2,990 test clips have no Italian caption; captions are repeated within a clip (10,690 Italian, 462 of MoLEF's).

use cuemark_core::{Query, RawSpan, Split, Truth};
use cuemark_formats::json::{Document, Member};
use cuemark_formats::{Result, Source};
use indexmap::IndexMap;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::card::{Counts, DatasetCard, Expected, FileCard, QueryIds, SideCard};
use crate::decode;
use crate::published_id::PublishedId;
use crate::split_builder::SplitBuilder;
use crate::{Layout, ReadOptions};

const ITALIAN: &str = "videodatainfoITALIANO_2017_6513_497_100_TestValidati.json";
const ENGLISH: &[&str] = &["train_val_videodatainfo.json"];
const ENGLISH_TEST: &[&str] = &["test_videodatainfo.json"];

pub(crate) static CARD: DatasetCard = DatasetCard {
    name: "msr-vtt",
    title: "MSR-VTT: clips of 15 s as moments of the web videos they come from",
    origin: "crux82/msr-vtt-it, snuviplab/MoLEF, namgyu1/MSRVTT_dataset",
    licence: "none stated; MIT for MoLEF",
    ids: QueryIds::Published,
    files: &[
        FileCard::new("train", ITALIAN, &LAYOUT).also(ENGLISH),
        FileCard::new("val", ITALIAN, &LAYOUT).also(ENGLISH),
        FileCard::new("test", ITALIAN, &LAYOUT).also(ENGLISH_TEST),
        // The same clips in other words.
        FileCard::new("molef-val", "molef_val_data.json", &MOLEF_LAYOUT)
            .repeating("val")
            .expecting(Expected::pairs(234, 6320).video_seconds(487.19).moment_seconds(15.01).words(9.30)),
        FileCard::new("jsfusion-test", "MSRVTT_JSFUSION_test.csv", &JSFUSION_LAYOUT)
            .repeating("test")
            .expecting(Expected::queries(1000).videos(1000).moments(0)),
    ],
    sides: &[SideCard {
        paths: &[ITALIAN],
        about: "clips, where they come from and their Italian captions",
        expected: &[
            ("clips", 10_000),
            ("source videos", 7180),
            ("train clips", 6513),
            ("val clips", 497),
            ("test clips", 2990),
            ("captions", 142_200),
            ("captioned clips", 7110),
        ],
        count,
    }],
    overall: Expected::NOTHING,
};

pub(crate) static LAYOUT: Layout = Layout {
    name: "msr-vtt",
    about: "{videos: [{video_id, url, start time, end time, split}], sentences: [{sen_id, video_id, caption}]}, seconds",
    looks_like: |peek| {
        peek.opens_with("{") && (peek.has(1, "videos") || peek.has(1, "sentences")) && peek.has(3, "video_id")
    },
    read,
};

pub(crate) static MOLEF_LAYOUT: Layout = Layout {
    name: "msr-vtt-molef",
    about: "[[VIDEO, duration, [start, end], sentence, tokens, token ids, relations]], seconds",
    looks_like: |peek| peek.opens_with("[["),
    read: read_molef,
};

pub(crate) static JSFUSION_LAYOUT: Layout = Layout {
    name: "msr-vtt-jsfusion",
    about: "key,vid_key,video_id,sentence with a header; no times",
    looks_like: |peek| peek.first_line() == "key,vid_key,video_id,sentence",
    read: read_jsfusion,
};

#[derive(Deserialize)]
struct Clip {
    video_id: String,
    url: String,
    #[serde(rename = "start time")]
    start: f64,
    #[serde(rename = "end time")]
    end: f64,
    split: String,
    category: Option<u32>,
}

impl Clip {
    fn split_name(&self) -> Option<&'static str> {
        match self.split.as_str() {
            "train" => Some("train"),
            "val" | "validate" => Some("val"),
            "test" => Some("test"),
            _ => None,
        }
    }

    /// The source video: what the URL has after `v=`, or all of it.
    fn source_video(&self) -> &str {
        let id = self.url.split_once("v=").map_or(self.url.as_str(), |(_, id)| id);
        id.split('&').next().unwrap_or(id)
    }
}

#[derive(Deserialize)]
struct Sentence {
    sen_id: PublishedId,
    video_id: String,
    caption: String,
}

/// The two lists of a `videodatainfo` file, undecoded.
struct Lists<'a> {
    videos: Vec<Member<'a>>,
    sentences: Vec<Member<'a>>,
}

impl<'a> Lists<'a> {
    fn of(document: &'a Document) -> Result<Self> {
        let top = document.root().entries()?;
        let list = |name: &str| {
            let found = top.iter().find(|member| member.key() == name);
            found.ok_or_else(|| document.source().record(1, name, "is missing"))?.elements()
        };
        Ok(Self { videos: list("videos")?, sentences: list("sentences")? })
    }
}

fn read(source: &Source, options: &ReadOptions) -> Result<Vec<Split>> {
    let document = Document::read(source)?;
    let lists = Lists::of(&document)?;
    let clips: Vec<Clip> = decode::members(&lists.videos)?;
    let sentences: Vec<Sentence> = decode::members(&lists.sentences)?;
    let mut splits: IndexMap<&str, SplitBuilder> = IndexMap::new();
    let mut by_name = FxHashMap::default();
    for (index, (member, clip)) in lists.videos.iter().zip(&clips).enumerate() {
        let place = |field: &str| (member.line(), format!("videos[{index}].{field}"));
        let refuse = |field: &str, problem: String| {
            let (line, field) = place(field);
            source.record(line, field, problem)
        };
        let name = clip
            .split_name()
            .ok_or_else(|| refuse("split", format!("`{}` is none of train, val, validate, test", clip.split)))?;
        let split = splits.entry(name).or_insert_with(|| SplitBuilder::new(source, options).named(name));
        let id = clip.source_video();
        let video = split.video(id, options.duration(id), || place("url"))?;
        if by_name.insert(clip.video_id.as_str(), (clip, name, video)).is_some() {
            return Err(refuse("video_id", format!("`{}` stands in the file twice", clip.video_id)));
        }
    }
    for (index, (member, sentence)) in lists.sentences.iter().zip(sentences).enumerate() {
        let (line, field) = (member.line(), |name: &str| format!("sentences[{index}].{name}"));
        let known = by_name.get(sentence.video_id.as_str());
        let Some((clip, name, video)) = known else {
            return Err(source.record(line, field("video_id"), format!("no clip `{}`", sentence.video_id)));
        };
        let Some(split) = splits.get_mut(name) else { continue };
        let id = split.query_id(sentence.sen_id.to_query_id(), line, &field("sen_id"))?;
        let raw = RawSpan::new(clip.start, clip.end);
        split.note(&video.id, raw, &sentence.caption);
        let place = |_: &_| (line, format!("videos: the times of `{}`", sentence.video_id));
        if let Some(span) = split.span(raw, video.duration, place)? {
            let query = Query { id, text: sentence.caption };
            let mut truth = Truth::single(query, video.clone(), [span]);
            truth.extra.insert("clip", clip.video_id.as_str().into());
            if let Some(category) = clip.category {
                truth.extra.insert("category", category.into());
            }
            split.push(truth);
        }
    }
    Ok(splits.into_values().map(SplitBuilder::finish).collect())
}

/// Video, duration, times, sentence; then what a parser made of it.
#[derive(Deserialize)]
struct MolefRow(String, f64, [f64; 2], String, IgnoredAny, IgnoredAny, IgnoredAny);

fn read_molef(source: &Source, options: &ReadOptions) -> Result<Vec<Split>> {
    let document = Document::read(source)?;
    let members = document.root().elements()?;
    let rows: Vec<MolefRow> = decode::members(&members)?;
    let mut split = SplitBuilder::new(source, options);
    for (number, (member, row)) in members.iter().zip(rows).enumerate() {
        let MolefRow(id, duration, [start, end], text, ..) = row;
        let video = split.video(&id, Some(duration), || (member.line(), format!("[{number}][1]")))?;
        let place = |_: &_| (member.line(), format!("[{number}][2]"));
        split.pair(number, &video, RawSpan::new(start, end), text, place)?;
    }
    Ok(vec![split.finish()])
}

#[derive(Deserialize)]
struct JsfusionRow {
    key: String,
    video_id: String,
    sentence: String,
}

fn read_jsfusion(source: &Source, options: &ReadOptions) -> Result<Vec<Split>> {
    let mut split = SplitBuilder::new(source, options);
    for (line, row) in decode::csv_records::<JsfusionRow>(source)? {
        let id = split.query_id(row.key.as_str().into(), line, "key")?;
        let video = split.video(&row.video_id, options.duration(&row.video_id), || (line, "video_id".to_owned()))?;
        split.push(Truth { video: Some(video), ..Truth::bare(Query { id, text: row.sentence }) });
    }
    Ok(vec![split.finish()])
}

fn count(sources: &[Source]) -> Result<Counts> {
    let mut counts = Vec::new();
    for source in sources {
        let document = Document::read(source)?;
        let lists = Lists::of(&document)?;
        let clips: Vec<Clip> = decode::members(&lists.videos)?;
        let sentences: Vec<Sentence> = decode::members(&lists.sentences)?;
        let videos: FxHashSet<&str> = clips.iter().map(Clip::source_video).collect();
        let captioned: FxHashSet<&str> = sentences.iter().map(|sentence| sentence.video_id.as_str()).collect();
        counts.push(("clips".to_owned(), clips.len()));
        counts.push(("source videos".to_owned(), videos.len()));
        for name in ["train", "val", "test"] {
            let of_split = clips.iter().filter(|clip| clip.split_name() == Some(name)).count();
            counts.push((format!("{name} clips"), of_split));
        }
        counts.push(("captions".to_owned(), sentences.len()));
        counts.push(("captioned clips".to_owned(), captioned.len()));
    }
    Ok(counts)
}
