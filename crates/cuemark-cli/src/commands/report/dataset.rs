//! The section about a dataset, from its annotations alone.

use cuemark::RowsOf;
use cuemark_bench::report::DataSection;
use cuemark_core::{NormSpan, Progress, RowPolicy};
use cuemark_data::{ReadOptions, Reannotation, read_reannotations};
use cuemark_formats::Source;
use cuemark_protocols::human_ceiling::{HumanCeiling, human_ceiling};

use super::Args;
use crate::input::note_rows;

/// The section of `--dataset`, when `--root` says where it lies.
pub(super) fn section(args: &Args, progress: &Progress) -> anyhow::Result<Option<DataSection>> {
    let Some((name, root)) = args.dataset.as_ref().zip(args.root.as_ref()) else { return Ok(None) };
    let card = cuemark_data::find(name)?;
    let dataset = cuemark_data::load(card, root, &ReadOptions::default(), progress)?;
    for split in &dataset.splits {
        note_rows(&root.join(&split.file), &split.rows, RowsOf::Truth(RowPolicy::default()));
    }
    let mut section = DataSection::of(card.name, card.title, &dataset.splits, people(args)?, 0, progress)?;
    let absent =
        dataset.absent.iter().map(|file| format!("{} is not there: `{}` was not found", file.split, file.path));
    section.notes.extend(absent);
    Ok(Some(section))
}

/// What people reach, from re-annotations of the dataset's queries.
fn people(args: &Args) -> anyhow::Result<Option<HumanCeiling>> {
    let Some((name, folder)) = args.dataset.as_ref().zip(args.people.as_ref()) else { return Ok(None) };
    let stem = name.split('-').next().unwrap_or_default();
    let files: Vec<Source> = (0..100).map_while(|n| Source::find(folder, &format!("{stem}_test_{n:02}.csv"))).collect();
    anyhow::ensure!(!files.is_empty(), "there is no `{stem}_test_00.csv` in `{folder}`");
    let mut queries: Vec<Reannotation> = Vec::new();
    for file in &files {
        queries.extend(read_reannotations(file)?);
    }
    let spans: Vec<&[NormSpan]> = queries.iter().map(|query| query.spans.as_slice()).collect();
    Ok(Some(human_ceiling(&spans, 0)?))
}
