//! What methods of QVHighlights read: the rows of two encoders as `features extract` leaves them, side by side in the published order.

use camino::Utf8Path;
use cuemark_core::{ClipLen, Rng, VideoId};
use cuemark_features::{Durations, Features, Recipe, RowTime, StoreWriter, VideoFeatures};
use cuemark_formats::Overwrite;
use cuemark_models::{Given, registry};
use cuemark_tensor::Params;

use crate::footage::Footage;
use crate::{Override, RunFile};

/// The streams are called as their encoders are.
const SLOWFAST: (&str, usize) = ("slowfast", 2304);
const CLIP: (&str, usize) = ("clip", 512);
const CLIPS: usize = 3;

fn rows((_, width): (&str, usize), rng: &mut Rng) -> Features {
    Features::new(CLIPS, width, (0..CLIPS * width).map(|_| 3.0 * rng.normal() as f32).collect()).unwrap()
}

fn recipe((name, width): (&str, usize)) -> (String, Recipe) {
    let row_time = RowTime::Clip(ClipLen::new(2.0).unwrap());
    let extractor = name.to_owned();
    let (weights, fps, resize, settings) = (None, None, None, Default::default());
    (name.to_owned(), Recipe { extractor, weights, fps, row_time, width, resize, settings })
}

/// `x / (|x| + 1e-5)`, as the feature recipes of QVHighlights have it.
fn of_length_one(row: &[f32]) -> Vec<f32> {
    let norm = row.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt() + 1e-5;
    row.iter().map(|x| (f64::from(*x) / norm) as f32).collect()
}

#[test]
fn slowfast_stands_before_clip_and_each_is_normalised_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let store = Utf8Path::from_path(folder.path()).unwrap().join("store");
    let (rng, video) = (&mut Rng::new(1), VideoId::from("vlog_0.0_6.0"));
    let (slowfast, clip) = (rows(SLOWFAST, rng), rows(CLIP, rng));
    // Written in the other order: the run file decides, not the store.
    let streams = [(CLIP.0.to_owned(), clip.clone()), (SLOWFAST.0.to_owned(), slowfast.clone())];
    let features = VideoFeatures { video: video.clone(), streams: streams.into_iter().collect() };
    let recipes = [CLIP, SLOWFAST].into_iter().map(recipe).collect();
    StoreWriter::create(&store, recipes, Overwrite::Force).unwrap().write_shard(0, &[features]).unwrap();
    for model in ["moment-detr", "qd-detr", "eatr", "cg-detr", "tr-detr", "uvcom", "taskweave", "univtg"] {
        let path = format!("{}/../../runs/{model}/qvhighlights.toml", env!("CARGO_MANIFEST_DIR"));
        let here = Override { key: "data.features".into(), value: store.to_string(), origin: "test".into() };
        let run = RunFile::read(Utf8Path::new(&path), &[here]).unwrap();
        let given = Given::widths(SLOWFAST.1 + CLIP.1, CLIP.1, 0);
        let network = registry::find(model).unwrap().build(&run.settings, &given, Params::counted().builder());
        let footage = Footage::open(&run.data, Durations::default()).unwrap().prepared(&network.unwrap().input(), None);
        let seen = footage.whole(&video).unwrap();
        assert_eq!((seen.visual.rows(), seen.visual.width()), (CLIPS, 2816), "{model}");
        for number in 0..CLIPS {
            let of = |features: &Features| of_length_one(features.row(number).unwrap());
            let wanted = [of(&slowfast), of(&clip)].concat();
            let found = seen.visual.row(number).unwrap();
            let off = found.iter().zip(&wanted).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(off < 1e-6, "{model}: row {number} is off by {off}");
        }
    }
}
