//! What reports say about methods whose worth is known by construction.

use super::testing::{answers, truths};
use super::*;
use cuemark_core::{Progress, Rng, Truth};

fn about(model: &str) -> About {
    About { model: model.into(), kind: Answerer::Model, dataset: "d".into(), split: "test".into(), ..About::default() }
}

/// The right span moved by up to `noise` seconds to either side; moments lie at 10 + k mod 5 s and last 10 s.
fn near(truths: &[Truth], noise: f64, seed: u64) -> cuemark_core::Predictions {
    let mut rng = Rng::new(seed);
    let shifts: Vec<f64> = truths.iter().map(|_| noise * (2.0 * rng.uniform() - 1.0)).collect();
    answers(truths, |k| {
        let start = (10.0 + (k % 5) as f64 + shifts[k]).max(0.0);
        vec![(start, start + 10.0)]
    })
}

fn scored(about: About, truths: &[Truth], predictions: &cuemark_core::Predictions) -> Evaluated {
    let bootstrap = cuemark_metrics::Bootstrap { resamples: 200, ..cuemark_metrics::Bootstrap::default() };
    Measure { bootstrap, ..Measure::default() }.run(about, truths, predictions, &Progress::new()).unwrap()
}

fn report(evaluated: Vec<Evaluated>, truths: &[Truth]) -> Report {
    let mut runs = Runs::default();
    evaluated.into_iter().for_each(|one| runs.add(one, truths));
    Report::of(runs, ReportOptions::default()).unwrap()
}

fn cell<'a>(table: &'a Table, model: &str, metric: &str) -> &'a Cell {
    let column = table.metrics.iter().position(|name| name == metric).unwrap();
    let row = table.rows.iter().find(|row| row.name.model == model).unwrap();
    row.cells[column].as_ref().unwrap()
}

fn check<'a>(report: &'a Report, model: &str, name: &str) -> &'a Check {
    let card = report.cards.iter().find(|card| card.name.model == model).unwrap();
    card.checks.iter().find(|check| check.name == name).unwrap()
}

#[test]
fn the_best_is_bold_only_when_its_lead_is_more_than_chance() {
    let truths = truths(300);
    let good = near(&truths, 2.0, 1);
    let clear = report(
        vec![scored(about("good"), &truths, &good), scored(about("poor"), &truths, &near(&truths, 12.0, 2))],
        &truths,
    );
    let table = &clear.boards[0].table;
    assert!(cell(table, "good", "mIoU").best && !cell(table, "poor", "mIoU").best);
    assert_eq!(table.rows[0].name.model, "good", "the best stands first");
    let twins = report(vec![scored(about("one"), &truths, &good), scored(about("two"), &truths, &good)], &truths);
    let table = &twins.boards[0].table;
    assert!(!cell(table, "one", "mIoU").best && !cell(table, "two", "mIoU").best);
    assert_eq!(table.contests.last().unwrap().as_ref().unwrap().p_value, 1.0);
}

#[test]
fn seeds_are_averaged_and_their_spread_is_shown() {
    let truths = truths(4);
    let hit = |hits: usize| {
        answers(&truths, move |k| vec![if k < hits { (10.0 + k as f64, 20.0 + k as f64) } else { (35.0, 40.0) }])
    };
    let seeded = |seed, hits| scored(About { seed: Some(seed), ..about("m") }, &truths, &hit(hits));
    let found = report(vec![seeded(0, 1), seeded(1, 3)], &truths);
    let cell = cell(&found.boards[0].table, "m", "R@1,IoU=0.5");
    assert_eq!(cell.estimate.value, 0.5, "a quarter and three quarters");
    assert!((cell.sd.unwrap() - 0.125f64.sqrt()).abs() < 1e-12, "sd of 0.25 and 0.75: {:?}", cell.sd);
    assert_eq!(found.cards[0].seeds, 2);
}

#[test]
fn figures_of_two_papers_for_the_same_thing_are_both_shown() {
    let truths = truths(20);
    let about = About {
        model: "2d-tan".into(),
        dataset: "charades-cd".into(),
        protocol: "cd".into(),
        split: "test-iid".into(),
        ..about("")
    };
    let found = report(vec![scored(about, &truths, &near(&truths, 5.0, 0))], &truths);
    let printed = &cell(&found.boards[0].table, "2d-tan", "dR@1,IoU=0.7").published;
    let shown: Vec<_> = printed.iter().map(|cell| (cell.paper, cell.printed.as_str())).collect();
    assert_eq!(shown, [("bias-2021", "24.99"), ("mdd-2022", "28.76")]);
}

#[test]
fn a_method_that_answers_from_habit_is_found_out_and_one_that_reads_is_not() {
    let truths = truths(300);
    let wrong = |model| About { text: QueryText::WrongQuery, ..about(model) };
    let good = near(&truths, 3.0, 1);
    let evaluated = vec![
        scored(about("habit"), &truths, &good),
        scored(wrong("habit"), &truths, &good),
        scored(about("reader"), &truths, &good),
        scored(wrong("reader"), &truths, &near(&truths, 30.0, 2)),
    ];
    let found = report(evaluated, &truths);
    assert_eq!(check(&found, "habit", "wrong query").verdict, TrustVerdict::Bad);
    assert_eq!(check(&found, "reader", "wrong query").verdict, TrustVerdict::Good);
    assert_eq!(check(&found, "reader", "verb masked").verdict, TrustVerdict::Unknown, "nobody measured it");
    assert_eq!(found.boards[0].table.rows.len(), 2, "rewritten queries are no rows of their own");
}

#[test]
fn a_drop_in_other_locations_is_seen_and_the_same_score_is_none() {
    let truths = truths(300);
    let at = |model: &str, split: &str| About { split: split.into(), ..about(model) };
    let evaluated = vec![
        scored(at("guesser", "test-iid"), &truths, &near(&truths, 3.0, 1)),
        scored(at("guesser", "test-ood"), &truths, &near(&truths, 25.0, 2)),
        scored(at("steady", "test-iid"), &truths, &near(&truths, 6.0, 3)),
        scored(at("steady", "test-ood"), &truths, &near(&truths, 6.0, 4)),
    ];
    let found = report(evaluated, &truths);
    assert_eq!((found.boards.len(), found.cards.len()), (2, 2), "a board per split, a card per method");
    let drop = check(&found, "guesser", "other locations");
    assert!(drop.verdict == TrustVerdict::Bad && drop.found.unwrap().low > 0.2, "{drop:?}");
    assert_eq!(check(&found, "steady", "other locations").verdict, TrustVerdict::Good);
}

#[test]
fn blind_baselines_are_the_bar_that_a_method_must_clear() {
    // Moments of 3 s anywhere in 40: no single guess meets many of them.
    let place = |k: usize| (k * 17 % 37) as f64;
    let mut truths = truths(300);
    for (k, truth) in truths.iter_mut().enumerate() {
        truth.moments[0].moment.span = cuemark_core::Span::new(place(k), place(k) + 3.0).unwrap();
    }
    let blind = score_baselines(&about(""), &truths, &truths, &Measure::default(), 0, &Progress::new()).unwrap();
    assert_eq!(blind.len(), 5);
    let mut evaluated = vec![
        scored(about("oracle"), &truths, &answers(&truths, |k| vec![(place(k), place(k) + 3.0)])),
        scored(about("whole"), &truths, &answers(&truths, |_| vec![(0.0, 40.0)])),
    ];
    evaluated.extend(blind);
    let found = report(evaluated, &truths);
    assert_eq!(check(&found, "oracle", "over blind baselines").verdict, TrustVerdict::Good);
    assert_eq!(check(&found, "whole", "over blind baselines").verdict, TrustVerdict::Bad);
    let order: Vec<_> = found.boards[0].table.rows.iter().map(|row| row.name.kind).collect();
    assert!(order.is_sorted_by_key(|kind| *kind == Answerer::Baseline), "baselines stand last");
}

#[test]
fn curves_agree_with_the_metrics_at_their_thresholds() {
    let truths = truths(200);
    let evaluated = scored(about("m"), &truths, &near(&truths, 9.0, 5));
    let metrics = evaluated.metrics.clone();
    let found = report(vec![evaluated], &truths);
    let curve = &found.boards[0].curves[0];
    for (slot, m) in [(1, "0.1"), (5, "0.3"), (9, "0.5"), (13, "0.7")] {
        let of = |kind: &str| metrics[&format!("{kind}@1,IoU={m}")].value;
        assert!((curve.recall[slot] - of("R")).abs() < 1e-9, "R at {m}");
        assert!((curve.discounted[slot] - of("dR")).abs() < 1e-6, "dR at {m}");
    }
}

#[test]
fn examples_show_the_extremes_and_no_video_twice_in_a_kind() {
    let truths = truths(60);
    // The first twenty queries are answered rightly, the last twenty not at all.
    let found = answers(&truths, |k| {
        let right = 10.0 + (k % 5) as f64;
        vec![if k < 20 {
            (right, right + 10.0)
        } else if k < 40 {
            (right, right + 5.0)
        } else {
            (35.0, 40.0)
        }]
    });
    let found = report(vec![scored(about("m"), &truths, &found)], &truths);
    for example in &found.boards[0].examples {
        let iou = example.answers[0].iou;
        let wanted = match example.kind {
            "best" => 1.0,
            "median" => 0.5,
            _ => 0.0,
        };
        assert!((iou - wanted).abs() < 1e-6, "{}: {iou}", example.kind);
    }
    let best: Vec<_> = found.boards[0].examples.iter().filter(|e| e.kind == "best").map(|e| &e.video).collect();
    assert_eq!(best.len(), 3);
    assert!(best[0] != best[1] && best[1] != best[2] && best[0] != best[2]);
}

/// Twenty clips of two seconds, the five from the moment's start on rated by two people.
fn rated(n: usize) -> Vec<Truth> {
    let mut truths = truths(n);
    for (k, truth) in truths.iter_mut().enumerate() {
        let first = 5 + (k % 5) / 2;
        truth.highlights = Some(Box::new(cuemark_core::Highlights {
            clip_len: cuemark_core::ClipLen::new(2.0).unwrap(),
            clips: (first..first + 5).collect(),
            ratings: vec![vec![4, 3]; 5],
        }));
    }
    truths
}

/// Answers with scores for every clip: 1 for those that were rated and 0 for all others, plus `noise` of a fixed seed.
fn salient(truths: &[Truth], noise: f64) -> cuemark_core::Predictions {
    let mut rng = Rng::new(7);
    let mut predictions = near(truths, 3.0, 0);
    for (list, truth) in predictions.tasks[0].queries.iter_mut().zip(truths) {
        let clips = &truth.highlights.as_ref().unwrap().clips;
        let score = |clip: usize| f64::from(u8::from(clips.contains(&clip))) + noise * rng.normal();
        list.saliency = Some((0..20).map(score).collect());
    }
    predictions
}

#[test]
fn highlights_have_columns_and_every_example_a_curve() {
    let truths = rated(60);
    let runs = vec![
        scored(about("sees"), &truths, &salient(&truths, 0.0)),
        scored(about("guesses"), &truths, &salient(&truths, 9.0)),
        scored(about("moments"), &truths, &near(&truths, 3.0, 0)),
    ];
    let found = report(runs, &truths);
    let table = &found.boards[0].table;
    // One of two raters says very good, the other never does.
    assert_eq!(cell(table, "sees", "HL-mAP/VeryGood").estimate.value, 0.5);
    assert_eq!(cell(table, "sees", "HL-Hit1/VeryGood").estimate.value, 1.0);
    assert!(cell(table, "guesses", "HL-mAP/VeryGood").estimate.value < 0.35);
    let column = table.metrics.iter().position(|name| name == "HL-mAP/VeryGood").unwrap();
    let silent = table.rows.iter().find(|row| row.name.model == "moments").unwrap();
    assert!(silent.cells[column].is_none(), "a method without clip scores has no figure for them");
    for example in &found.boards[0].examples {
        assert_eq!((example.ratings.len(), example.ratings.iter().copied().fold(0.0, f64::max)), (20, 3.5));
        let curves: Vec<usize> = example.answers.iter().map(|answer| answer.saliency.0.len()).collect();
        assert_eq!(curves.iter().sum::<usize>(), 40, "{curves:?}");
    }
    let page = found.to_html();
    assert_eq!(page.matches("class=\"saliency\"").count(), found.boards[0].examples.len());
    assert_eq!(page.matches("polygon class=\"rated\"").count(), found.boards[0].examples.len());
}

#[test]
fn without_ratings_and_clip_scores_a_report_is_what_it_was() {
    let truths = truths(30);
    let evaluated = scored(about("m"), &truths, &near(&truths, 4.0, 0));
    let stored = serde_json::to_string(&evaluated).unwrap();
    assert!(!stored.contains("saliency") && !stored.contains("HL-"), "{stored}");
    assert_eq!(evaluated.truth, scored(about("m"), &truths, &near(&truths, 1.0, 0)).truth);
    let page = report(vec![evaluated], &truths).to_html();
    assert!(!page.contains("class=\"saliency\"") && !page.contains("Saliency"));
    let other = rated(30);
    assert_ne!(
        scored(about("m"), &other, &near(&other, 4.0, 0)).truth,
        scored(about("m"), &truths, &near(&truths, 4.0, 0)).truth
    );
}

#[test]
fn with_films_failures_come_first_and_play_from_their_second() {
    let truths = truths(60);
    let missed = answers(&truths, |_| vec![(35.0, 40.0)]);
    let runs = || {
        let mut runs = Runs::default();
        runs.add(scored(about("m"), &truths, &missed), &truths);
        runs
    };
    let plain = Report::of(runs(), ReportOptions::default()).unwrap();
    let worst = |report: &Report| report.boards[0].examples.iter().filter(|example| example.kind == "worst").count();
    assert_eq!(worst(&plain), 3);
    assert!(!plain.to_html().contains("<video") && !plain.to_html().contains("media-src"));
    let files = truths.iter().filter_map(|truth| truth.video.as_ref()).map(|video| {
        let name = video.id.to_string();
        let path = camino::Utf8PathBuf::from(format!("/films/{name}.mp4"));
        (name, path)
    });
    let films = Films::new(camino::Utf8Path::new("/out/report"), files);
    let watched = Report::of(runs(), ReportOptions { films, ..ReportOptions::default() }).unwrap();
    assert!(worst(&watched) > 3);
    let page = watched.to_html();
    let first = &watched.boards[0].examples.iter().find(|example| example.kind == "worst").unwrap();
    let source = format!("src=\"../../films/{}.mp4#t={},", first.video, first.truth[0][0]);
    assert!(page.contains(&source), "{source}");
    assert!(page.contains("media-src 'self' file:"));
    let (nobody, everybody) = (page.find("Nobody finds these").unwrap(), page.find("The usual case").unwrap());
    assert!(nobody < everybody, "failures first");
}

#[test]
fn runs_without_their_truth_still_have_tables_and_cards() {
    let truths = truths(30);
    let runs = Runs { evaluated: vec![scored(about("m"), &truths, &near(&truths, 4.0, 0))], ..Runs::default() };
    let found = Report::of(runs, ReportOptions::default()).unwrap();
    assert!(found.boards[0].curves.is_empty() && found.boards[0].examples.is_empty());
    assert_eq!((found.boards[0].table.rows.len(), found.cards.len()), (1, 1));
    assert!(found.to_html().contains("test"));
}

#[test]
fn nothing_to_show_is_an_error() {
    let error = Report::of(Runs::default(), ReportOptions::default()).unwrap_err();
    assert!(error.to_string().contains("nothing to report on"), "{error}");
}
