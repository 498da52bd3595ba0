//! What the findings are made of.

use camino::Utf8Path;
use cuemark_formats::Source;

use crate::Result;
use crate::committed::{named, read_folder};
use crate::leaderboard::RunsFile;

/// Everything that is committed and that a claim can be asked of.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// `results/runs/runs-*.json`.
    pub runs: Vec<RunsFile>,
    /// `results/runs/annotations-*.json`: guesses and people on real annotations, which need no video.
    pub annotations: Vec<RunsFile>,
    /// What methods cost at the sizes that papers name.
    pub costs: Vec<Cost>,
}

/// What a method costs at the size for ActivityNet Captions.
#[derive(Debug, Clone, PartialEq)]
pub struct Cost {
    /// The method.
    pub model: String,
    /// **Million** parameters.
    pub parameters: f64,
    /// **Milliseconds** per query.
    pub milliseconds: f64,
}

impl Sources {
    /// Reads what the repository in `root` has committed.
    ///
    /// # Errors
    /// When a file cannot be read, or two files of results disagree.
    pub fn read(root: &Utf8Path) -> Result<Self> {
        let folder = root.join("results/runs");
        let mut annotations = Vec::new();
        for path in named(&folder, "annotations-")? {
            annotations.push(RunsFile::read(&path)?);
        }
        let costs = costs(&Source::new(root.join("results/bench/zoo-gpu-2026-11-15.md")).text()?);
        Ok(Self { runs: read_folder(&folder)?, annotations, costs })
    }
}

/// The methods of the first table: name, million parameters, milliseconds with their range.
fn costs(text: &str) -> Vec<Cost> {
    let rows = text.lines().skip_while(|line| !line.starts_with("| method")).skip(2);
    let cost = |line: &str| {
        let mut cells = line.split('|').map(str::trim).skip(1);
        let (model, parameters, time) = (cells.next()?, cells.next()?, cells.next()?);
        let milliseconds = time.split_whitespace().next()?.parse().ok()?;
        Some(Cost { model: model.to_owned(), parameters: parameters.parse().ok()?, milliseconds })
    };
    rows.take_while(|line| line.starts_with('|')).filter_map(cost).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_read_from_the_first_table() {
        let text = "# x\n\n| method | million parameters | ms per query |\n|---|---|---|\n| drn | 38.8 | 4.9 (4.6 – 5.8) | 1 |\n\n\
                    | method | y |\n|---|---|\n| lgi | 1 | 2 |\n";
        assert_eq!(costs(text), [Cost { model: "drn".to_owned(), parameters: 38.8, milliseconds: 4.9 }]);
        assert!(costs("").is_empty());
    }
}
