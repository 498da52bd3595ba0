//! The verbs of cuemark: what you want done is a plain struct, what came of it another.
//!
//! | you want to | request | answer |
//! | --- | --- | --- |
//! | score a prediction file | [`Score`] | [`Scored`] |
//! | find the moments that a sentence describes | [`Ask`] | [`Found`] |
//! | find them in one film, without an index | [`FindInFilm`] | [`Found`] |
//! | cut a moment into a file of its own | [`CutClip`] | [`WrittenClip`] |
//! | write down what is said or written in a film | [`Transcribe`] | [`Transcript`] |
//! | know which indexes and films there are | [`ListFilms`] | [`ListedFilms`] |
//! | make a collection of videos searchable | [`CreateIndex`], [`AddVideos`], [`RemoveVideos`] | [`CreatedIndex`], [`AddedVideos`], [`RemovedVideos`] |
//! | keep what people said of answers, and fit probabilities to it | [`JudgedFile`], [`CalibrateIndex`] | [`Judgements`], [`CalibratedIndex`] |
//! | keep an index sound and small | [`DescribeIndex`], [`VerifyIndex`], [`CompactIndex`], [`SalvageIndex`] | [`DescribedIndex`], [`VerifiedIndex`], [`CompactedIndex`], [`Salvaged`] |
//! | turn videos into clip features | [`Extract`] | [`ExtractedFeatures`] |
//! | train a model | [`Train`] | [`TrainedRun`] |
//! | let a model, or a guess that sees no video, answer queries | [`Predict`] | [`WrittenPredictions`] |
//! | let a published checkpoint answer, or know whether it is one of a method | [`Predict`] with a [`PublishedModel`], [`LoadCheckpoint`] | [`WrittenPredictions`], [`LoadedCheckpoint`] |
//! | open a trained model in PyTorch | [`ExportModel`] | [`ExportedModel`] |
//! | make a published result again, and see it beside what was printed | [`Reproduce`] | [`Reproduced`] |
//! | run a whole study of models, features and seeds | [`RunStudy`] | [`RanStudy`] |
//! | know whether one file is better than others | [`Compare`] | [`Compared`] |
//! | write a file in another layout, or for another program | [`Convert`] | [`Converted`] |
//! | look at your own annotations | [`CheckFile`] | [`CheckedFile`] |
//! | report on prediction files | [`ReportFiles`] | [`ReportedFiles`] |
//! | make splits that expose bias, and look at any | [`MakeSplits`], [`AuditSplits`] | [`WrittenSplits`], [`AuditedSplits`] |
//! | make pools in which a query has several right answers | [`MakePools`] | [`WrittenPools`] |
//! | rewrite queries to see what a model makes of their words | [`RewriteQueries`] | [`VariantReport`](cuemark_text::variants::VariantReport) |
//! | take the names of characters out of queries, as a language model does | [`TakeNamesOut`] | [`NamesTakenOut`] |
//! | hold our protocols against a world whose truth is known | [`AuditWorld`] | [`AuditedWorld`] |
//!
//! Every request has defaults, can be written as JSON or TOML (`serde`) and, with the feature `clap`, filled from a
//! command line. `run` takes a [`Progress`], through which long work can be watched and stopped. Errors carry
//! [`Advice`](cuemark_core::Advice) that each front end says in its own words.
//!
//! The program, the Python package and the server are skins over this crate: they fill a request and print an answer.
//!
//! # What has no request
//!
//! What is one call of a library function is called there: filming a world (`cuemark_world::make` with its `WorldOptions`),
//! reading, checking and describing a dataset (`cuemark_data::{load, check, stats}`), looking at a store of features or converting
//! one (`cuemark_features::{survey, compare, convert}`), parsing sentences (`cuemark_text::shallow_parse`), ratings and their
//! consensus (`cuemark_protocols::ranked`), what people reach (`cuemark_protocols::human_ceiling`), weights
//! (`cuemark_encoders::weights`), the networks themselves (`cuemark_models::registry`), lists in memory (`cuemark_metrics`).

mod audit_splits;
mod audit_world;
mod belonging;
mod check_file;
mod compare;
mod convert;
mod dataset_folder;
mod device;
mod error;
mod export_model;
mod extract;
mod load_checkpoint;
mod make_pools;
mod make_splits;
mod nearness;
mod note;
mod predict;
mod prediction_file;
mod published_model;
mod queries;
mod report;
mod reproduce;
mod resampling;
mod rewrite_queries;
mod run_files;
mod score;
mod scoring;
mod search;
mod similarity;
mod study;
mod take_names_out;
mod train;
mod truth_file;

pub use audit_splits::{AuditSplits, AuditedSplits};
pub use audit_world::{AuditWorld, AuditedWorld};
pub use belonging::Leniency;
pub use check_file::{CheckFile, CheckedFile};
pub use compare::{Compare, Compared, ComparedFile, ComparedMetric, ComparedPair};
pub use convert::{Convert, Converted};
pub use cuemark_core::Progress;
pub use cuemark_features::FeatureVariant;
pub use cuemark_protocols::splits::{SplitProtocol, SplitRecipe};
pub use cuemark_search::Salvaged;
pub use cuemark_text::variants::QueryText;
pub use cuemark_train::Among;
pub use dataset_folder::{DatasetFolder, NamedDataset, dataset_notes};
pub use error::{Error, Result};
pub use export_model::{ExportModel, ExportedModel, WeightFile};
pub use extract::{Extract, ExtractedFeatures, Shard};
pub use load_checkpoint::{LoadCheckpoint, LoadedCheckpoint};
pub use make_pools::{MakePools, PositiveNegative, WrittenPools};
pub use make_splits::{MakeSplits, WrittenSplits};
pub use note::{Note, RowsOf, row_notes};
pub use predict::{AskModel, Predict, WrittenPredictions};
pub use prediction_file::{PredictionFile, PredictionReading, ReadAnswers, ReadPredictions};
pub use published_model::PublishedModel;
pub use queries::Queries;
pub use report::{Elsewhere, ReportFiles, ReportedFiles, add_baselines};
pub use reproduce::{BesideFigure, Need, Reproduce, Reproduced, ReproducedRun, Standing};
pub use resampling::{Resampling, confidence};
pub use rewrite_queries::RewriteQueries;
pub use score::{Score, Scored, Took};
pub use scoring::{CheckedScoring, ScoredLists, Scoring};
pub use search::{
    AddVideos, AddedVideos, Ask, Asking, CalibrateIndex, CalibratedIndex, CompactIndex, CompactedIndex, CreateIndex,
    CreatedIndex, CutClip, DescribeIndex, DescribedIndex, FindInFilm, Found, FoundBecause, FoundConcept, FoundMoment,
    FoundUnseen, FoundWord, IndexPlace, JudgedFile, Judgement, Judgements, ListFilms, ListedFilms, RemoveVideos,
    RemovedVideos, SalvageIndex, Shown, Transcribe, Transcript, TranscriptLayout, Verdict, VerifiedIndex, VerifyIndex,
    Videos, WrittenClip, parse_moment, parse_span,
};
pub use similarity::SimilarityBy;
pub use study::{FillCell, RanStudy, RunStudy, Study, StudySettings, WrittenStudy};
pub use take_names_out::{NamesBy, NamesTakenOut, TakeNamesOut};
pub use train::{Train, TrainedRun};
pub use truth_file::{TruthFile, TruthReading, truth_notes};
