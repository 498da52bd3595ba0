//! From video files to a store of clip features.

use camino::Utf8PathBuf;
use cuemark_core::{Advice, Progress, printable};
use cuemark_encoders::extract::{ExtractOptions, ExtractReport, extract_to_store};
use cuemark_encoders::visual::{self, EncoderOptions};
use cuemark_formats::Overwrite;
use cuemark_media::{Ffmpeg, LeftOut, find_videos};
use serde::{Deserialize, Serialize};

pub use cuemark_encoders::extract::Shard;

use crate::device::cpu;
use crate::{Error, Result};

/// Makes a store of video files; what a store holds already is kept, so that stopped work is resumed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct Extract {
    /// Video files, or folders of them; a video is called by its file's name without the ending, and by its folder too where two
    /// would be called alike.
    #[cfg_attr(feature = "clap", arg(required = true, value_name = "VIDEO"))]
    pub videos: Vec<Utf8PathBuf>,
    /// What turns clips into numbers: concepts, clip, clip-b16, i3d, i3d-logits, c3d, slowfast, vgg16-fc6, vgg16-fc7, resnet50,
    /// resnet152, efficientnet-lite0, world-weak, world-shape, world-motion.
    #[cfg_attr(feature = "clap", arg(long, value_name = "NAME"))]
    pub encoder: String,
    /// The folder of the store; videos that are in it already are kept.
    #[cfg_attr(feature = "clap", arg(long, value_name = "STORE"))]
    pub out: Utf8PathBuf,
    /// A file with the encoder's weights. Default: those that `cuemark weights pull` fetched
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long, value_name = "FILE"))]
    pub weights: Option<Utf8PathBuf>,
    /// Do one share of the work, for several processes or machines on one store: 1/4, 2/4 …
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long, value_name = "I/N", default_value_t))]
    pub shard: Shard,
    /// What to compute on: cpu, cuda or cuda:N.
    #[serde(default = "cpu")]
    #[cfg_attr(feature = "clap", arg(long, default_value = "cpu"))]
    pub device: String,
    /// Frames a second. Default: the encoder's own
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N"))]
    pub fps: Option<f64>,
    /// Frames of one clip. Default: the encoder's own
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N"))]
    pub frames: Option<usize>,
    /// Frames from the start of a clip to the start of the next. Default: the encoder's own, or `--frames`
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N"))]
    pub stride: Option<usize>,
    /// Replace what is there already.
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long))]
    pub force: bool,
}

/// What became of the videos.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExtractedFeatures {
    /// The store.
    pub store: Utf8PathBuf,
    /// Who made its rows.
    pub encoder: String,
    /// Which share of the work this was.
    pub shard: Shard,
    /// What was done, and which videos are damaged or gave nothing.
    pub extracted: ExtractReport,
    /// What was named or looks like a video, and is none.
    pub left_out: Vec<LeftOut>,
    /// `None` when nothing was done.
    pub hours_of_video_per_hour: Option<f64>,
}

impl Extract {
    /// Features of `videos` by `encoder`, in a store at `out`.
    pub fn new(
        videos: impl IntoIterator<Item = impl Into<Utf8PathBuf>>,
        encoder: impl Into<String>,
        out: impl Into<Utf8PathBuf>,
    ) -> Self {
        Self {
            videos: videos.into_iter().map(Into::into).collect(),
            encoder: encoder.into(),
            out: out.into(),
            weights: None,
            shard: Shard::WHOLE,
            device: cpu(),
            fps: None,
            frames: None,
            stride: None,
            force: false,
        }
    }

    /// Finds the videos, opens the encoder and fills the store. Stopped, it keeps the videos that are finished.
    ///
    /// # Errors
    /// When no video was found, ffmpeg or the weights are missing, the store was made otherwise or cannot be written, or the
    /// work was stopped. A video that cannot be decoded is left out and said in the answer.
    pub fn run(&self, progress: &Progress) -> Result<ExtractedFeatures> {
        if self.shard != Shard::WHOLE && self.force {
            let problem = "it would remove what the other shares wrote";
            let advice = Advice::say("remove the store yourself, then start all shares");
            return Err(Error::setting("force", problem).advise(advice));
        }
        let device = cuemark_tensor::device(&self.device)?;
        let found = find_videos(&self.videos, progress)?;
        if let (true, Some(first)) = (found.videos.is_empty(), found.left_out.first()) {
            return Err(Error::nothing(format!("{}: {}", printable(&first.what), printable(&first.problem))));
        }
        // What can be wrong with the machine is said before weights are read.
        let ffmpeg = Ffmpeg::on_path();
        ffmpeg.check()?;
        progress.phase("opening", 0);
        let options = EncoderOptions {
            device,
            weights: self.weights.clone(),
            fps: self.fps,
            frames: self.frames,
            stride: self.stride,
            ..EncoderOptions::default()
        };
        let encoder = visual::open(&self.encoder, &options)?;
        let overwrite = if self.force { Overwrite::Force } else { Overwrite::Never };
        let options = ExtractOptions { overwrite, shard: self.shard, ffmpeg };
        let extracted = extract_to_store(&found.videos, encoder.as_ref(), &self.out, &options, progress)?;
        Ok(ExtractedFeatures {
            store: self.out.clone(),
            encoder: encoder.name().to_owned(),
            shard: self.shard,
            hours_of_video_per_hour: extracted.speed(),
            extracted,
            left_out: found.left_out,
        })
    }
}

impl ExtractedFeatures {
    /// Whether every video gave all that it promised, or at least something.
    pub fn is_whole(&self) -> bool {
        self.extracted.failed.is_empty() && self.left_out.is_empty()
    }
}
