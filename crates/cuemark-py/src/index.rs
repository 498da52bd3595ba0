//! `cuemark.Index`: a sentence in, ranked moments out.

use cuemark::{Asking, Found, FoundMoment, IndexPlace, Shown};
use cuemark_core::{Line, Progress, Track, VideoId};
use cuemark_search::VideoEntry;
use indexmap::IndexMap;
use numpy::PyArray1;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arguments::{needed_path, type_name, words};
use crate::failure::{Failure, Result};
use crate::tables;
use crate::watch::{Audience, watched};

/// A searchable collection of videos, as `cuemark index create` makes it. Threads may share one.
///
/// It is opened with the encoder that made it. What another process adds or removes later is seen within a second.
/// `device` is `cpu`; wheels have no GPU support.
#[pyclass(frozen, module = "cuemark")]
pub(crate) struct Index {
    inner: cuemark_search::Index,
    path: String,
}

/// The moments that answer one question, best first: a sequence of `Answer`.
#[pyclass(frozen, sequence, module = "cuemark")]
pub(crate) struct Answers {
    likely: Vec<Py<Answer>>,
    found: Found,
}

/// Walks over answers, best first.
#[pyclass(module = "cuemark")]
pub(crate) struct AnswerIterator {
    /// Best last.
    left: Vec<Py<Answer>>,
}

/// One moment that answers a question, and why.
#[pyclass(frozen, module = "cuemark")]
pub(crate) struct Answer {
    inner: FoundMoment,
}

#[pymethods]
impl Index {
    #[new]
    #[pyo3(signature = (path: "str | os.PathLike[str]", *, device = "cpu"))]
    fn new<'py>(py: Python<'py>, path: &Bound<'py, PyAny>, device: &str) -> Result<Self> {
        let path = needed_path(path, "path")?.into_string();
        let inner = watched(py, &Audience::Nobody, "opening", &Progress::new(), || {
            Ok(IndexPlace { index: path.clone(), device: device.to_owned() }.open(None)?)
        })?;
        Ok(Self { inner, path })
    }

    /// The moments that `sentence` describes, best first.
    ///
    /// What is seen, said or written there counts. Words of it between quotation marks must be said or written as they are,
    /// words that begin with `-` are not wanted (nor is what `unwanted` says), `said:`, `written:` and `seen:` say where to look. `like` is an `Answer`, or a video's
    /// name with a start and an end in seconds: moments like that one are looked for, with or without a sentence. `video`
    /// and `tags` say where to look (with several tags a video must have all), `within` in which stretch of a video, in
    /// seconds. At most `top` answers are given, none less likely than `least`; of two answers of one video that overlap by
    /// more than `nms` the better one stays. `exact` looks at every moment instead of walking the graph, `two_stage`
    /// chooses so many videos first. The flags of `cuemark search` are the same (`--limit` is `top`, `--not` is `unwanted`).
    #[pyo3(signature = (
        sentence: "str | None" = None, *, top = 10, video: "str | Sequence[str] | None" = None,
        tags: "str | Sequence[str] | None" = None, within: "tuple[float, float] | None" = None,
        unwanted: "str | Sequence[str] | None" = None, like: "Answer | tuple[str, float, float] | None" = None,
        least = 0.1, nms = 0.5, exact = false, two_stage: "int | None" = None
    ) -> "Answers")]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn search<'py>(
        &self,
        py: Python<'py>,
        sentence: Option<&str>,
        top: usize,
        video: Option<&Bound<'py, PyAny>>,
        tags: Option<&Bound<'py, PyAny>>,
        within: Option<&Bound<'py, PyAny>>,
        unwanted: Option<&Bound<'py, PyAny>>,
        like: Option<&Bound<'py, PyAny>>,
        least: f64,
        nms: f64,
        exact: bool,
        two_stage: Option<usize>,
    ) -> Result<Answers> {
        let list = |object: Option<&Bound<'py, PyAny>>, argument| {
            object.map(|object| words(object, argument)).transpose().map(Option::unwrap_or_default)
        };
        let asking = Asking {
            sentence: sentence.map(str::to_owned),
            like: like.map(moment).transpose()?,
            unwanted: list(unwanted, "unwanted")?,
            videos: list(video, "video")?,
            tags: list(tags, "tags")?,
            within: within.map(stretch).transpose()?,
            limit: top,
            least,
            nms,
            exact,
            two_stage,
        };
        let found = watched(py, &Audience::Nobody, "searching", &Progress::new(), || {
            Ok(asking.ask(&self.inner, Shown::Likely)?)
        })?;
        let likely = found.answers.iter().map(|inner| Py::new(py, Answer { inner: inner.clone() }));
        Ok(Answers { likely: likely.collect::<PyResult<_>>()?, found })
    }

    /// What is said and written in a video: `track` (`said` or `written`), `start`, `end` (seconds) and `text` of every line,
    /// those that are said first, each track in the order of time.
    #[pyo3(signature = (video: "str") -> "list[dict[str, Any]]")]
    fn lines<'py>(&self, py: Python<'py>, video: &str) -> Result<Vec<Bound<'py, PyDict>>> {
        let lines = self.inner.lines(&VideoId::new(video))?;
        let line = |(track, line): (Track, Line)| {
            let row = PyDict::new(py);
            row.set_item("track", track.name())?;
            row.set_item("start", line.span.start())?;
            row.set_item("end", line.span.end())?;
            row.set_item("text", line.text)?;
            Ok(row)
        };
        lines.into_iter().map(line).collect()
    }

    /// Where it lies.
    #[getter]
    fn path(&self) -> &str {
        &self.path
    }

    /// What made its embeddings: a run folder, or an encoder's name.
    #[getter]
    fn encoder(&self) -> &str {
        &self.inner.manifest().encoder
    }

    /// Names of its videos, sorted; videos whose file has vanished are among them and are not found.
    #[getter]
    fn videos(&self) -> Result<Vec<String>> {
        Ok(self.inner.engine().videos()?.iter().map(|entry| entry.id.to_string()).collect())
    }

    /// Videos, moments, bytes: what `cuemark index status --json` says under `status`.
    #[pyo3(signature = () -> "dict[str, Any]")]
    fn status<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        tables::to_python(py, &self.inner.engine().status()?)
    }

    /// One row per video: `video`, `path`, `duration` (seconds), `tags`, `state`, `partial` (`read_seconds`,
    /// `stated_seconds` and `complaint` of a film that could be read only in part, else `None`); needs pandas.
    #[pyo3(signature = () -> "DataFrame")]
    fn to_pandas<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        let entries = self.inner.engine().videos()?;
        let columns = PyDict::new(py);
        columns.set_item("video", entries.iter().map(|entry| entry.id.as_str()).collect::<Vec<_>>())?;
        let path = |entry: &VideoEntry| entry.path.as_ref().map(ToString::to_string);
        columns.set_item("path", entries.iter().map(path).collect::<Vec<_>>())?;
        columns.set_item("duration", PyArray1::from_iter(py, entries.iter().map(|entry| entry.duration)))?;
        columns.set_item("tags", entries.iter().map(|entry| entry.tags.clone()).collect::<Vec<_>>())?;
        let state = |entry: &VideoEntry| tables::to_python(py, &entry.state);
        columns.set_item("state", entries.iter().map(state).collect::<Result<Vec<_>>>()?)?;
        let partial = |entry: &VideoEntry| tables::to_python(py, &entry.partial);
        columns.set_item("partial", entries.iter().map(partial).collect::<Result<Vec<_>>>()?)?;
        tables::frame(py, &columns)
    }

    /// Videos.
    fn __len__(&self) -> Result<usize> {
        Ok(self.inner.engine().status()?.videos)
    }

    fn __repr__(&self) -> Result<String> {
        let status = self.inner.engine().status()?;
        Ok(format!("<cuemark.Index `{}`: {} moments of {} videos>", self.path, status.moments, status.videos))
    }
}

/// A stretch of a video from `(start, end)` in seconds, as a request writes it.
fn stretch(object: &Bound<'_, PyAny>) -> Result<String> {
    let (start, end): (f64, f64) = object
        .extract()
        .map_err(|_| Failure::wrong_type("within", format!("a `{}` is not (start, end)", type_name(object))))?;
    Ok(format!("{start}-{end}"))
}

/// A moment from an answer, or from `(video, start, end)`, as a request writes it.
fn moment(object: &Bound<'_, PyAny>) -> Result<String> {
    if let Ok(answer) = object.cast::<Answer>() {
        let FoundMoment { video, start, end, .. } = &answer.get().inner;
        return Ok(format!("{video}:{start}-{end}"));
    }
    let (video, start, end): (String, f64, f64) = object.extract().map_err(|_| {
        let kind = type_name(object);
        Failure::wrong_type("like", format!("a `{kind}` is neither an Answer nor (video, start, end)"))
    })?;
    Ok(format!("{video}:{start}-{end}"))
}

#[pymethods]
impl Answers {
    /// How many more there were, each less likely than asked for.
    #[getter]
    fn below_least(&self) -> usize {
        self.found.below_least
    }

    /// How likely the best of all is, also where none was likely enough; `None` when nothing was found.
    #[getter]
    fn best_probability(&self) -> Option<f64> {
        self.found.best_probability
    }

    /// Whether probabilities were fitted to answers with known truth; where they were not, they only put answers in order.
    #[getter]
    fn calibrated(&self) -> bool {
        self.found.calibrated
    }

    /// Words of the question that mean nothing to the encoder.
    #[getter]
    fn unknown_words(&self) -> Vec<String> {
        self.found.unknown_words.clone()
    }

    /// Words that nothing the encoder recognises comes near, each with what comes nearest: by sight it cannot be asked for them.
    #[getter]
    fn unseen(&self) -> IndexMap<String, String> {
        self.found.unseen.iter().map(|unseen| (unseen.word.clone(), unseen.nearest.clone())).collect()
    }

    /// What `cuemark search --json` prints.
    #[pyo3(signature = () -> "dict[str, Any]")]
    fn to_dict<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        tables::to_python(py, &self.found)
    }

    /// One row per answer, best first: `video`, `start`, `end` (seconds), `probability`, `score`, `path`; needs pandas.
    #[pyo3(signature = () -> "DataFrame")]
    fn to_pandas<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        let listed = &self.found.answers;
        let numbers = |number: fn(&FoundMoment) -> f64| PyArray1::from_iter(py, listed.iter().map(number));
        let columns = PyDict::new(py);
        columns.set_item("video", listed.iter().map(|answer| answer.video.as_str()).collect::<Vec<_>>())?;
        columns.set_item("start", numbers(|answer| answer.start))?;
        columns.set_item("end", numbers(|answer| answer.end))?;
        columns.set_item("probability", numbers(|answer| answer.probability))?;
        columns.set_item("score", numbers(|answer| f64::from(answer.score)))?;
        columns.set_item("path", listed.iter().map(|answer| answer.path.as_deref()).collect::<Vec<_>>())?;
        tables::frame(py, &columns)
    }

    fn __len__(&self) -> usize {
        self.likely.len()
    }

    fn __getitem__(&self, py: Python<'_>, place: isize) -> PyResult<Py<Answer>> {
        let count = self.likely.len();
        let from_start = if place < 0 { place.checked_add_unsigned(count) } else { Some(place) };
        let answer = from_start.and_then(|place| self.likely.get(usize::try_from(place).ok()?));
        answer
            .map(|answer| answer.clone_ref(py))
            .ok_or_else(|| PyIndexError::new_err(format!("there are {count} answers")))
    }

    fn __iter__(&self, py: Python<'_>) -> AnswerIterator {
        AnswerIterator { left: self.likely.iter().rev().map(|answer| answer.clone_ref(py)).collect() }
    }

    fn __repr__(&self) -> String {
        let query = self.found.query.as_deref().unwrap_or_default();
        format!("<cuemark.Answers to {query:?}: {}, {} less likely>", self.likely.len(), self.below_least())
    }
}

#[pymethods]
impl AnswerIterator {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&mut self) -> Option<Py<Answer>> {
        self.left.pop()
    }
}

#[pymethods]
impl Answer {
    /// The video's name.
    #[getter]
    fn video(&self) -> &str {
        &self.inner.video
    }

    /// Where it begins, in seconds.
    #[getter]
    fn start(&self) -> f64 {
        self.inner.start
    }

    /// Where it ends, in seconds.
    #[getter]
    fn end(&self) -> f64 {
        self.inner.end
    }

    /// How likely it is that this answers the question, given how the question scores against the rest of the index.
    #[getter]
    fn probability(&self) -> f64 {
        self.inner.probability
    }

    /// How strong it is, in a word: `strong`, `fair` or `weak`. All that can be said where `Answers.calibrated` is false.
    #[getter]
    fn strength(&self) -> &'static str {
        self.inner.strength()
    }

    /// The cosine between question and moment, less what is not wanted.
    #[getter]
    fn score(&self) -> f64 {
        self.inner.score.into()
    }

    /// The words it hangs on, the weightiest first, each with its share: how far the score falls without it.
    #[getter]
    fn words(&self) -> IndexMap<String, f64> {
        self.inner.words.iter().map(|word| (word.word.clone(), word.share)).collect()
    }

    /// What was recognised there and is near the question, the nearest first, each with its share in the score. Empty for
    /// encoders that recognise nothing by name.
    #[getter]
    fn concepts(&self) -> IndexMap<String, f64> {
        self.inner.concepts.iter().map(|seen| (seen.concept.clone(), seen.share)).collect()
    }

    /// What each track has to say for it, the weightiest first: `track` (`seen`, `said` or `written`), `text`, `start` and `end`
    /// (seconds).
    #[getter]
    fn because<'py>(&self, py: Python<'py>) -> Result<Vec<Bound<'py, PyAny>>> {
        self.inner.because.iter().map(|because| tables::to_python(py, because)).collect()
    }

    /// The video's file; `None` where the video is known by its features only.
    #[getter]
    fn path(&self) -> Option<&str> {
        self.inner.path.as_deref()
    }

    fn __repr__(&self) -> String {
        let answer = &self.inner;
        let (start, end) = (answer.start, answer.end);
        format!("<cuemark.Answer {} [{start}, {end}] s, {}>", answer.video, answer.strength())
    }
}
