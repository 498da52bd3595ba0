//! Human re-annotations: test queries of Charades-STA and ActivityNet Captions, located again by five people each.
//!
//! CSV `HITId,video_id,description,start,end`, one row per person; `start` and `end` are **percent** of the video, 0 to
//! 100. 1,000 Charades queries in `charades_test_{00..02}.csv`, 1,288 ActivityNet ones in
//! `activitynet_test_{00..04}.csv`.
//!
//! Oddities: Charades ids carry `.mp4` and ActivityNet ids lack their leading `v_`; both are put right here so that
//! they match the datasets. Sentences keep their leading space.

use cuemark_core::{NormSpan, VideoId};
use cuemark_formats::{Result, Source};
use indexmap::IndexMap;
use serde::Deserialize;

use crate::card::{Counts, DatasetCard, Expected, QueryIds, SideCard};
use crate::decode;

pub(crate) static CARD: DatasetCard = DatasetCard {
    name: "human-reannotations",
    title: "Human re-annotations: five more people for Charades-STA and ActivityNet test queries",
    origin: "mayu-ot/hidden-challenges-MR",
    licence: "MIT",
    ids: QueryIds::Published,
    files: &[],
    sides: &[
        SideCard {
            paths: &["charades_test_00.csv", "charades_test_01.csv", "charades_test_02.csv"],
            about: "Charades-STA test queries",
            expected: &[("queries", 1000), ("spans", 5000)],
            count,
        },
        SideCard {
            paths: &[
                "activitynet_test_00.csv",
                "activitynet_test_01.csv",
                "activitynet_test_02.csv",
                "activitynet_test_03.csv",
                "activitynet_test_04.csv",
            ],
            about: "ActivityNet Captions test queries",
            expected: &[("queries", 1288), ("spans", 6440)],
            count,
        },
    ],
    overall: Expected::NOTHING,
};

/// One query as several people located it.
#[derive(Debug, Clone, PartialEq)]
pub struct Reannotation {
    /// The task that the people were given, one per query.
    pub hit: String,
    /// The video, by the name its dataset has for it.
    pub video: VideoId,
    /// The sentence as written.
    pub text: String,
    /// What each person marked, in **fractions** of the video, in file order; five in the published files.
    pub spans: Vec<NormSpan>,
}

#[derive(Deserialize)]
struct Row {
    #[serde(rename = "HITId")]
    hit: String,
    video_id: String,
    description: String,
    start: f64,
    end: f64,
}

/// Reads one file of re-annotations, queries in the order of their first row.
///
/// # Errors
/// When a row is not of this kind, its times are not percentages, or its end comes before its start.
pub fn read_reannotations(source: &Source) -> Result<Vec<Reannotation>> {
    let mut queries: IndexMap<(String, String, String), Vec<NormSpan>> = IndexMap::new();
    for (line, row) in decode::csv_records::<Row>(source)? {
        for (field, percent) in [("start", row.start), ("end", row.end)] {
            if !(0.0..=100.0).contains(&percent) {
                return Err(source.record(line, field, format!("{percent} is not between 0 and 100 percent")));
            }
        }
        let problem = || source.record(line, "end", format!("{} % is before start {} %", row.end, row.start));
        if row.end < row.start {
            return Err(problem());
        }
        let span = NormSpan::new(row.start / 100.0, row.end / 100.0).ok_or_else(problem)?;
        queries.entry((row.hit, row.video_id, row.description)).or_default().push(span);
    }
    let typed = queries.into_iter().map(|((hit, video, text), spans)| Reannotation {
        hit,
        video: dataset_name(&video),
        text,
        spans,
    });
    Ok(typed.collect())
}

/// The name that the dataset itself has for a video: `YAFX0` for `YAFX0.mp4`, `v_a0YyuiZVtFU` for `a0YyuiZVtFU`.
fn dataset_name(video: &str) -> VideoId {
    match video.strip_suffix(".mp4") {
        Some(charades) => VideoId::from(charades),
        None if video.starts_with("v_") => VideoId::from(video),
        None => VideoId::new(format!("v_{video}")),
    }
}

fn count(sources: &[Source]) -> Result<Counts> {
    let (mut queries, mut spans) = (0, 0);
    for source in sources {
        let read = read_reannotations(source)?;
        queries += read.len();
        spans += read.iter().map(|query| query.spans.len()).sum::<usize>();
    }
    Ok(vec![("queries".to_owned(), queries), ("spans".to_owned(), spans)])
}
