//! One command, one file.

mod bench;
mod compare;
mod data;
mod demo;
mod eval;
mod extract;
mod features;
mod human_ceiling;
mod index;
mod index_eval;
mod models;
mod pool;
mod predict;
mod rank;
mod report;
mod search;
mod serve;
mod split;
mod text;
mod text_bias;
mod train;
mod weights;
mod world;

use clap::Subcommand;

use crate::output::Outcome;

/// Every command, in the order that `--help` lists them.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Read, check, describe and convert the public datasets.
    #[command(subcommand)]
    Data(data::Action),
    /// Score a prediction file.
    Eval(eval::Args),
    /// Is one prediction file better than another?
    Compare(compare::Args),
    /// Published methods: what there is, their settings, their agreement with the references.
    #[command(subcommand)]
    Models(models::Action),
    /// Train a model.
    Train(train::Args),
    /// Answer queries with a trained model, or without looking at a video.
    Predict(predict::Args),
    /// What runs, prediction files and datasets show: tables, trust cards, figures.
    Report(report::Args),
    /// Run a matrix of models on datasets, and report on it.
    Bench(bench::Args),
    /// Splits that expose bias.
    #[command(subcommand)]
    Split(split::Action),
    /// Rewrite queries so that a model's dependence on their words can be measured.
    TextBias(text_bias::Args),
    /// Take queries apart: tags, verb-centred phrases, typed dependencies.
    #[command(subcommand)]
    Text(text::Action),
    /// Pools of many videos in which a query has several right answers.
    #[command(subcommand)]
    Pool(pool::Action),
    /// Graded relevance for imprecise queries: rewriting, candidates, ratings, consensus.
    #[command(subcommand)]
    Rank(rank::Action),
    /// Extract clip features from videos, look at them, convert them, hold two stores against each other.
    #[command(subcommand)]
    Features(features::Action),
    /// Weights of published encoders: what there is, fetching, checking.
    #[command(subcommand)]
    Weights(weights::Action),
    /// Make a collection of videos searchable and keep it so.
    #[command(subcommand)]
    Index(index::Action),
    /// Find the moments that a sentence describes.
    Search(search::Args),
    /// Serve an index: a page to search with, and an API.
    Serve(serve::Args),
    /// What people reach against each other.
    HumanCeiling(human_ceiling::Args),
    /// The built-in synthetic world: films of coloured shapes in which the truth is known.
    #[command(subcommand)]
    World(world::Action),
    /// A first look: everything on built-in material.
    Demo(demo::Args),
}

impl Command {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        match self {
            Self::Data(action) => data::run(action),
            Self::Eval(args) => eval::run(&args),
            Self::Compare(args) => compare::run(&args),
            Self::Models(action) => models::run(&action),
            Self::Train(args) => train::run(&args),
            Self::Predict(args) => predict::run(&args),
            Self::Report(args) => report::run(&args),
            Self::Bench(args) => bench::run(&args),
            Self::Split(action) => split::run(&action),
            Self::TextBias(args) => text_bias::run(&args),
            Self::Text(action) => text::run(&action),
            Self::Pool(action) => pool::run(&action),
            Self::Rank(action) => rank::run(action),
            Self::Features(action) => features::run(&action),
            Self::Weights(action) => weights::run(&action),
            Self::Index(action) => index::run(&action),
            Self::Search(args) => search::run(&args),
            Self::Serve(args) => serve::run(&args),
            Self::HumanCeiling(args) => human_ceiling::run(&args),
            Self::World(action) => world::run(&action),
            Self::Demo(args) => demo::run(&args),
        }
    }
}
