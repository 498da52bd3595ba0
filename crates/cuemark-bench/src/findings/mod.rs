//! The claims of the field's papers, looked for in committed results, whatever comes out.
//!
//! A claim has a function that looks for its figures and says whether they agree. Nothing is asserted: a claim without runs says
//! that it was not run, and a disagreement without an experiment that shows its reason says that, too.

mod bias;
mod claim;
mod field;
mod pools;
mod ranked;
mod rows;
mod sources;
mod tables;

use claim::{Answer, Claim, Evidence, Verdict};
use rows::{Rows, table};
pub use sources::{Cost, Sources};

/// Every claim, in the order that they are numbered in.
fn claims() -> Vec<&'static Claim> {
    let first = [bias::CLAIMS, field::CLAIMS, pools::CLAIMS, ranked::CLAIMS];
    let later = [bias::LATER, field::LATER, pools::LATER, ranked::LATER];
    first.into_iter().chain(later).flatten().collect()
}

/// The document: two tables and the claims, in Markdown.
pub fn findings(sources: &Sources) -> String {
    let (rows, real) = (Rows::of(&sources.runs), Rows::of(&sources.annotations));
    let evidence = Evidence { rows, real, sources };
    let mut text = "# What the field found, and what we find\n\n\
                    Made by `cargo xtask leaderboard` from `results/`; not edited by hand. Percent, with 95 % intervals over queries for one seed and mean ± standard\n\
                    deviation for several. A difference has the interval that both sides give when added in quadrature (of several seeds: two standard errors). A model's\n\
                    checkpoint was chosen on val. The built-in world says whether an effect can be shown, not how large it is on real video.\n"
        .to_owned();
    let sections: [(&str, &str, Option<String>); 3] = [
        (
            "Real annotations, no video",
            "What guesses and people reach (`results/notes/blind-2026-11-17.md` has the commands; DiDeMo's places are learnt on val, its training split is not at\n\
             hand). A method below the best guess has shown nothing that the training annotations do not say.",
            tables::real_annotations(&evidence),
        ),
        (
            "The built-in world at the size of real datasets",
            "42,000 queries to learn from, 7,200 in each test split; the best variant of each method. Every run has a cap in minutes and methods with slow steps made\n\
             few of them: `results/notes/full-2026-11-17.md` has steps and caps, [`results/world.md`](../results/world.md) every row. Rows that say *standardised* saw features on one scale\n\
             (`results/notes/studies-2026-11-18.md`) and cannot be held against those that did not; claims below leave them out, or say so.",
            tables::full_world(&evidence),
        ),
        ("Ranked retrieval", "Guesses that see no video first.", tables::ranked_lists(&evidence)),
    ];
    for (title, about, found) in sections {
        let found = found.unwrap_or_else(|| "No committed run tells yet.\n".to_owned());
        text += &format!("\n## {title}\n\n{about}\n\n{found}");
    }
    text += "\n## Claims\n\n\
             Papers: A = changing distributions (2021), B = debiased grounding and MDD (2022), C = TVR-Ranking (2024), D = MoLEF (2024), E = MVMR and RMMN (2023).\n\n";
    let answers: Vec<(&Claim, Option<Answer>)> =
        claims().into_iter().map(|claim| (claim, (claim.answer)(&evidence))).collect();
    let verdict = |answer: &Option<Answer>| answer.as_ref().map_or(Verdict::NotRun, |answer| answer.verdict);
    let count = |wanted: Verdict| answers.iter().filter(|(_, answer)| verdict(answer) == wanted).count();
    text += &format!(
        "Of {} claims {} agree, {} in part, {} disagree, {} were not run.\n\n",
        answers.len(),
        count(Verdict::Agree),
        count(Verdict::InPart),
        count(Verdict::Disagree),
        count(Verdict::NotRun)
    );
    let line = |(place, (claim, answer)): (usize, &(&Claim, Option<Answer>))| {
        let verdict = verdict(answer);
        let figures = answer.as_ref().map_or(String::new(), |answer| answer.figures.clone());
        let reason = if verdict == Verdict::Agree { "" } else { claim.reason };
        let number = (place + 1).to_string();
        let cells = [number.as_str(), claim.claim, claim.papers, figures.as_str(), verdict.name(), reason];
        cells.map(ToOwned::to_owned).to_vec()
    };
    let lines: Vec<Vec<String>> = answers.iter().enumerate().map(line).collect();
    text + &table(&["", "claim", "paper", "ours", "verdict", "reason where it does not agree"], &lines)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_claim_is_numbered_once_and_says_what_it_can_without_runs() {
        assert_eq!(claims().len(), 36);
        let mut said: Vec<&str> = claims().iter().map(|claim| claim.claim).collect();
        said.sort_unstable();
        said.dedup();
        assert_eq!(said.len(), 36);
        let text = findings(&Sources::default());
        assert_eq!(text.matches("No committed run tells yet.").count(), 3);
        // What was counted from published files needs no run.
        assert!(text.contains("Of 36 claims 2 agree, 0 in part, 0 disagree, 34 were not run."), "{text}");
        assert!(text.contains("| 36 | XML loses most"));
    }

    #[test]
    fn a_claim_turns_with_its_figures() {
        let run = |model: &str, iid: f64, ood: f64| {
            let test = |split: &str, value: f64| {
                serde_json::json!({ "test": split, "split": split, "queries": 9,
                    "metrics": { "R@1,IoU=0.5": { "value": value, "low": value - 0.01, "high": value + 0.01 } } })
            };
            serde_json::json!({ "model": model, "dataset": "world-full", "protocol": "own", "seed": 0, "kind": "baseline",
                "tests": [test("test-iid", iid), test("test-ood", ood)] })
        };
        let verdict = |ood: f64| {
            let results = serde_json::from_value(serde_json::json!([run("bias-verb", 0.3, ood)])).unwrap();
            let file = crate::leaderboard::RunsFile::new("t", "2026-11-17".to_owned(), results);
            let sources = Sources { runs: vec![file], ..Sources::default() };
            let text = findings(&sources);
            text.lines().find(|line| line.starts_with("| 1 |")).unwrap().to_owned()
        };
        assert!(
            verdict(0.1).contains("| bias-verb 30.0 (29.0 – 31.0) → 10.0 (9.0 – 11.0) | agree |  |"),
            "{}",
            verdict(0.1)
        );
        assert!(verdict(0.3).contains("| **disagree** | not shown |"), "{}", verdict(0.3));
    }
}
