//! Every metric of moment retrieval, defined once.
//!
//! One metric is one pure function in one file, scored per query. [`Plan`] says which metrics to compute and through
//! which named steps (order, suppression, clipping) the lists go first; a [`Preset`] is the plan that reproduces one
//! published evaluator to the digit. [`evaluate`] runs a plan; [`intervals`] and [`compare`] say how far to trust the result.

mod abstention;
mod alias;
mod bootstrap;
mod case;
mod catalogue;
mod compare;
mod didemo;
mod discounted_recall;
mod error;
mod evaluate;
mod groups;
mod highlights;
mod judge;
mod map;
mod matching;
mod mean_iou;
mod name;
mod ndcg;
mod plan;
mod preset;
mod ranked_clips;
mod recall;
mod report;
mod scorer;
mod sheet;
mod step;
mod suitable;

pub use abstention::{
    Abstention, AbstentionPoint, Answerable, POINTS, Ventured, abstention, refusal_precision, refusal_recall,
};
pub use bootstrap::{Bootstrap, intervals};
pub use catalogue::{METRICS, MetricCard};
pub use compare::{PairedComparison, compare, holm};
pub use cuemark_core::stats::Interval;
pub use didemo::{average_rank, chunk_miou};
pub use discounted_recall::{WhichHit, discounted_recall_at};
pub use error::EvalError;
pub use evaluate::{Column, Evaluation, evaluate};
pub use groups::{Group, Grouping, LengthRange};
pub use highlights::{HighlightLevel, highlight_ap, highlight_hit};
pub use judge::{Gain, Judge, Matching, Threshold};
pub use map::{average_precision, target_recall_at};
pub use mean_iou::top_iou;
pub use name::{Metric, MetricName, parse_list};
pub use ndcg::{GradedSpan, ndcg_at};
pub use plan::{Missing, Order, Overrides, Plan, Stage, Suppression, TruthSpans};
pub use preset::Preset;
pub use ranked_clips::{NoHighlight, clips_ap, top_clips_ap};
pub use recall::{hit_within, recall_at};
pub use report::Report;
pub use sheet::{LATEX_NEEDS, Sheet, SheetCell, SheetRow, csv_line, escape_latex, escape_markdown, latex_float};
pub use step::{Step, Ties};
pub use suitable::suitable;
