//! Claims about pools of videos: MVMR and RMMN (E).

use super::claim::{Answer, Claim, Evidence, Verdict};
use super::rows::{Asking, Figure, Row, said};

const IN_POOLS: &str = "MVMR:R@1,IoU=0.5";

pub(super) const CLAIMS: &[Claim] = &[
    Claim {
        claim: "Single-video scores collapse in pools of fifty",
        papers: "E",
        answer: collapse,
        reason: "what was never trained to compare films collapses, and what was does not: MMN without its contrast falls as far as BET and CET do, with it it keeps three \
                 fifths (seven tenths where the matching alone decides, since the overlap has only ever compared moments of one film)",
    },
    Claim {
        claim: "RMMN beats MMN in pools (+4.6)",
        papers: "E",
        answer: filters,
        reason: "it was ahead with either filter when three seeds of each were run first, and is level when they are run again: MMN's seeds lie between 39 and 49, so three \
                 do not decide; on features of one scale, side by side, it is level too. By words the filter removes next to nothing here (0.09 videos a query, where 54 answer it), and hard negatives after it lose three points",
    },
    Claim {
        claim: "A first stage that retrieves videos helps (twofold)",
        papers: "E",
        answer: first_stage,
        reason: "MS-SL is too weak a first stage after four minutes (2,598 steps): of 1,200 films of val its ten best hold the right one for 8 % of queries (chance \
                 0.8), so that the five of fifty often lack it; in search two stages won nothing either (`results/notes/search-quality-2026-11-15.md`)",
    },
];

pub(super) const LATER: &[Claim] = &[
    Claim {
        claim: "The true-negative filter pays where queries repeat, hard negatives where they differ",
        papers: "E",
        answer: repeated,
        reason: "only the half that can be asked: in this world queries repeat (54 films answer one), so the filter should pay and hard negatives should not; a \
                 world whose queries differ was not made",
    },
    Claim {
        claim: "RMMN is level with MMN in one video and better in pools",
        papers: "E",
        answer: level,
        reason: "level in one video every time, and better in pools only with the first three seeds of each: run side by side on features of one scale the two are level in \
                 pools too",
    },
];

/// Rows that saw features of one scale, run side by side.
const SCALED: &str = "standardised";
const LOG_SCALED: &str = "log, standardised";
const TFIDF_SCALED: &str = "tfidf, standardised";

/// A row of the full world in pools: three seeds where they were run, else the one of before.
fn row<'a, 'b>(evidence: &'b Evidence<'a>, model: &str, variant: &str) -> Option<&'b Row<'a>> {
    let pooled = if variant.is_empty() { "pools".to_owned() } else { format!("{variant}, pools") };
    let rows = [pooled.as_str(), variant].map(|variant| evidence.rows.find("world-full", model, variant));
    rows.into_iter().flatten().find(|row| row.figure(Asking::Pools, IN_POOLS).is_some())
}

fn pooled(evidence: &Evidence<'_>, model: &str, variant: &str) -> Option<Figure> {
    row(evidence, model, variant)?.figure(Asking::Pools, IN_POOLS)
}

fn collapse(evidence: &Evidence<'_>) -> Option<Answer> {
    let of = |row: &Row<'_>| Some((row.usual("test-iid")?, row.figure(Asking::Pools, IN_POOLS)?));
    let full = |model: &str, variant: &str| row(evidence, model, variant).and_then(of);
    let small = |model: &str| of(evidence.rows.find("world", model, "pools")?);
    let all = [
        ("MMN, full world", full("mmn", "")),
        ("MMN again", full("mmn", "again")),
        ("the same, the matching alone deciding", full("mmn", "matching alone")),
        ("MMN without its contrast", full("mmn", "no contrast")),
        ("BET, full world", full("bet", "")),
        ("CET, full world", full("cet", "")),
        ("MMN, small", small("mmn")),
        ("BET, small", small("bet")),
    ];
    let all: Vec<_> = all.into_iter().filter_map(|(name, pair)| Some((name, pair?))).collect();
    let halved: Vec<bool> = all.iter().map(|(_, (own, pool))| pool.value < own.value / 2.0).collect();
    let words: Vec<String> = all.iter().map(|(name, (own, pool))| format!("{name}: {own} → {pool}")).collect();
    let verdict = Verdict::both(!halved.contains(&false), halved.contains(&true));
    (!all.is_empty()).then(|| Answer::new(verdict, words.join("; ")))
}

fn filters(evidence: &Evidence<'_>) -> Option<Answer> {
    let (base, words, log) =
        (pooled(evidence, "mmn", "")?, pooled(evidence, "rmmn", "tfidf")?, pooled(evidence, "rmmn", "log")?);
    let mut figures = format!("{IN_POOLS}: MMN {base}, filter by TF-IDF {words}, by the event log {log}");
    let mut rises = vec![base.to(words).rises(), base.to(log).rises()];
    if let (Some(base), Some(words)) = (pooled(evidence, "mmn", "again"), pooled(evidence, "rmmn", "again, tfidf")) {
        figures += &format!("; all again, side by side: MMN {base}, filter by TF-IDF {words}");
        rises.push(base.to(words).rises());
    }
    let [base, words, log] = [("mmn", SCALED), ("rmmn", TFIDF_SCALED), ("rmmn", LOG_SCALED)]
        .map(|(model, variant)| pooled(evidence, model, variant));
    if let (Some(base), Some(words), Some(log)) = (base, words, log) {
        figures += &format!("; on features of one scale: MMN {base}, by TF-IDF {words}, by the log {log}");
        rises.extend([base.to(words).rises(), base.to(log).rises()]);
    }
    Some(Answer::new(Verdict::both(!rises.contains(&false), rises.contains(&true)), figures))
}

fn repeated(evidence: &Evidence<'_>) -> Option<Answer> {
    let (mut words, mut filters, mut hard) = (Vec::new(), Vec::new(), Vec::new());
    for (filter, name) in [("tfidf", "TF-IDF"), ("log", "the event log")] {
        // Side by side, in one lease.
        let (base, one) = (pooled(evidence, "mmn", "again"), pooled(evidence, "rmmn", &format!("again, {filter}")));
        let both = pooled(evidence, "rmmn", &format!("again, {filter}, both steps"));
        let (Some(base), Some(one), Some(both)) = (base, one, both) else { continue };
        filters.push(base.to(one).rises());
        hard.push(one.to(both).rises());
        words.push(format!("MMN {base}, filter by {name} {one}, hard negatives after it {both}"));
    }
    let figures = format!("{IN_POOLS}: {}", words.join("; "));
    // At best the half of it that was asked holds.
    let holds = filters.iter().all(|pays| *pays) && !hard.contains(&true);
    (!words.is_empty()).then(|| Answer::new(if holds { Verdict::InPart } else { Verdict::Disagree }, figures))
}

fn first_stage(evidence: &Evidence<'_>) -> Option<Answer> {
    // The very weights that are asked again after the first stage, where they stand in a row of their own: seeds differ by points.
    let alone = pooled(evidence, "mmn", "beside MS-SL").or_else(|| pooled(evidence, "mmn", ""))?;
    let after = pooled(evidence, "mmn", "ms-sl-top5")?;
    let first = said(pooled(evidence, "ms-sl", ""));
    let figures = format!("MMN {alone} alone, {after} in the five videos that MS-SL chose (MS-SL itself {first})");
    Some(Answer::new(Verdict::of(alone.to(after).rises()), figures))
}

fn level(evidence: &Evidence<'_>) -> Option<Answer> {
    let (base, log) = (row(evidence, "mmn", "")?, row(evidence, "rmmn", "log")?);
    let (own, other) = (base.usual("test-iid")?, log.usual("test-iid")?);
    let (pool, better) = (pooled(evidence, "mmn", "")?, pooled(evidence, "rmmn", "log")?);
    let mut figures = format!("one video: RMMN with the log {other}, MMN {own}; pools: {better} against {pool}");
    let mut rises = vec![pool.to(better).rises()];
    let scaled = |model: &str, variant: &str| {
        let row = row(evidence, model, variant)?;
        Some((row.usual("test-iid")?, row.figure(Asking::Pools, IN_POOLS)?))
    };
    if let (Some((own, pool)), Some((other, better))) = (scaled("mmn", SCALED), scaled("rmmn", LOG_SCALED)) {
        figures += &format!("; on features of one scale: {other} and {own}; pools: {better} against {pool}");
        rises.push(pool.to(better).rises());
    }
    // Within two points is level: single seeds of MMN differ by as much.
    let level = (own.value - other.value).abs() < 2.0;
    Some(Answer::new(Verdict::both(level && !rises.contains(&false), level || rises.contains(&true)), figures))
}
