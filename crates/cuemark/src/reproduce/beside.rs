//! What papers print beside what our runs reach.

use cuemark_bench::{Figure, Key, Published};
use cuemark_core::{Progress, Split};
use cuemark_features::FeatureVariant;
use cuemark_metrics::{MetricName, Overrides, Plan, evaluate, parse_list};
use cuemark_tensor::Device;
use cuemark_train::{Among, PredictOptions, RunFile, RunFolder, Trained};
use serde::Serialize;

use super::needs::{Need, Standing};
use crate::Result;

/// One printed figure and ours.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BesideFigure {
    /// The split that the paper names.
    pub split: String,
    /// The split of ours that stands for it.
    pub ours_on: String,
    /// The metric.
    pub metric: String,
    /// The paper and its table.
    pub paper: String,
    /// The features that the paper names.
    pub features: String,
    /// As printed, a fraction.
    pub published: f64,
    /// The mean over the seeds, a fraction.
    pub ours: f64,
    /// Standard deviation over the seeds, a fraction; `None` for one seed.
    pub deviation: Option<f64>,
    /// Ours less published, a fraction.
    pub difference: f64,
    /// Why the printed number cannot be right, where something speaks against it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doubt: Option<String>,
}

/// A split that papers report on, and the queries that stand for it.
pub(super) struct AskedSplit {
    /// As the paper says.
    printed: String,
    ours: Split,
}

/// A printed figure that we can compute.
pub(super) struct Printed {
    figure: Figure,
    metric: MetricName,
    value: f64,
}

/// Figures of the plain method on a dataset, of every paper, whose metric is one of ours.
pub(super) fn printed(method: &str, dataset: &str) -> Result<Vec<Printed>> {
    let published = Published::load()?;
    let protocol = if dataset.ends_with("-cd") { "cd" } else { "standard" };
    let key = Key {
        dataset: Some(dataset),
        model: Some(method),
        protocol: Some(protocol),
        variant: Some(""),
        ..Key::default()
    };
    let usable = |figure: &&Figure| {
        let metric = parse_list(&figure.metric).ok()?.into_iter().next()?;
        Some(Printed { figure: (*figure).clone(), metric, value: figure.fraction()? })
    };
    Ok(published.find(&key).iter().filter_map(usable).collect())
}

/// The splits that figures are printed of. One that cannot be read is a need; `val` stands for a test split that was never released.
pub(super) fn splits(
    run: &RunFile,
    printed: &[Printed],
    needs: &mut Vec<Need>,
    notes: &mut Vec<String>,
) -> Vec<AskedSplit> {
    let mut names: Vec<&str> = printed.iter().map(|printed| printed.figure.split.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let card = run.data.dataset.as_deref().and_then(|name| cuemark_data::find(name).ok());
    let has = |split: &str| card.is_some_and(|card| card.files.iter().any(|file| file.split == split));
    let mut asked = Vec::new();
    for name in names {
        let ours = match name {
            _ if has(name) => name,
            // Both validation lists together are what papers call the test split of ActivityNet Captions.
            "test" if has("val_1") && has("val_2") => "val_1+val_2",
            "test" if has("val") => "val",
            _ => name,
        };
        match run.data.split(ours) {
            Ok(split) => {
                if ours != name {
                    notes.push(format!("`{name}` of the papers is `{ours}` here"));
                }
                if ours == run.data.val {
                    notes.push(format!(
                        "checkpoints are chosen on `{ours}`, which is reported too: ours flatters itself"
                    ));
                }
                asked.push(AskedSplit { printed: name.to_owned(), ours: split });
            }
            Err(error) => {
                let origin = card.map_or("", |card| card.origin);
                needs.push(Need {
                    what: format!("the split `{name}` that papers report on"),
                    at: run.data.root.as_ref().map(ToString::to_string).unwrap_or_default(),
                    standing: Standing::Missing,
                    says: cuemark_core::whole_message(&error),
                    from: origin.to_owned(),
                });
            }
        }
    }
    asked
}

/// Scores every run on every split and puts the means beside what is printed.
pub(super) fn figures(
    runs: &[RunFolder],
    printed: &[Printed],
    asked: &[AskedSplit],
    device: &Device,
    progress: &Progress,
) -> Result<Vec<BesideFigure>> {
    let mut beside = Vec::new();
    for split in asked {
        let of_split: Vec<&Printed> = printed.iter().filter(|printed| printed.figure.split == split.printed).collect();
        let mut metrics: Vec<MetricName> = Vec::new();
        for printed in &of_split {
            if !metrics.contains(&printed.metric) {
                metrics.push(printed.metric.clone());
            }
        }
        // One row per run, one number per metric.
        let mut scores: Vec<Vec<f64>> = Vec::new();
        for folder in runs {
            let trained = Trained::open(folder, device)?;
            let options = PredictOptions {
                answers: trained.run.eval.answers,
                batch: trained.run.eval.batch,
                among: Among::Own,
                window: None,
                variant: FeatureVariant::Seen,
            };
            progress.phase("answering", 0);
            let answers = trained.predict(&split.ours, &options, progress)?.predictions;
            let plan = Plan::plain(metrics.clone(), Overrides::default());
            let evaluation = evaluate(&plan, &split.ours.queries, &answers, &Progress::new())?;
            scores.push(evaluation.columns.iter().map(|column| column.mean().unwrap_or(f64::NAN)).collect());
        }
        for printed in of_split {
            let Some(column) = metrics.iter().position(|metric| *metric == printed.metric) else { continue };
            let reached: Vec<f64> = scores.iter().map(|row| row[column]).collect();
            let (ours, deviation) = mean_and_deviation(&reached);
            let figure = &printed.figure;
            beside.push(BesideFigure {
                split: split.printed.clone(),
                ours_on: split.ours.name.clone(),
                metric: figure.metric.clone(),
                paper: format!("{}, table {}", figure.paper.key, figure.table),
                features: figure.features.clone(),
                published: printed.value,
                ours,
                deviation,
                difference: ours - printed.value,
                doubt: figure.doubt.clone(),
            });
        }
    }
    Ok(beside)
}

/// Of the sample, with one degree of freedom less.
fn mean_and_deviation(values: &[f64]) -> (f64, Option<f64>) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let spread = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    (mean, (values.len() > 1).then(|| (spread / (count - 1.0)).sqrt()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deviation_is_that_of_a_sample() {
        assert_eq!(mean_and_deviation(&[1.0, 2.0, 3.0]), (2.0, Some(1.0)));
        assert_eq!(mean_and_deviation(&[0.5]), (0.5, None));
    }

    #[test]
    fn what_is_printed_of_a_method_is_found_on_its_scale() {
        let found = printed("vslnet", "youcook2").unwrap();
        let of = |metric: &str| found.iter().find(|printed| printed.figure.metric == metric).unwrap().value;
        assert!((of("R@1,IoU=0.5") - 0.2002).abs() < 1e-9);
        assert!(printed("2d-tan", "charades-cd").unwrap().iter().any(|printed| printed.figure.split == "test-ood"));
        assert!(printed("vslnet", "world").unwrap().is_empty());
    }
}
