//! What the fixtures of models of moments and highlights have in common.

use candle_core::D;
use cuemark_tensor::functional::softmax;
use cuemark_tensor::{Device, Tensor};

use super::{Fixture, Trace};
use crate::layers::detr::{DetrSize, JointInputs, MaskOrder};
use crate::losses::{Matching, SaliencyWeights, SetLayer, SetLosses, SetWeights};
use crate::{ClipPairs, JointTruth, ModelError, Result};

impl Fixture {
    /// `in.src_vid` and `in.src_txt` with their masks.
    pub(crate) fn joint_inputs(&self) -> Result<JointInputs> {
        Ok(JointInputs {
            video: self.input("src_vid")?,
            video_mask: self.input("src_vid_mask")?,
            clips: self.lengths("src_vid_mask")?,
            text: self.input("src_txt")?,
            text_mask: self.input("src_txt_mask")?,
            words: self.lengths("src_txt_mask")?,
        })
    }

    /// `in.target_spans_I` and the labels and draws of the saliency losses; what a fixture does not hold is 0.
    pub(crate) fn joint_truth(&self, inputs: &JointInputs) -> Result<JointTruth> {
        let rows = |name: &str| -> Result<Vec<Vec<f32>>> {
            match self.tensor(&format!("in.{name}")) {
                Ok(_) => Ok(self.input(name)?.to_vec2()?),
                Err(_) => Ok(vec![vec![0.0; inputs.steps()]; inputs.len()]),
            }
        };
        let spans = |sample: usize| -> Result<Vec<[f32; 2]>> { self.pairs_of(&format!("in.target_spans_{sample}")) };
        Ok(JointTruth {
            windows: (0..inputs.len()).map(spans).collect::<Result<_>>()?,
            pairs: ClipPairs {
                positive: self.clip_pairs("saliency_pos_labels")?,
                negative: self.clip_pairs("saliency_neg_labels")?,
            },
            totals: rows("saliency_all_labels")?,
            relevant: rows("pos_mask")?,
        })
    }

    /// A tensor of pairs of numbers, by its full name.
    pub(crate) fn pairs_of(&self, name: &str) -> Result<Vec<[f32; 2]>> {
        let rows = self.tensor(name)?.to_vec2::<f32>()?;
        let pair = |row: &Vec<f32>| match row[..] {
            [a, b] => Ok([a, b]),
            _ => Err(self.fault(name, "holds no pairs")),
        };
        rows.iter().map(pair).collect()
    }

    fn clip_pairs(&self, name: &str) -> Result<Vec<[u32; 2]>> {
        let rows = self.ids(name)?.to_vec2::<u32>()?;
        let pair = |row: &Vec<u32>| match row[..] {
            [a, b] => Ok([a, b]),
            _ => Err(self.fault(&format!("in.{name}"), "holds no pairs")),
        };
        rows.iter().map(pair).collect()
    }

    /// The sizes that all these networks have; nothing is dropped.
    pub(crate) fn detr_size(&self) -> Result<DetrSize> {
        Ok(DetrSize {
            hidden: self.number("hidden_dim")?,
            heads: self.number("nheads")?,
            ffn: self.number("dim_feedforward")?,
            input_layers: self.number("n_input_proj")?,
            dropout: 0.0,
            input_dropout: 0.0,
        })
    }

    /// Costs of matching, and weights of losses.
    pub(crate) fn set_weights(&self) -> Result<[SetWeights; 2]> {
        let weights = |[span, overlap, label]: [&str; 3]| {
            Ok::<_, ModelError>(SetWeights {
                span: self.real(span)?,
                overlap: self.real(overlap)?,
                label: self.real(label)?,
            })
        };
        let costs = weights(["set_cost_span", "set_cost_giou", "set_cost_class"])?;
        Ok([costs, weights(["span_loss_coef", "giou_loss_coef", "label_loss_coef"])?])
    }

    /// How clip scores are trained.
    pub(crate) fn saliency_weights(&self) -> Result<SaliencyWeights> {
        Ok(SaliencyWeights { margin: self.real("saliency_margin")?, weight: self.real("lw_saliency")? })
    }

    /// How masks of several samples are mixed.
    pub(crate) fn mask_order(&self) -> Result<MaskOrder> {
        let order = self.config("t2v_mask_order")?;
        serde_json::from_value(order.clone())
            .map_err(|_| self.fault("config.t2v_mask_order", format!("{order} is no order of masks")))
    }

    /// The spans of a layer in **seconds** by `in.duration` with their scores, the surest first, four decimals.
    pub(crate) fn ranked_windows(&self, layer: &SetLayer, cut: Cut) -> Result<Vec<Vec<[f64; 3]>>> {
        let scores = softmax(&layer.logits, D::Minus1)?;
        let rows = Tensor::cat(&[&scores, &layer.spans], D::Minus1)?.to_vec3::<f32>()?;
        let mut ranked = Vec::with_capacity(rows.len());
        for (rows, duration) in rows.iter().zip(self.durations()?) {
            let window = |row: &Vec<f32>| {
                let [score, centre, width] = [row[0], row[2], row[3]].map(f64::from);
                let limit = |seconds: f64| if cut == Cut::Duration { seconds.clamp(0.0, duration) } else { seconds };
                let place = |fraction: f64| limit(fraction * duration);
                [place(centre - width / 2.0), place(centre + width / 2.0), score]
            };
            let mut windows: Vec<[f64; 3]> = rows.iter().map(window).collect();
            windows.sort_by(|a, b| b[2].total_cmp(&a[2]));
            ranked.push(windows.into_iter().map(|window| window.map(|value| (value * 1e4).round() / 1e4)).collect());
        }
        Ok(ranked)
    }

    /// Ranked windows kept within `config.max_ts_val` seconds and brought to multiples of `config.clip_length`.
    pub(crate) fn final_windows(&self, ranked: &[Vec<[f64; 3]>]) -> Result<Vec<Vec<[f64; 3]>>> {
        let (limit, clip) = (self.real("max_ts_val")?, self.real("clip_length")?);
        let round = |value: f64| (value.clamp(0.0, limit) / clip).round_ties_even() * clip;
        let window = |[start, end, score]: &[f64; 3]| [round(*start), round(*end), *score];
        Ok(ranked.iter().map(|windows| windows.iter().map(window).collect()).collect())
    }
}

/// Where ranked windows are cut before they are sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// Nowhere.
    Never,
    /// At the ends of the video.
    Duration,
}

impl Trace {
    /// Proposals, matched pairs and losses of every layer; earlier ones than the last are called auxiliary.
    pub(crate) fn set(&mut self, layers: &[SetLayer], losses: &[SetLosses]) -> Result<()> {
        let last = layers.len().saturating_sub(1);
        for (number, (layer, losses)) in layers.iter().zip(losses).enumerate() {
            let (before, after, of_sample) = if number == last {
                ("", String::new(), String::new())
            } else {
                ("aux_", format!("_{number}"), format!("{number}_"))
            };
            self.out(&format!("{before}pred_logits{after}"), &layer.logits);
            self.out(&format!("{before}pred_spans{after}"), &layer.spans);
            self.matched(&format!("{before}match"), &of_sample, &losses.matchings)?;
            self.loss(&format!("loss_span{after}"), &losses.span);
            self.loss(&format!("loss_giou{after}"), &losses.overlap);
            self.loss(&format!("loss_label{after}"), &losses.label);
        }
        Ok(())
    }

    /// `out.KIND_pred_I` and `out.KIND_tgt_I`.
    pub(crate) fn matched(&mut self, kind: &str, of_sample: &str, matchings: &[Matching]) -> Result<()> {
        for (sample, matching) in matchings.iter().enumerate() {
            let column = |value: fn(&(usize, usize)) -> usize| {
                let values: Vec<f32> = matching.iter().map(|pair| value(pair) as f32).collect();
                Tensor::from_vec(values, matching.len(), &Device::Cpu)
            };
            self.out(&format!("{kind}_pred_{of_sample}{sample}"), &column(|pair| pair.0)?);
            self.out(&format!("{kind}_tgt_{of_sample}{sample}"), &column(|pair| pair.1)?);
        }
        Ok(())
    }

    /// `out.NAME`, the windows of all samples in one tensor.
    pub(crate) fn windows(&mut self, name: &str, windows: &[Vec<[f64; 3]>]) -> Result<()> {
        let values: Vec<f32> = windows.iter().flatten().flatten().map(|value| *value as f32).collect();
        let shape = (windows.len(), windows.first().map_or(0, Vec::len), 3);
        self.out(name, &Tensor::from_vec(values, shape, &Device::Cpu)?);
        Ok(())
    }

    /// `out.NAME_I`, one tensor per sample.
    pub(crate) fn windows_by_sample(&mut self, name: &str, windows: &[Vec<[f64; 3]>]) -> Result<()> {
        for (sample, windows) in windows.iter().enumerate() {
            let values: Vec<f32> = windows.iter().flatten().map(|value| *value as f32).collect();
            self.out(&format!("{name}_{sample}"), &Tensor::from_vec(values, (windows.len(), 3), &Device::Cpu)?);
        }
        Ok(())
    }

    /// `out.NAME`, the tensors of all layers in one.
    pub(crate) fn layers(&mut self, name: &str, layers: &[Tensor]) -> Result<()> {
        self.out(name, &Tensor::stack(layers, 0)?);
        Ok(())
    }
}
