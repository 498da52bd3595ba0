//! What a run reads, whether it is there, and whether it is what was published.

use camino::Utf8Path;
use cuemark_core::{Advise as _, Dialect, Progress, RowPolicy, whole_message};
use cuemark_data::check::{CheckReport, CheckVerdict};
use cuemark_data::{DatasetCard, ReadOptions};
use cuemark_features::{Archive, Layout, Row, find_archive, layout_of};
use cuemark_train::{DataConfig, RunFile};
use serde::Serialize;

use crate::Result;

/// One thing that a run reads.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Need {
    /// What it is.
    pub what: String,
    /// Where it was looked for.
    pub at: String,
    /// Whether it is there.
    pub standing: Standing,
    /// What was found or is wrong, in words.
    pub says: String,
    /// Where it is to be had.
    pub from: String,
}

/// Whether something is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// As published.
    Published,
    /// There, and nothing was published to hold it to.
    There,
    /// There, and other than published.
    Differs,
    /// Not there.
    Missing,
}

/// Everything that a run reads, in the order of its file.
pub(super) fn of(run: &RunFile, progress: &Progress) -> Result<Vec<Need>> {
    let data = &run.data;
    let mut needs = Vec::new();
    if let (Some(name), Some(root)) = (data.dataset.as_deref().filter(|_| !data.is_world()), &data.root) {
        needs.extend(annotations(cuemark_data::find(name)?, root, data, progress)?);
    }
    let features = data.features();
    needs.push(archive("clip features", &features, data.dataset.as_deref(), progress)?);
    if let Some(path) = &data.query_features {
        needs.push(archive("token features of the queries", path, data.dataset.as_deref(), progress)?);
    }
    if let Some(path) = &data.words {
        needs.push(file("word vectors", path, "GloVe of the Stanford NLP group, unpacked; the name says which"));
    }
    if let Some(text) = &data.text {
        needs.push(encoder(&text.encoder));
    }
    if let Some(path) = &data.parses {
        needs.push(file(
            "parses of the queries",
            path,
            "`cuemark text parse`, which also imports those of other programs",
        ));
    }
    if let Some(path) = &run.train.weights {
        needs.push(file("weights to start from", path, "the repository that the method's card names"));
    }
    Ok(needs)
}

/// What a row of published features stands for, where the file does not say and neither does the run.
pub(super) fn say_what_rows_are(run: &mut RunFile, needs: &[Need]) {
    let path = run.data.features();
    let is_silent = layout_of(&path).is_ok_and(|layout| layout != Layout::Safetensors);
    let said = run.data.clip_length.is_some() || run.data.rows_span_duration;
    let here = needs.iter().any(|need| need.at == path.as_str() && need.standing != Standing::Missing);
    if !is_silent || said || !here {
        return;
    }
    match archive_of(&path).map(|archive| archive.row) {
        Some(Row::Seconds(seconds)) => run.data.clip_length = Some(seconds),
        Some(Row::Share) => run.data.rows_span_duration = true,
        Some(Row::Word) | None => {}
    }
}

/// The dataset's files, beside what was published about them, and the splits that the run trains and chooses on.
fn annotations(
    card: &'static DatasetCard,
    root: &Utf8Path,
    data: &DataConfig,
    progress: &Progress,
) -> Result<Vec<Need>> {
    let need = |standing, says: String| Need {
        what: format!("annotations of {}", card.name),
        at: root.to_string(),
        standing,
        says,
        from: format!("{} ({})", card.origin, card.licence),
    };
    let names = || {
        let mut files: Vec<&str> = card.files.iter().map(|file| file.path).collect();
        files.dedup();
        files.join(", ")
    };
    // Figures were published of the rows as they are.
    let options = ReadOptions { bad_rows: RowPolicy::Keep, ..ReadOptions::default() };
    let loaded = match cuemark_data::load(card, root, &options, progress) {
        Ok(loaded) => loaded,
        Err(error) if !root.is_dir() || matches!(error, cuemark_data::DataError::NothingThere { .. }) => {
            return Ok(vec![need(Standing::Missing, format!("no file of it is there: {}", names()))]);
        }
        Err(error) => return Ok(vec![need(Standing::Differs, whole_message(&error))]),
    };
    let report = cuemark_data::check::check(&loaded);
    let mut needs = vec![match differences(&report) {
        wrong if !wrong.is_empty() => need(Standing::Differs, wrong.join("; ")),
        _ => need(Standing::Published, format!("{} splits, every published figure met", loaded.splits.len())),
    }];
    for (role, split) in [("training", &data.train), ("validation", &data.val)] {
        if let Err(error) = data.split(split) {
            let hint = error.advice_in(Dialect::Terminal).map(|hint| format!(" ({hint})")).unwrap_or_default();
            let drawn = "`cuemark split make` draws one from the training split; name its file as `data.val`";
            let published = card.files.iter().find(|file| file.split == split.as_str());
            let from = published.map_or_else(
                || if role == "validation" { drawn.to_owned() } else { card.origin.to_owned() },
                |file| format!("{} in {}", file.path, card.origin),
            );
            let what = format!("the {role} split `{split}`");
            let says = whole_message(&error) + &hint;
            needs.push(Need { what, at: root.to_string(), standing: Standing::Missing, says, from });
        }
    }
    Ok(needs)
}

/// Figures that are not met.
fn differences(report: &CheckReport) -> Vec<String> {
    let wrong = report.splits.iter().chain(&report.overall).filter(|split| split.verdict == CheckVerdict::Wrong);
    wrong
        .map(|split| {
            let figures: Vec<String> = split
                .figures
                .iter()
                .filter(|figure| figure.verdict == CheckVerdict::Wrong)
                .map(|figure| {
                    let found = figure.found.map_or_else(|| "none".to_owned(), |found| found.to_string());
                    format!("{found} {} instead of {}", figure.name, figure.published)
                })
                .collect();
            format!("{}: {}", split.split, figures.join(", "))
        })
        .collect()
}

/// The archive that a run file means by a path: the one of that name.
fn archive_of(path: &Utf8Path) -> Option<&'static Archive> {
    [path.file_name(), path.file_stem()].into_iter().flatten().find_map(|name| find_archive(name).ok())
}

fn archive(what: &str, path: &Utf8Path, dataset: Option<&str>, progress: &Progress) -> Result<Need> {
    let need = |standing, says: String, from: String| Need {
        what: what.to_owned(),
        at: path.to_string(),
        standing,
        says,
        from,
    };
    let archive = archive_of(path);
    let from = archive.map_or_else(
        || {
            let extract = "`cuemark features extract` from the videos";
            let dataset = dataset.map(|name| format!(", or an archive of `cuemark features list --dataset {name}`"));
            format!("{extract}{}", dataset.unwrap_or_default())
        },
        |archive| format!("{} ({}; {})", archive.from, archive.files, archive.extractor),
    );
    if !path.exists() {
        return Ok(need(Standing::Missing, "nothing is there".to_owned(), from));
    }
    let Some(archive) = archive else {
        let says = "no published archive has this name".to_owned();
        return Ok(need(Standing::There, says, from));
    };
    let found = match archive.check(path, progress) {
        Ok(found) => found,
        Err(error) => return Ok(need(Standing::Differs, whole_message(&error), from)),
    };
    let videos = found.found.as_ref().map_or(0, |stream| stream.videos);
    Ok(match found.is_one() {
        true => need(Standing::Published, format!("{videos} videos, {} numbers a row", archive.width), from),
        false => need(Standing::Differs, found.problems.join("; "), from),
    })
}

fn file(what: &str, path: &Utf8Path, from: &str) -> Need {
    let standing = if path.is_file() { Standing::There } else { Standing::Missing };
    let says = if path.is_file() { "a file" } else { "nothing is there" };
    Need { what: what.to_owned(), at: path.to_string(), standing, says: says.to_owned(), from: from.to_owned() }
}

fn encoder(name: &str) -> Need {
    let opened = cuemark_encoders::weights::open(name);
    let (standing, says) = match &opened {
        Ok(_) => (Standing::Published, "weights with the right checksums, or a folder of yours".to_owned()),
        Err(error) => (Standing::Missing, whole_message(error)),
    };
    let from = opened.err().and_then(|error| error.advice_in(Dialect::Terminal));
    let from = from.unwrap_or_else(|| format!("`cuemark weights pull {name}`"));
    Need { what: "the text encoder".to_owned(), at: name.to_owned(), standing, says, from }
}
