//! `bench scale`: one table and one picture of cost against size for evaluation, training, extraction, indexing and search, ours and
//! the peer's.
//!
//! Nothing is measured here: every figure is the newest that its own bench recorded under `results/bench`, each with its machine.
//! `growth-*.json` there is what `benches/scale` measured on the machine with many cores. With `--record` the table goes into
//! `docs/scale.md`, between its marks, and the picture beside it.

mod plot;
mod recorded;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::{Options, Report, Table};
use crate::process::workspace;
use recorded::{Kind, Point};

/// Where the picture lies, below `docs`.
const PICTURE: &str = "images/scale.svg";
/// Between these lines of `docs/scale.md` stands what this bench writes.
const BEGINS: &str = "<!-- made by `cargo xtask bench scale --record` -->";
const ENDS: &str = "<!-- end of what is made -->";

pub(crate) fn run(options: &Options) -> Result<Report> {
    let kinds = recorded::kinds(&workspace().join("results/bench"))?;
    let table = table(&kinds);
    if options.record {
        let docs = workspace().join("docs");
        std::fs::write(docs.join(PICTURE), plot::draw(&kinds))?;
        let page = docs.join("scale.md");
        let text = std::fs::read_to_string(&page)?;
        std::fs::write(&page, laid_into(&text, &table)?)?;
    }
    Ok(Report { tables: vec![table], figures: figures(&kinds) })
}

fn table(kinds: &[Kind]) -> Table {
    let row = |kind: &Kind, point: &Point| {
        let ratio = point.ours.zip(point.peers).map_or("".to_owned(), |(ours, peers)| format!("{:.2}x", peers / ours));
        vec![
            format!("{}: {}", kind.name, point.what),
            format!("{} {}", point.size, kind.size),
            point.ours.map_or(String::new(), seconds),
            point.peers.map_or(String::new(), |peers| format!("{} ({})", seconds(peers), kind.peer)),
            ratio,
            format!("{}, {}", point.source.trim_end_matches(".json"), point.machine),
        ]
    };
    let rows = kinds.iter().flat_map(|kind| kind.points.iter().map(move |point| row(kind, point))).collect();
    let title = format!("Cost against size; searches at their fastest point with recall@10 >= {}", recorded::RECALL);
    Table { title, header: vec!["what", "size", "ours", "peer", "ours is faster by", "recorded"], rows }
}

fn seconds(seconds: f64) -> String {
    match seconds {
        ..1e-3 => format!("{:.1} µs", 1e6 * seconds),
        1e-3..1.0 => format!("{:.1} ms", 1e3 * seconds),
        _ => format!("{seconds:.2} s"),
    }
}

/// The page with the table and the picture between its marks.
fn laid_into(page: &str, table: &Table) -> Result<String> {
    let (before, rest) = page.split_once(BEGINS).context("docs/scale.md has lost its first mark")?;
    let (_, after) = rest.split_once(ENDS).context("docs/scale.md has lost its second mark")?;
    let rows = table.to_markdown();
    let rows = rows.split_once("\n\n").map_or(rows.as_str(), |(_, rows)| rows);
    Ok(format!("{before}{BEGINS}\n\n![Seconds against size]({PICTURE})\n\n{rows}\n{ENDS}{after}"))
}

fn figures(kinds: &[Kind]) -> Value {
    let point = |point: &Point| json!({ "what": point.what, "size": point.size, "ours_s": point.ours, "peers_s": point.peers, "source": point.source });
    let kind = |kind: &Kind| json!({ "kind": kind.name, "size": kind.size, "peer": kind.peer, "points": kind.points.iter().map(point).collect::<Vec<_>>() });
    kinds.iter().map(kind).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_made_goes_between_the_marks_and_nowhere_else() {
        let table = Table { title: "T".into(), header: vec!["a"], rows: vec![vec!["1".into()]] };
        let page = format!("head\n{BEGINS}\nold\n{ENDS}\ntail\n");
        let made = laid_into(&page, &table).unwrap();
        assert!(made.starts_with("head\n") && made.ends_with("\ntail\n") && !made.contains("old"), "{made}");
        assert!(made.contains("| 1 |") && made.contains(PICTURE));
        assert_eq!(laid_into(&made, &table).unwrap(), made, "made again it is the same");
        assert!(laid_into("no marks", &table).is_err());
    }

    #[test]
    fn the_page_has_its_marks() {
        let page = std::fs::read_to_string(workspace().join("docs/scale.md")).unwrap();
        assert!(page.contains(BEGINS) && page.contains(ENDS) && page.contains(PICTURE));
        assert!(workspace().join("docs").join(PICTURE).exists());
    }
}
