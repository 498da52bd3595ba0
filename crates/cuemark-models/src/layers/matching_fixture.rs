//! What fixtures of MMN, RMMN and TRM state.

use cuemark_core::NormSpan;

use super::{BertSize, CellFill, MapSize, MapSupport, MatchingEncoderSize};
use crate::Result;
use crate::check::Fixture;
use crate::losses::{Excluded, MutualMatching};

impl MatchingEncoderSize {
    /// Those of a fixture of MMN or TRM.
    ///
    /// # Errors
    /// When it does not state them.
    pub fn of_fixture(fixture: &Fixture) -> Result<Self> {
        Ok(Self {
            map: MapSize::of_fixture(fixture, "pooling_counts")?,
            fill: if fixture.variant() == Some("conv") { CellFill::Conv } else { CellFill::Pool },
            hidden: fixture.number("hidden")?,
            joint: fixture.number("joint")?,
            kernel: fixture.number("conv.kernel")?,
            layers: fixture.number("conv.layers")?,
            support: MapSupport::Exact,
            scale: fixture.real("cosine_scale")?,
            text: BertSize {
                dim: fixture.number("distilbert.dim")?,
                layers: fixture.number("distilbert.layers")?,
                heads: fixture.number("distilbert.heads")?,
                ffn: fixture.number("distilbert.ffn")?,
                positions: fixture.number("distilbert.max_pos")?,
                eps: fixture.real("distilbert.ln_eps")?,
                ..BertSize::default()
            },
        })
    }
}

impl MutualMatching {
    /// Those of a fixture of MMN or TRM.
    ///
    /// # Errors
    /// When it does not state them.
    pub fn of_fixture(fixture: &Fixture) -> Result<Self> {
        Ok(Self {
            margin: fixture.real("loss.margin")?,
            tau: fixture.real("loss.tau")?,
            top_k: fixture.number("loss.top_k")?,
            negative_iou: fixture.real("loss.neg_iou")?,
            sentence_iou: fixture.real("loss.sent_removal_iou")?,
            excluded: Excluded::Zeroed,
            eps: fixture.real("loss.eps")?,
            weight: fixture.real("loss.contrastive_weight")?,
            ..Self::default()
        })
    }
}

/// The video of each sentence, from `in.sent_per_video`.
///
/// # Errors
/// When it does not state them.
pub fn video_of_sentences(fixture: &Fixture) -> Result<Vec<usize>> {
    let counts = fixture.counts("sent_per_video")?;
    Ok(counts.iter().enumerate().flat_map(|(video, count)| std::iter::repeat_n(video, *count)).collect())
}

/// `in.moments`, as fractions of one length for all: only overlaps inside a video are asked of them.
///
/// # Errors
/// When it does not state them.
pub fn spans_of(fixture: &Fixture) -> Result<Vec<NormSpan>> {
    let span = |row: Vec<f32>| match row.as_slice() {
        [start, end] => NormSpan::new(f64::from(*start), f64::from(*end)),
        _ => None,
    };
    let rows = fixture.input("moments")?.to_vec2::<f32>()?;
    let spans: Option<Vec<NormSpan>> = rows.into_iter().map(span).collect();
    spans.ok_or_else(|| fixture.fault("in.moments", "holds something that is no span"))
}
