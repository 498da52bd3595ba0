//! Claims about methods, words, features and costs: MoLEF (D).

use super::bias::named;
use super::claim::{Answer, Claim, Evidence, NOT_SHOWN, Verdict};
use super::rows::{Asking, Figure, Row, USUAL, kendall, said};
use crate::report::QueryText;

/// Methods that score a map of all spans.
const MAPS: [&str; 8] = ["2d-tan", "mdd", "tcn-dcm", "ranet", "mgpn", "mmn", "rmmn", "trm"];
/// Methods that point at a first and a last clip.
const SPANS: [&str; 5] = ["vslnet", "tmlga", "lgi", "plrn", "ablr"];
/// The variant of the study of three worlds: the same two minutes for each of the nine.
const DOMAINS: &str = "2 min";
/// The nine that the benchmark compares.
const NINE: [&str; 9] = ["cmin", "csmgan", "ia-net", "2d-tan", "ranet", "drn", "lgi", "vslnet", "tmlga"];

pub(super) const CLAIMS: &[Claim] = &[
    Claim {
        claim: "No method wins on every domain",
        papers: "D",
        answer: domains,
        reason: "another method is first in one of the three worlds, but not outside the interval; on ood TMLGA is first in all of them. Two minutes and one seed each",
    },
    Claim {
        claim: "Thresholds mostly agree on the order of methods",
        papers: "D",
        answer: thresholds,
        reason: NOT_SHOWN,
    },
    Claim {
        claim: "2D-map and span methods lose least on ood",
        papers: "D",
        answer: families,
        reason: "not the family decides but whether a method learnt to look: the loss shrinks with more training data for DRN, 2D-TAN and TMLGA and \
                 grows for VSLNet and LGI (`results/notes/full-2026-11-17.md`)",
    },
    Claim { claim: "Masking the verb hurts", papers: "D", answer: masking, reason: NOT_SHOWN },
    Claim {
        claim: "Keeping only the verb hurts more than masking it",
        papers: "D",
        answer: only_verb,
        reason: "asked on ood, where the verb's usual place does not pay, it is the same for the methods of the map: so it is not the prior; in this \
                 world the verb often singles the moment out",
    },
    Claim {
        claim: "Better features beat a better model; motion is best",
        papers: "D",
        answer: features,
        reason: "motion is best for all three; the models lie further apart than the features. Small world, one seed; why is not shown",
    },
    Claim {
        claim: "Span methods are lighter and 1.5 to 2 times as fast; DRN is the heaviest",
        papers: "D",
        answer: costs,
        reason: "at batch 1 on a GPU the number of launches decides: with each recurrent layer as one launch VSLNet has 4.9 ms and TMLGA 3.3 (2D-TAN 3.4: \
                 `results/bench/zoo-gpu-2026-11-18.md`); on a CPU they are the fastest",
    },
];

pub(super) const LATER: &[Claim] = &[
    Claim { claim: "mIoU changes the order of methods", papers: "D", answer: mean_overlap, reason: NOT_SHOWN },
    Claim { claim: "Heavier methods are not better", papers: "D", answer: heavier, reason: NOT_SHOWN },
];

fn domains(evidence: &Evidence<'_>) -> Option<Answer> {
    let worlds = ["world", "world-dense", "world-sparse"];
    let of = |world: &str, model: &str| evidence.rows.find(world, model, DOMAINS)?.usual("test-iid");
    let mut firsts = Vec::new();
    for world in worlds {
        let scored: Vec<(Figure, &str)> = NINE.iter().filter_map(|model| Some((of(world, model)?, *model))).collect();
        // Fewer than the nine would only say who was run.
        (scored.len() == NINE.len()).then_some(())?;
        firsts.push((world, scored.into_iter().max_by(|a, b| a.0.value.total_cmp(&b.0.value))?));
    }
    let usual = firsts[0].1.1;
    let others: Vec<_> = firsts.iter().filter(|(_, (_, model))| *model != usual).collect();
    let surely =
        others.iter().any(|(world, (first, _))| of(world, usual).is_some_and(|figure| figure.to(*first).rises()));
    let mut words: Vec<String> =
        firsts.iter().map(|(world, (figure, model))| format!("{}: {model} {figure}", named(world))).collect();
    words.extend(others.iter().map(|(world, _)| format!("{usual} there {}", said(of(world, usual)))));
    Some(Answer::new(Verdict::both(!others.is_empty(), surely), words.join("; ")))
}

/// One figure of each method of the full world: its best row.
fn of_methods(evidence: &Evidence<'_>, figure: impl Fn(&Row<'_>) -> Option<f64>) -> Vec<(String, f64, f64)> {
    let mut models: Vec<&str> =
        evidence.rows.on("world-full").iter().filter(|row| row.is_model()).map(|row| row.model()).collect();
    models.sort_unstable();
    models.dedup();
    let of = |model: &&str| {
        let row = evidence.rows.best("world-full", model)?;
        Some(((*model).to_owned(), row.usual("test-iid")?.value, figure(row)?))
    };
    models.iter().filter_map(of).collect()
}

/// How far two figures agree on the order of the methods of the full world, and how many those are.
fn order(evidence: &Evidence<'_>, figure: impl Fn(&Row<'_>) -> Option<f64>) -> Option<(f64, usize)> {
    let pairs: Vec<(f64, f64)> =
        of_methods(evidence, figure).into_iter().map(|(_, usual, other)| (usual, other)).collect();
    Some((kendall(&pairs)?, pairs.len()))
}

fn by(metric: &'static str) -> impl Fn(&Row<'_>) -> Option<f64> {
    move |row: &Row<'_>| Some(row.figure(Asking::Plain("test-iid"), metric)?.value)
}

fn thresholds(evidence: &Evidence<'_>) -> Option<Answer> {
    let ((low, methods), (high, _)) = (order(evidence, by("R@1,IoU=0.3"))?, order(evidence, by("R@1,IoU=0.7"))?);
    let figures = format!(
        "Kendall's tau with {USUAL} over {methods} methods of the full world: {low:.2} at 0.3, {high:.2} at 0.7"
    );
    Some(Answer::new(Verdict::of(low > 0.5 && high > 0.5), figures))
}

fn mean_overlap(evidence: &Evidence<'_>) -> Option<Answer> {
    let (tau, methods) = order(evidence, by("mIoU"))?;
    let pairs = methods * (methods - 1) / 2;
    let swapped = ((1.0 - tau) / 2.0 * pairs as f64).round();
    let figures = format!(
        "Kendall's tau of mIoU with {USUAL} is {tau:.2} over {methods} methods of the full world: {swapped} of {pairs} pairs change places"
    );
    Some(Answer::new(Verdict::of(swapped > 0.0), figures))
}

fn families(evidence: &Evidence<'_>) -> Option<Answer> {
    let drops = of_methods(evidence, |row| Some(row.drop()?.points));
    let mean = |is_meant: &dyn Fn(&str) -> bool| {
        let of: Vec<f64> = drops.iter().filter(|(model, ..)| is_meant(model)).map(|(.., drop)| *drop).collect();
        (!of.is_empty()).then(|| (of.iter().sum::<f64>() / of.len() as f64, of.len()))
    };
    let (maps, spans) = (mean(&|model| MAPS.contains(&model))?, mean(&|model| SPANS.contains(&model))?);
    let others = mean(&|model| !MAPS.contains(&model) && !SPANS.contains(&model))?;
    let figures = format!(
        "full world, mean ood − iid: {} map methods {:+.1}, {} span methods {:+.1}, {} others {:+.1}",
        maps.1, maps.0, spans.1, spans.0, others.1, others.0
    );
    Some(Answer::new(Verdict::both(maps.0 > others.0, spans.0 > others.0), figures))
}

/// Original, verb masked and verb alone of the rows of the full world that were asked all three on `split`.
fn with_words(evidence: &Evidence<'_>, split: &str) -> Vec<(String, [Figure; 3])> {
    let of = |row: &&Row<'_>| {
        let figure = |text| row.figure(Asking::Text(split, text), USUAL);
        Some((row.name(), [figure(QueryText::Original)?, figure(QueryText::MaskVerb)?, figure(QueryText::OnlyVerb)?]))
    };
    evidence.rows.as_stored("world-full").iter().filter(|row| row.is_model()).filter_map(of).collect()
}

fn masking(evidence: &Evidence<'_>) -> Option<Answer> {
    let rows = with_words(evidence, "test-iid");
    let hurt = rows.iter().filter(|(_, [original, masked, _])| original.to(*masked).falls()).count();
    let points = |rows: &[(String, [Figure; 3])]| -> Option<(f64, f64)> {
        let changes = rows.iter().map(|(_, [original, masked, _])| masked.value - original.value);
        Some((changes.clone().reduce(f64::min)?, changes.reduce(f64::max)?))
    };
    let (most, least) = points(&rows)?;
    let figures =
        format!("full world, iid: {hurt} of {} rows lose outside the interval, {least:+.1} to {most:+.1}", rows.len());
    Some(Answer::new(Verdict::of(hurt == rows.len()), figures))
}

fn only_verb(evidence: &Evidence<'_>) -> Option<Answer> {
    let count = |split: &str| {
        let rows = with_words(evidence, split);
        (rows.iter().filter(|(_, [_, masked, only])| only.value < masked.value).count(), rows.len())
    };
    let ((iid, all), (ood, among)) = (count("test-iid"), count("test-ood"));
    if all == 0 {
        return None;
    }
    let of = |name: &str| {
        let rows = with_words(evidence, "test-ood");
        let row = rows.into_iter().find(|(model, _)| model == name);
        row.map(|(_, [_, masked, only])| format!("{name} on ood: masked {masked}, alone {only}"))
    };
    let examples: Vec<String> = ["2d-tan", "drn", "tmlga"].into_iter().filter_map(of).collect();
    let figures = format!(
        "the verb alone is worth less than all but the verb for {iid} of {all} rows on iid, {ood} of {among} on ood; {}",
        examples.join("; ")
    );
    Some(Answer::new(Verdict::both(2 * iid > all, 2 * ood > among), figures))
}

fn features(evidence: &Evidence<'_>) -> Option<Answer> {
    let on = |model: &str, variant: &str, store: &str| {
        let rows = evidence.rows.on("world").into_iter();
        let mut fits = rows.filter(|row| (row.model(), row.variant()) == (model, variant));
        fits.find(|row| row.runs[0].features == store)?.usual("test-iid")
    };
    let models = [("mmn", ""), ("2d-tan", "GPU"), ("tmlga", "12 epochs")];
    let mut gains = Vec::new();
    for (model, variant) in models {
        let [weak, shape, motion] = ["weak", "shape", "motion"].map(|store| on(model, variant, store));
        gains.push((model, weak?.value, shape?.value, motion?.value));
    }
    let best = gains.iter().all(|(_, weak, shape, motion)| motion > weak && motion > shape);
    let gain = gains.iter().map(|(_, weak, _, motion)| motion - weak).reduce(f64::max)?;
    let (high, low) =
        (gains.iter().map(|gain| gain.3).reduce(f64::max)?, gains.iter().map(|gain| gain.3).reduce(f64::min)?);
    let words: Vec<String> =
        gains.iter().map(|(model, weak, _, motion)| format!("{model} {:+.1}", motion - weak)).collect();
    let figures = format!(
        "motion − weak: {}; between the best and the worst of these models on motion {:.1}",
        words.join(", "),
        high - low
    );
    Some(Answer::new(Verdict::both(gain > high - low, best), figures))
}

fn costs(evidence: &Evidence<'_>) -> Option<Answer> {
    let costs = &evidence.sources.costs;
    let of = |model: &str| costs.iter().find(|cost| cost.model == model);
    let (vslnet, tmlga, map, drn) = (of("vslnet")?, of("tmlga")?, of("2d-tan")?, of("drn")?);
    let lighter = vslnet.parameters < map.parameters && tmlga.parameters < map.parameters;
    let faster = vslnet.milliseconds < map.milliseconds && tmlga.milliseconds < map.milliseconds;
    let heaviest = costs.iter().all(|cost| cost.parameters <= drn.parameters);
    let words =
        |cost: &super::sources::Cost| format!("{} {:.1} M, {:.1} ms", cost.model, cost.parameters, cost.milliseconds);
    let figures = format!(
        "at ActivityNet's size on an H200: {}; {}; {}; {}",
        words(vslnet),
        words(tmlga),
        words(map),
        words(drn)
    );
    let verdict = if lighter && faster && heaviest {
        Verdict::Agree
    } else if lighter {
        Verdict::InPart
    } else {
        Verdict::Disagree
    };
    Some(Answer::new(verdict, figures))
}

fn heavier(evidence: &Evidence<'_>) -> Option<Answer> {
    let parameters = |row: &Row<'_>| Some(row.runs[0].parameters? as f64);
    let ((by_size, methods), (by_time, _)) =
        (order(evidence, parameters)?, order(evidence, |row| row.runs[0].ms_per_query)?);
    let full = evidence.rows.best("world-full", "vslnet").map(|row| row.usual("test-iid"));
    let figures = format!(
        "Kendall's tau of {USUAL} with parameters {by_size:.2} and with milliseconds per query {by_time:.2}, over {methods} methods of the full world (VSLNet {})",
        said(full.flatten())
    );
    Some(Answer::new(Verdict::of(by_size < 0.5 && by_time < 0.5), figures))
}
