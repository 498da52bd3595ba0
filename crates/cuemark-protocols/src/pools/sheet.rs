//! A sheet that asks a person whether the videos of some pools answer their queries, and what the answers say.
//!
//! CSV with the columns `qid,query,video,answers`; the last one is empty and is filled in with `yes` or `no`, or left
//! empty by whoever cannot tell. The sheet does not say what the pool claims and lists a pool's videos in random order,
//! so that nobody agrees out of politeness.

use std::collections::HashMap;

use cuemark_core::stats::{Interval, wilson};
use cuemark_core::{QueryId, Rng, Truth, VideoId};
use cuemark_formats::{ReadError, Source, WholeFile};
use serde::{Deserialize, Serialize};

use crate::Result;

/// One question of a sheet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// The query's id.
    pub qid: String,
    /// Its sentence.
    pub query: String,
    /// The video to look at.
    pub video: String,
    /// `yes`, `no`, or nothing.
    pub answers: String,
}

/// What a filled-in sheet says about the pools.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SheetVerdict {
    /// Questions on the sheet.
    pub questions: usize,
    /// Questions that were answered.
    pub answered: usize,
    /// Videos that the pool calls positive and the person does not.
    pub false_positives: usize,
    /// Videos that the pool calls negative and the person does not.
    pub false_negatives: usize,
    /// Share of the answered questions where person and pool disagree; 0 when none was answered.
    pub false_rate: f64,
    /// 95 % interval of that share, by Wilson's formula.
    pub interval: Interval,
}

/// Draws `queries` pools (all of them when there are fewer) and asks about every video but the query's own.
pub fn questions(pools: &[Truth], queries: usize, seed: u64) -> Vec<Question> {
    let mut rng = Rng::stream(seed, "check sheet");
    let mut chosen: Vec<usize> = (0..pools.len()).collect();
    rng.shuffle(&mut chosen);
    chosen.truncate(queries);
    chosen.sort_unstable();
    let mut asked = Vec::new();
    for truth in chosen.into_iter().filter_map(|place| pools.get(place)) {
        let own = truth.video.as_ref().map(|video| &video.id);
        let mut videos: Vec<&VideoId> = truth.pool.iter().flatten().filter(|video| Some(*video) != own).collect();
        rng.shuffle(&mut videos);
        asked.extend(videos.into_iter().map(|video| Question {
            qid: truth.query.id.to_string(),
            query: truth.query.text.clone(),
            video: video.to_string(),
            answers: String::new(),
        }));
    }
    asked
}

/// Writes a sheet.
///
/// # Errors
/// When the file cannot be written.
pub fn write(questions: &[Question], out: &mut WholeFile) -> Result<()> {
    let mut bytes = csv::Writer::from_writer(Vec::new());
    let written = questions.iter().try_for_each(|question| bytes.serialize(question));
    let bytes = written
        .map_err(std::io::Error::from)
        .and_then(|()| bytes.into_inner().map_err(csv::IntoInnerError::into_error));
    let bytes = bytes.map_err(|source| ReadError::Write { path: "the sheet".into(), source })?;
    Ok(out.put(&bytes)?)
}

/// Reads a filled-in sheet and compares it with the pools it was drawn from.
///
/// # Errors
/// When it cannot be read, a row is not of a pool, or an answer is neither `yes`, `no` nor empty.
pub fn read(source: &Source, pools: &[Truth]) -> Result<SheetVerdict> {
    let pools: HashMap<&QueryId, &Truth> = pools.iter().map(|truth| (&truth.query.id, truth)).collect();
    let text = source.text()?;
    let mut rows = csv::Reader::from_reader(text.as_bytes());
    let header = rows.headers().map_err(|error| csv_fault(source, &error))?.clone();
    let (mut questions, mut answered, mut false_positives, mut false_negatives) = (0, 0, 0, 0);
    for record in rows.records() {
        let record = record.map_err(|error| csv_fault(source, &error))?;
        let line = record.position().map_or(1, |position| position.line() as usize);
        let row: Question = record.deserialize(Some(&header)).map_err(|error| csv_fault(source, &error))?;
        questions += 1;
        let Some(truth) = pools.get(&QueryId::from(row.qid.as_str())) else {
            return Err(source.record(line, "qid", format!("`{}` has no pool", row.qid)).into());
        };
        if !truth.pool.iter().flatten().any(|video| video.as_str() == row.video) {
            let problem = format!("`{}` is not in the pool of query `{}`", row.video, row.qid);
            return Err(source.record(line, "video", problem).into());
        }
        let claimed = truth.right().any(|moment| moment.video.as_str() == row.video);
        match (row.answers.trim().to_lowercase().as_str(), claimed) {
            ("", _) => continue,
            ("yes", true) | ("no", false) => {}
            ("no", true) => false_positives += 1,
            ("yes", false) => false_negatives += 1,
            (other, _) => {
                let problem = format!("`{other}` is neither `yes` nor `no` nor empty");
                return Err(source.record(line, "answers", problem).into());
            }
        }
        answered += 1;
    }
    let wrong = false_positives + false_negatives;
    let false_rate = if answered == 0 { 0.0 } else { wrong as f64 / answered as f64 };
    Ok(SheetVerdict {
        questions,
        answered,
        false_positives,
        false_negatives,
        false_rate,
        interval: wilson(wrong, answered),
    })
}

fn csv_fault(source: &Source, error: &csv::Error) -> ReadError {
    let line = error.position().map_or(1, |position| position.line() as usize);
    source.record(line, "row", error).with_hint("a sheet has the columns qid,query,video,answers")
}

#[cfg(test)]
mod tests {
    use super::*;
    use camino::Utf8PathBuf;
    use cuemark_core::{GradedMoment, Query, Span, Video};
    use cuemark_formats::Overwrite;

    fn pools() -> Vec<Truth> {
        (0..4)
            .map(|n| {
                let query = Query { id: format!("{n}").as_str().into(), text: format!("person {n}, \"quoted\"") };
                let own = Video::new(format!("own{n}").as_str(), 9.0);
                let moments = [own.id.clone(), "alike".into()].map(|id| GradedMoment::right(id, Span::whole(1.0)));
                let pool = Some(vec![own.id.clone(), "alike".into(), "other".into(), "third".into()]);
                Truth { video: Some(own), moments: moments.to_vec(), pool, ..Truth::bare(query) }
            })
            .collect()
    }

    fn judge(questions: &[Question]) -> Result<SheetVerdict> {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8PathBuf::from_path_buf(folder.path().join("sheet.csv")).unwrap();
        let mut out = WholeFile::create(&path, Overwrite::Never).unwrap();
        write(questions, &mut out).unwrap();
        out.finish().unwrap();
        read(&Source::new(path), &pools())
    }

    #[test]
    fn a_sheet_asks_about_every_video_but_the_own_one_and_tells_nothing() {
        let asked = questions(&pools(), 2, 7);
        assert_eq!(asked.len(), 6);
        assert!(asked.iter().all(|question| question.answers.is_empty() && !question.video.starts_with("own")));
        assert_eq!(asked, questions(&pools(), 2, 7));
        assert_eq!(questions(&pools(), 100, 7).len(), 12);
    }

    #[test]
    fn disagreements_are_counted_by_kind() {
        let mut asked = questions(&pools(), 4, 7);
        for question in &mut asked {
            question.answers = if question.video == "alike" { "yes" } else { "No " }.to_owned();
        }
        let agreed = judge(&asked).unwrap();
        assert_eq!((agreed.answered, agreed.false_rate), (12, 0.0));
        let flip = |question: &mut Question, answer: &str| question.answers = answer.to_owned();
        let alike = asked.iter().position(|question| question.video == "alike").unwrap();
        let other = asked.iter().position(|question| question.video == "other").unwrap();
        let third = asked.iter().position(|question| question.video == "third").unwrap();
        flip(&mut asked[alike], "no");
        flip(&mut asked[other], "yes");
        flip(&mut asked[third], "");
        let judged = judge(&asked).unwrap();
        assert_eq!((judged.questions, judged.answered), (12, 11));
        assert_eq!((judged.false_positives, judged.false_negatives), (1, 1));
        assert!(judged.interval.low < judged.false_rate && judged.false_rate < judged.interval.high);
    }

    #[test]
    fn a_sheet_of_other_pools_is_refused_with_its_line() {
        let mut asked = questions(&pools(), 4, 7);
        asked[1].video = "elsewhere".to_owned();
        let message = judge(&asked).unwrap_err().to_string();
        assert!(message.contains("sheet.csv:3: `video`: `elsewhere` is not in the pool"), "{message}");
        asked[1] = Question { answers: "perhaps".to_owned(), ..asked[2].clone() };
        assert!(judge(&asked).unwrap_err().to_string().contains(":3: `answers`: `perhaps` is neither"));
    }
}
