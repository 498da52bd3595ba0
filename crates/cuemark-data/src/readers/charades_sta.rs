//! Charades-STA: `VIDEO START END##query`, one moment a line, times in seconds.
//!
//! 12,408 train rows of 5,338 videos and 3,720 test rows of 1,334; no validation split is published.
//! Durations are not in the file: they are taken from `length` in `Charades_v1_train.csv` and `Charades_v1_test.csv`
//! beside it, else from `Charades_duration.json`; a video in none of them has no duration.
//!
//! Oddities: 4 train rows are reversed (other releases repair them with other times); 2,367 rows end after the
//! video's `length`, by at most 1.54 s, and 3 of those also start after it.

use cuemark_core::{RawSpan, Split};
use cuemark_formats::{Result, Source};

use crate::card::{Counts, DatasetCard, Expected, FileCard, QueryIds, SideCard};
use crate::split_builder::{SplitBuilder, bound_at_fault};
use crate::{Durations, Layout, ReadOptions};

const CSV_FILES: [&str; 2] = ["Charades_v1_train.csv", "Charades_v1_test.csv"];
const JSON_FILE: &str = "Charades_duration.json";

pub(crate) static CARD: DatasetCard = DatasetCard {
    name: "charades-sta",
    title: "Charades-STA: people doing things at home, 30 s videos",
    origin: "jiyanggao/TALL, microsoft/VideoX",
    licence: "MIT for the repository; Charades itself is for non-commercial use",
    ids: QueryIds::Running,
    files: &[
        FileCard::new("train", "charades_sta_train.txt", &LAYOUT)
            .expecting(Expected::pairs(5338, 12_408).video_seconds(30.87).moment_seconds(8.30).words(6.21)),
        FileCard::new("test", "charades_sta_test.txt", &LAYOUT)
            .expecting(Expected::pairs(1334, 3720).video_seconds(29.48).moment_seconds(7.97).words(6.23)),
    ],
    sides: &[
        SideCard {
            paths: &CSV_FILES,
            about: "the Charades annotations, with the length of every video",
            expected: &[("videos", 9848)],
            count: count_videos,
        },
        SideCard {
            paths: &[JSON_FILE],
            about: "durations of every video",
            expected: &[("videos", 9848)],
            count: count_videos,
        },
    ],
    overall: Expected::NOTHING,
};

pub(crate) static LAYOUT: Layout = Layout {
    name: "charades-sta",
    about: "VIDEO START END##query, one moment a line",
    looks_like: |peek| {
        let head = peek.first_line().split_once("##").map_or("", |(head, _)| head);
        let words: Vec<&str> = head.split(' ').collect();
        words.len() == 3 && words[1..].iter().all(|word| word.parse::<f64>().is_ok())
    },
    read,
};

fn read(source: &Source, options: &ReadOptions) -> Result<Vec<Split>> {
    let beside = if options.durations.is_some() { Durations::default() } else { durations_beside(source)? };
    let mut split = SplitBuilder::new(source, options);
    let mut number = 0;
    source.for_each_line(|line, row| {
        let fault = |field: &str, problem: String| source.record(line, field, problem);
        let (head, text) = row.split_once("##").ok_or_else(|| fault("query", "no `##` before the query".to_owned()))?;
        let fields: Vec<&str> = head.split(' ').collect();
        let [id, start, end] = fields[..] else {
            return Err(fault("video", format!("`{head}` is not a video, a start and an end")));
        };
        let number_of =
            |field: &str, text: &str| text.parse::<f64>().map_err(|_| fault(field, format!("`{text}` is no number")));
        let raw = RawSpan::new(number_of("start", start)?, number_of("end", end)?);
        let duration = options.duration(id).or_else(|| beside.get(id));
        let video = split.video(id, duration, || (line, "duration".to_owned()))?;
        split.pair(number, &video, raw, text.to_owned(), |why| (line, bound_at_fault(why, raw).to_owned()))?;
        number += 1;
        Ok(())
    })?;
    Ok(vec![split.finish()])
}

/// Durations from the files that the releases put beside the annotations; the CSV files have the last word.
fn durations_beside(source: &Source) -> Result<Durations> {
    let folder = source.path().parent().unwrap_or_else(|| "".into());
    let mut durations = Durations::default();
    for name in std::iter::once(JSON_FILE).chain(CSV_FILES) {
        if let Some(file) = Source::find(folder, name) {
            durations.extend(Durations::read(&file)?);
        }
    }
    Ok(durations)
}

fn count_videos(sources: &[Source]) -> Result<Counts> {
    let mut all = Durations::default();
    for source in sources {
        all.extend(Durations::read(source)?);
    }
    Ok(vec![("videos".to_owned(), all.len())])
}
