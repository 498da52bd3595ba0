//! The stored figures against the tables they were transcribed from, where those are there.

use std::collections::HashMap;

use cuemark_bench::{Figure, Published, Unit};

type Row = HashMap<String, String>;

#[test]
fn every_row_of_the_transcription_comes_back() {
    let Some(folder) = cuemark_testkit::shared("published") else { return };
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "csv"))
        .collect();
    files.sort();
    assert_eq!(files.len(), 27);
    let mut transcribed: Vec<[String; 12]> = Vec::new();
    for file in files {
        for row in csv::Reader::from_path(file).unwrap().deserialize() {
            transcribed.push(columns(&row.unwrap()));
        }
    }
    let mut stored: Vec<_> = Published::load().unwrap().figures().iter().map(as_transcribed).collect();
    assert_eq!(transcribed.len(), 2443);
    transcribed.sort();
    stored.sort();
    for (theirs, ours) in transcribed.iter().zip(&stored) {
        assert_eq!(theirs, ours);
    }
    assert_eq!(transcribed.len(), stored.len());
}

fn columns(row: &Row) -> [String; 12] {
    const NAMES: [&str; 12] = [
        "paper", "table", "model", "variant", "dataset", "split", "protocol", "features", "metric", "value", "unit",
        "note",
    ];
    NAMES.map(|name| row[name].clone())
}

/// The figure in the layout of the transcription, where a doubt stands inside the note.
fn as_transcribed(figure: &Figure) -> [String; 12] {
    let note = match (&figure.doubt, figure.note.as_str()) {
        (None, note) => note.to_owned(),
        (Some(doubt), "") => format!("DOUBTFUL: {doubt}"),
        (Some(doubt), note) => format!("{note}; DOUBTFUL: {doubt}"),
    };
    [
        figure.paper.key.to_owned(),
        figure.table.clone(),
        figure.model.clone(),
        figure.variant.clone(),
        figure.dataset.clone(),
        figure.split.clone(),
        figure.protocol.clone(),
        figure.features.clone(),
        figure.metric.clone(),
        figure.printed.clone().unwrap_or_default(),
        unit(figure.unit).to_owned(),
        note,
    ]
}

fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::Percent => "percent",
        Unit::Fraction => "fraction",
        Unit::Millions => "millions",
        Unit::Ms => "ms",
        Unit::Count => "count",
        Unit::Seconds => "seconds",
        Unit::Hours => "hours",
        Unit::Words => "words",
        Unit::Usd => "usd",
        Unit::Sgd => "sgd",
        Unit::Text => "text",
    }
}
