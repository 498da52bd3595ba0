//! PLRN: LGI with one phrase, position codes in the query, and a second head that regresses centre and width.
//! Kim et al., "Position-aware Location Regression Network for Temporal Video Grounding", AVSS 2021.
//!
//! Built from the blocks of [`super::lgi`], whose deviations hold here too. The softmax over a single phrase is always 1
//! and is not computed; answers come from the boundary head alone. Every word has a position of its own, as the paper
//! says; the published code, run with a PyTorch that knows boolean masks, turns positions into booleans and tells only the
//! first word from the rest (`word_places = "first-or-not"`).

use candle_core::Tensor;
use candle_nn::{Init, Module, VarBuilder};
use cuemark_features::Normalise;
use cuemark_features::resample::Resample;
use cuemark_tensor::Pass;
use serde::{Deserialize, Serialize};

use super::lgi::{
    AttentionWidths, Fusion, GlobalBlock, Head, LocalContext, Output, PaddedClips, QueryEncoder, Scorer, TemporalPool,
    VideoEncoder, WordAttention, answers, given_of, guidance_loss, kept_clips, output_of, pair_loss, truth_of,
    widths_of,
};
use crate::check::{Fixture, Trace};
use crate::layers::{Linear, Pair, QueryWords, WordSource, final_states, linear};
use crate::{Batch, Family, FullSize, Given, Input, Loss, Model, ModelCard, Proposal, Result, Supervision, Task};

/// What registers the model.
pub static CARD: ModelCard = ModelCard {
    name: "plrn",
    title: "PLRN",
    paper: "Kim et al., Position-aware Location Regression Network for Temporal Video Grounding, AVSS 2021",
    family: Family::Regression,
    tasks: &[Task::SingleVideo],
    supervision: Supervision::Full,
    idea: "one phrase with word positions fused with the video; regresses ends, and centre and width beside them",
    full_sizes: &[FullSize {
        dataset: "charades-sta",
        settings: "words = 10\noutput = \"relu\"\nword_vectors = { own-of = 1111 }",
        visual: 1024,
        words: 300,
        millions: Some(16.0),
    }],
    build: |settings, given, vb| Ok(Box::new(Plrn::new(&settings.read()?, given, vb)?)),
    settings: |settings| settings.filled::<PlrnConfig>(),
    check,
};

/// Settings, read from `[model]` in a run file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PlrnConfig {
    /// The most clips of a video; longer ones are averaged to so many. Default: 128
    pub clips: usize,
    /// Positions of words that are told apart; words after them share the last. Default: 20
    pub words: usize,
    /// Which words have a position of their own. Default: each
    pub word_places: WordPlaces,
    /// Width of clips and everything after them. Default: 512
    pub hidden: usize,
    /// Width of the query's states, both ways together. Default: 512
    pub query: usize,
    /// Width of the regressions' hidden layers. Default: 512
    pub head: usize,
    /// Widths of the attentions. Default: 256 each
    pub attention: AttentionWidths,
    /// Layers of the query's LSTM. Default: 2
    pub lstm_layers: usize,
    /// Length of the local convolutions; odd. Default: 15
    pub kernel: usize,
    /// Local blocks. Default: 1
    pub local_blocks: usize,
    /// Global blocks. Default: 2
    pub blocks: usize,
    /// Heads of a global block. Default: 4
    pub heads: usize,
    /// What bounds the outputs. Default: sigmoid
    pub output: Output,
    /// Weight of the temporal attention's loss; 0 in the MoLEF benchmark. Default: 1.0
    pub attention_weight: f64,
    /// Weight of the centre's and width's loss. Default: 1.0
    pub centre_weight: f64,
    /// Share of values dropped. Default: 0.5
    pub dropout: f64,
    /// Where word vectors come from. Default: given
    pub word_vectors: WordSource,
    /// Whether padded clips reach the convolutions. Default: masked
    pub padded_clips: PaddedClips,
}

impl Default for PlrnConfig {
    fn default() -> Self {
        Self {
            clips: 128,
            words: 20,
            word_places: WordPlaces::default(),
            hidden: 512,
            query: 512,
            head: 512,
            attention: AttentionWidths::default(),
            lstm_layers: 2,
            kernel: 15,
            local_blocks: 1,
            blocks: 2,
            heads: 4,
            output: Output::default(),
            attention_weight: 1.0,
            centre_weight: 1.0,
            dropout: 0.5,
            word_vectors: WordSource::default(),
            padded_clips: PaddedClips::default(),
        }
    }
}

/// Which words have a position of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WordPlaces {
    /// Each. Default.
    #[default]
    Each,
    /// The first; all others share the second one's.
    FirstOrNot,
}

/// The network.
#[derive(Debug)]
pub struct Plrn {
    config: PlrnConfig,
    words: QueryWords,
    places: Tensor,
    query: QueryEncoder,
    video: VideoEncoder,
    of_sentence: Linear,
    guide: Linear,
    attention: WordAttention,
    fuse: Fusion,
    local: LocalContext,
    global: Vec<GlobalBlock>,
    pool: TemporalPool,
    ends: Head,
    centre: Head,
}

/// Everything on the way to the two heads.
struct Forward {
    words: Tensor,
    sentence: Tensor,
    segments: Tensor,
    phrase: Tensor,
    word_attention: Tensor,
    context: Tensor,
    temporal: Tensor,
    ends: Tensor,
    centre: Tensor,
}

impl Plrn {
    /// The network of these settings.
    ///
    /// # Errors
    /// When a parameter is missing or misshaped, and for heads that do not divide the width.
    pub fn new(config: &PlrnConfig, given: &Given, vb: VarBuilder) -> Result<Self> {
        let (hidden, query, widths) = (config.hidden, config.query, config.attention);
        let (encoder, reader, context, head) = (vb.pp("query_enc"), vb.pp("qan"), vb.pp("vti_fn"), vb.pp("ta_reg_fn"));
        let global = |n: usize| GlobalBlock::new(hidden, config.heads, CARD.name, &context.pp("global_fn").pp(n));
        // Published checkpoints hold the weighting of phrases, which has no effect on a single one.
        Scorer::new(query, widths.phrases, &context.pp("satt_fn"))?;
        linear(query, query, context.pp("satt_fn.fc"))?;
        let normal = Init::Randn { mean: 0.0, stdev: 1.0 };
        Ok(Self {
            words: QueryWords::new(config.word_vectors, given, "query_enc.embedding.weight", &vb)?,
            places: encoder.get_with_hints((config.words, given.words), "pos_emb_fn.0.weight", normal)?,
            query: QueryEncoder::new(given.words, query, config.lstm_layers, config.dropout, &encoder.pp("rnn"))?,
            video: VideoEncoder::new(given.visual, hidden, config.clips, config.dropout, &vb.pp("video_enc"))?,
            of_sentence: linear(query, query, reader.pp("global_emb_fn"))?,
            guide: linear(query, query, reader.pp("guide_emb_fn.0"))?,
            attention: WordAttention::new(query, widths.words, &reader.pp("att_fn"))?,
            fuse: Fusion::new(hidden, query, &context.pp("fusion_fn"))?,
            local: LocalContext::new(hidden, config.kernel, config.local_blocks, &context.pp("local_fn"))?,
            global: (0..config.blocks).map(global).collect::<Result<_>>()?,
            pool: TemporalPool::new(hidden, widths.clips, &head.pp("tatt"))?,
            ends: Head::new(hidden, config.head, config.output, &head.pp("MLP_reg"))?,
            centre: Head::new(hidden, config.head, config.output, &head.pp("MLP_cw_reg"))?,
            config: config.clone(),
        })
    }

    /// # Shapes
    /// - see [`Pair`]; ends and centre of the result `[batch, 2]`: start and end, centre and width, as fractions
    fn forward(&self, pair: &Pair, pass: &Pass) -> Result<Forward> {
        let words = (pair.words + self.word_places(pair, pass)?)?;
        let words = self.query.forward(&words, pair.lengths, pass)?;
        let sentence = final_states(&words, pair.lengths)?;
        let segments = self.video.forward(pair.visual, pair.clip_mask, pass)?;
        let guide = self.guide.forward(&self.of_sentence.forward(&sentence)?)?.relu()?;
        let (phrase, word_attention) = self.attention.forward(&guide, &words, pair.word_mask)?;
        let phrase = phrase.unsqueeze(1)?;
        let fused = self.fuse.forward(&segments, &phrase)?;
        let mut context = self.local.forward(&fused, &kept_clips(self.config.padded_clips, pair.clip_mask)?, pass)?;
        for block in &self.global {
            context = block.forward(&context, pair.clip_mask)?;
        }
        let (temporal, pooled) = self.pool.forward(&context, pair.clip_mask)?;
        let (ends, centre) = (self.ends.forward(&pooled)?, self.centre.forward(&pooled)?);
        Ok(Forward { words, sentence, segments, phrase, word_attention, context, temporal, ends, centre })
    }

    /// What is added to each word for where it stands, `[batch, words, d_word]`, zero at padding.
    fn word_places(&self, pair: &Pair, pass: &Pass) -> Result<Tensor> {
        let last = match self.config.word_places {
            WordPlaces::Each => self.config.words,
            WordPlaces::FirstOrNot => self.config.words.min(2),
        }
        .saturating_sub(1);
        let rows: Vec<u32> = (0..pair.words.dim(1)?).map(|place| place.min(last) as u32).collect();
        let places = self.places.index_select(&Tensor::new(rows, pair.words.device())?, 0)?.relu()?;
        let places = pass.dropout(&places.broadcast_as(pair.words.shape())?.contiguous()?, self.config.dropout)?;
        Ok(places.broadcast_mul(&pair.word_mask.unsqueeze(2)?)?)
    }

    fn of_batch(&self, batch: &Batch, pass: &Pass) -> Result<Forward> {
        let words = self.words.forward(&batch.queries)?;
        self.forward(&Pair::of(batch, &words), pass)
    }

    /// Regression, attention, centre and width, unweighted, then the total.
    ///
    /// # Shapes
    /// - truth `[batch, 2]`, inside `[batch, clips]`, 1 at clips of the moment
    fn losses(&self, forward: &Forward, truth: &Tensor, inside: &Tensor) -> Result<[Tensor; 4]> {
        let (start, end) = (truth.narrow(1, 0, 1)?, truth.narrow(1, 1, 1)?);
        let centre_and_width = Tensor::cat(&[((&start + &end)? * 0.5)?, (end - start)?], 1)?;
        let regression = pair_loss(&forward.ends, truth)?;
        let temporal = guidance_loss(&forward.temporal, inside)?;
        let centre = pair_loss(&forward.centre, &centre_and_width)?;
        let total =
            ((&regression + (&temporal * self.config.attention_weight)?)? + (&centre * self.config.centre_weight)?)?;
        Ok([regression, temporal, centre, total])
    }
}

impl Model for Plrn {
    fn input(&self) -> Input {
        let rows = self.config.clips;
        Input { normalise: Normalise::None, resample: Resample::MeanBinsIfLonger { rows }, ..Input::pairs(rows) }
    }

    fn loss(&self, batch: &Batch, pass: &Pass) -> Result<Loss> {
        let (truth, inside) = truth_of(batch, CARD.name)?;
        let [regression, attention, centre, total] = self.losses(&self.of_batch(batch, pass)?, &truth, &inside)?;
        Ok(Loss { total, parts: vec![("regression", regression), ("attention", attention), ("centre", centre)] })
    }

    fn propose(&self, batch: &Batch) -> Result<Vec<Vec<Proposal>>> {
        answers(&self.of_batch(batch, &Pass::answering())?.ends)
    }
}

fn check(fixture: &Fixture, vb: &VarBuilder) -> Result<Trace> {
    let config = PlrnConfig {
        clips: fixture.number("video_enc_pemb_idim")?,
        words: fixture.number("query_enc_pemb_idim")?,
        word_places: WordPlaces::FirstOrNot,
        hidden: fixture.number("video_enc_vemb_odim")?,
        query: 2 * fixture.number("query_enc_rnn_hdim")?,
        head: fixture.number("grounding_hdim")?,
        attention: widths_of(fixture, "qan_att_hdim")?,
        lstm_layers: fixture.number("query_enc_rnn_nlayer")?,
        kernel: fixture.number("conv_kernel")?,
        local_blocks: fixture.number("lgi_local_num_res_blocks")?,
        blocks: fixture.number("lgi_global_num_nl_block")?,
        heads: fixture.number("lgi_global_nl_nheads")?,
        output: output_of(fixture)?,
        attention_weight: fixture.real("tag_weight")?,
        centre_weight: fixture.real("center_width_weight")?,
        dropout: 0.0,
        word_vectors: WordSource::Own,
        padded_clips: PaddedClips::Published,
    };
    let visual = fixture.input("video_features")?;
    let net = Plrn::new(&config, &given_of(fixture, &visual)?, vb.clone())?;
    let (clip_mask, word_mask) = (fixture.input("video_mask")?, fixture.input("query_mask")?);
    let words = net.words.look_up(&fixture.ids("query_ids")?, &word_mask)?;
    let lengths = fixture.lengths("query_mask")?;
    let pair = Pair { visual: &visual, clip_mask: &clip_mask, words: &words, word_mask: &word_mask, lengths: &lengths };
    let forward = net.forward(&pair, &Pass::answering())?;
    let truth = Tensor::stack(&[fixture.input("gt_start")?, fixture.input("gt_end")?], 1)?;
    let [regression, attention, centre, total] = net.losses(&forward, &truth, &fixture.input("attention_mask")?)?;

    let mut trace = Trace::new();
    trace.out("word_features", &forward.words);
    trace.out("sentence_feature", &forward.sentence);
    trace.out("segment_embedding", &forward.segments);
    trace.out("phrase_features", &forward.phrase);
    trace.out("phrase_word_attention", &forward.word_attention.unsqueeze(1)?);
    trace.out("phrase_weights", &Tensor::ones((visual.dim(0)?, 1), visual.dtype(), visual.device())?);
    trace.out("semantics_aware_segments", &forward.context);
    trace.out("temporal_attention", &forward.temporal);
    trace.out("start_end", &forward.ends);
    trace.out("center_width", &forward.centre);
    trace.loss("regression", &regression);
    trace.loss("tag", &attention);
    trace.loss("center_width", &centre);
    trace.loss("total", &total);
    Ok(trace)
}

#[cfg(test)]
mod tests {
    use cuemark_tensor::{Device, Params};

    use super::*;
    use crate::testing::{TOY, assert_learnt_by_heart, gap};

    fn config(padded_clips: PaddedClips) -> PlrnConfig {
        PlrnConfig {
            clips: 12,
            words: 4,
            word_places: WordPlaces::Each,
            hidden: 16,
            query: 12,
            head: 10,
            attention: AttentionWidths { words: 8, phrases: 6, clips: 4 },
            lstm_layers: 2,
            kernel: 3,
            local_blocks: 1,
            blocks: 1,
            heads: 2,
            output: Output::Sigmoid,
            attention_weight: 1.0,
            centre_weight: 1.0,
            dropout: 0.0,
            word_vectors: WordSource::Own,
            padded_clips,
        }
    }

    fn net(padded_clips: PaddedClips) -> Plrn {
        Plrn::new(&config(padded_clips), &TOY.given(), Params::seeded(1, &Device::Cpu).builder()).unwrap()
    }

    fn ends(net: &Plrn, batch: &Batch) -> Tensor {
        net.of_batch(batch, &Pass::answering()).unwrap().ends
    }

    #[test]
    fn every_query_gets_one_span_inside_its_video() {
        let ranked = net(PaddedClips::Masked).propose(&TOY.batch(1)).unwrap();
        assert_eq!(ranked.len(), TOY.pairs);
        for proposals in ranked {
            assert_eq!(proposals.len(), 1);
            assert!(proposals[0].span.start() >= 0.0 && proposals[0].span.end() <= 1.0);
        }
    }

    #[test]
    fn padding_changes_nothing_unless_the_published_leak_is_asked_for() {
        let batch = TOY.batch(1);
        let masked = net(PaddedClips::Masked);
        assert!(gap(&ends(&masked, &batch), &ends(&masked, &batch.with_longer_words(3))) < 1e-6);
        assert!(gap(&ends(&masked, &batch), &ends(&masked, &batch.with_longer_videos(3))) < 1e-6);
        let published = net(PaddedClips::Published);
        assert!(gap(&ends(&published, &batch), &ends(&published, &batch.with_longer_videos(3))) > 1e-6);
    }

    #[test]
    fn one_batch_can_be_learnt_by_heart() {
        let batch = TOY.batch(1);
        let build = |vb: VarBuilder| Plrn::new(&config(PaddedClips::Masked), &TOY.given(), vb);
        assert_learnt_by_heart(build, &batch, 120, 5e-3, 0.8);
    }
}
