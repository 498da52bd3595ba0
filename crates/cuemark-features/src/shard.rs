//! One safetensors file: its header, and where each tensor lies in it.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::{ClipLen, VideoId};
use cuemark_formats::{Meter, ReadError};
use safetensors::tensor::TensorInfo;
use safetensors::{Dtype, View};
use serde::{Deserialize, Serialize};

use crate::fault::Fault;
use crate::number::{ByteOrder, Number};
use crate::positioned::PositionedFile;
use crate::safetensors_head::Head;
use crate::{FeatureError, Features, Precision, Recipe, Result, RowTime, VideoFeatures};

/// The one key of `__metadata__`. One key only, because the safetensors crate writes several in random order.
const HEADER_KEY: &str = "cuemark";
const VERSION: u32 = 1;

/// What `__metadata__` says: the layout's version and how each stream was made.
#[derive(Debug, Serialize, Deserialize)]
struct Header {
    version: u32,
    streams: BTreeMap<String, Recipe>,
    /// Seconds that all rows of a tensor cover together, by tensor; for streams whose rows span a duration.
    #[serde(default, skip_serializing_if = "Seconds::is_empty")]
    covers: Seconds,
}

/// Seconds by tensor name.
type Seconds = BTreeMap<String, f64>;

/// One open shard.
#[derive(Debug)]
pub(crate) struct Shard {
    pub(crate) path: Utf8PathBuf,
    pub(crate) recipes: BTreeMap<String, Recipe>,
    pub(crate) entries: Vec<Entry>,
    file: PositionedFile,
}

/// Where one video's features lie.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) video: VideoId,
    pub(crate) stream: String,
    pub(crate) rows: usize,
    /// What each row stands for.
    pub(crate) clip_len: Option<ClipLen>,
    width: usize,
    number: Number,
    /// First byte in the file.
    offset: u64,
}

impl Entry {
    fn tensor(&self) -> String {
        tensor_name(&self.stream, &self.video)
    }
}

/// Stream names hold no slash, so the first one separates; video names may hold anything.
fn tensor_name(stream: &str, video: &VideoId) -> String {
    format!("{stream}/{video}")
}

impl Shard {
    /// Reads the header and checks all of its header: no tensor may reach outside it or disagree with its recipe.
    pub(crate) fn open(path: &Utf8Path) -> Result<Self> {
        let file = PositionedFile::open(path).map_err(|source| ReadError::Io { path: path.to_owned(), source })?;
        let fault = |problem: String| FeatureError::Shard { path: path.to_owned(), problem };
        let head =
            Head::read(&mut file.stream(), file.length(), &Meter::default()).map_err(|problem| match problem {
                Fault::Wrong(problem) => fault(problem),
                other => other.at(path, "its header").into(),
            })?;
        let text = head.text(HEADER_KEY);
        let text = text.ok_or_else(|| fault(format!("its header has no `{HEADER_KEY}` entry with the recipe")))?;
        let header: Header = serde_json::from_str(text).map_err(|error| fault(format!("`{HEADER_KEY}`: {error}")))?;
        if header.version != VERSION {
            return Err(fault(format!("written by layout version {}, this program reads {VERSION}", header.version)));
        }
        let entries = head
            .names()
            .iter()
            .filter_map(|name| Some((name, head.info(name)?)))
            .map(|(name, info)| entry(path, &header, name, info, head.data_start))
            .collect::<Result<_>>()?;
        Ok(Self { path: path.to_owned(), recipes: header.streams, entries, file })
    }

    /// The numbers of one entry of this shard, whatever they are.
    pub(crate) fn read(&self, entry: &Entry) -> Result<Features> {
        // The header's check has seen to it that the product is the tensor's size in the file.
        let mut bytes = vec![0; entry.rows * entry.width * entry.number.bytes()];
        let past_end = || tensor_fault(&self.path, entry.tensor(), "reaches past the end of the file");
        self.file.read_at(&mut bytes, entry.offset).map_err(|source| match source.kind() {
            io::ErrorKind::UnexpectedEof => past_end(),
            _ => ReadError::Io { path: self.path.clone(), source }.into(),
        })?;
        let data = entry.number.decode(&bytes, ByteOrder::Little);
        Features::new(entry.rows, entry.width, data).ok_or_else(past_end)
    }

    /// As [`Shard::read`], refusing numbers that are not finite.
    pub(crate) fn read_finite(&self, entry: &Entry) -> Result<Features> {
        let features = self.read(entry)?;
        match features.first_bad_row() {
            Some(row) => Err(FeatureError::NotFinite { path: self.path.clone(), tensor: entry.tensor(), row }),
            None => Ok(features),
        }
    }
}

fn entry(path: &Utf8Path, header: &Header, name: &str, info: &TensorInfo, data_start: u64) -> Result<Entry> {
    let fault = |problem: String| tensor_fault(path, name.to_owned(), problem);
    let (stream, video) = name.split_once('/').ok_or_else(|| fault("is not named `STREAM/VIDEO`".to_owned()))?;
    let recipe = header.streams.get(stream).ok_or_else(|| fault(format!("no recipe for stream `{stream}`")))?;
    let &[rows, width] = info.shape.as_slice() else {
        return Err(fault(format!("shape {:?} is not [clips, width]", info.shape)));
    };
    let number = match info.dtype {
        Dtype::F32 => Number::F32,
        Dtype::F16 => Number::F16,
        other => return Err(fault(format!("holds {other:?}, not F32 or F16"))),
    };
    if width != recipe.width {
        return Err(fault(format!("is {width} wide, its recipe says {}", recipe.width)));
    }
    let clip_len = match recipe.row_time {
        RowTime::Clip(clip_len) => Some(clip_len),
        RowTime::SpanDuration => {
            let seconds = header.covers.get(name).ok_or_else(|| fault("no seconds that its rows cover".to_owned()))?;
            let unfit = || fault(format!("{rows} rows cannot cover {seconds} seconds"));
            if rows == 0 { None } else { Some(ClipLen::new(seconds / rows as f64).ok_or_else(unfit)?) }
        }
    };
    let offset = data_start + info.data_offsets.0 as u64;
    Ok(Entry { video: VideoId::new(video), stream: stream.to_owned(), rows, clip_len, width, number, offset })
}

fn tensor_fault(path: &Utf8Path, tensor: String, problem: impl Into<String>) -> FeatureError {
    FeatureError::Tensor { path: path.to_owned(), tensor, problem: problem.into() }
}

/// A shard's bytes; the same videos and recipes always give the same bytes.
pub(crate) fn encode(
    path: &Utf8Path,
    recipes: &BTreeMap<String, Recipe>,
    videos: &[VideoFeatures],
    covers: &Covers,
    precision: Precision,
) -> Result<Vec<u8>> {
    let fault = |problem: String| FeatureError::Shard { path: path.to_owned(), problem };
    // Streams of one clip length say it in their recipe.
    let spans = |stream: &String| recipes.get(stream).is_some_and(|recipe| recipe.row_time == RowTime::SpanDuration);
    let covers = covers.0.iter().filter(|((stream, _), _)| spans(stream));
    let covers = covers.map(|((stream, video), seconds)| (tensor_name(stream, video), *seconds)).collect();
    let header = Header { version: VERSION, streams: recipes.clone(), covers };
    let text = serde_json::to_string(&header).map_err(|error| fault(error.to_string()))?;
    let tensors = videos.iter().flat_map(|video| {
        video.streams.iter().map(|(stream, features)| {
            let name = tensor_name(stream, &video.video);
            (name, Written { features, shape: [features.rows(), features.width()], precision })
        })
    });
    safetensors::serialize(tensors, Some(HashMap::from([(HEADER_KEY.to_owned(), text)])))
        .map_err(|error| fault(error.to_string()))
}

/// The first bytes of a shard that holds one video's rows as `f32` and nothing else; the rows follow.
pub(crate) fn header_of_one(
    path: &Utf8Path,
    recipes: &BTreeMap<String, Recipe>,
    stream: &str,
    video: &VideoId,
    shape: [usize; 2],
) -> Result<Vec<u8>> {
    let fault = |problem: String| FeatureError::Shard { path: path.to_owned(), problem };
    let header = Header { version: VERSION, streams: recipes.clone(), covers: Seconds::new() };
    let text = serde_json::to_string(&header).map_err(|error| fault(error.to_string()))?;
    let too_large = || fault(format!("{} rows of {} numbers are too many", shape[0], shape[1]));
    let length = shape[0].checked_mul(shape[1]).and_then(|count| count.checked_mul(size_of::<f32>()));
    let length = length.ok_or_else(too_large)?;
    let tensor = serde_json::json!({ "dtype": "F32", "shape": shape, "data_offsets": [0, length] });
    let header = serde_json::json!({ "__metadata__": { HEADER_KEY: text }, tensor_name(stream, video): tensor });
    let mut header = header.to_string().into_bytes();
    header.resize(header.len().next_multiple_of(size_of::<u64>()), b' ');
    Ok([&(header.len() as u64).to_le_bytes(), header.as_slice()].concat())
}

/// How many seconds all rows of a video cover together, by stream and video; needed where a recipe says
/// [`RowTime::SpanDuration`], and only there.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Covers(BTreeMap<(String, VideoId), f64>);

impl Covers {
    /// Says that the rows of `video` in `stream` cover `seconds` together.
    pub fn insert(&mut self, stream: &str, video: &VideoId, seconds: f64) {
        self.0.insert((stream.to_owned(), video.clone()), seconds);
    }

    pub(crate) fn get(&self, stream: &str, video: &VideoId) -> Option<f64> {
        self.0.get(&(stream.to_owned(), video.clone())).copied()
    }
}

/// Features as the safetensors crate wants to see them.
struct Written<'a> {
    features: &'a Features,
    shape: [usize; 2],
    precision: Precision,
}

impl View for Written<'_> {
    fn dtype(&self) -> Dtype {
        match self.precision {
            Precision::F32 => Dtype::F32,
            Precision::F16 => Dtype::F16,
        }
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        let numbers = self.features.data().iter();
        Cow::Owned(match self.precision {
            Precision::F32 => numbers.flat_map(|number| number.to_le_bytes()).collect(),
            Precision::F16 => numbers.flat_map(|number| half::f16::from_f32(*number).to_le_bytes()).collect(),
        })
    }

    fn data_len(&self) -> usize {
        self.features.data().len() * self.precision.bytes()
    }
}
