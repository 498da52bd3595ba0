//! Every model against the reference fixtures, and the checker against damaged ones.

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_models::check::{Fixture, ParityReport, check};
use cuemark_models::registry;
use cuemark_tensor::{Device, Tensor};

fn run(path: &Utf8Path) -> Result<ParityReport, cuemark_models::ModelError> {
    let fixture = Fixture::open(path, &Device::Cpu)?;
    check(registry::find(fixture.model())?, &fixture, &Device::Cpu)
}

fn fixtures(folder: &Utf8Path) -> Vec<Utf8PathBuf> {
    let files = folder.read_dir_utf8().unwrap().map(|entry| entry.unwrap().into_path());
    let mut files: Vec<Utf8PathBuf> = files.filter(|path| path.extension() == Some("safetensors")).collect();
    files.sort();
    files
}

/// The fixtures that belong to a model of the zoo; the rest are about sampling and baselines and are read elsewhere.
fn of_models(folder: &Utf8Path) -> Vec<Utf8PathBuf> {
    let known = |path: &Utf8PathBuf| {
        let fixture = Fixture::open(path, &Device::Cpu).unwrap();
        registry::find(fixture.model()).is_ok()
    };
    fixtures(folder).into_iter().filter(known).collect()
}

fn assert_passes(path: &Utf8Path) {
    let report = run(path).unwrap();
    let wrong: Vec<_> = report.tensors.iter().filter(|tensor| !tensor.ok).collect();
    assert!(report.passed, "{path}: {wrong:#?}");
    assert!(!report.tensors.is_empty());
}

#[test]
fn every_model_agrees_with_its_reference() {
    let Some(folder) = cuemark_testkit::shared("parity") else { return };
    for path in of_models(&folder) {
        assert_passes(&path);
    }
}

/// A fixture of our own making: the smallest 2D-TAN there is, whose numbers can be worked out by hand.
///
/// One clip, one word, all weights 1 and all biases 0 except the LSTM's, which are 0 too: with a word of 0 the query is 0, so
/// the fused map is 0, the convolution gives its bias and the score is `relu(bias) * weight + bias`.
mod by_hand {
    use std::collections::BTreeMap;

    use cuemark_tensor::DType;
    use serde_json::{Value, json};

    use super::*;

    pub(super) struct Written {
        folder: tempfile::TempDir,
        pub(super) tensors: BTreeMap<String, Tensor>,
        pub(super) description: Value,
    }

    impl Written {
        pub(super) fn new() -> Self {
            let full = |value: f32, shape: &[usize]| Tensor::full(value, shape, &Device::Cpu).unwrap();
            let mut tensors = BTreeMap::from([
                ("param.frame_layer.vis_conv.weight", full(1.0, &[1, 1, 1])),
                ("param.frame_layer.vis_conv.bias", full(0.0, &[1])),
                ("param.fusion_layer.tex_linear.weight", full(1.0, &[1, 1])),
                ("param.fusion_layer.tex_linear.bias", full(0.0, &[1])),
                ("param.fusion_layer.vis_conv.weight", full(1.0, &[1, 1, 1, 1])),
                ("param.fusion_layer.vis_conv.bias", full(0.0, &[1])),
                ("param.map_layer.convs.0.weight", full(1.0, &[1, 1, 1, 1])),
                ("param.map_layer.convs.0.bias", full(2.0, &[1])),
                ("param.pred_layer.weight", full(3.0, &[1, 1, 1, 1])),
                ("param.pred_layer.bias", full(-5.0, &[1])),
                ("in.duration", full(4.0, &[1])),
                ("in.map_gt", full(1.0, &[1, 1, 1, 1])),
                ("in.text", full(0.0, &[1, 1, 1])),
                ("in.visual", full(7.0, &[1, 1, 1])),
                ("out.clip_feat", full(7.0, &[1, 1, 1])),
                ("out.map_feat", full(7.0, &[1, 1, 1, 1])),
                ("out.fused", full(0.0, &[1, 1, 1, 1])),
                ("out.map_conv", full(2.0, &[1, 1, 1, 1])),
                ("out.score_logit", full(1.0, &[1, 1, 1, 1])),
                ("out.prob", full(1.0 / (1.0 + (-1f32).exp()), &[1, 1, 1, 1])),
                // Cross entropy of a logit of 1 with a target of 1; its slope in the last weight is (p - 1) * 2.
                ("loss.bce", full((1.0 + (-1f32).exp()).ln(), &[])),
                ("grad.pred_layer.weight", full((1.0 / (1.0 + (-1f32).exp()) - 1.0) * 2.0, &[1, 1, 1, 1])),
            ]);
            for name in ["weight_ih", "weight_hh"] {
                tensors.insert(
                    if name == "weight_ih" {
                        "param.fusion_layer.textual_encoder.weight_ih_l0"
                    } else {
                        "param.fusion_layer.textual_encoder.weight_hh_l0"
                    },
                    full(1.0, &[4, 1]),
                );
            }
            tensors.insert("param.fusion_layer.textual_encoder.bias_ih_l0", full(0.0, &[4]));
            tensors.insert("param.fusion_layer.textual_encoder.bias_hh_l0", full(0.0, &[4]));
            let mut tensors: BTreeMap<String, Tensor> =
                tensors.into_iter().map(|(name, tensor)| (name.to_owned(), tensor)).collect();
            let one = Tensor::ones((1, 1, 1), DType::U8, &Device::Cpu).unwrap();
            tensors.insert("in.text_mask".to_owned(), one.clone());
            tensors.insert("out.map_mask".to_owned(), one.reshape((1, 1)).unwrap());
            let description = json!({
                "fixture": "tiny.safetensors",
                "model": "2d-tan",
                "variant": "pool",
                "config": {
                    "pre_clips": 1, "clips": 1, "hidden": 1, "equivalent_pooling_counts": [], "lstm_layers": 1,
                    "map_conv": { "layers": 1, "kernel": 1 }, "loss": { "min_iou": 0.5, "max_iou": 1.0 },
                    "nms_threshold": 0.5, "nms_top": 1,
                },
                "tolerance": { "abs": 1e-6, "rel": 1e-5, "grad_rel": 1e-5 },
                "grad_of": "loss.bce",
                "notes": [],
            });
            Self { folder: tempfile::tempdir().unwrap(), tensors, description }
        }

        /// Writes the pair of files, listing the tensors as they are unless the description lists them already.
        pub(super) fn write(&mut self) -> Utf8PathBuf {
            if self.description.get("tensors").is_none() {
                let listed: serde_json::Map<String, Value> = self
                    .tensors
                    .iter()
                    .map(|(name, tensor)| {
                        let dtype = if tensor.dtype() == DType::U8 { "bool" } else { "float32" };
                        (name.clone(), json!({ "shape": tensor.dims(), "dtype": dtype, "meaning": "" }))
                    })
                    .collect();
                self.description["tensors"] = listed.into();
            }
            let path = Utf8Path::from_path(self.folder.path()).unwrap().join("tiny.safetensors");
            let tensors: std::collections::HashMap<&str, Tensor> =
                self.tensors.iter().map(|(name, tensor)| (name.as_str(), tensor.clone())).collect();
            candle_core::safetensors::save(&tensors, &path).unwrap();
            std::fs::write(path.with_extension("json"), self.description.to_string()).unwrap();
            path
        }
    }
}

#[test]
fn a_network_worked_out_by_hand_agrees() {
    assert_passes(&by_hand::Written::new().write());
}

#[test]
fn a_perturbed_weight_fails_and_says_where() {
    let mut written = by_hand::Written::new();
    let weight = Tensor::full(3.001f32, (1, 1, 1, 1), &Device::Cpu).unwrap();
    written.tensors.insert("param.pred_layer.weight".to_owned(), weight);
    let report = run(&written.write()).unwrap();
    let wrong: Vec<&str> =
        report.tensors.iter().filter(|tensor| !tensor.ok).map(|tensor| tensor.name.as_str()).collect();
    assert!(!report.passed);
    assert_eq!(wrong, ["out.prob", "out.score_logit", "loss.bce", "grad.pred_layer.weight"]);
}

#[test]
fn damaged_fixtures_are_refused_by_the_name_of_the_tensor() {
    type Damage = fn(&mut by_hand::Written);
    let says = |damage: Damage, words: &[&str]| {
        let mut written = by_hand::Written::new();
        written.write();
        damage(&mut written);
        let error = run(&written.write()).unwrap_err().to_string();
        assert!(words.iter().all(|word| error.contains(word)), "{error}");
    };
    says(
        |written| {
            written.tensors.remove("out.prob");
        },
        &["`out.prob`", "not in the file"],
    );
    says(
        |written| {
            let extra = written.tensors["out.prob"].clone();
            written.tensors.insert("out.extra".to_owned(), extra);
        },
        &["`out.extra`", "not described"],
    );
    says(
        |written| {
            let wide = Tensor::zeros((1, 2), cuemark_tensor::DType::F32, &Device::Cpu).unwrap();
            written.tensors.insert("out.prob".to_owned(), wide);
        },
        &["`out.prob`", "[1, 2]", "[1, 1, 1, 1]"],
    );
    says(
        |written| {
            written.description["tensors"]["out.prob"]["dtype"] = "int64".into();
        },
        &["`out.prob`", "I64"],
    );
    // The same, when file and description agree with each other and not with the network.
    says(
        |written| {
            written.tensors.remove("param.pred_layer.bias");
            written.description.as_object_mut().unwrap().remove("tensors");
        },
        &["pred_layer.bias", "missing"],
    );
    says(
        |written| {
            let extra = written.tensors["param.pred_layer.bias"].clone();
            written.tensors.insert("param.second_layer.bias".to_owned(), extra);
            written.description.as_object_mut().unwrap().remove("tensors");
        },
        &["param.second_layer.bias", "no such parameter"],
    );
    says(
        |written| {
            let wide = Tensor::zeros(2, cuemark_tensor::DType::F32, &Device::Cpu).unwrap();
            written.tensors.insert("param.pred_layer.bias".to_owned(), wide);
            written.description.as_object_mut().unwrap().remove("tensors");
        },
        &["pred_layer.bias", "[2]", "[1]"],
    );
    says(
        |written| {
            written.description["config"].as_object_mut().unwrap().remove("hidden");
        },
        &["config.hidden", "missing"],
    );
}

#[test]
fn every_model_notices_a_perturbed_weight() {
    let Some(folder) = cuemark_testkit::shared("parity") else { return };
    let scratch = tempfile::tempdir().unwrap();
    for path in of_models(&folder) {
        let mut tensors = candle_core::safetensors::load(&path, &Device::Cpu).unwrap();
        let Some(name) = tensors
            .keys()
            .filter(|name| name.starts_with("grad."))
            .min()
            .map(|name| name.replacen("grad.", "param.", 1))
        else {
            continue;
        };
        let Some(weight) = tensors.get(&name) else { continue };
        // Scaled, not shifted: a shift of every logit alike would change nothing behind a softmax.
        let moved = (weight * 1.2).unwrap();
        tensors.insert(name.clone(), moved);
        let copy = Utf8Path::from_path(scratch.path()).unwrap().join(path.file_name().unwrap());
        candle_core::safetensors::save(&tensors, &copy).unwrap();
        std::fs::copy(path.with_extension("json"), copy.with_extension("json")).unwrap();
        assert!(!run(&copy).unwrap().passed, "{path}: nothing depends on `{name}`");
    }
}
