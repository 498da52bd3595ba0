//! Data that a matrix makes for itself, before the first cell.

use camino::Utf8Path;
use cuemark_core::{Progress, Truth};
use cuemark_data::ReadOptions;
use cuemark_formats::{Overwrite, Source};
use cuemark_protocols::ranked::pseudo_train::{pseudo_train, without};
use cuemark_protocols::splits::{
    CdOptions, CentreOptions, MadeSplits, StandardOptions, cd, centre, hash_inputs, standard, write_folder,
};
use cuemark_text::similarity::Tfidf;
use cuemark_train::DataConfig;
use cuemark_world::SPLITS;

use super::expand::Made;
use super::file::{Protocol, WORLD};
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
    let (queries, made_standard, files) = if name == WORLD {
        let files: Vec<_> = SPLITS.iter().map(|split| format!("splits/{split}.jsonl").into()).collect();
        let mut queries: Vec<Truth> = Vec::new();
        for file in &files {
            let file: &camino::Utf8PathBuf = file;
            queries.extend(
                cuemark_data::read_truth(&Source::new(root.join(file)), None, &ReadOptions::default())?.queries,
            );
        }
        (queries, None, files)
    } else {
        let dataset = cuemark_data::load(cuemark_data::find(name)?, root, &ReadOptions::default(), progress)?;
        let mut files: Vec<camino::Utf8PathBuf> =
            dataset.splits.iter().map(|split| split.file.clone().into()).collect();
        files.dedup();
        let made = match protocol {
            Protocol::Standard => Some(standard(dataset.card.name, &dataset.splits, &StandardOptions::default())?),
            _ => None,
        };
        (dataset.all().queries, made, files)
    };
    let made: MadeSplits = match (protocol, made_standard) {
        (_, Some(made)) => made,
        (Protocol::Cd, None) => cd(&queries, &CdOptions::default(), progress)?,
        (Protocol::Centre, None) => centre(&queries, &CentreOptions::default())?,
        (Protocol::Own | Protocol::Standard, None) => {
            let problem = format!("`{name}` brings its own splits: leave `protocol` out");
            return Err(BenchError::Matrix { place: "dataset".to_owned(), problem, hint: None });
        }
    };
    write_folder(&made, name, hash_inputs(root, &files)?, folder, Overwrite::Never)?;
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
