//! What people said of answers: right, wrong, and where a moment really begins and ends.
//!
//! One file in the folder of an index, `judged.jsonl`. It only grows, a line for each judgement, so that two servers, or two tabs
//! of one page, never undo each other's work: of what was said about the same answer to the same question the last counts. Each
//! line is a row of our truth format, so `cuemark index eval INDEX --truth INDEX/judged.jsonl` reads it as well:
//!
//! ```json
//! {"qid":"j0","query":"two men arm wrestling","moments":[{"video":"a","span":[2.0,6.5],"relevance":4}],
//!  "judged":{"verdict":"right","video":"a","found":[2.0,4.0]}}
//! ```
//!
//! `found` is the answer as it was given; the moment's own span is where the person put its ends. Wrong answers have relevance 0,
//! a judgement that was taken back has no moment.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::{Advice, GradedMoment, Moment, Query, QueryId, Relevance, Span, Truth, VideoId};
use cuemark_search::{EngineUrl, Index, SearchError};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// How long one waits for another who is writing.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often one looks whether the other has finished.
const LOOK: Duration = Duration::from_millis(20);
/// The grade of a moment that somebody called right.
const RIGHT: f64 = 4.0;

/// What somebody said of an answer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Verdict {
    /// It answers the question, and lies here.
    Right(Span),
    /// It does not.
    Wrong,
    /// What was said before does not count any more.
    TakenBack,
}

/// What somebody said of one answer to one question.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// The question.
    pub query: String,
    /// The answer's video.
    pub video: VideoId,
    /// The answer's span, as it was given.
    pub found: Span,
    /// What was said.
    pub verdict: Verdict,
}

/// The judgements that count: the last on each answer to each question, in the order of the first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Judgements {
    /// None that was taken back is among them.
    pub list: Vec<Judgement>,
    /// Lines that cannot be read; they cost nothing but themselves.
    pub damaged: usize,
}

/// The file of judgements of one index.
#[derive(Debug, Clone)]
pub struct JudgedFile {
    path: Utf8PathBuf,
}

#[derive(Serialize, Deserialize)]
struct Row {
    qid: String,
    query: String,
    moments: Vec<RowMoment>,
    judged: RowJudged,
}

#[derive(Serialize, Deserialize)]
struct RowMoment {
    video: String,
    span: [f64; 2],
    relevance: f64,
}

#[derive(Serialize, Deserialize)]
struct RowJudged {
    verdict: RowVerdict,
    video: String,
    found: [f64; 2],
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum RowVerdict {
    Right,
    Wrong,
    TakenBack,
}

impl JudgedFile {
    /// Its name in the folder of an index.
    pub const NAME: &'static str = "judged.jsonl";
    /// Bytes at most: some fifty thousand judgements.
    pub const MOST_BYTES: u64 = 8 << 20;

    /// That of an open index.
    ///
    /// # Errors
    /// When the index has no folder.
    pub fn of(index: &Index) -> Result<Self> {
        match index.engine().url() {
            EngineUrl::File(folder) => Ok(Self::in_folder(&folder)),
            EngineUrl::Milvus { .. } => Err(Error::nothing("an index on a server has no folder to keep judgements in")),
        }
    }

    /// That of the index in `folder`.
    pub fn in_folder(folder: &Utf8Path) -> Self {
        Self { path: folder.join(Self::NAME) }
    }

    /// Where it lies, or would.
    pub fn path(&self) -> &Utf8Path {
        &self.path
    }

    /// Adds a judgement; it is on disk when this returns.
    ///
    /// # Errors
    /// When the file cannot be written, is full, or somebody else has been writing it for two seconds. Nothing was added then.
    pub fn add(&self, judgement: &Judgement) -> Result<()> {
        let fault = |what| move |source| SearchError::Io { what, path: self.path.clone(), source };
        let mut file =
            OpenOptions::new().create(true).read(true).append(true).open(&self.path).map_err(fault("write"))?;
        self.lock(&file)?;
        // What a writer that was killed left behind its last whole line was never acknowledged.
        let whole = end_of_lines(&mut file).map_err(fault("read"))?;
        let line = line(judgement, whole);
        if whole + line.len() as u64 > Self::MOST_BYTES {
            return Err(Error::nothing(format!("`{}` is full: {} bytes", Self::NAME, Self::MOST_BYTES)).advise(
                Advice::say("move it away; ").run("index eval INDEX --truth FILE").and(" reads it wherever it lies"),
            ));
        }
        let written =
            file.set_len(whole).and_then(|()| file.write_all(line.as_bytes())).and_then(|()| file.sync_data());
        if written.is_err() {
            // A part of a line would cost the next reader a warning.
            let _ = file.set_len(whole);
        }
        written.map_err(fault("write"))?;
        Ok(())
    }

    fn lock(&self, file: &File) -> Result<()> {
        for _ in 0..(PATIENCE.as_millis() / LOOK.as_millis()) {
            match file.try_lock() {
                Ok(()) => return Ok(()),
                Err(TryLockError::WouldBlock) => std::thread::sleep(LOOK),
                Err(TryLockError::Error(source)) => {
                    return Err(SearchError::Io { what: "lock", path: self.path.clone(), source }.into());
                }
            }
        }
        Err(SearchError::Locked { path: self.path.clone() }.into())
    }

    /// What counts; nothing where nobody has judged yet.
    ///
    /// # Errors
    /// When the file is there and cannot be read, or is larger than it can have become here.
    pub fn read(&self) -> Result<Judgements> {
        let fault = |source| SearchError::Io { what: "read", path: self.path.clone(), source };
        let file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Judgements::default()),
            Err(source) => return Err(fault(source).into()),
        };
        let mut bytes = Vec::new();
        file.take(Self::MOST_BYTES + 1).read_to_end(&mut bytes).map_err(fault)?;
        if bytes.len() as u64 > Self::MOST_BYTES {
            let problem = format!("`{}` has more than {} bytes", self.path, Self::MOST_BYTES);
            return Err(Error::nothing(problem).advise(Advice::say("was it written by something else?")));
        }
        Ok(Judgements::of_lines(&bytes))
    }
}

/// Where the last whole line ends.
fn end_of_lines(file: &mut File) -> std::io::Result<u64> {
    const PIECE: u64 = 64 << 10;
    let mut end = file.seek(SeekFrom::End(0))?;
    loop {
        let start = end.saturating_sub(PIECE);
        file.seek(SeekFrom::Start(start))?;
        let mut piece = vec![0; (end - start) as usize];
        file.read_exact(&mut piece)?;
        match piece.iter().rposition(|byte| *byte == b'\n') {
            Some(place) => return Ok(start + place as u64 + 1),
            None if start == 0 => return Ok(0),
            None => end = start,
        }
    }
}

/// A judgement as a line that begins at byte `at`, which makes its id one that no other line has.
fn line(judgement: &Judgement, at: u64) -> String {
    let pair = |span: Span| [span.start(), span.end()];
    let moment = |span, relevance| RowMoment { video: judgement.video.to_string(), span: pair(span), relevance };
    let (verdict, moments) = match judgement.verdict {
        Verdict::Right(span) => (RowVerdict::Right, vec![moment(span, RIGHT)]),
        Verdict::Wrong => (RowVerdict::Wrong, vec![moment(judgement.found, 0.0)]),
        Verdict::TakenBack => (RowVerdict::TakenBack, Vec::new()),
    };
    let judged = RowJudged { verdict, video: judgement.video.to_string(), found: pair(judgement.found) };
    let row = Row { qid: format!("j{at:x}"), query: judgement.query.clone(), moments, judged };
    // Strings and finite numbers always have a form in JSON.
    serde_json::to_string(&row).unwrap_or_default() + "\n"
}

/// Two people who ask for the same thing in other letters ask the same.
fn same_question(query: &str) -> String {
    query.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

impl Judgement {
    fn of_row(row: Row) -> Option<Self> {
        let span = |pair: [f64; 2]| Span::new(pair[0], pair[1]).ok();
        let found = span(row.judged.found)?;
        let verdict = match row.judged.verdict {
            RowVerdict::Right => Verdict::Right(span(row.moments.first()?.span)?),
            RowVerdict::Wrong => Verdict::Wrong,
            RowVerdict::TakenBack => Verdict::TakenBack,
        };
        Some(Self { query: row.query, video: VideoId::new(row.judged.video), found, verdict })
    }

    fn key(&self) -> (String, VideoId, [u64; 2]) {
        (same_question(&self.query), self.video.clone(), [self.found.start().to_bits(), self.found.end().to_bits()])
    }
}

impl Judgements {
    fn of_lines(bytes: &[u8]) -> Self {
        let (mut judgements, mut places) = (Self::default(), FxHashMap::default());
        for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()) {
            let Some(said) = serde_json::from_slice(line).ok().and_then(Judgement::of_row) else {
                judgements.damaged += 1;
                continue;
            };
            let place = *places.entry(said.key()).or_insert(judgements.list.len());
            match judgements.list.get_mut(place) {
                Some(before) => *before = said,
                None => judgements.list.push(said),
            }
        }
        judgements.list.retain(|said| said.verdict != Verdict::TakenBack);
        judgements
    }

    /// Those on the answers to one question.
    pub fn on(&self, query: &str) -> impl Iterator<Item = &Judgement> {
        let asked = same_question(query);
        self.list.iter().filter(move |said| same_question(&said.query) == asked)
    }

    /// One truth for each question, in the order in which they were first judged: right moments have grade 4, wrong ones 0.
    pub fn truths(&self) -> Vec<Truth> {
        let (mut truths, mut places): (Vec<Truth>, FxHashMap<String, usize>) = (Vec::new(), FxHashMap::default());
        for said in &self.list {
            let (span, grade) = match said.verdict {
                Verdict::Right(span) => (span, RIGHT),
                Verdict::Wrong => (said.found, 0.0),
                Verdict::TakenBack => continue,
            };
            let place = *places.entry(same_question(&said.query)).or_insert(truths.len());
            if place == truths.len() {
                let id = QueryId::new(format!("judged-{place}"));
                truths.push(Truth::bare(Query { id, text: said.query.clone() }));
            }
            let moment = Moment { video: said.video.clone(), span };
            if let Some(truth) = truths.get_mut(place) {
                truth.moments.push(GradedMoment { moment, relevance: Relevance::new(grade) });
            }
        }
        truths
    }
}

#[cfg(test)]
mod tests {
    use cuemark_core::RowPolicy;
    use cuemark_formats::{Source, read_truth};

    use super::*;

    fn span(start: f64, end: f64) -> Span {
        Span::new(start, end).unwrap()
    }

    fn said(query: &str, start: f64, verdict: Verdict) -> Judgement {
        Judgement { query: query.to_owned(), video: VideoId::new("a"), found: span(start, start + 2.0), verdict }
    }

    fn file() -> (tempfile::TempDir, JudgedFile) {
        let guard = tempfile::tempdir().unwrap();
        let file = JudgedFile::in_folder(Utf8Path::from_path(guard.path()).unwrap());
        (guard, file)
    }

    #[test]
    fn the_last_word_on_an_answer_counts_and_what_was_taken_back_is_gone() {
        let (_guard, file) = file();
        assert_eq!(file.read().unwrap(), Judgements::default());
        file.add(&said("A  ball", 0.0, Verdict::Wrong)).unwrap();
        file.add(&said("a ball ", 4.0, Verdict::Right(span(3.5, 7.0)))).unwrap();
        file.add(&said("a BALL", 0.0, Verdict::Right(span(0.0, 2.5)))).unwrap();
        file.add(&said("a box", 0.0, Verdict::Wrong)).unwrap();
        file.add(&said("a box", 0.0, Verdict::TakenBack)).unwrap();
        let read = file.read().unwrap();
        let on: Vec<Verdict> = read.on("a ball").map(|said| said.verdict).collect();
        assert_eq!(on, [Verdict::Right(span(0.0, 2.5)), Verdict::Right(span(3.5, 7.0))]);
        assert_eq!((read.on("a box").count(), read.damaged), (0, 0));
        let truths = read.truths();
        assert_eq!((truths.len(), truths[0].right().count()), (1, 2));
    }

    #[test]
    fn the_file_is_a_truth_file_that_any_reader_of_ours_takes() {
        let (_guard, file) = file();
        for (start, verdict) in
            [(0.0, Verdict::Wrong), (2.0, Verdict::Right(span(2.0, 5.0))), (2.0, Verdict::TakenBack)]
        {
            file.add(&said("two\nlines \"quoted\"", start, verdict)).unwrap();
        }
        let read = read_truth(&Source::new(file.path()), RowPolicy::Error).unwrap();
        let grades: Vec<Option<f64>> =
            read.queries.iter().map(|truth| truth.moments.first()?.relevance.map(Relevance::value)).collect();
        assert_eq!(grades, [Some(0.0), Some(4.0), None]);
        assert_eq!(read.queries[0].query.text, "two\nlines \"quoted\"");
    }

    #[test]
    fn a_line_that_was_cut_off_or_damaged_costs_itself_and_nothing_else() {
        let (_guard, file) = file();
        file.add(&said("one", 0.0, Verdict::Wrong)).unwrap();
        let whole = std::fs::read(file.path()).unwrap();
        // Killed in the middle of a line: the next writer starts where the last whole one ends.
        std::fs::write(file.path(), [&whole[..], &whole[..20]].concat()).unwrap();
        file.add(&said("two", 0.0, Verdict::Wrong)).unwrap();
        let read = file.read().unwrap();
        assert_eq!((read.list.len(), read.damaged), (2, 0));
        // Damaged in the middle of the file: said, and the rest is read.
        let mut bytes = std::fs::read(file.path()).unwrap();
        bytes[3] = b'\xff';
        std::fs::write(file.path(), bytes).unwrap();
        file.add(&said("three", 0.0, Verdict::Wrong)).unwrap();
        let read = file.read().unwrap();
        assert_eq!((read.list.len(), read.damaged), (2, 1));
    }

    #[test]
    fn a_full_file_takes_nothing_more_and_stays_as_it_was() {
        let (_guard, file) = file();
        let mut filler = vec![b' '; JudgedFile::MOST_BYTES as usize - 1];
        filler.push(b'\n');
        std::fs::write(file.path(), &filler).unwrap();
        let problem = file.add(&said("one", 0.0, Verdict::Wrong)).unwrap_err().to_string();
        assert!(problem.contains("full"), "{problem}");
        assert_eq!(std::fs::metadata(file.path()).unwrap().len(), JudgedFile::MOST_BYTES);
    }

    #[test]
    fn many_who_write_at_once_lose_nothing() {
        let (_guard, file) = file();
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let file = &file;
                scope.spawn(move || {
                    for place in 0..5 {
                        file.add(&said(&format!("question {writer}"), f64::from(place), Verdict::Wrong)).unwrap();
                    }
                });
            }
        });
        let read = file.read().unwrap();
        assert_eq!((read.list.len(), read.damaged), (20, 0));
        assert!(read_truth(&Source::new(file.path()), RowPolicy::Error).is_ok(), "ids repeat");
    }
}
