//! One command, one file.

mod bench;
mod compare;
mod convert;
mod data;
mod demo;
mod eval;
mod extract;
mod features;
mod find;
mod human_ceiling;
mod index;
mod index_eval;
mod mcp;
mod models;
mod pool;
mod predict;
mod rank;
mod report;
mod reproduce;
mod search;
mod serve;
mod shell;
mod split;
mod text;
mod text_bias;
mod train;
mod transcribe;
mod weights;
mod world;

use clap::Subcommand;

pub(crate) use eval::{asks_for_list as asks_for_metrics, list as list_metrics};

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
    /// Write a prediction or truth file in another layout, or its moments for another program.
    Convert(convert::Args),
    /// Published methods: what there is, their settings, their agreement with the references.
    #[command(subcommand)]
    Models(models::Action),
    /// Train a model.
    Train(train::Args),
    /// Answer queries with a trained model, or without looking at a video.
    Predict(predict::Args),
    /// Train a method as published and print published beside ours, or say what is missing.
    Reproduce(Box<reproduce::Args>),
    /// What runs, prediction files and datasets show: tables, trust cards, figures.
    Report(Box<report::Args>),
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
    /// Clip features: extract them from videos, look at them, convert them, compare two stores.
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
    /// Find the moments of one film that a sentence describes, without an index to name.
    Find(find::Args),
    /// Write down what is said in a film, with times, or what is written in its pictures.
    Transcribe(transcribe::Args),
    /// Serve an index: a page to search with, and an API.
    Serve(serve::Args),
    /// Let an assistant search your films: tools over standard input and output.
    Mcp(mcp::Args),
    /// Human performance: what people reach against each other.
    HumanCeiling(human_ceiling::Args),
    /// The built-in synthetic world: films of coloured shapes in which the truth is known.
    #[command(subcommand)]
    World(world::Action),
    /// A first look: everything on built-in material.
    Demo(demo::Args),
    /// Print a script that completes commands and flags in a shell.
    Completions(shell::CompletionsArgs),
    /// Write a manual page for every command into a folder.
    Man(shell::ManArgs),
}

impl Command {
    /// Carries it out; `program` is what the command line was understood by.
    pub(crate) fn run(self, program: clap::Command) -> anyhow::Result<Outcome> {
        match self {
            Self::Data(action) => data::run(action),
            Self::Eval(args) => eval::run(&args),
            Self::Compare(args) => compare::run(&args),
            Self::Convert(args) => convert::run(&args),
            Self::Models(action) => models::run(&action),
            Self::Train(args) => train::run(&args),
            Self::Predict(args) => predict::run(&args),
            Self::Reproduce(args) => reproduce::run(&args),
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
            Self::Find(args) => find::run(&args),
            Self::Transcribe(args) => transcribe::run(&args),
            Self::Serve(args) => serve::run(&args),
            Self::Mcp(args) => mcp::run(&args),
            Self::HumanCeiling(args) => human_ceiling::run(&args),
            Self::World(action) => world::run(&action),
            Self::Demo(args) => demo::run(&args),
            Self::Completions(args) => Ok(shell::completions(&args, program)),
            Self::Man(args) => shell::man(&args, program),
        }
    }
}
