//! Claims about ranked retrieval: TVR-Ranking (C).

use super::claim::{Answer, Claim, Evidence, NOT_SHOWN, Verdict};
use super::rows::{Asking, Figure, Row};

/// The dataset's label and protocol where all queries search one corpus.
const CORPUS: (&str, &str) = ("world-ranked", "ranked");
const MODELS: [&str; 3] = ["xml", "reloclnet", "conquer"];
const NDCG: &str = "NDCG@20,IoU=0.5";
const OWN: &str = "own moments";

pub(super) const CLAIMS: &[Claim] = &[
    Claim {
        claim: "N=1 is worst, N=20 to 40 best",
        papers: "C",
        answer: more_moments,
        reason: "steps: at equal steps each pair of N=20 is seen a twentieth as often. XML's lead of N=1 over N=20 shrinks as they grow: 2.2 after 2,100, \
                 0.8 after 3,440, and after 5,300 N=20 is level (26.2, one seed, against 25.7 ± 0.4). With all 3,440 steps (one seed) CONQUER has 22.2 with N=20 and 14.9 with N=1, as claimed, and ReLoCLNet 20.6 and \
                 26.5 (`results/notes/studies-2026-11-18.md`)",
    },
    Claim {
        claim: "The ranked adaptation beats the corpus version",
        papers: "C (implied)",
        answer: adaptation,
        reason: NOT_SHOWN,
    },
    Claim { claim: "ReLoCLNet is best at ranking, CONQUER at VCMR", papers: "C", answer: best, reason: NOT_SHOWN },
    Claim {
        claim: "Seeds hardly matter (standard deviation 0.001)",
        papers: "C",
        answer: seeds,
        reason: "two hundred graded queries and two thousand films: the paper has 2,281 and 20,000; at full size seeds of one video's methods differ by 0.2 to 0.7 points",
    },
    Claim {
        claim: "NDCG rises with K for XML and ReLoCLNet",
        papers: "C",
        answer: deeper,
        reason: "from 20 to 40 it hangs on how many moments were graded: the paper graded 20 for half of its queries and 40 for the others, we 40 for all. The same answers held \
                 against the 20 likest alone have 21.1, 20.1, 23.0 (XML) and 20.9, 18.9, 21.4 (ReLoCLNet): NDCG@40 rises. That NDCG@20 is below NDCG@10 stays \
                 (`results/notes/studies-2026-11-18.md`)",
    },
    Claim {
        claim: "Caption similarity is a usable proxy of relevance",
        papers: "C",
        answer: |_| {
            let figures =
                "mean grade by tens of ranks 2.57, 2.18, 2.04, 2.00 (300 queries, `results/notes/bias-2026-11-15.md`)";
            Some(Answer::new(Verdict::Agree, figures))
        },
        reason: NOT_SHOWN,
    },
    Claim {
        claim: "Consensus keeps 94,442 of 96,483 pairs",
        papers: "C",
        answer: |_| {
            Some(Answer::new(
                Verdict::Agree,
                "94,442 kept, 2,041 discarded, from the published ratings (a test of `cuemark-protocols`)",
            ))
        },
        reason: NOT_SHOWN,
    },
];

pub(super) const LATER: &[Claim] = &[Claim {
    claim: "XML loses most as the IoU threshold rises",
    papers: "C",
    answer: tighter,
    reason: "up to 0.7 the threshold hardly bites in this world, whose moments begin and end sharply: all keep 88 to 96 %, those that made fewer steps least. Where it bites, \
                 at 0.9, XML keeps 34 %, CONQUER 35 and ReLoCLNet 38 (N=20, all 3,440 steps, one seed each; `results/notes/studies-2026-11-18.md`)",
}];

/// The rows of the corpus where there are any, else those of before, whose grades are near chance.
pub(super) fn rows<'a, 'b>(evidence: &'b Evidence<'a>) -> (Vec<&'b Row<'a>>, &'static str) {
    let corpus = evidence.rows.under(CORPUS.0, CORPUS.1);
    if corpus.iter().any(|row| row.is_model()) {
        return (corpus, "");
    }
    before(evidence)
}

fn before<'a, 'b>(evidence: &'b Evidence<'a>) -> (Vec<&'b Row<'a>>, &'static str) {
    let graded = |row: &&Row<'_>| row.figure(Asking::Graded, NDCG).is_some();
    let before = evidence.rows.on("world").into_iter().filter(graded).collect();
    (before, " (every event graded: 12.5 by chance, 24.7 for events whatever was asked)")
}

/// The same where the models are held against each other: rows of the corpus only if it has all of them.
fn rows_with_all<'a, 'b>(evidence: &'b Evidence<'a>) -> (Vec<&'b Row<'a>>, &'static str) {
    let (corpus, note) = rows(evidence);
    if note.is_empty() && MODELS.iter().all(|model| corpus.iter().any(|row| row.model() == *model)) {
        return (corpus, note);
    }
    before(evidence)
}

fn of_row(rows: &[&Row<'_>], model: &str, variant: &str, metric: &str) -> Option<Figure> {
    rows.iter().find(|row| (row.model(), row.variant()) == (model, variant))?.figure(Asking::Graded, metric)
}

fn figure(evidence: &Evidence<'_>, model: &str, variant: &str, metric: &str) -> Option<Figure> {
    of_row(&rows(evidence).0, model, variant, metric)
}

fn more_moments(evidence: &Evidence<'_>) -> Option<Answer> {
    let (mut words, mut holds) = (Vec::new(), Vec::new());
    for model in MODELS {
        let [one, twenty, forty] = ["N=1", "N=20", "N=40"].map(|variant| figure(evidence, model, variant, NDCG));
        let (Some(one), Some(twenty), Some(forty)) = (one, twenty, forty) else { continue };
        let more = if twenty.value > forty.value { twenty } else { forty };
        holds.push(one.to(more).rises());
        words.push(format!("{model} {one}, {twenty}, {forty}"));
    }
    let note = rows(evidence).1;
    let all = (!holds.is_empty()).then_some(holds.iter().all(|holds| *holds))?;
    Some(Answer::new(
        Verdict::both(all, holds.contains(&true)),
        format!("{NDCG} for N=1, 20, 40: {}{note}", words.join("; ")),
    ))
}

fn adaptation(evidence: &Evidence<'_>) -> Option<Answer> {
    let (mut words, mut holds) = (Vec::new(), Vec::new());
    for model in MODELS {
        let best = ["N=20", "N=40"].into_iter().filter_map(|variant| figure(evidence, model, variant, NDCG));
        let (Some(best), Some(own)) =
            (best.max_by(|a, b| a.value.total_cmp(&b.value)), figure(evidence, model, OWN, NDCG))
        else {
            continue;
        };
        holds.push(own.to(best).rises());
        words.push(format!("{model} {best} against {own}"));
    }
    let note = rows(evidence).1;
    let all = (!holds.is_empty()).then_some(holds.iter().all(|holds| *holds))?;
    Some(Answer::new(
        Verdict::both(all, holds.contains(&true)),
        format!("the better of N=20 and 40 against own moments: {}{note}", words.join("; ")),
    ))
}

fn best(evidence: &Evidence<'_>) -> Option<Answer> {
    let (rows, note) = rows_with_all(evidence);
    let of = |model: &'static str| {
        // Where the clock had cut some short, the rows that made all steps count as well.
        let variants = ["N=1", "N=20", "N=40", OWN, "N=1, all steps", "N=20, all steps"];
        let all = variants.into_iter().filter_map(|variant| of_row(&rows, model, variant, NDCG));
        Some((all.max_by(|a, b| a.value.total_cmp(&b.value))?, model))
    };
    let mut ranked: Vec<(Figure, &str)> = MODELS.into_iter().filter_map(of).collect();
    ranked.sort_by(|a, b| b.0.value.total_cmp(&a.0.value));
    let recall = |model: &str| {
        let row = evidence.rows.find("world", model, OWN)?;
        row.figure(Asking::Corpus, "VCMR:R@10,IoU=0.5")
    };
    let recalls: Vec<(f64, &str)> = MODELS.iter().filter_map(|model| Some((recall(model)?.value, *model))).collect();
    let first_by_recall = recalls.iter().max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, model)| *model);
    let words: Vec<String> = ranked.iter().map(|(figure, model)| format!("{model} {figure}")).collect();
    let vcmr: Vec<String> = recalls.iter().map(|(value, model)| format!("{model} {value:.1}")).collect();
    let (_, first) = ranked.first()?;
    let figures =
        format!("{NDCG}, best N each: {}{note}; VCMR:R@10 in the small world: {}", words.join(", "), vcmr.join(", "));
    Some(Answer::new(Verdict::both(*first == "reloclnet", first_by_recall == Some("conquer")), figures))
}

fn seeds(evidence: &Evidence<'_>) -> Option<Answer> {
    let (rows, _) = rows(evidence);
    let spreads: Vec<f64> = rows.iter().filter_map(|row| row.figure(Asking::Graded, NDCG)?.spread()).collect();
    let full = evidence.rows.on("world-full");
    let others: Vec<f64> = full.iter().filter_map(|row| row.usual("test-iid")?.spread()).collect();
    let range = |spreads: &[f64]| {
        let (low, high) = (spreads.iter().copied().reduce(f64::min)?, spreads.iter().copied().reduce(f64::max)?);
        Some(format!("{low:.1} to {high:.1} points ({} rows)", spreads.len()))
    };
    let highest = spreads.iter().copied().reduce(f64::max)?;
    let figures =
        format!("{NDCG}: {}; R@1,IoU=0.5 in the full world: {}", range(&spreads)?, range(&others).unwrap_or_default());
    // 0.001 of a fraction is a tenth of a point; a point would still be little.
    Some(Answer::new(Verdict::of(highest < 1.0), figures))
}

fn deeper(evidence: &Evidence<'_>) -> Option<Answer> {
    let (mut words, mut holds) = (Vec::new(), Vec::new());
    for model in ["xml", "reloclnet"] {
        let depths = ["NDCG@10,IoU=0.5", NDCG, "NDCG@40,IoU=0.5"].map(|metric| figure(evidence, model, "N=20", metric));
        let [Some(ten), Some(twenty), Some(forty)] = depths else { continue };
        holds.push(ten.value < twenty.value && twenty.value < forty.value);
        words.push(format!("{model} {:.1}, {:.1}, {:.1}", ten.value, twenty.value, forty.value));
    }
    let note = rows(evidence).1;
    let all = (!holds.is_empty()).then_some(holds.iter().all(|holds| *holds))?;
    Some(Answer::new(
        Verdict::both(all, holds.contains(&true)),
        format!("N=20 at K = 10, 20, 40: {}{note}", words.join("; ")),
    ))
}

fn tighter(evidence: &Evidence<'_>) -> Option<Answer> {
    let (mut kept, (rows, note)) = (Vec::new(), rows_with_all(evidence));
    for model in MODELS {
        let at = |iou: &str| of_row(&rows, model, "N=20", &format!("NDCG@20,IoU={iou}"));
        let (Some(loose), Some(tight)) = (at("0.3"), at("0.7")) else { continue };
        kept.push((100.0 * tight.value / loose.value.max(1e-9), model, loose.value, tight.value));
    }
    let (_, least, ..) = kept.iter().min_by(|a, b| a.0.total_cmp(&b.0))?;
    let words: Vec<String> = kept
        .iter()
        .map(|(share, model, loose, tight)| format!("{model} {loose:.1} → {tight:.1} (keeps {share:.0} %)"))
        .collect();
    Some(Answer::new(
        Verdict::of(*least == "xml"),
        format!("NDCG@20 from IoU 0.3 to 0.7, N=20: {}{note}", words.join("; ")),
    ))
}
