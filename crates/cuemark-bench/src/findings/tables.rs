//! The tables above the claims.

use super::claim::Evidence;
use super::ranked;
use super::rows::{Asking, Row, USUAL, said, table};

/// Rows of the first table at the most.
const MOST: usize = 12;
/// Who stands above the methods: somebody who knows, chance, and the guesses that are best on either split.
const ABOVE: [(&str, &str); 4] = [
    ("oracle", "perfect reader"),
    ("predict-all", "the whole video"),
    ("bias-draw", "a place drawn from training"),
    ("bias-verb", "the likeliest place of the verb"),
];

/// The full world: who knows, chance and guesses, then the best methods, each in its best variant.
pub(super) fn full_world(evidence: &Evidence<'_>) -> Option<String> {
    let on = evidence.rows.on("world-full");
    let row = |row: &Row<'_>, name: String| {
        let seconds = row.runs.iter().filter_map(|run| run.train_seconds).reduce(f64::max);
        let seconds = seconds.map(|seconds| format!("{seconds:.0}")).unwrap_or_default();
        let small = evidence.rows.find("world", row.model(), "").and_then(|row| row.usual("test-iid"));
        vec![name, seconds, said(small), said(row.usual("test-iid")), said(row.usual("test-ood")), said(row.drop())]
    };
    let above = ABOVE
        .iter()
        .filter_map(|(model, words)| Some(row(evidence.rows.find("world-full", model, "")?, format!("*{words}*"))));
    let mut rows: Vec<Vec<String>> = above.collect();
    let mut models: Vec<&str> = on.iter().filter(|row| row.is_model()).map(|row| row.model()).collect();
    models.sort_unstable();
    models.dedup();
    let best = models.iter().filter_map(|model| evidence.rows.best_of_all("world-full", model));
    let mut scored: Vec<(f64, &Row<'_>)> = best.filter_map(|row| Some((row.usual("test-iid")?.value, row))).collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    let shown = MOST.saturating_sub(rows.len());
    rows.extend(scored.iter().take(shown).map(|(_, one)| row(one, one.name())));
    let head = [USUAL, "seconds of training", "small world, iid", "full world, iid", "full world, ood", "ood − iid"];
    let others: Vec<String> =
        scored.iter().skip(shown).map(|(value, row)| format!("{} {value:.1}", row.name())).collect();
    let others =
        if others.is_empty() { String::new() } else { format!("\nBelow them on iid: {}.\n", others.join(", ")) };
    Some(table(&head, &rows)? + &others)
}

/// What can be reached on real annotations without one frame, and what people reach.
pub(super) fn real_annotations(evidence: &Evidence<'_>) -> Option<String> {
    let columns = [
        ("charades-sta", "Charades-STA"),
        ("activitynet-captions", "ActivityNet Captions"),
        ("qvhighlights", "QVHighlights"),
        ("didemo", "DiDeMo"),
    ];
    let rows = [
        ("predict-all", "*the whole video*"),
        ("bias-draw", "*a place drawn from training*"),
        ("bias-density", "*the densest place*"),
        ("bias-mode", "*the likeliest place*"),
        ("bias-verb", "*the likeliest place of the verb*"),
        ("one-person", "one person against another"),
        ("any-of-others", "a person against any of the others"),
    ];
    let cell = |dataset: &str, model: &str| {
        let row = evidence.real.find(dataset, model, "")?;
        ["test", "val"].into_iter().find_map(|split| row.usual(split))
    };
    let lines = rows.iter().map(|(model, words)| {
        let cells = columns.iter().map(|(dataset, _)| said(cell(dataset, model)));
        std::iter::once((*words).to_owned()).chain(cells).collect::<Vec<_>>()
    });
    let lines: Vec<Vec<String>> = lines.filter(|line| line[1..].iter().any(|cell| !cell.is_empty())).collect();
    let head: Vec<&str> = std::iter::once(USUAL).chain(columns.iter().map(|(_, words)| *words)).collect();
    table(&head, &lines)
}

/// Ranked retrieval: guesses over the corpus first, then the models by name and N.
pub(super) fn ranked_lists(evidence: &Evidence<'_>) -> Option<String> {
    let (rows, note) = ranked::rows(evidence);
    let metrics = ["NDCG@10,IoU=0.5", "NDCG@20,IoU=0.5", "NDCG@40,IoU=0.5", "NDCG@20,IoU=0.7"];
    let mut rows: Vec<&Row<'_>> =
        rows.into_iter().filter(|row| row.figure(Asking::Graded, metrics[1]).is_some()).collect();
    rows.sort_by_key(|row| row.is_model());
    let line = |row: &&Row<'_>| {
        let name = if row.is_model() { row.name() } else { format!("*{}*", row.name()) };
        let cells = metrics.iter().map(|metric| said(row.figure(Asking::Graded, metric)));
        std::iter::once(name).chain(cells).collect::<Vec<_>>()
    };
    let head: Vec<&str> = std::iter::once("").chain(metrics).collect();
    let text = table(&head, &rows.iter().map(line).collect::<Vec<_>>())?;
    Some(if note.is_empty() { text } else { format!("Not yet as published{note}.\n\n{text}") })
}
