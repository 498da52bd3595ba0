//! Moments for other programs: players, cutting rooms, annotation tools. Written, not read back as predictions.
//!
//! | name | ending | opened by |
//! |---|---|---|
//! | `webvtt` | `.vtt` | players and browsers, one video a file |
//! | `edl` | `.edl` | cutting programs (CMX 3600) |
//! | `fiftyone` | `.fiftyone.json` | FiftyOne, as a `FiftyOneTemporalDetectionDataset` |
//! | `labelstudio` | `.labelstudio.json` | Label Studio, as tasks with predictions |

mod edl;
mod fiftyone;
mod label_studio;
mod webvtt;

use std::fmt;
use std::str::FromStr;

use camino::Utf8Path;
use cuemark_core::{Predictions, Span, Truth, VideoId};
use serde_json::Value;

use crate::{Result, UnknownFormat, WholeFile};

/// One moment with the sentence that describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct Clip {
    /// The query's id; empty when there is none.
    pub query: String,
    /// Its sentence; empty when the file does not say.
    pub text: String,
    /// The video.
    pub video: VideoId,
    /// Where in it, in seconds.
    pub span: Span,
    /// How sure a method is.
    pub score: Option<f64>,
}

impl Clip {
    /// What a person reads: the sentence, or the query's id where there is none.
    fn label(&self) -> String {
        let text = if self.text.trim().is_empty() { &self.query } else { &self.text };
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

/// A layout for another program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExportFormat {
    /// Cues of one video.
    WebVtt,
    /// An edit decision list (CMX 3600).
    Edl,
    /// FiftyOne's temporal detections.
    FiftyOne,
    /// Label Studio's tasks.
    LabelStudio,
}

impl ExportFormat {
    /// Every layout.
    pub const ALL: [Self; 4] = [Self::WebVtt, Self::Edl, Self::FiftyOne, Self::LabelStudio];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::WebVtt => "webvtt",
            Self::Edl => "edl",
            Self::FiftyOne => "fiftyone",
            Self::LabelStudio => "labelstudio",
        }
    }

    /// The layout that a file's name asks for.
    pub fn of_name(path: &Utf8Path) -> Option<Self> {
        let name = path.file_name()?.to_lowercase();
        let endings = [
            (".vtt", Self::WebVtt),
            (".edl", Self::Edl),
            (".fiftyone.json", Self::FiftyOne),
            (".labelstudio.json", Self::LabelStudio),
        ];
        endings.into_iter().find(|(ending, _)| name.ends_with(ending)).map(|(_, format)| format)
    }
}

impl fmt::Display for ExportFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for ExportFormat {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        Self::ALL.into_iter().find(|format| format.name() == name).ok_or_else(|| UnknownFormat::of(name))
    }
}

/// Frames a second of an edit decision list, and of Label Studio's timelines.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FrameRate(f64);

impl Default for FrameRate {
    fn default() -> Self {
        Self(25.0)
    }
}

impl FrameRate {
    /// `frames` a second.
    ///
    /// # Errors
    /// When that is not above 0 and at most 1,000.
    pub fn new(frames: f64) -> Result<Self, String> {
        let wrong = || format!("{frames} is not a number of frames a second, above 0 and at most 1000");
        (frames > 0.0 && frames <= 1_000.0).then_some(Self(frames)).ok_or_else(wrong)
    }

    /// The frame that is shown at `seconds`.
    pub fn frame(self, seconds: f64) -> u64 {
        (seconds * self.0).round().max(0.0) as u64
    }

    /// Frames a second.
    pub fn frames(self) -> f64 {
        self.0
    }
}

/// Writes moments.
///
/// # Errors
/// When the layout is for one video and there are several, or the file cannot be written.
pub fn export(clips: &[Clip], format: ExportFormat, rate: FrameRate, out: &mut WholeFile) -> Result<()> {
    match format {
        ExportFormat::WebVtt => webvtt::write(clips, out),
        ExportFormat::Edl => edl::write(clips, rate, out),
        ExportFormat::FiftyOne => fiftyone::write(clips, out),
        ExportFormat::LabelStudio => label_studio::write(clips, rate, out),
    }
}

/// Every predicted moment, in file order. One without a video lies in the one that `truths` have its query in; where nobody
/// says, it is left out.
pub fn predicted_clips(predictions: &Predictions, truths: &[Truth]) -> Vec<Clip> {
    let known: rustc_hash::FxHashMap<&str, &Truth> =
        truths.iter().map(|truth| (truth.query.id.as_str(), truth)).collect();
    let mut clips = Vec::new();
    for list in predictions.tasks.iter().flat_map(|task| &task.queries) {
        let truth = known.get(list.query.as_str());
        let said = |field: &str| list.extra.get(field).and_then(Value::as_str).map(str::to_owned);
        let text = said("query").or_else(|| said("sentence")).or_else(|| Some(truth?.query.text.clone()));
        let own = truth.and_then(|truth| truth.video.as_ref()).map(|video| &video.id);
        for prediction in &list.ranked {
            let Some(video) = prediction.video.as_ref().or(own) else { continue };
            clips.push(Clip {
                query: list.query.to_string(),
                text: text.clone().unwrap_or_default(),
                video: video.clone(),
                span: prediction.span,
                score: prediction.score,
            });
        }
    }
    clips
}

/// Every true moment, in file order.
pub fn true_clips(truths: &[Truth]) -> Vec<Clip> {
    let clips = truths.iter().flat_map(|truth| {
        truth.right().map(|moment| Clip {
            query: truth.query.id.to_string(),
            text: truth.query.text.clone(),
            video: moment.video.clone(),
            span: moment.span,
            score: None,
        })
    });
    clips.collect()
}

/// Clips by video, videos in order of appearance.
fn by_video(clips: &[Clip]) -> Vec<(&VideoId, Vec<&Clip>)> {
    let mut videos: Vec<(&VideoId, Vec<&Clip>)> = Vec::new();
    let mut places = rustc_hash::FxHashMap::default();
    for clip in clips {
        let place = *places.entry(&clip.video).or_insert_with(|| {
            videos.push((&clip.video, Vec::new()));
            videos.len() - 1
        });
        videos[place].1.push(clip);
    }
    videos
}

#[cfg(test)]
mod tests {
    use camino::Utf8PathBuf;

    use super::*;
    use crate::Overwrite;

    fn clip(video: &str, start: f64, end: f64, text: &str) -> Clip {
        let span = Span::new(start, end).unwrap();
        Clip { query: "7".to_owned(), text: text.to_owned(), video: VideoId::from(video), span, score: Some(0.5) }
    }

    fn written(clips: &[Clip], format: ExportFormat) -> Result<String> {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8PathBuf::from_path_buf(folder.path().join("out")).unwrap();
        let mut out = WholeFile::create(&path, Overwrite::Never).unwrap();
        export(clips, format, FrameRate::default(), &mut out)?;
        out.finish().unwrap();
        Ok(std::fs::read_to_string(path).unwrap())
    }

    #[test]
    fn cues_stand_in_the_order_of_time_and_hold_no_arrow() {
        let clips = [clip("a", 62.5, 3_725.25, "then --> that"), clip("a", 1.0, 2.0, "first\n<b>")];
        let text = written(&clips, ExportFormat::WebVtt).unwrap();
        assert_eq!(
            text,
            "WEBVTT\n\nNOTE a\n\n7-1\n00:00:01.000 --> 00:00:02.000\nfirst &lt;b&gt;\n\n\
             7-2\n00:01:02.500 --> 01:02:05.250\nthen --&gt; that\n\n"
        );
        let error = written(&[clip("a", 0.0, 1.0, ""), clip("b", 0.0, 1.0, "")], ExportFormat::WebVtt).unwrap_err();
        assert!(error.to_string().contains("2 videos"), "{error}");
    }

    #[test]
    fn an_edit_list_counts_frames_and_runs_on() {
        let text = written(&[clip("a", 1.0, 3.0, "x"), clip("b", 0.4, 1.4, "y")], ExportFormat::Edl).unwrap();
        assert!(text.starts_with("TITLE: cuemark\nFCM: NON-DROP FRAME\n\n"), "{text}");
        assert!(
            text.contains("001  AX       V     C        00:00:01:00 00:00:03:00 00:00:00:00 00:00:02:00\n"),
            "{text}"
        );
        assert!(
            text.contains("002  AX       V     C        00:00:00:10 00:00:01:10 00:00:02:00 00:00:03:00\n"),
            "{text}"
        );
        assert!(text.contains("* FROM CLIP NAME: b\n* COMMENT: y\n"), "{text}");
    }

    #[test]
    fn fiftyone_and_label_studio_hold_every_moment_under_its_video() {
        let clips = [clip("a", 1.0, 3.0, "x"), clip("b", 0.4, 1.4, "y"), clip("a", 5.0, 6.0, "z")];
        let fiftyone: Value = serde_json::from_str(&written(&clips, ExportFormat::FiftyOne).unwrap()).unwrap();
        assert_eq!(fiftyone["labels"]["a"][1]["timestamps"], serde_json::json!([5.0, 6.0]));
        assert_eq!(fiftyone["labels"]["b"][0]["label"], "y");
        let studio: Value = serde_json::from_str(&written(&clips, ExportFormat::LabelStudio).unwrap()).unwrap();
        let first = &studio[0]["predictions"][0]["result"][1]["value"];
        assert_eq!(first["ranges"], serde_json::json!([{ "start": 126, "end": 150 }]), "frames count from 1");
        assert_eq!(first["timelinelabels"], serde_json::json!(["z"]));
    }
}
