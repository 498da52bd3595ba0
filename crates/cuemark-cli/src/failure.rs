//! Errors as a person reads them: what, where, why; the hint apart.

use std::error::Error;

use cuemark_bench::BenchError;
use cuemark_core::{Advice, Advise, Dialect, Stopped};
use cuemark_data::DataError;
use cuemark_encoders::EncodeError;
use cuemark_features::FeatureError;
use cuemark_formats::{ReadError, UnknownFormat};
use cuemark_mcp::McpError;
use cuemark_media::MediaError;
use cuemark_metrics::EvalError;
use cuemark_models::ModelError;
use cuemark_protocols::ProtocolError;
use cuemark_search::SearchError;
use cuemark_server::ServerError;
use cuemark_tensor::UnknownDevice;
use cuemark_text::TextError;
use cuemark_text::similarity::SimilarityError;
use cuemark_train::TrainError;
use cuemark_world::WorldError;
use serde_json::json;

use crate::output::complain;

/// The input has problems.
pub(crate) const PROBLEMS: u8 = 1;
/// The command line has, as clap says it too.
const USAGE: u8 = 2;

/// Prints `error:` and, where there is advice, `hint:` to standard error; one JSON object instead, with `--json`.
pub(crate) fn report(error: &anyhow::Error) -> u8 {
    if error.downcast_ref::<Stopped>().is_some() {
        // Whoever pressed Ctrl-C knows why.
        complain("stopped before it was done");
        return crate::stop::INTERRUPTED;
    }
    let code = if is_usage(error) { USAGE } else { PROBLEMS };
    if wants_json() {
        complain(&json!({ "error": message(error), "hint": hint(error), "exit": code }).to_string());
    } else {
        complain(&format!("error: {}", message(error)));
        if let Some(hint) = hint(error) {
            complain(&format!("hint: {hint}"));
        }
    }
    code
}

/// What clap says about the command line; help and versions are no errors and go to standard output.
pub(crate) fn report_usage(error: &clap::Error) -> u8 {
    let is_answer = !error.use_stderr();
    if is_answer || !wants_json() {
        // A reader that has left wants no more help.
        let _ = error.print();
    } else {
        let said = error.render().to_string();
        let said = said.trim().trim_start_matches("error: ");
        complain(&json!({ "error": said, "hint": null, "exit": USAGE }).to_string());
    }
    if is_answer { 0 } else { USAGE }
}

/// Whether `--json` was given, wherever it stands: a command line that cannot be understood may still say so.
fn wants_json() -> bool {
    let mut words = crate::invocation::words();
    words.truncate(words.iter().position(|word| word == "--").unwrap_or(words.len()));
    words.iter().any(|word| word == "--json" || word == "--format=json")
        || words.windows(2).any(|pair| pair[0] == "--format" && pair[1] == "json")
}

/// A flag that says what cannot be is a fault of the command line, whoever notices it: a setting, or the name of a metric, a
/// preset or a layout that does not exist.
fn is_usage(error: &anyhow::Error) -> bool {
    let unknown_metric =
        |error: &EvalError| matches!(error, EvalError::UnknownMetric { .. } | EvalError::UnknownPreset { .. });
    let unknown_layout = |error: &DataError| matches!(error, DataError::UnknownName { what: "truth format", .. });
    match error.downcast_ref() {
        Some(cuemark::Error::Setting { .. } | cuemark::Error::Format(_)) => true,
        Some(cuemark::Error::Eval(error)) => unknown_metric(error),
        Some(cuemark::Error::Data(error)) => unknown_layout(error),
        _ => {
            error.downcast_ref().is_some_and(unknown_metric)
                || error.downcast_ref().is_some_and(unknown_layout)
                || error.downcast_ref::<UnknownFormat>().is_some()
        }
    }
}

/// What went wrong, with its causes.
pub(crate) fn message(error: &anyhow::Error) -> String {
    cuemark_core::whole_message(error.as_ref())
}

/// The advice of the first error in the chain that has some, in the words of a terminal.
pub(crate) fn hint(error: &anyhow::Error) -> Option<String> {
    error.chain().find_map(advice_of).map(|advice| advice.render(Dialect::Terminal))
}

/// An error behind `dyn Error` has forgotten that it can advise: every type that can is listed here, and nowhere else.
fn advice_of(error: &(dyn Error + 'static)) -> Option<Advice> {
    fn of<E: Error + Advise + 'static>(error: &(dyn Error + 'static)) -> Option<Advice> {
        error.downcast_ref::<E>()?.advice()
    }
    let kinds = [
        of::<cuemark::Error>,
        of::<ReadError>,
        of::<DataError>,
        of::<FeatureError>,
        of::<EncodeError>,
        of::<McpError>,
        of::<MediaError>,
        of::<EvalError>,
        of::<ProtocolError>,
        of::<TextError>,
        of::<SimilarityError>,
        of::<WorldError>,
        of::<ModelError>,
        of::<TrainError>,
        of::<BenchError>,
        of::<SearchError>,
        of::<ServerError>,
        of::<UnknownDevice>,
        of::<UnknownFormat>,
    ];
    kinds.into_iter().find_map(|advice| advice(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_front_end_says_the_same_advice_in_its_own_words() {
        let error = anyhow::Error::from(BenchError::File(ReadError::Exists { path: "runs/a.json".into() }));
        assert_eq!(message(&error), "`runs/a.json` exists already");
        let advice = error.chain().find_map(advice_of).unwrap();
        let said = [Dialect::Terminal, Dialect::Python, Dialect::Http].map(|dialect| advice.render(dialect));
        assert_eq!(
            said,
            ["pass `--force` to replace it", "pass `force=True` to replace it", "pass `\"force\": true` to replace it"]
        );
        assert_eq!(hint(&error).as_ref(), said.first());
    }

    #[test]
    fn an_error_wrapped_twice_says_its_cause_once() {
        let source = std::io::Error::new(std::io::ErrorKind::NotFound, "no such file");
        let error = anyhow::Error::from(TrainError::Data(ReadError::Io { path: "a.txt".into(), source }.into()));
        assert_eq!(message(&error), "cannot read `a.txt`: no such file");
        assert!(hint(&error).is_some_and(|hint| hint.starts_with("check the path")));
    }
}
