//! Errors as a person reads them: what, where, why; the hint apart.

use std::error::Error;
use std::process::ExitCode;

use cuemark_bench::BenchError;
use cuemark_core::{Advice, Advise, Dialect, Stopped};
use cuemark_data::DataError;
use cuemark_encoders::EncodeError;
use cuemark_features::FeatureError;
use cuemark_formats::{ReadError, UnknownFormat};
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

/// The input has problems.
pub(crate) const PROBLEMS: u8 = 1;
/// The command line has, as clap says it too.
const USAGE: u8 = 2;

/// Prints `error:` and, where there is advice, `hint:` to standard error.
pub(crate) fn report(error: &anyhow::Error) -> ExitCode {
    if error.downcast_ref::<Stopped>().is_some() {
        // Whoever pressed Ctrl-C knows why.
        crate::output::say("stopped before it was done");
        return ExitCode::from(crate::stop::INTERRUPTED);
    }
    crate::output::say(&format!("error: {}", message(error)));
    if let Some(hint) = hint(error) {
        crate::output::say(&format!("hint: {hint}"));
    }
    // A flag that says what cannot be is a fault of the command line, whoever notices it.
    let is_usage = matches!(error.downcast_ref(), Some(cuemark::Error::Setting { .. }));
    ExitCode::from(if is_usage { USAGE } else { PROBLEMS })
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
