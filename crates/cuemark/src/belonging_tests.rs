use cuemark_core::{Extra, Prediction, Predictions, Query, QueryPredictions, Span, Video};
use cuemark_metrics::{Overrides, parse_list};

use super::*;

/// `count` queries `0`, `1`, … about videos `v0`, `v1`, … of 100 s, each with its moment from 10 to 20 s.
fn truths(count: usize) -> Vec<Truth> {
    let truth = |n: usize| {
        let query = Query { id: QueryId::new(n.to_string()), text: String::new() };
        Truth::single(query, Video::new(format!("v{n}").as_str(), 100.0), [span(10.0, 20.0)])
    };
    (0..count).map(truth).collect()
}

fn span(start: f64, end: f64) -> Span {
    Span::new(start, end).unwrap()
}

/// One list per id, with these scored spans in the video of this name.
fn answers(ids: impl Iterator<Item = usize>, video: &str, spans: &[(f64, f64, f64)]) -> Predictions {
    let list = |id: usize| QueryPredictions {
        query: QueryId::new(id.to_string()),
        ranked: spans
            .iter()
            .map(|(start, end, score)| Prediction {
                video: (!video.is_empty()).then(|| VideoId::from(video)),
                span: span(*start, *end),
                score: Some(*score),
            })
            .collect(),
        saliency: None,
        extra: Extra::default(),
    };
    Predictions::any(ids.map(list).collect())
}

fn check(truths: &[Truth], answers: &Predictions, metrics: &str, leniency: Leniency) -> Result<Vec<String>> {
    let plan = Plan::plain(parse_list(metrics).unwrap(), Overrides::default());
    let notes = Pairing { plan: &plan, truths, answers, file: "mine", leniency }.check()?;
    Ok(notes.iter().map(ToString::to_string).collect())
}

fn strict(truths: &[Truth], answers: &Predictions) -> Result<Vec<String>> {
    check(truths, answers, "R@1,IoU=0.5", Leniency::Refuse)
}

const RIGHT: &[(f64, f64, f64)] = &[(10.0, 20.0, 0.9), (30.0, 40.0, 0.1)];

#[test]
fn files_of_other_queries_are_refused_and_what_was_found_is_said() {
    let error = strict(&truths(20), &answers(100..150, "", RIGHT)).unwrap_err().to_string();
    assert_eq!(
        error,
        "mine: none of its queries is in the truth, and 0 of the truth's 20 queries are answered; its ids look like `100`, \
         the truth's like `0`"
    );
    let lenient = check(&truths(20), &answers(100..150, "", RIGHT), "mIoU", Leniency::Note).unwrap();
    assert!(lenient[0].ends_with("scored all the same"), "{lenient:?}");
}

#[test]
fn a_file_for_a_tenth_of_the_queries_and_a_truth_for_a_tenth_of_the_lists_both_pass() {
    // All lists known, few queries answered: a partial file. All queries answered, few lists known: a part of the truth.
    assert_eq!(strict(&truths(100), &answers(0..1, "", RIGHT)).unwrap(), Vec::<String>::new());
    assert_eq!(strict(&truths(2), &answers(0..100, "", RIGHT)).unwrap(), Vec::<String>::new());
    // Both shares below a tenth.
    assert!(strict(&truths(100), &answers(95..195, "", RIGHT)).is_err());
    // One of them at a tenth.
    assert!(strict(&truths(100), &answers(90..190, "", RIGHT)).is_ok());
}

#[test]
fn ids_that_agree_by_accident_are_found_out_by_their_videos() {
    let error = strict(&truths(20), &answers(0..20, "another", RIGHT)).unwrap_err().to_string();
    assert!(error.contains("query `0` is answered in `another`, its truth lies in `v0`"), "{error}");
    // In a corpus the right video may be missed by all; a video of the corpus is enough.
    let missed = answers(5..20, "v0", RIGHT);
    assert!(check(&truths(20), &missed, "VCMR:R@1,IoU=0.5", Leniency::Refuse).is_ok());
    assert!(strict(&truths(20), &missed).is_err(), "inside one video it is the wrong one every time");
}

#[test]
fn a_file_without_a_span_is_refused_and_the_misspelt_field_is_named() {
    let mut empty = answers(0..20, "", &[]);
    for list in &mut empty.tasks[0].queries {
        list.extra.insert("pred_relevant_window", serde_json::json!([[1, 2]]));
    }
    let error = strict(&truths(20), &empty).unwrap_err().to_string();
    assert!(
        error.contains("none of its 20 lists holds a span") && error.contains("`pred_relevant_windows`"),
        "{error}"
    );
}

#[test]
fn other_units_than_seconds_are_noted() {
    let note = |spans: &[(f64, f64, f64)]| strict(&truths(20), &answers(0..20, "", spans)).unwrap();
    assert!(note(&[(10_000.0, 20_000.0, 1.0)])[0].contains("look like milliseconds"));
    assert!(note(&[(250.0, 500.0, 1.0)])[0].contains("look like frames"));
    assert!(note(&[(0.1, 0.2, 1.0)])[0].contains("look like fractions"));
    // Some reach past the end of their video, and one is odd.
    let mut nearly = answers(0..20, "", &[(0.1, 0.2, 1.0)]);
    for list in &mut nearly.tasks[0].queries[..9] {
        list.ranked[0].span = span(0.9, 1.04);
    }
    nearly.tasks[0].queries[9].ranked[0].span = span(0.9, 2.0);
    assert!(
        strict(&truths(20), &nearly).unwrap()[0].contains("19 of 20 first answers end within the first 1.5 seconds")
    );
    assert_eq!(note(&[(80.0, 130.0, 1.0)]), Vec::<String>::new());
}

#[test]
fn scores_that_rise_are_noted_unless_they_are_sorted_by_anyway() {
    let rising = answers(0..20, "", &[(30.0, 40.0, 0.1), (10.0, 20.0, 0.9)]);
    let said = strict(&truths(20), &rising).unwrap();
    assert!(said[0].starts_with("mine: in 20 of 20 lists a later answer has a higher score"), "{said:?}");
    assert!(said[0].ends_with("(first: query `0`)"), "{said:?}");
    let overrides = Overrides { order: Some(cuemark_metrics::Order::Score), ..Overrides::default() };
    let plan = Plan::plain(parse_list("mIoU").unwrap(), overrides);
    let truths = truths(20);
    let pairing = Pairing { plan: &plan, truths: &truths, answers: &rising, file: "mine", leniency: Leniency::Refuse };
    assert_eq!(pairing.check().unwrap(), []);
}

#[test]
fn one_answer_a_query_makes_r5_no_more_than_r1() {
    let one = answers(0..20, "", &[(10.0, 20.0, 0.9)]);
    let said = check(&truths(20), &one, "R@1,IoU=0.5,R@5,IoU=0.5", Leniency::Refuse).unwrap();
    assert_eq!(said, ["mine: all 20 lists give one answer, so `R@5,IoU=0.5` looks at no more than R@1 does"]);
    assert_eq!(strict(&truths(20), &one).unwrap(), Vec::<String>::new());
}
