//! The published weights, where they have been pulled.

use candle_core::Device;
use cuemark_core::{Advise as _, Progress};
use cuemark_encoders::visual::{EfficientNetLite, I3d, Pixels};
use cuemark_encoders::{EncodeError, classes};
use cuemark_media::{Ffmpeg, Filter, Framing, OpenedVideo, Rate};
use cuemark_tensor::Params;

use super::formula::{assert_agrees, clip, reference};
use super::videos::{pulled, shared_videos};

#[test]
fn the_published_i3d_gives_the_references_logits_on_noise() {
    let Some(weights) = pulled("i3d") else { return };
    let i3d = I3d::new(400, &Params::loaded(weights.tensors().unwrap(), &Device::Cpu).builder()).unwrap();
    let x = Pixels::SIGNED.tensor(&clip("i3d", 16, 224), &Device::Cpu).unwrap();
    let (features, logits) = i3d.features_and_logits(&x).unwrap();
    let reference = &reference()["i3d"]["real"];
    assert_agrees(&features, &reference["features"], 1e-3, "features");
    assert_agrees(&logits, &reference["logits"], 1e-3, "logits");
}

#[test]
fn the_published_i3d_gives_the_references_logits_on_films_and_knows_arm_wrestling() {
    let (Some(weights), Some(videos)) = (pulled("i3d"), shared_videos()) else { return };
    let i3d = I3d::new(400, &Params::loaded(weights.tensors().unwrap(), &Device::Cpu).builder()).unwrap();
    let framing = Framing::CentreCrop { short_side: 256, crop: 224, filter: Filter::Bilinear };
    let ffmpeg = Ffmpeg::on_path();
    for (name, figures) in reference()["i3d"]["videos"].as_object().unwrap() {
        let path = videos.join(name);
        let (video, progress) = (OpenedVideo::open(&path).unwrap(), Progress::new());
        let info = ffmpeg.probe(&video, &progress).unwrap();
        let frames = ffmpeg.frames(&video, &info, Rate::EveryFrame, framing, &progress).unwrap();
        let rgb: Vec<u8> = frames.take(64).flat_map(|frame| frame.unwrap().rgb).collect();
        let clips = cuemark_encoders::visual::Clips::from_rgb(64, [224, 224], rgb).unwrap();
        let x = Pixels::SIGNED.tensor(&clips, &Device::Cpu).unwrap();
        let logits = i3d.features_and_logits(&x).unwrap().1;
        assert_agrees(&logits, &figures["logits"], 1e-3, name);
        let row = logits.flatten_all().unwrap().to_vec1::<f32>().unwrap();
        let top = (0..400).max_by(|a, b| row[*a].total_cmp(&row[*b])).unwrap();
        assert_eq!(figures["top"], top);
        if name == "mmaction2_demo.mp4" {
            assert_eq!(classes::kinetics_400()[top], "arm wrestling");
        }
    }
}

#[test]
fn the_published_efficientnet_gives_the_references_numbers() {
    let Some(weights) = pulled("efficientnet-lite0") else { return };
    let params = Params::loaded(weights.tensors().unwrap(), &Device::Cpu);
    let pixels = Pixels { mean: [127.0 / 255.0; 3], deviation: [128.0 / 255.0; 3] };
    let x = pixels.tensor(&clip("lite", 1, 224), &Device::Cpu).unwrap();
    let (features, logits) = EfficientNetLite::new(&params.builder()).unwrap().features_and_logits(&x).unwrap();
    let reference = &reference()["efficientnet_lite0"]["real"];
    assert_agrees(&features, &reference["features"], 1e-3, "features");
    assert_agrees(&logits, &reference["logits"], 1e-3, "logits");
}

#[test]
fn weights_of_another_network_are_named_with_what_is_missing() {
    use cuemark_encoders::visual::{ENCODERS, EncoderOptions, NetworkEncoder};
    let Some(weights) = pulled("efficientnet-lite0") else { return };
    let i3d = ENCODERS.iter().find(|card| card.name == "i3d").unwrap();
    let error = NetworkEncoder::load(i3d, &weights, &EncoderOptions::default()).err().unwrap();
    assert!(matches!(error, EncodeError::Unfit { .. }));
    assert!(error.to_string().contains("`params/Conv3d_1a_7x7/Conv_0/kernel` is missing"), "{error}");
    assert!(error.advice().is_some());
}
