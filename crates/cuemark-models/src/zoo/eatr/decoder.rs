//! The decoder whose anchors are events, with the gate of its first layer.

use candle_core::{D, Result, Tensor};
use candle_nn::{Module, VarBuilder};
use cuemark_tensor::Pass;
use cuemark_tensor::functional::sigmoid;

use crate::layers::detr::{
    AnchorHeads, AnchorLayer, Drawn, LayerPlan, Memory, Mlp, MlpEnd, anchor_code, glorot, logit,
};
use crate::layers::{LayerNorm, Linear, MultiHead};

#[derive(Debug)]
pub(super) struct EventDecoder {
    layers: Vec<AnchorLayer>,
    gate: Gate,
    norm: LayerNorm,
    event_norm: LayerNorm,
    heads: AnchorHeads,
    event: Mlp,
    moment: Mlp,
    width: usize,
}

/// What the decoder gives.
pub(super) struct Decoded {
    pub(super) event_state: Tensor,
    /// Centre and width of the events, `[batch, slots, 2]`.
    pub(super) events: Tensor,
    pub(super) gated: Tensor,
    /// The anchors that entered each layer.
    pub(super) anchors: Vec<Tensor>,
    /// Normed states of each layer, and the spans that they say.
    pub(super) states: Vec<Tensor>,
    pub(super) spans: Vec<Tensor>,
}

/// Slots that fit the sentence are let through.
#[derive(Debug)]
struct Gate {
    cross: MultiHead,
    among: MultiHead,
    linear: Linear,
    norm: LayerNorm,
    dropout: f64,
}

impl Gate {
    fn new(plan: &LayerPlan, vb: &VarBuilder) -> Result<Self> {
        Ok(Self {
            cross: MultiHead::glorot(plan.width, 1, vb.pp("gate_cross_attn"))?,
            among: MultiHead::glorot(plan.width, 1, vb.pp("gate_self_attn"))?,
            linear: glorot(plan.width, plan.width, vb.pp("gate_linear"))?,
            norm: LayerNorm::new(plan.width, 1e-5, vb.pp("gate_norm"))?,
            dropout: plan.dropout,
        })
    }

    fn forward(&self, slots: &Tensor, sentence: &Tensor, pass: &Pass) -> Result<Tensor> {
        let sentence = sentence.unsqueeze(1)?;
        let told = self.cross.forward(slots, &sentence, &sentence, None, self.dropout, pass)?;
        let open = sigmoid(&(slots * &told)?)?;
        let both = (slots + told)?;
        let seen = self.among.forward(&both, &both, &both, None, self.dropout, pass)?;
        let through = self.linear.forward(&(open * seen)?)?.relu()?;
        self.norm.forward(&(slots + pass.dropout(&through, self.dropout)?)?)
    }
}

impl EventDecoder {
    pub(super) fn new(plan: &LayerPlan, count: usize, vb: &VarBuilder) -> Result<Self> {
        let (inner, width) = (vb.pp("transformer.decoder"), plan.width);
        let layer = |number: usize| AnchorLayer::new(plan, number, &inner.pp("layers").pp(number));
        let spans = |name: &str| Mlp::new(&[width, width, width, 2], Drawn::Default, MlpEnd::Zero, &vb.pp(name));
        Ok(Self {
            layers: (0..count).map(layer).collect::<Result<_>>()?,
            gate: Gate::new(plan, &inner.pp("layers.0"))?,
            norm: LayerNorm::new(width, 1e-5, inner.pp("norm"))?,
            event_norm: LayerNorm::new(width, 1e-5, inner.pp("event_norm"))?,
            heads: AnchorHeads::new(2 * width, width, &inner)?,
            event: spans("event_span_embed")?,
            moment: spans("moment_span_embed")?,
            width,
        })
    }

    /// # Shapes
    /// - slots `[batch, slots, width]`, sentence `[batch, width]`
    pub(super) fn forward(
        &self,
        slots: &Tensor,
        sentence: &Tensor,
        memory: Memory<'_>,
        pass: &Pass,
    ) -> Result<Decoded> {
        let event_state = self.event_norm.forward(slots)?;
        let mut decoded = Decoded {
            events: sigmoid(&self.event.forward(&event_state)?)?,
            event_state,
            gated: slots.clone(),
            anchors: Vec::new(),
            states: Vec::new(),
            spans: Vec::new(),
        };
        let mut anchors = sigmoid(&self.event.forward(slots)?)?;
        let mut x = slots.clone();
        for (number, layer) in self.layers.iter().enumerate() {
            let seen = anchors.detach();
            let code = anchor_code(&seen, self.width)?;
            let place = self.heads.place(&code)?;
            let sine = self.heads.scaled(&code.narrow(D::Minus1, 0, self.width)?, &x)?;
            let sine = self.heads.sharpened(&sine, &x, &seen)?;
            x = layer.look_around(&x, &place, pass)?;
            if number == 0 {
                x = self.gate.forward(&x, sentence, pass)?;
                decoded.gated = x.clone();
            }
            x = layer.look_up(&x, &place, &sine, memory, pass)?;
            let state = self.norm.forward(&x)?;
            // The span head counts from the anchor with its gradient, so moments teach events too.
            decoded.spans.push(sigmoid(&(self.moment.forward(&state)? + logit(&anchors)?)?)?);
            decoded.states.push(state);
            decoded.anchors.push(anchors);
            anchors = sigmoid(&(self.moment.forward(&x)? + logit(&seen)?)?)?;
        }
        Ok(decoded)
    }
}
