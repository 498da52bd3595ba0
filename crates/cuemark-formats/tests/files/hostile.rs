//! Files that mean harm, or were merely cut off: a clear error, bounded memory, never a panic.

use crate::support::{PREDICTIONS, fixture_path, folder, options, read_bytes};
use camino::Utf8Path;
use cuemark_core::{Advise as _, Dialect};
use cuemark_core::{Rng, RowPolicy};
use cuemark_formats::{
    Limits, PredictionFormat, PredictionOptions, ReadError, Source, VideoIndex, read_predictions, read_qrels,
    read_truth, read_truth_csv,
};

fn message(bytes: &[u8], format: PredictionFormat) -> String {
    let error = read_bytes(bytes, Some(format)).unwrap_err().to_string();
    error.split_once("/preds").map_or(error.clone(), |(_, rest)| rest.to_owned())
}

#[test]
fn errors_name_the_line_the_field_and_the_value() {
    use PredictionFormat::*;
    let cases = [
        (
            Cuemark,
            "{\"qid\":1,\"predictions\":[]}\n{\"qid\":2,\"predictions\":[{\"span\":[1,2],\"score\":NaN}]}",
            ":2: `predictions[0].score`: `NaN` is not a number",
        ),
        (Cuemark, "{\"qid\":1,\"predictions\":[[1,2,null]]}", ":1: `predictions[0][2]`: `null` is not a number"),
        (
            Cuemark,
            "{\"qid\":1,\"predictions\":[[1,2,3],[1,1e999,3]]}",
            ":1: `predictions[1][1]`: `1e999` is not a finite number",
        ),
        (
            Cuemark,
            "{\"qid\":1,\"predictions\":[]}\n\n{\"qid\":\"1\",\"predictions\":[]}",
            ":3: `qid`: `1` stands on line 1 already",
        ),
        (Cuemark, "{\"qid\":1,\"predictions\":[[1,2,3]", ":1: `predictions[0]`: the end of the text is not `,` or `]`"),
        (
            QvHighlights,
            "{\"qid\":1,\"pred_relevant_windows\":[[0,\"2\",1]]}",
            ":1: `pred_relevant_windows[0][1]`: `\"2\"` is not a number",
        ),
        (QvHighlights, "{\"qid\":1}\n{\"qid\":1}", ":2: `qid`: `1` stands on line 1 already"),
        (
            Tvr,
            "{\"video2idx\":{\"a\":1},\n\"VCMR\":[{\"desc_id\":1,\"predictions\":[[1,0,1,1],[2,0,1,1]]}]}",
            ":2: `VCMR[0].predictions[1][0]`: no video has the number 2",
        ),
        (
            Tvr,
            "{\"video2idx\":{\"a\":1},\"VR\":[{\"desc_id\":1,\"predictions\":[]},{\"desc_id\":1,\"predictions\":[]}]}",
            ":1: `VR[1].desc_id`: `1` is the id of entry 0 too",
        ),
        (Tvr, "{\"VR\":[]}", ":1: `video2idx`: is missing"),
        (
            Tvr,
            "{\"video2idx\":{\"a\":1},\"VR\":[{\"desc_id\":1,\"predictions\":[[1,0",
            ":1: `VR[0]`: the object has no end",
        ),
        (
            TvrRanking,
            "[{\"query_id\":1,\"predictions\":[[3,0]]}]",
            ":1: `[0].predictions[0]`: a prediction is a video number, a start, an end and perhaps a score",
        ),
        (
            TvrRanking,
            "[{\"query_id\":1,\"predictions\":[[0.5,0,1]]}]",
            ":1: `[0].predictions[0][0]`: no video has the number 0.5",
        ),
        (
            ActivityNet,
            "{\"results\":{\"v\":[\n{\"timestamp\":[0,1]}]}}",
            ":2: `results.v[0]`: nothing says which query the entry answers",
        ),
        (ActivityNet, "{\"results\":{\"v\":[{\"qid\":1}]}}", ":1: `results.v[0].timestamp`: is missing"),
        (Trec, "q Q0 a:1-2 1 0.5 t\nq Q0 a:1 2 0.5 t", ":2: `document`: `a:1` is not a moment"),
        (Trec, "q Q0 a:1-2 first 0.5 t", ":1: `rank`: `first` is not a whole number"),
        (Trec, "q Q0 a:1-2 1 nan t", ":1: `score`: `nan` is not a finite number"),
        (Trec, "q Q0 a:1-2 1", ":1: `columns`: there are 4, not 6"),
        (Csv, "qid,start\n1,2", ":1: `end`: there is no such column"),
        (Csv, "qid,start,end\n1,2,x", ":2: `end`: `x` is not a finite number"),
        (Csv, "qid,start,end,score\n1,2,3,inf", ":2: `score`: `inf` is not a finite number"),
        (Csv, "qid,start,end\n1,2,3,4", ":2: `columns`: there are 4, not 3 as in the first line"),
        (Csv, "qid,start,end\n,2,3", ":2: `qid`: is empty"),
    ];
    for (format, text, expected) in cases {
        assert_eq!(message(text.as_bytes(), format), expected, "{format}: {text}");
    }
}

#[test]
fn a_line_that_is_not_utf8_is_named() {
    for (name, format) in PREDICTIONS {
        let mut bytes = b"\n".to_vec();
        bytes.extend(std::fs::read(fixture_path(name)).unwrap());
        let middle = bytes.iter().rposition(u8::is_ascii_alphabetic).unwrap();
        bytes[middle] = 0xff;
        let error = read_bytes(&bytes, Some(format)).unwrap_err();
        assert!(error.to_string().contains("is not UTF-8"), "{name}: {error}");
        assert!(error.advice_in(Dialect::Terminal).unwrap().contains("UTF-8"));
    }
}

#[test]
fn deep_nesting_is_refused() {
    let deep = "[".repeat(100_000);
    for text in [
        format!("{{\"qid\":1,\"x\":{deep}"),
        format!("{{\"qid\":1,\"predictions\":{deep}"),
        format!("{{\"video2idx\":{{}},\"x\":{deep}"),
        deep.clone(),
        "{\"a\":".repeat(100_000),
        format!("{{\"video2idx\":{{}},\"VR\":[{}", "{\"a\":".repeat(100_000)),
    ] {
        for format in PredictionFormat::ALL {
            assert!(read_bytes(text.as_bytes(), Some(format)).is_err());
        }
        assert!(read_bytes(text.as_bytes(), None).is_err());
    }
}

#[test]
fn an_endless_line_is_refused_before_it_is_held() {
    let limits = Limits { document: 1 << 20, line: 4 << 10 };
    let long = |prefix: &str| [prefix.as_bytes(), &vec![b'1'; 2 << 20]].concat();
    let cases = [
        (PredictionFormat::Cuemark, "{\"qid\":1,\"predictions\":[[0,1,0.5]]}\n{\"qid\":", "line 2"),
        (PredictionFormat::QvHighlights, "{\"qid\":1}\n{\"qid\":", "line 2"),
        (PredictionFormat::Trec, "q Q0 a:1-2 1 1 t\nq ", "line 2"),
        (PredictionFormat::Csv, "qid,start,end\n1,2,3\n\"", "a row"),
        (PredictionFormat::Tvr, "{\"video2idx\":", "the decompressed file"),
        (PredictionFormat::TvrRanking, "[{\"query_id\":", "the decompressed file"),
        (PredictionFormat::ActivityNet, "{", "the decompressed file"),
    ];
    let (_guard, folder) = folder();
    let path = folder.join("preds");
    for (format, prefix, what) in cases {
        std::fs::write(&path, long(prefix)).unwrap();
        let error = read_predictions(&Source::new(&path).with_limits(limits), &options(Some(format))).unwrap_err();
        assert!(matches!(&error, ReadError::TooLarge { what: found, .. } if found == what), "{format}: {error}");
    }
}

#[test]
fn short_lines_pass_a_limit_that_long_ones_do_not() {
    let limits = Limits { document: 1 << 20, line: 64 };
    let line = |length: usize| format!("{{\"qid\":\"{}\",\"predictions\":[]}}", "q".repeat(length - 27));
    let (_guard, folder) = folder();
    let path = folder.join("preds");
    for (length, fits) in [(64, true), (65, false)] {
        let text = format!("{{\"qid\":1,\"predictions\":[]}}\n{}\n", line(length));
        assert_eq!(text.lines().nth(1).unwrap().len(), length);
        std::fs::write(&path, text).unwrap();
        let read = read_predictions(&Source::new(&path).with_limits(limits), &PredictionOptions::default());
        assert_eq!(read.is_ok(), fits, "{length}");
    }
}

/// 16 MiB of one byte after `prefix`, in a few kilobytes.
fn bomb(path: &Utf8Path, prefix: &str, filling: u8) {
    let file = std::fs::File::create(path).unwrap();
    let mut gzip;
    let mut zstd;
    let out: &mut dyn std::io::Write = if path.extension() == Some("gz") {
        gzip = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
        &mut gzip
    } else {
        zstd = zstd::stream::write::Encoder::new(file, 1).unwrap().auto_finish();
        &mut zstd
    };
    out.write_all(prefix.as_bytes()).unwrap();
    let block = vec![filling; 1 << 20];
    for _ in 0..16 {
        out.write_all(&block).unwrap();
    }
}

#[test]
fn compression_bombs_stop_at_the_limit() {
    let limits = Limits { document: 1 << 20, line: 1 << 20 };
    let (_guard, folder) = folder();
    for name in ["bomb.gz", "bomb.zst"] {
        let path = folder.join(name);
        for prefix in [
            "{\"qid\":1,\"predictions\":[]}\n{\"qid\":\"",
            "{\"video2idx\":{\"",
            "[{\"",
            "{\"results\":\"",
            "qid,start,end\n\"",
        ] {
            bomb(&path, prefix, b'x');
            assert!(std::fs::metadata(&path).unwrap().len() < 1 << 20);
            let error = read_predictions(&Source::new(&path).with_limits(limits), &options(None)).unwrap_err();
            assert!(matches!(error, ReadError::TooLarge { .. }), "{name} {prefix}: {error}");
        }
        bomb(&path, "{\"qid\":1}\n", b'x');
        let source = Source::new(&path).with_limits(limits);
        assert!(matches!(read_truth(&source, RowPolicy::Keep), Err(ReadError::TooLarge { .. })));
        assert!(matches!(VideoIndex::read(&source), Err(ReadError::TooLarge { .. })));
    }
}

#[test]
fn a_file_of_lines_may_be_larger_than_anything_that_is_held() {
    let (_guard, folder) = folder();
    let path = folder.join("bomb.zst");
    bomb(&path, "{\"qid\":1,\"predictions\":[]}\n", b'\n');
    let limits = Limits { document: 1 << 20, line: 1 << 10 };
    let (_, predictions) =
        read_predictions(&Source::new(&path).with_limits(limits), &PredictionOptions::default()).unwrap();
    assert_eq!(predictions.tasks[0].queries.len(), 1);
}

#[test]
fn truncated_archives_are_errors() {
    let (_guard, folder) = folder();
    for name in ["cut.gz", "cut.zst"] {
        let path = folder.join(name);
        bomb(&path, "{\"qid\":1,\"predictions\":[]}\n", b'\n');
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
        let error = read_predictions(&Source::new(&path), &PredictionOptions::default()).unwrap_err();
        assert!(matches!(error, ReadError::Io { .. }), "{name}: {error}");
    }
}

#[test]
fn files_that_are_nothing_are_refused_with_a_hint() {
    assert!(read_bytes(b"", None).unwrap_err().to_string().ends_with("the file is empty"));
    for bytes in [b"hello\n".as_slice(), b"{\"a\":1}", b"\x00\x01\x02", b"1 2 3", b"%PDF-1.7"] {
        let error = read_bytes(bytes, None).unwrap_err();
        assert!(error.advice_in(Dialect::Terminal).unwrap().contains("--pred-format"), "{error}");
    }
}

/// One small harm done to a file.
fn mutate(bytes: &mut Vec<u8>, rng: &mut Rng) {
    const TOKENS: [&[u8]; 14] = [
        b"null",
        b"NaN",
        b"1e308",
        b"-1e308",
        b"1e999",
        b"-5",
        b"\"",
        b"\\",
        b"[",
        b"}",
        b"\n",
        b",",
        b"\xff",
        b"99999999999999999999",
    ];
    let at = rng.below(bytes.len().max(1)).min(bytes.len());
    let until = (at + rng.below(12)).min(bytes.len());
    match rng.below(5) {
        0 => bytes.truncate(at),
        1 => drop(bytes.drain(at..until)),
        2 => {
            let again = bytes[at..until].to_vec();
            bytes.splice(at..at, again);
        }
        3 => {
            let token = TOKENS[rng.below(TOKENS.len())];
            bytes.splice(at..until, token.iter().copied());
        }
        _ => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte = rng.bits32() as u8),
    }
}

#[test]
fn mutated_files_never_panic() {
    let (_guard, folder) = folder();
    let path = folder.join("mutant");
    let mut refused = 0;
    let others = ["truth.jsonl", "truth.csv", "qrels.trec", "tvr-videos.json", "tvr-ranking-videos.json"];
    let names = PREDICTIONS.map(|(name, format)| (name, Some(format))).into_iter();
    for (name, format) in names.chain(others.map(|name| (name, None))) {
        let original = std::fs::read(fixture_path(name)).unwrap();
        let mut rng = Rng::stream(7, name);
        let (forced, guessed) = (options(format), options(None));
        for _ in 0..150 {
            let mut bytes = original.clone();
            for _ in 0..=rng.below(3) {
                mutate(&mut bytes, &mut rng);
            }
            std::fs::write(&path, &bytes).unwrap();
            let source = Source::new(&path);
            let failed = match name {
                "truth.jsonl" => read_truth(&source, RowPolicy::Clamp).is_err(),
                "truth.csv" => read_truth_csv(&source, RowPolicy::Skip).is_err(),
                "qrels.trec" => read_qrels(&source).is_err(),
                _ if format.is_none() => VideoIndex::read(&source).is_err(),
                _ => {
                    let _ = read_predictions(&source, &guessed);
                    read_predictions(&source, &forced).is_err()
                }
            };
            refused += usize::from(failed);
        }
    }
    assert!(refused > 500, "mutations should break most files, not {refused}");
}
