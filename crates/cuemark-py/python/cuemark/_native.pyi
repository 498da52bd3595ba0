# Written by `cargo xtask stubs` from the signatures in crates/cuemark-py/src; not to be edited.
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, SupportsFloat, SupportsIndex, final

import numpy
from numpy.typing import NDArray

from ._types import (
    BadRows,
    DataFrame,
    DurationsLike,
    FloatArray,
    IouForm,
    PathLike,
    PredictionsLike,
    ProgressLike,
    RatingsLike,
    TruthLike,
    VideoIndexLike,
)

"""
What `import cuemark` is made of; use it through the `cuemark` package.
"""


__all__ = ["Answer", "AnswerIterator", "Answers", "Comparison", "Consensus", "Dataset", "Evaluation", "Index", "Kde", "MadeSplits", "Moment", "Predictions", "Record", "Records", "Split", "agreement", "audit", "baseline", "cd", "centre", "compare", "consensus", "dataset_names", "evaluate", "iou", "kde", "load", "metric_names", "nms", "preset_names", "read_predictions", "read_truth", "report", "run_command", "standard"]

@final
class Answer:
    """
    One moment that answers a question, and why.
    """
    def __repr__(self, /) -> str: ...
    @property
    def because(self, /) -> list[Any]:
        """
        What each track has to say for it, the weightiest first: `track` (`seen`, `said` or `written`), `text`, `start` and `end`
        (seconds).
        """
    @property
    def concepts(self, /) -> dict[str, float]:
        """
        What was recognised there and is near the question, the nearest first, each with its share in the score. Empty for
        encoders that recognise nothing by name.
        """
    @property
    def end(self, /) -> float:
        """
        Where it ends, in seconds.
        """
    @property
    def path(self, /) -> str | None:
        """
        The video's file; `None` where the video is known by its features only.
        """
    @property
    def probability(self, /) -> float:
        """
        How likely it is that this answers the question, given how the question scores against the rest of the index.
        """
    @property
    def score(self, /) -> float:
        """
        The cosine between question and moment, less what is not wanted.
        """
    @property
    def start(self, /) -> float:
        """
        Where it begins, in seconds.
        """
    @property
    def strength(self, /) -> str:
        """
        How strong it is, in a word: `strong`, `fair` or `weak`. All that can be said where `Answers.calibrated` is false.
        """
    @property
    def video(self, /) -> str:
        """
        The video's name.
        """
    @property
    def words(self, /) -> dict[str, float]:
        """
        The words it hangs on, the weightiest first, each with its share: how far the score falls without it.
        """

@final
class AnswerIterator:
    """
    Walks over answers, best first.
    """
    def __iter__(self, /) -> AnswerIterator: ...
    def __next__(self, /) -> Answer: ...

@final
class Answers:
    """
    The moments that answer one question, best first: a sequence of `Answer`.
    """
    def __getitem__(self, place: SupportsIndex, /) -> Answer: ...
    def __iter__(self, /) -> AnswerIterator: ...
    def __len__(self, /) -> int: ...
    def __repr__(self, /) -> str: ...
    @property
    def below_least(self, /) -> int:
        """
        How many more there were, each less likely than asked for.
        """
    @property
    def best_probability(self, /) -> float | None:
        """
        How likely the best of all is, also where none was likely enough; `None` when nothing was found.
        """
    @property
    def calibrated(self, /) -> bool:
        """
        Whether probabilities were fitted to answers with known truth; where they were not, they only put answers in order.
        """
    def to_dict(self, /) -> dict[str, Any]:
        """
        What `cuemark search --json` prints.
        """
    def to_pandas(self, /) -> DataFrame:
        """
        One row per answer, best first: `video`, `start`, `end` (seconds), `probability`, `score`, `path`; needs pandas.
        """
    @property
    def unknown_words(self, /) -> list[str]:
        """
        Words of the question that mean nothing to the encoder.
        """
    @property
    def unseen(self, /) -> dict[str, str]:
        """
        Words that nothing the encoder recognises comes near, each with what comes nearest: by sight it cannot be asked for them.
        """

@final
class Comparison:
    """
    Two methods on the same queries, B against A; fractions.
    """
    def __repr__(self, /) -> str: ...
    @property
    def a(self, /) -> float:
        """
        Mean of A.
        """
    @property
    def b(self, /) -> float:
        """
        Mean of B.
        """
    @property
    def difference(self, /) -> float:
        """
        Mean of B - A.
        """
    @property
    def effect_size(self, /) -> float:
        """
        Mean difference over its standard deviation.
        """
    @property
    def interval(self, /) -> tuple[float, float]:
        """
        Paired bootstrap interval of the difference.
        """
    @property
    def losses(self, /) -> int:
        """
        Queries on which B scores lower.
        """
    @property
    def metric(self, /) -> str:
        """
        The metric.
        """
    @property
    def p_value(self, /) -> float:
        """
        Two-sided p-value of the paired randomisation test; never 0.
        """
    @property
    def queries(self, /) -> int:
        """
        Queries that count for both.
        """
    @property
    def ties(self, /) -> int:
        """
        Queries on which both score the same.
        """
    def to_dict(self, /) -> dict[str, Any]:
        """
        What `cuemark compare --json` prints about one metric.
        """
    def to_latex(self, /) -> str:
        """
        The same as a LaTeX table, for `\\usepackage{booktabs}`, no wider than a column.
        """
    def to_markdown(self, /) -> str:
        """
        A Markdown table of one line: both scores and their difference in percent, its interval, the p-value, wins and losses.
        """
    @property
    def wins(self, /) -> int:
        """
        Queries on which B scores higher.
        """

@final
class Consensus:
    """
    The grades that ratings agree on.
    """
    def __repr__(self, /) -> str: ...
    @property
    def discarded(self, /) -> list[int]:
        """
        The pairs whose ratings do not agree.
        """
    @property
    def grades(self, /) -> dict[int, int]:
        """
        The grade of each pair that has one, by pair.
        """
    def to_dict(self, /) -> dict[str, Any]:
        """
        What `cuemark rank consensus --json` prints: `ratings`, `pairs`, `kept`, `discarded`, `scores`.
        """
    def write(self, /, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """
        Writes `pair_id,relevance`; nothing is replaced without `force`.
        """

@final
class Dataset:
    """
    The splits of one dataset that were found in a folder.
    """
    def __contains__(self, name: str, /) -> bool: ...
    def __getitem__(self, name: str, /) -> Split:
        """
        The split called `name`, or several joined by `+`: `val_1+val_2`.
        """
    def __iter__(self, /) -> Records: ...
    def __len__(self, /) -> int:
        """
        Queries of all splits together.
        """
    def __repr__(self, /) -> str: ...
    @property
    def absent(self, /) -> list[str]:
        """
        Names of the splits that are not.
        """
    def all(self, /) -> Split:
        """
        Every query of every split in one, ids made unique where they were not.
        """
    @property
    def licence(self, /) -> str:
        """
        The licence that its origin states.
        """
    @property
    def name(self, /) -> str:
        """
        Its name: `charades-sta`.
        """
    @property
    def splits(self, /) -> list[str]:
        """
        Names of the splits that are there.
        """
    @property
    def title(self, /) -> str:
        """
        One line about it.
        """
    def to_pandas(self, /) -> DataFrame:
        """
        One row per moment of every split, with a column `split`; needs pandas.
        """

@final
class Evaluation:
    """
    What an evaluation found: fractions in 0..1 under the metrics' own names.
    """
    def __repr__(self, /) -> str: ...
    def _repr_markdown_(self, /) -> str: ...
    @property
    def conventions(self, /) -> list[str]:
        """
        How the numbers were computed, a line per set of steps.
        """
    @property
    def counted(self, /) -> dict[str, int]:
        """
        How many queries count for each metric.
        """
    def interval(self, /, percent: SupportsFloat | SupportsIndex = 95.0, *, resamples: SupportsIndex = ..., seed: SupportsIndex = 0, progress: ProgressLike = None) -> dict[str, tuple[float, float]]:
        """
        Where each metric's true mean plausibly lies: a bootstrap over queries.
        """
    @property
    def metrics(self, /) -> dict[str, float]:
        """
        Each metric's mean over the queries that count, a fraction.
        """
    @property
    def missing(self, /) -> int:
        """
        Queries without a single prediction.
        """
    @property
    def notes(self, /) -> list[str]:
        """
        What a reader of the numbers should know: what was left out of a preset, rows that cannot be right, what looks odd
        about the predictions; how many, where first, what was done.
        """
    @property
    def per_query(self, /) -> dict[str, NDArray[numpy.float64]]:
        """
        Each metric's score of every query, in the order of `qids`; NaN where a query does not count.
        """
    @property
    def preset(self, /) -> str | None:
        """
        The preset, when there is one.
        """
    @property
    def qids(self, /) -> list[str]:
        """
        Ids of the queries, in the truth's order.
        """
    @property
    def queries(self, /) -> int:
        """
        Queries of the truth.
        """
    def to_dict(self, /, interval: SupportsFloat | SupportsIndex | None = None, *, resamples: SupportsIndex = ..., seed: SupportsIndex = 0) -> dict[str, Any]:
        """
        What `cuemark eval --json` prints; with `interval` (a percentage) also the intervals.
        """
    def to_latex(self, /, interval: SupportsFloat | SupportsIndex | None = None, *, resamples: SupportsIndex = ..., seed: SupportsIndex = 0) -> str:
        """
        A LaTeX table in percent, for `\\usepackage{booktabs}`; with `interval` (a percentage) also the intervals.
        """
    def to_markdown(self, /, interval: SupportsFloat | SupportsIndex | None = None, *, resamples: SupportsIndex = ..., seed: SupportsIndex = 0) -> str:
        """
        A Markdown table in percent; with `interval` (a percentage) also the intervals.
        """
    def to_pandas(self, /) -> DataFrame:
        """
        One row per query with `qid` and every metric; needs pandas.
        """
    @property
    def unknown(self, /) -> int:
        """
        Prediction lists for queries that the truth does not have.
        """

@final
class Index:
    """
    A searchable collection of videos, as `cuemark index create` makes it. Threads may share one.

    It is opened with the encoder that made it. What another process adds or removes later is seen within a second.
    `device` is `cpu`; wheels have no GPU support.
    """
    def __len__(self, /) -> int:
        """
        Videos.
        """
    def __new__(cls, /, path: str | os.PathLike[str], *, device: str = "cpu") -> Index: ...
    def __repr__(self, /) -> str: ...
    @property
    def encoder(self, /) -> str:
        """
        What made its embeddings: a run folder, or an encoder's name.
        """
    def lines(self, /, video: str) -> list[dict[str, Any]]:
        """
        What is said and written in a video: `track` (`said` or `written`), `start`, `end` (seconds) and `text` of every line,
        those that are said first, each track in the order of time.
        """
    @property
    def path(self, /) -> str:
        """
        Where it lies.
        """
    def search(self, /, sentence: str | None = None, *, top: SupportsIndex = 10, video: str | Sequence[str] | None = None, tags: str | Sequence[str] | None = None, within: tuple[float, float] | None = None, unwanted: str | Sequence[str] | None = None, like: Answer | tuple[str, float, float] | None = None, least: SupportsFloat | SupportsIndex = 0.1, nms: SupportsFloat | SupportsIndex = 0.5, exact: bool = False, two_stage: int | None = None) -> Answers:
        """
        The moments that `sentence` describes, best first.

        What is seen, said or written there counts. Words of it between quotation marks must be said or written as they are,
        words that begin with `-` are not wanted (nor is what `unwanted` says), `said:`, `written:` and `seen:` say where to look. `like` is an `Answer`, or a video's
        name with a start and an end in seconds: moments like that one are looked for, with or without a sentence. `video`
        and `tags` say where to look (with several tags a video must have all), `within` in which stretch of a video, in
        seconds. At most `top` answers are given, none less likely than `least`; of two answers of one video that overlap by
        more than `nms` the better one stays. `exact` looks at every moment instead of walking the graph, `two_stage`
        chooses so many videos first. The flags of `cuemark search` are the same (`--limit` is `top`, `--not` is `unwanted`).
        """
    def status(self, /) -> dict[str, Any]:
        """
        Videos, moments, bytes: what `cuemark index status --json` says under `status`.
        """
    def to_pandas(self, /) -> DataFrame:
        """
        One row per video: `video`, `path`, `duration` (seconds), `tags`, `state`, `partial` (`read_seconds`,
        `stated_seconds` and `complaint` of a film that could be read only in part, else `None`); needs pandas.
        """
    @property
    def videos(self, /) -> list[str]:
        """
        Names of its videos, sorted; videos whose file has vanished are among them and are not found.
        """

@final
class Kde:
    """
    A Gaussian kernel density over the normalised starts and ends of moments; the values are those of SciPy's
    `gaussian_kde`.
    """
    def __len__(self, /) -> int: ...
    def __repr__(self, /) -> str: ...
    def density(self, /, points: FloatArray, *, progress: ProgressLike = None) -> NDArray[numpy.float64]:
        """
        The density at each of `points` (rows of `[start, end]`).
        """
    @property
    def mode(self, /) -> tuple[float, float]:
        """
        The densest `(start, end)` on a grid of fiftieths.
        """
    def sample(self, /, n: SupportsIndex, *, seed: SupportsIndex = 0) -> NDArray[numpy.float64]:
        """
        `n` draws, rows of `[start, end]`, clipped to the video.
        """

@final
class MadeSplits:
    """
    The splits that a protocol made, by name, with what it found on the way.
    """
    def __contains__(self, name: str, /) -> bool: ...
    def __getitem__(self, name: str, /) -> Split:
        """
        The split called `name`.
        """
    def __iter__(self, /) -> Iterator[str]: ...
    def __len__(self, /) -> int: ...
    def __repr__(self, /) -> str: ...
    @property
    def found(self, /) -> Any:
        """
        What the protocol found on the way.
        """
    def keys(self, /) -> list[str]:
        """
        Names of the splits: train, val, then test.
        """
    @property
    def protocol(self, /) -> str:
        """
        The protocol's name.
        """
    def write(self, /, folder: str | os.PathLike[str], *, force: bool = False) -> dict[str, Any]:
        """
        Writes `NAME.jsonl` for each split and `manifest.json`, the folder whole or not at all; returns the manifest.
        """

@final
class Moment:
    """
    A span in a named video, seconds.
    """
    def __repr__(self, /) -> str: ...
    @property
    def end(self, /) -> float:
        """
        Where it ends, in seconds.
        """
    @property
    def relevance(self, /) -> float | None:
        """
        Its grade; `None` when the file grades nothing and the moment is simply right.
        """
    @property
    def start(self, /) -> float:
        """
        Where it begins, in seconds.
        """
    @property
    def video(self, /) -> str:
        """
        The video.
        """

@final
class Predictions:
    """
    Ranked lists of scored spans, one list per query and task.
    """
    def __len__(self, /) -> int:
        """
        Lists, over all tasks.
        """
    def __repr__(self, /) -> str: ...
    def columns(self, /) -> dict[str, Any]:
        """
        One row per prediction, best first within a query: `qid`, `rank` (from 1), `video`, `start`, `end`, `score`, and
        `task` where the lists answer several. A score that is not known is NaN; `video` and `score` are left out where
        nothing is known of any.
        """
    @property
    def tasks(self, /) -> list[str]:
        """
        The tasks that the lists answer: `any`, or some of `VCMR`, `SVMR`, `VR`.
        """
    def to_pandas(self, /) -> DataFrame:
        """
        The same as a frame; needs pandas.
        """
    def write(self, /, path: str | os.PathLike[str], *, format: str = "cuemark", force: bool = False) -> None:
        """
        Writes them in the layout called `format`; nothing is replaced without `force`.
        """

@final
class Record:
    """
    One query and everything its dataset says is right about it.
    """
    def __repr__(self, /) -> str: ...
    @property
    def duration(self, /) -> float | None:
        """
        How long that video lasts, in seconds, where the files say so.
        """
    @property
    def kind(self, /) -> str | None:
        """
        What kind of query it is, in the dataset's own words.
        """
    @property
    def moments(self, /) -> list[Moment]:
        """
        The moments that answer it, in file order.
        """
    @property
    def pool(self, /) -> list[str] | None:
        """
        The videos it is searched in, when the dataset fixes them.
        """
    @property
    def qid(self, /) -> str:
        """
        The query's id.
        """
    @property
    def query(self, /) -> str:
        """
        The sentence.
        """
    @property
    def spans(self, /) -> NDArray[numpy.float64]:
        """
        The spans of its moments in seconds, moments × [start, end], in file order.
        """
    @property
    def video(self, /) -> str | None:
        """
        The video it was written for, when there is exactly one.
        """

@final
class Records:
    """
    Walks over a split.
    """
    def __iter__(self, /) -> Records: ...
    def __next__(self, /) -> Record: ...

@final
class Split:
    """
    A named list of queries with what is right about each, in file order.
    """
    def __getitem__(self, place: SupportsIndex, /) -> Record: ...
    def __iter__(self, /) -> Records: ...
    def __len__(self, /) -> int: ...
    def __repr__(self, /) -> str: ...
    @property
    def name(self, /) -> str:
        """
        Its name: `train`, `val`, `test-iid` …
        """
    @property
    def rows(self, /) -> dict[str, int]:
        """
        What was wrong with its rows and what was done about it.
        """
    def to_pandas(self, /) -> DataFrame:
        """
        One row per moment: `qid`, `query`, `video`, `duration`, `start`, `end`, `relevance`, `kind`; needs pandas.

        A query without a moment has one row whose `start` and `end` are NaN.
        """
    @property
    def videos(self, /) -> list[str]:
        """
        Ids of its videos, in file order.
        """
    def write(self, /, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """
        Writes it as cuemark's own JSON Lines; nothing is replaced without `force`.
        """

def agreement(ratings: RatingsLike, *, least_shared: SupportsIndex = 30) -> dict[str, Any]:
    """
    How far people agree: kappas and the spread of ratings, as `cuemark rank agreement --json` has them.
    """

def audit(folder: str | os.PathLike[str], *, seed: SupportsIndex = 0, progress: ProgressLike = None) -> dict[str, Any]:
    """
    What a folder of splits shares, how far apart its parts lie, and what guesses reach on each: `cuemark split audit --json`.
    """

def baseline(name: str, truth: TruthLike, *, train: TruthLike | None = None, answers: SupportsIndex = 5, seed: SupportsIndex = 0, durations: DurationsLike | None = None, bad_rows: BadRows = "keep", progress: ProgressLike = None) -> Predictions:
    """
    The answers of a baseline that never looks at a video.

    `name` is `predict-all`, `bias-draw`, `bias-density`, `bias-mode` or `bias-verb`; all but the first learn from `train`
    where moments lie. `truth` and `train` are what `evaluate` takes, with durations.
    """

def cd(data: TruthLike, *, ood_share: SupportsFloat | SupportsIndex = 0.2, ood_cut: Literal['final', 'preliminary'] = "final", ties: Literal['ood', 'iid'] = "ood", max_ood_length: SupportsFloat | SupportsIndex | None = None, seed: SupportsIndex = 0, progress: ProgressLike = None) -> MadeSplits:
    """
    Changing distribution: the moments in the rarest places are held out as test-ood.

    `data` is a `Dataset`, or truth in any form that `evaluate` takes, with durations. `ood_share` of the pairs go to test-ood:
    in the end (`ood_cut="final"`) or before whole videos move (`"preliminary"`). A video whose pairs are evenly rare and
    common goes where `ties` says; one with a moment longer than `max_ood_length` of it is never test-ood.
    """

def centre(data: TruthLike, *, centre: Literal['video', 'pair'] = "video", seed: SupportsIndex = 0, progress: ProgressLike = None) -> MadeSplits:
    """
    The last tenth by moment centre is test-ood, of each video (`centre="video"`) or of each query (`"pair"`).
    """

def compare(truth: TruthLike, a: PredictionsLike, b: PredictionsLike, *, metrics: str | Sequence[str] | None = None, preset: str | None = None, nms: float | Literal['none'] | None = None, order: Literal['file', 'score'] | None = None, strict: bool = False, clip_truth: bool = False, lenient: bool = False, percent: SupportsFloat | SupportsIndex = 95.0, resamples: SupportsIndex = ..., seed: SupportsIndex = 0, truth_format: str | None = None, pred_format: str | None = None, durations: DurationsLike | None = None, video_index: VideoIndexLike | None = None, bad_rows: BadRows = "keep", unknown: Literal['count', 'error'] = "count", progress: ProgressLike = None) -> dict[str, Comparison]:
    """
    Compares predictions `b` with predictions `a`, query by query; one result per metric.

    `truth`, `a` and `b` are what `evaluate` takes. The difference comes with a paired bootstrap interval of `percent`, the
    p-value of a paired randomisation test, the effect size and the queries won and lost.
    """

def consensus(ratings: RatingsLike) -> Consensus:
    """
    One grade for every pair that two or four people rated, or none where they disagree.

    `ratings` is a `pair_id,worker,relevance` file, or the same as columns.
    """

def dataset_names() -> list[str]:
    """
    Names of the datasets that can be loaded; `cuemark.DATASETS`.
    """

def evaluate(truth: TruthLike, predictions: PredictionsLike, *, metrics: str | Sequence[str] | None = None, preset: str | None = None, nms: float | Literal['none'] | None = None, order: Literal['file', 'score'] | None = None, strict: bool = False, clip_truth: bool = False, lenient: bool = False, group_by: str | Sequence[str] | None = None, truth_format: str | None = None, pred_format: str | None = None, durations: DurationsLike | None = None, video_index: VideoIndexLike | None = None, bad_rows: BadRows = "keep", unknown: Literal['count', 'error'] = "count", progress: ProgressLike = None) -> Evaluation:
    """
    Scores `predictions` against `truth`.

    `truth` is a path in any layout that cuemark reads, a `Split` or `Dataset`, a list of dicts as the lines of such a
    file, columns (a dict of arrays or a frame with `qid`, `video`, `start`, `end`), an array of one `[start, end]` a
    query, or a list of arrays of them. `predictions` is a path, `Predictions`, a list of dicts, columns (`qid`, `start`,
    `end` and, where known, `video` and `score`), a dict of columns by task (`VCMR`, `SVMR`, `VR`), or, for the truth's
    queries in order, an array queries × predictions × 2 (or 3, with the score) or a list of arrays. Times are seconds,
    lists are best first. Numbers and texts that spell the same are the same id.

    `metrics` is a list or comma-separated text; `preset` reproduces a published evaluator to the digit; without either
    the metrics that suit the data are computed. The other arguments are the flags of `cuemark eval`. With
    `unknown="error"` a list for a query that the truth does not have is refused instead of counted. Predictions that
    cannot belong to the truth (other queries, other videos, no span) are refused unless `lenient`; what looks odd about
    them stands in `notes`.

    The interpreter's lock is released, Ctrl-C stops it, and `progress` shows a bar (by default on a terminal only) or is
    called with `(what, done, total)`.
    """

def iou(a: FloatArray, b: FloatArray, *, form: IouForm = "true") -> NDArray[numpy.float64]:
    """
    The overlap of every span of `a` with every span of `b`: an array of `len(a)` × `len(b)`.

    `a` and `b` are arrays of `[start, end]` in seconds, `float64` or `float32`, whole or any view; nothing is copied.
    `form` is how overlap is measured: `true`, `hull`, `hull-single`, `hull-eps`, `min-union` or `signed`.
    """

def kde(points: FloatArray) -> Kde:
    """
    Fits a density to `points`, an array of `[start, end]` as fractions of a video's duration.
    """

def load(name: str, root: str | os.PathLike[str], *, durations: str | os.PathLike[str] | Mapping[str, float] | None = None, bad_rows: BadRows = "keep", progress: ProgressLike = None) -> Dataset:
    """
    Reads the published files of the dataset called `name` from `root`, its own folder.

    `cuemark data list` names the datasets. What is wrong with rows is counted in each split's `rows`; `bad_rows` says what
    to do about it. `durations` gives lengths of videos that the files do not state.
    """

def metric_names() -> list[str]:
    """
    Names of the metrics, with `n`, `k` and `m` for numbers; `cuemark.METRICS`.
    """

def nms(spans: FloatArray, scores: FloatArray | None = None, *, threshold: SupportsFloat | SupportsIndex = 0.5, form: IouForm = "true", limit: int | None = None) -> NDArray[numpy.int64]:
    """
    Greedy non-maximum suppression: the places in `spans` that survive, best first.

    A span is kept when its overlap with every span kept before it is at most `threshold`. Without `scores` the order of
    `spans` is the ranking; with them the highest comes first, and of equals the earlier one. At most `limit` are kept.
    """

def preset_names() -> list[str]:
    """
    Names of the presets; `cuemark.PRESETS`.
    """

def read_predictions(predictions: PredictionsLike, *, truth: TruthLike | None = None, pred_format: str | None = None, video_index: VideoIndexLike | None = None, progress: ProgressLike = None) -> Predictions:
    """
    Reads predictions in any form that `evaluate` takes; `truth` is needed where they do not name their queries.
    """

def read_truth(truth: TruthLike, *, truth_format: str | None = None, durations: DurationsLike | None = None, bad_rows: BadRows = "keep", progress: ProgressLike = None) -> Split:
    """
    Reads truth in any form that `evaluate` takes, from a file in any layout that cuemark knows.
    """

def report(truth: PathLike, predictions: PathLike | Sequence[PathLike], out: PathLike, *, metrics: str | Sequence[str] | None = None, preset: str | None = None, names: str | Sequence[str] | None = None, train: PathLike | None = None, dataset: str | None = None, title: str = "", intervals: bool = True, lenient: bool = False, truth_format: str | None = None, pred_format: str | None = None, force: bool = False, progress: ProgressLike = None) -> dict[str, Any]:
    """
    Reports on prediction files: writes `report.html` (one file, opens anywhere), `.md`, `.tex`, `.csv` and `.json` into the
    folder `out`, and returns what scripts want of it, with `files` and `notes`.

    `truth` is a path, `predictions` a path or several; `names` is what they are called, `train` the training split, which
    adds blind baselines that learned from it. `metrics` and `preset` are those of `evaluate`. With `intervals=False` the tables for papers
    and wikis show none. Nothing is replaced unless `force`.
    """

def run_command(words: list[str], again: list[str]) -> int:
    """
    Does what was typed behind `cuemark`, and returns the exit code.

    ``again`` is what starts this program again, for the processes that fill the cells of a study; ``python -m
    cuemark`` and the command ``cuemark`` call this.
    """

def standard(data: Dataset, *, test: Literal['usual', 'merged'] = "usual", seed: SupportsIndex = 0) -> MadeSplits:
    """
    The published parts, with a validation split cut where none is published.
    """
