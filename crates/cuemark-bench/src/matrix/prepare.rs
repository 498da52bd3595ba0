//! Data that a matrix makes for itself, before the first cell.

use camino::{Utf8Path, Utf8PathBuf};
use cuemark_core::{Progress, Truth};
use cuemark_data::{ReadOptions, read_truth};
use cuemark_formats::world_folder::WORLD;
use cuemark_formats::{Overwrite, ReadError, Source};
use cuemark_protocols::ranked::pseudo_train::{pseudo_train, without};
use cuemark_protocols::splits::{SplitProtocol, SplitRecipe, dataset_inputs, write_folder};
use cuemark_text::similarity::Tfidf;
use cuemark_train::DataConfig;

use super::expand::Made;
use super::file::Protocol;
use crate::{BenchError, Result};

/// Makes what is not there yet; `progress` has a phase for each thing that is made.
///
/// Where several processes share one folder, each names itself in `aside` and makes things beside their place first: whoever is ready
/// first puts them there, and the others find them. The same seeds make the same data, so it does not matter who that is.
///
/// # Errors
/// When it cannot be made, the disk refuses, or it was stopped. What is finished by then stays.
pub fn prepare(made: &[Made], aside: Option<&str>, progress: &Progress) -> Result<()> {
    for one in made {
        let place = one.place();
        let is_there = || if one.is_folder() { place.join("manifest.json").is_file() } else { place.is_file() };
        if is_there() {
            continue;
        }
        let Some(aside) = aside else {
            one.make(place, progress)?;
            continue;
        };
        let own = Utf8PathBuf::from(format!("{place}.{aside}"));
        one.make(&own, progress)?;
        if let Err(source) = std::fs::rename(&own, place) {
            if !is_there() {
                return Err(ReadError::Write { path: place.to_owned(), source }.into());
            }
            // Another one was faster. What we made is the same, and is not needed.
            let _ = if one.is_folder() { std::fs::remove_dir_all(&own) } else { std::fs::remove_file(&own) };
        }
    }
    Ok(())
}

impl Made {
    /// Where it belongs.
    fn place(&self) -> &Utf8Path {
        match self {
            Self::World { folder, .. } | Self::Splits { folder, .. } | Self::Ranked { folder, .. } => folder,
            Self::PseudoMoments { file, .. } => file,
        }
    }

    fn is_folder(&self) -> bool {
        !matches!(self, Self::PseudoMoments { .. })
    }

    fn make(&self, place: &Utf8Path, progress: &Progress) -> Result<()> {
        match self {
            Self::World { options, .. } => {
                cuemark_world::make(options, place, progress)?;
            }
            Self::Splits { dataset, root, protocol, .. } => {
                progress.phase("cutting splits", 0);
                splits(place, dataset, root, *protocol, progress)?;
            }
            Self::Ranked { root, .. } => {
                progress.phase("grading likest moments", 0);
                cuemark_world::write_ranked(root, place, Overwrite::Never)?;
            }
            Self::PseudoMoments { data, captions, moments, .. } => {
                progress.phase("likest moments", 0);
                likest(place, data, captions.as_deref(), *moments)?;
            }
        }
        Ok(())
    }
}

fn splits(folder: &Utf8Path, name: &str, root: &Utf8Path, protocol: Protocol, progress: &Progress) -> Result<()> {
    let recipe = protocol.maker().filter(|maker| name != WORLD || *maker != SplitProtocol::Standard);
    let Some(recipe) = recipe.map(SplitRecipe::new) else {
        let problem = format!("`{name}` brings its own splits: leave `protocol` out");
        return Err(BenchError::Matrix { place: "dataset".to_owned(), problem, hint: None });
    };
    let dataset = cuemark_data::load(cuemark_data::find(name)?, root, &ReadOptions::default(), progress)?;
    let (made, inputs) = (recipe.part(&dataset, progress)?, dataset_inputs(&dataset)?);
    write_folder(&made, name, inputs, folder, Overwrite::Never)?;
    Ok(())
}

/// Every training query with the moments whose captions are likest to it; its own is among them where the captions are the
/// training queries.
fn likest(file: &Utf8Path, data: &DataConfig, captions: Option<&Utf8Path>, moments: usize) -> Result<()> {
    let (train, val) = (data.split(&data.train)?.queries, data.split(&data.val)?.queries);
    let (queries, removed) = without(&train, &val);
    let captions = match captions {
        Some(path) => read_truth(&Source::new(path), None, &ReadOptions::default())?.queries,
        None => train,
    };
    let texts = |truths: &[Truth]| truths.iter().map(|truth| truth.query.text.clone()).collect::<Vec<_>>();
    let between = Tfidf::new(&texts(&queries), &texts(&captions));
    pseudo_train(&queries, &captions, &between, moments, removed)?.write(file, Overwrite::Never)?;
    Ok(())
}
