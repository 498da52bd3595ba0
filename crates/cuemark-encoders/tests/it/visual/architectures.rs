//! The networks themselves, with weights by formula.

use candle_core::Device;
use candle_transformers::models::clip::text_model::Activation;
use candle_transformers::models::clip::vision_model::ClipVisionConfig;
use cuemark_encoders::visual::{
    C3d, C3dConfig, ClipVision, EfficientNetLite, I3d, Network as _, Pixels, ResNet, SlowFast, Vgg, VggConfig,
};

use super::formula::{Formula, assert_agrees, clip, reference};

const CPU: Device = Device::Cpu;
const LITE: Pixels = Pixels { mean: [127.0 / 255.0; 3], deviation: [128.0 / 255.0; 3] };

#[test]
fn vgg_is_torchvisions_up_to_both_wide_layers() {
    let stages = vec![vec![8; 2], vec![8; 2], vec![16; 3], vec![16; 3], vec![16; 3]];
    let x = Pixels::IMAGENET.tensor(&clip("vgg", 1, 64), &CPU).unwrap();
    for (name, wide_layers) in [("fc6", 1), ("fc7", 2)] {
        let cfg = VggConfig { stages: stages.clone(), side: 64, hidden: 32, wide_layers };
        let ours = Vgg::new(&cfg, &Formula::builder()).unwrap().forward(&x).unwrap();
        assert_agrees(&ours, &reference()["vgg"][name], 1e-4, name);
    }
}

#[test]
fn c3d_is_pytorchs() {
    let cfg = C3dConfig { channels: [4, 8, 8, 8, 16, 16, 16, 16], extent: [16, 32], hidden: 32 };
    let x = Pixels::SIGNED.tensor(&clip("c3d", 16, 32), &CPU).unwrap();
    let ours = C3d::new(&cfg, &Formula::builder()).unwrap().forward(&x).unwrap();
    assert_agrees(&ours, &reference()["c3d"], 1e-4, "c3d");
}

#[test]
fn resnet_is_torchvisions() {
    let x = Pixels::IMAGENET.tensor(&clip("resnet", 1, 64), &CPU).unwrap();
    let ours = ResNet::of_18(&Formula::builder()).unwrap().forward(&x).unwrap();
    assert_agrees(&ours, &reference()["resnet18"], 2e-3, "resnet18");
}

#[test]
fn the_picture_side_of_clip_is_that_of_transformers() {
    let cfg = ClipVisionConfig {
        embed_dim: 32,
        activation: Activation::QuickGelu,
        intermediate_size: 64,
        num_hidden_layers: 2,
        num_attention_heads: 4,
        projection_dim: 16,
        num_channels: 3,
        image_size: 64,
        patch_size: 16,
    };
    let x = Pixels::CLIP.tensor(&clip("clip", 1, 64), &CPU).unwrap();
    let ours = ClipVision::new(&cfg, &Formula::builder()).unwrap().forward(&x).unwrap();
    assert_agrees(&ours, &reference()["clip"], 1e-4, "clip");
}

#[test]
fn efficientnet_lite_is_the_packages() {
    let x = LITE.tensor(&clip("lite", 1, 224), &CPU).unwrap();
    let (features, logits) = EfficientNetLite::new(&Formula::builder()).unwrap().features_and_logits(&x).unwrap();
    let reference = &reference()["efficientnet_lite0"]["formula"];
    assert_agrees(&features, &reference["features"], 1e-3, "features");
    assert_agrees(&logits, &reference["logits"], 1e-3, "logits");
}

#[test]
fn i3d_is_pytorchs() {
    let x = Pixels::SIGNED.tensor(&clip("i3d", 16, 224), &CPU).unwrap();
    let (features, logits) = I3d::new(400, &Formula::builder()).unwrap().features_and_logits(&x).unwrap();
    let reference = &reference()["i3d"]["formula"];
    assert_agrees(&features, &reference["features"], 1e-3, "features");
    assert_agrees(&logits, &reference["logits"], 1e-3, "logits");
}

#[test]
fn slowfast_is_pytorchvideos() {
    let kinetics = Pixels { mean: [0.45; 3], deviation: [0.225; 3] };
    let x = kinetics.tensor(&clip("slowfast", 32, 64), &CPU).unwrap();
    let ours = SlowFast::new(&Formula::builder()).unwrap().forward(&x).unwrap();
    assert_agrees(&ours, &reference()["slowfast"], 1e-3, "slowfast");
}
