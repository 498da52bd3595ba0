//! Data that a matrix makes for itself, before the first cell.

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::{Progress, Truth};
use cuemark_data::ReadOptions;
use cuemark_formats::world_folder::WORLD;
use cuemark_formats::{Overwrite, Source};
use cuemark_protocols::ranked::pseudo_train::{pseudo_train, without};
use cuemark_protocols::splits::{SplitProtocol, SplitRecipe, dataset_inputs, hash_inputs, write_folder};
use cuemark_text::similarity::Tfidf;
use cuemark_train::DataConfig;
use cuemark_world::SPLITS;

use super::expand::Made;
use super::file::Protocol;
use crate::{BenchError, Result};

/// Makes what is not there yet; `progress` has a phase for each thing that is made.
///
/// # Errors
/// When it cannot be made, the disk refuses, or it was stopped. What is finished by then stays.
pub fn prepare(made: &[Made], progress: &Progress) -> Result<()> {
    for one in made {
        match one {
            Made::World { folder, options } => {
                if !folder.join("manifest.json").is_file() {
                    cuemark_world::make(options, folder, progress)?;
                }
            }
            Made::Splits { folder, dataset, root, protocol } => {
                if !folder.join("manifest.json").is_file() {
                    progress.phase("cutting splits", 0);
                    splits(folder, dataset, root, *protocol, progress)?;
                }
            }
            Made::PseudoMoments { file, data, moments } => {
                if !file.is_file() {
                    progress.phase("likest moments", 0);
                    likest(file, data, *moments)?;
                }
            }
        }
    }
    Ok(())
}

fn splits(folder: &Utf8Path, name: &str, root: &Utf8Path, protocol: Protocol, progress: &Progress) -> Result<()> {
    let recipe = protocol.maker().filter(|maker| name != WORLD || *maker != SplitProtocol::Standard);
    let Some(recipe) = recipe.map(SplitRecipe::new) else {
        let problem = format!("`{name}` brings its own splits: leave `protocol` out");
        return Err(BenchError::Matrix { place: "dataset".to_owned(), problem, hint: None });
    };
    let (made, inputs) = if name == WORLD {
        let files: Vec<Utf8PathBuf> = SPLITS.iter().map(|split| format!("splits/{split}.jsonl").into()).collect();
        let mut queries: Vec<Truth> = Vec::new();
        for file in &files {
            let split = cuemark_data::read_truth(&Source::new(root.join(file)), None, &ReadOptions::default())?;
            queries.extend(split.queries);
        }
        (recipe.part_queries(&queries, progress)?, hash_inputs(root, &files)?)
    } else {
        let dataset = cuemark_data::load(cuemark_data::find(name)?, root, &ReadOptions::default(), progress)?;
        (recipe.part(&dataset, progress)?, dataset_inputs(&dataset)?)
    };
    write_folder(&made, name, inputs, folder, Overwrite::Never)?;
    Ok(())
}

/// Every training query with the moments whose captions are likest to it; its own is among them.
fn likest(file: &Utf8Path, data: &DataConfig, moments: usize) -> Result<()> {
    let (train, val) = (data.split(&data.train)?.queries, data.split(&data.val)?.queries);
    let (queries, removed) = without(&train, &val);
    let texts = |truths: &[Truth]| truths.iter().map(|truth| truth.query.text.clone()).collect::<Vec<_>>();
    let between = Tfidf::new(&texts(&queries), &texts(&train));
    pseudo_train(&queries, &train, &between, moments, removed)?.write(file, Overwrite::Never)?;
    Ok(())
}
