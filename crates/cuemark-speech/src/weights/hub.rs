//! Whisper as `transformers` publishes it, under CTranslate2's names: query, key and value side by side.

use std::collections::BTreeMap;

use cuemark_features::tensor_file::NamedTensor;
use serde::Deserialize;

/// What is read of its `config.json`.
#[derive(Deserialize)]
pub(crate) struct HubConfig {
    encoder_layers: usize,
    decoder_layers: usize,
    encoder_attention_heads: usize,
    decoder_attention_heads: usize,
}

/// The largest has 32 layers.
const MOST_LAYERS: usize = 256;

/// Its tensors with new names. The error says what is missing.
pub(crate) fn renamed(
    mut tensors: BTreeMap<String, NamedTensor>,
    config: &HubConfig,
) -> Result<BTreeMap<String, NamedTensor>, String> {
    if config.encoder_layers.max(config.decoder_layers) > MOST_LAYERS {
        return Err(format!("`config.json` speaks of {} layers", config.encoder_layers.max(config.decoder_layers)));
    }
    if !tensors.keys().any(|name| name.starts_with("model.")) {
        // Saved without its head.
        tensors = tensors.into_iter().map(|(name, tensor)| (format!("model.{name}"), tensor)).collect();
    }
    let mut made = Renaming { from: tensors, to: BTreeMap::new() };
    for (side, layers, heads) in [
        ("encoder", config.encoder_layers, config.encoder_attention_heads),
        ("decoder", config.decoder_layers, config.decoder_attention_heads),
    ] {
        made.to.insert(format!("{side}/num_heads"), NamedTensor { shape: vec![], values: vec![heads as f32] });
        made.one(&format!("model.{side}.embed_positions.weight"), &format!("{side}/position_encodings/encodings"))?;
        made.norm(&format!("model.{side}.layer_norm"), &format!("{side}/layer_norm"))?;
        for layer in 0..layers {
            let (old, new) = (format!("model.{side}.layers.{layer}"), format!("{side}/layer_{layer}"));
            made.norm(&format!("{old}.self_attn_layer_norm"), &format!("{new}/self_attention/layer_norm"))?;
            made.stacked(&format!("{old}.self_attn"), &["q", "k", "v"], &format!("{new}/self_attention/linear_0"))?;
            made.linear(&format!("{old}.self_attn.out_proj"), &format!("{new}/self_attention/linear_1"))?;
            if side == "decoder" {
                made.norm(&format!("{old}.encoder_attn_layer_norm"), &format!("{new}/attention/layer_norm"))?;
                made.stacked(&format!("{old}.encoder_attn"), &["q"], &format!("{new}/attention/linear_0"))?;
                made.stacked(&format!("{old}.encoder_attn"), &["k", "v"], &format!("{new}/attention/linear_1"))?;
                made.linear(&format!("{old}.encoder_attn.out_proj"), &format!("{new}/attention/linear_2"))?;
            }
            made.norm(&format!("{old}.final_layer_norm"), &format!("{new}/ffn/layer_norm"))?;
            made.linear(&format!("{old}.fc1"), &format!("{new}/ffn/linear_0"))?;
            made.linear(&format!("{old}.fc2"), &format!("{new}/ffn/linear_1"))?;
        }
    }
    for conv in ["conv1", "conv2"] {
        made.linear(&format!("model.encoder.{conv}"), &format!("encoder/{conv}"))?;
    }
    made.one("model.decoder.embed_tokens.weight", "decoder/embeddings/weight")?;
    Ok(made.to)
}

struct Renaming {
    from: BTreeMap<String, NamedTensor>,
    to: BTreeMap<String, NamedTensor>,
}

impl Renaming {
    fn take(&mut self, name: &str) -> Result<NamedTensor, String> {
        self.from.remove(name).ok_or_else(|| format!("`{name}` is not there"))
    }

    fn one(&mut self, old: &str, new: &str) -> Result<(), String> {
        let tensor = self.take(old)?;
        self.to.insert(new.to_owned(), tensor);
        Ok(())
    }

    fn linear(&mut self, old: &str, new: &str) -> Result<(), String> {
        self.one(&format!("{old}.weight"), &format!("{new}/weight"))?;
        self.one(&format!("{old}.bias"), &format!("{new}/bias"))
    }

    fn norm(&mut self, old: &str, new: &str) -> Result<(), String> {
        self.one(&format!("{old}.weight"), &format!("{new}/gamma"))?;
        self.one(&format!("{old}.bias"), &format!("{new}/beta"))
    }

    /// Projections one below the other; keys have no bias, which is a bias of 0.
    fn stacked(&mut self, old: &str, parts: &[&str], new: &str) -> Result<(), String> {
        let mut weight = NamedTensor { shape: vec![0, 0], values: Vec::new() };
        let mut bias = NamedTensor { shape: vec![0], values: Vec::new() };
        for part in parts {
            let own = self.take(&format!("{old}.{part}_proj.weight"))?;
            let [rows, columns] = own.shape[..] else { return Err(format!("`{old}.{part}_proj.weight` is no matrix")) };
            if weight.shape[0] > 0 && weight.shape[1] != columns {
                return Err(format!("`{old}.{part}_proj.weight` has {columns} columns, not {}", weight.shape[1]));
            }
            weight.shape = vec![weight.shape[0] + rows, columns];
            weight.values.extend(own.values);
            let own =
                self.from.remove(&format!("{old}.{part}_proj.bias")).map_or_else(|| vec![0.0; rows], |t| t.values);
            if own.len() != rows {
                return Err(format!("`{old}.{part}_proj.bias` has {} numbers, not {rows}", own.len()));
            }
            bias.shape[0] += rows;
            bias.values.extend(own);
        }
        self.to.insert(format!("{new}/weight"), weight);
        self.to.insert(format!("{new}/bias"), bias);
        Ok(())
    }
}
