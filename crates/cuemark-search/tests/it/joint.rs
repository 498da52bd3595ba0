//! Joint encoders: videos of any folder, nothing trained.
//!
//! One test has an encoder whose space can be seen: the three axes are the colours, so films made by ffmpeg can be asked for
//! "red". The other has the published weights and the real films, where they are.

use std::collections::BTreeMap;
use std::process::Command;

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::{Progress, Span};
use cuemark_encoders::visual::{Clips, EncoderOptions, Sampling};
use cuemark_encoders::weights::Cache;
use cuemark_encoders::{ClipEncoder, Joint, Names, TextEncoder, joint};
use cuemark_features::{Recipe, RowTime};
use cuemark_formats::Overwrite;
use cuemark_media::{Filter, Framing};
use cuemark_search::encoder::JointEncoder;
use cuemark_search::{AddOptions, EngineUrl, Index, Question};

const COLOURS: [&str; 3] = ["red", "green", "blue"];

/// A sentence is the sum of the colours in it.
struct ColourWords;

impl TextEncoder for ColourWords {
    fn name(&self) -> &str {
        "colour-words"
    }

    fn width(&self) -> usize {
        3
    }

    fn encode(&self, sentences: &[&str]) -> cuemark_encoders::Result<Vec<Vec<f32>>> {
        let has = |sentence: &str, colour: &str| f32::from(u8::from(sentence.contains(colour)));
        Ok(sentences.iter().map(|s| COLOURS.map(|colour| has(s, colour) + 0.01).to_vec()).collect())
    }
}

/// A clip of one second is the mean colour of its two frames.
struct ColourClips;

impl ClipEncoder for ColourClips {
    fn name(&self) -> &str {
        "colours"
    }

    fn width(&self) -> usize {
        3
    }

    fn sampling(&self) -> Sampling {
        let framing = Framing::Stretch { width: 8, height: 6, filter: Filter::Bilinear };
        Sampling { fps: 2.0, frames: 2, stride: 2, framing }
    }

    fn recipe(&self) -> Recipe {
        let row_time = RowTime::Clip(self.sampling().clip_len().unwrap());
        let (extractor, settings) = ("colours".to_owned(), BTreeMap::new());
        Recipe { extractor, weights: None, fps: Some(2.0), row_time, width: 3, resize: Some([8, 6]), settings }
    }

    fn encode(&self, clips: &Clips) -> cuemark_encoders::Result<Vec<Vec<f32>>> {
        let mean = |clip: &[u8], channel: usize| {
            clip.iter().skip(channel).step_by(3).map(|byte| f32::from(*byte)).sum::<f32>() / clip.len() as f32
        };
        let clip = |rgb: &[u8]| (0..3).map(|channel| mean(rgb, channel)).collect();
        Ok(clips.rgb().chunks(2 * clips.picture_bytes()).map(clip).collect())
    }
}

fn colours() -> Joint {
    Joint { text: Box::new(ColourWords), clips: Box::new(ColourClips), names: Names::default() }
}

/// A film of `(colour, seconds)` one after the other.
fn make_film(path: &Utf8Path, parts: &[(&str, u32)]) {
    let sources = parts.iter().map(|(colour, seconds)| format!("color=c={colour}:s=64x48:r=10:d={seconds}[{colour}]"));
    let inputs: String = parts.iter().map(|(colour, _)| format!("[{colour}]")).collect();
    let joined = format!("{};{inputs}concat=n={}:v=1:a=0", sources.collect::<Vec<_>>().join(";"), parts.len());
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-y", "-filter_complex", &joined, "-pix_fmt", "yuv420p"]).arg(path);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn index_of(folder: &Utf8Path, films: &Utf8Path, encoder: JointEncoder) -> Index {
    let url = EngineUrl::File(folder.join("index"));
    let index = Index::create(&url, Box::new(encoder), Overwrite::Never).unwrap();
    let added = index.add_files(&[films.to_owned()], &AddOptions::default(), &Progress::new()).unwrap();
    assert_eq!(added.failed, 0, "{added:?}");
    index
}

#[test]
fn a_folder_of_films_is_searched_with_nothing_trained() {
    let guard = tempfile::tempdir().unwrap();
    let root = Utf8PathBuf::from_path_buf(guard.path().to_owned()).unwrap();
    let films = root.join("films");
    std::fs::create_dir(&films).unwrap();
    make_film(&films.join("one.mp4"), &[("blue", 6), ("red", 4), ("lime", 5)]);
    make_film(&films.join("two.mp4"), &[("lime", 10), ("blue", 3)]);
    let encoder = JointEncoder::new("colours".to_owned(), colours(), None).unwrap();
    let index = index_of(&root, &films, encoder);
    let best = |text: &str| {
        let answers = index.answer(&Question { least: 0.0, ..Question::new(text) }).unwrap();
        let first = answers.moments.first().unwrap();
        (first.video.to_string(), first.span)
    };
    // Where each colour begins and ends was said to ffmpeg above.
    let (video, span) = best("something red");
    assert_eq!(video, "one");
    assert!(span.iou(Span::new(6.0, 10.0).unwrap()) >= 0.75 || span.len() <= 2.0 && span.start() >= 6.0, "{span:?}");
    let (video, span) = best("red and green");
    assert_eq!(video, "one");
    assert!(span.start() >= 6.0 && span.start() < 10.0 && span.end() > 10.0, "both colours are in {span:?}");
    let (_, span) = best("green");
    assert!(span.len() >= 1.0);
    assert_eq!(index.engine().video(&"two".into()).unwrap().unwrap().duration, 13.0);
}

#[test]
fn two_sides_of_different_width_are_refused() {
    struct Wide;
    impl TextEncoder for Wide {
        fn name(&self) -> &str {
            "wide"
        }

        fn width(&self) -> usize {
            5
        }

        fn encode(&self, sentences: &[&str]) -> cuemark_encoders::Result<Vec<Vec<f32>>> {
            Ok(vec![vec![1.0; 5]; sentences.len()])
        }
    }
    let mixed = Joint { text: Box::new(Wide), ..colours() };
    let error = JointEncoder::new("mixed".to_owned(), mixed, None).err().unwrap();
    assert_eq!(error.to_string(), "encoder `mixed`: sentences have 5 numbers and clips 3");
}

#[test]
fn concepts_find_real_films_by_what_is_done_in_them_and_say_what_they_recognised() {
    let caches = ["i3d", "efficientnet-lite0", "minilm"].map(cuemark_testkit::weights);
    let [Some(cache), Some(_), Some(_)] = caches else { return };
    let Some(videos) = cuemark_testkit::shared("data/videos") else { return };
    let options = EncoderOptions { cache: Some(Cache::at(cache)), ..EncoderOptions::default() };
    let encoder = JointEncoder::new("concepts".to_owned(), joint("concepts", &options).unwrap(), None).unwrap();
    let guard = tempfile::tempdir().unwrap();
    let root = Utf8PathBuf::from_path_buf(guard.path().to_owned()).unwrap();
    let index = index_of(&root, &videos, encoder);
    let present = index.answer(&Question::new("two men arm wrestling")).unwrap();
    let best = &present.moments[0];
    assert_eq!(best.video.as_str(), "mmaction2_demo");
    assert_eq!(best.concepts[0].concept, "arm wrestling", "{:?}", best.concepts);
    assert!(present.good > 0 && best.probability > 0.5, "{best:?}");
    let asked = index.answer(&Question::new("a giraffe in a yellow hat plays the piano")).unwrap();
    let unseen: Vec<&str> = asked.unseen.iter().map(|unseen| unseen.word.as_str()).collect();
    assert_eq!(unseen, ["giraffe", "yellow"], "hats and pianos have names: {:?}", asked.unseen);
    let absent = index.answer(&Question::new("a dentist pulls a tooth")).unwrap();
    assert_eq!(absent.good, 0, "{:?}", absent.moments[0]);
}
