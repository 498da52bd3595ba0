//! Free-text answers: the styles that we wrote down, hostile ones, and the files that evaluation kits write.

use std::time::Instant;

use cuemark_core::{Advise as _, Dialect, Predictions, Query, QueryId, Truth, Video};
use cuemark_formats::answers::{self, Parsed, Rule};
use cuemark_formats::{AnswerParser, AnswerReading, PredictionFormat, PredictionOptions, Source, read_predictions};
use proptest::prelude::*;
use serde_json::Value;

use crate::support::fixture;

/// One answer of the fixtures: what it says, and what it means.
struct Written {
    id: String,
    text: String,
    duration: Option<f64>,
    parser: AnswerParser,
    spans: Vec<(f64, f64)>,
}

fn written(name: &str) -> Vec<Written> {
    let path = cuemark_testkit::fixture(&format!("answers/{name}.jsonl"));
    let lines = std::fs::read_to_string(path).unwrap();
    let each = |line: &str| {
        let row: Value = serde_json::from_str(line).unwrap();
        let spans =
            row["spans"].as_array().unwrap().iter().map(|span| (span[0].as_f64().unwrap(), span[1].as_f64().unwrap()));
        let parser: AnswerParser = row["parser"].as_str().unwrap_or("auto").parse().unwrap();
        Written {
            id: row["qid"].as_str().unwrap().to_owned(),
            text: row["text"].as_str().unwrap().to_owned(),
            duration: row["duration"].as_f64(),
            parser: parser.with_frame_rate(row["rate"].as_f64()),
            spans: spans.collect(),
        }
    };
    lines.lines().map(each).collect()
}

fn is_exact(parsed: &Parsed, spans: &[(f64, f64)]) -> bool {
    let near = |a: f64, b: f64| (a - b).abs() < 1e-6;
    parsed.spans.len() == spans.len()
        && parsed.spans.iter().zip(spans).all(|(found, span)| near(found.start, span.0) && near(found.end, span.1))
}

/// How many answers of a fixture are read exactly, by the parser and by the rule of the two first numbers.
fn exact(name: &str) -> (usize, usize, usize) {
    let all = written(name);
    let plain: AnswerParser = "first-two".parse().unwrap();
    let (mut ours, mut first_two) = (0, 0);
    for answer in &all {
        let parsed = answer.parser.parse(&answer.text, answer.duration);
        if is_exact(&parsed, &answer.spans) {
            ours += 1;
        } else {
            eprintln!("{}: {:?}: {:?} instead of {:?}", answer.id, answer.text, parsed, answer.spans);
        }
        first_two += usize::from(is_exact(&plain.parse(&answer.text, answer.duration), &answer.spans));
        assert!(!answer.spans.is_empty() || parsed.spans.is_empty(), "a span from a refusal: {:?}", answer.text);
    }
    (ours, first_two, all.len())
}

#[test]
fn answers_in_many_styles_give_their_exact_spans() {
    for name in ["develop", "held-back"] {
        let (ours, first_two, all) = exact(name);
        assert!(ours * 100 >= all * 98, "{name}: {ours} of {all}");
        assert!(2 * first_two < ours + all / 4, "{name}: the two first numbers do for {first_two} of {all}");
    }
}

fn parse(text: &str, duration: Option<f64>) -> Vec<(f64, f64)> {
    AnswerParser::default().parse(text, duration).spans.iter().map(|span| (span.start, span.end)).collect()
}

#[test]
fn a_span_keeps_the_bytes_it_was_read_from_and_its_rule() {
    let text = "<think>3 to 4</think>Sure: from 5 s to 9 s.";
    let parsed = AnswerParser::default().parse(text, None);
    let span = &parsed.spans[0];
    assert_eq!((&text[span.bytes.clone()], span.rule), ("5 s to 9 s", Rule::Range));
    let numbers: Vec<&str> = span.numbers.iter().map(|number| &text[number.clone()]).collect();
    assert_eq!(numbers, ["5 s", "9 s"]);
}

#[test]
fn a_pattern_names_the_start_and_the_end_by_groups() {
    let parser: AnswerParser = r"begin=(?<start>[0-9:.]+)\|stop=(?<end>[0-9:.]+)".parse().unwrap();
    let parsed = parser.parse("begin=1:05|stop=1:12 and begin=3|stop=2", None);
    let spans: Vec<_> = parsed.spans.iter().map(|span| (span.start, span.end)).collect();
    assert_eq!(spans, [(65.0, 72.0), (2.0, 3.0)]);
    let refused = "(unclosed".parse::<AnswerParser>().unwrap_err();
    assert!(refused.to_string().contains("unclosed group"), "{refused}");
    let near = "percnt".parse::<AnswerParser>().unwrap_err();
    assert_eq!(near.advice_in(Dialect::Terminal).unwrap(), "did you mean `percent`?");
}

fn truth(id: &str, duration: f64) -> Truth {
    let query = Query { id: QueryId::from(id), text: String::new() };
    Truth::single(query, Video::new("v", duration), [])
}

#[test]
fn percent_waits_for_the_duration_and_every_failure_is_counted_by_kind() {
    let (format, mut predictions) = read_predictions(&fixture("answers.jsonl"), &PredictionOptions::default()).unwrap();
    assert_eq!(format, PredictionFormat::Answers);
    let note = "answers: 3 of 6 texts name a span; 3 (50.0 %) name none: refusal 1, no time 1, needs the duration 1; \
                read by range 3, start-end 1";
    assert_eq!(predictions.notes, [note]);
    answers::with_durations(&mut predictions, &[truth("a4", 200.0)], &AnswerParser::default());
    let list = &predictions.tasks[0].queries[3];
    assert_eq!((list.ranked[0].span.start(), list.ranked[0].span.end()), (180.0, 200.0));
    assert_eq!(answers::counts(&predictions).parsed, 4);
}

fn read(lines: &str, reading: AnswerReading) -> cuemark_formats::Result<Predictions> {
    let source = Source::in_memory("answers.jsonl", lines.as_bytes().to_vec());
    let options = PredictionOptions { answers: reading, ..PredictionOptions::default() };
    Ok(read_predictions(&source, &options)?.1)
}

#[test]
fn the_lines_of_evaluation_kits_are_read_as_they_are() {
    let lmms = r#"{"doc_id": 7, "doc": {"qid": "x7"}, "resps": [["from 5 to 9 seconds"]], "filtered_resps": ["5 to 9 s"], "target": "1-2"}"#;
    let vlm = r#"{"index": 7, "question": "when, from 0 to 30?", "answer": "[1, 2]", "prediction": "5s - 9s"}"#;
    for (line, id) in [(lmms, "x7"), (vlm, "7")] {
        let predictions = read(line, AnswerReading::default()).unwrap();
        let list = &predictions.tasks[0].queries[0];
        assert_eq!(list.query.as_str(), id);
        assert_eq!((list.ranked[0].span.start(), list.ranked[0].span.end()), (5.0, 9.0));
    }
    let reading =
        AnswerReading { id_field: Some("doc.qid".into()), text_field: Some("target".into()), ..Default::default() };
    let predictions = read(lmms, reading).unwrap();
    assert_eq!(predictions.tasks[0].queries[0].ranked[0].span.end(), 2.0);
    let refused = read(r#"{"qid": 1, "text": 3}"#, AnswerReading::default()).unwrap_err();
    assert!(refused.to_string().contains("the text is no text"), "{refused}");
    let twice =
        read("{\"qid\": 1, \"text\": \"\"}\n{\"qid\": 1, \"text\": \"\"}", AnswerReading::default()).unwrap_err();
    assert!(twice.to_string().contains("stands on line 1 already"), "{twice}");
}

#[test]
fn a_long_hostile_text_takes_time_in_proportion() {
    let pieces = [
        "1 to ",
        "((((",
        "not ",
        "5, ",
        "<t>",
        "1:02 - ",
        "from 5 to 9 seconds ",
        "twenty-",
        "| 1 | 2 |\n",
        "1,2,",
        "[1, ",
        "no such event ",
    ];
    for piece in pieces {
        // Twenty seconds are far more than it needs and far less than a square of the length would take.
        let text = piece.repeat(250_000 / piece.len());
        let began = Instant::now();
        assert!(AnswerParser::default().parse(&text, Some(60.0)).spans.len() <= 256);
        assert!(began.elapsed().as_secs() < 20, "{piece:?}: {:?}", began.elapsed());
    }
}

#[test]
fn of_a_text_beyond_the_limit_the_end_is_read() {
    let text = format!("{}So the answer is 5 to 9 seconds.", "é ".repeat(200_000));
    assert_eq!(parse(&text, None), [(5.0, 9.0)]);
}

/// Words, numbers and marks as models string them together.
fn prose() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        prop::sample::select(vec![
            "from ",
            "to ",
            "between ",
            "and ",
            "until ",
            "seconds ",
            "s ",
            "% ",
            "frame ",
            "the first ",
            "the last ",
            "<t>",
            "</t>",
            "[",
            "]",
            ", ",
            " - ",
            "–",
            ":",
            "start: ",
            "end: ",
            "no ",
            "not ",
            "but ",
            ". ",
            "\n",
            "1. ",
            "minute ",
            "ten ",
            "twenty-",
            "half a ",
            "<answer>",
            "for ",
            "?",
            "\"",
        ])
        .prop_map(str::to_owned),
        (0u32..100_000).prop_map(|n| n.to_string()),
        (0.0..500.0f64).prop_map(|n| format!("{n:.2} ")),
        (0u32..60, 0u32..60).prop_map(|(m, s)| format!("{m:02}:{s:02} ")),
        any::<char>().prop_map(|c| c.to_string()),
    ];
    proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn every_number_of_a_span_occurs_in_its_text(text in prose(), duration in prop::option::of(1.0..500.0f64)) {
        let parsed = AnswerParser::default().with_frame_rate(Some(25.0)).parse(&text, duration);
        prop_assert_eq!(parsed.spans.is_empty(), parsed.failure.is_some());
        for span in &parsed.spans {
            prop_assert!(0.0 <= span.start && span.start <= span.end && span.end.is_finite());
            prop_assert!(text.get(span.bytes.clone()).is_some());
            let spoken = matches!(span.rule, Rule::Words | Rule::Edge | Rule::Range | Rule::StartEnd);
            prop_assert!(spoken || !span.numbers.is_empty(), "{:?}", span);
            for number in &span.numbers {
                let literal = text.get(number.clone());
                prop_assert!(literal.is_some_and(|literal| literal.chars().any(char::is_alphanumeric)), "{:?}", span);
            }
        }
    }
}
