//! Errors as a person reads them: what, where, why; the hint apart.

use std::process::ExitCode;

use cuemark_bench::BenchError;
use cuemark_core::{Advise as _, Dialect};
use cuemark_data::DataError;
use cuemark_encoders::EncodeError;
use cuemark_features::FeatureError;
use cuemark_formats::{ReadError, UnknownFormat};
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

/// Prints `error:` and, where there is advice, `hint:` to standard error.
pub(crate) fn report(error: &anyhow::Error) -> ExitCode {
    crate::output::say(&format!("error: {}", message(error)));
    if let Some(hint) = hint(error) {
        crate::output::say(&format!("hint: {hint}"));
    }
    ExitCode::from(PROBLEMS)
}

/// What went wrong, with its causes.
pub(crate) fn message(error: &anyhow::Error) -> String {
    let causes: Vec<String> = error.chain().map(ToString::to_string).collect();
    // An error that already quotes its source in its own message does not say it twice.
    let mut message = String::new();
    for cause in causes {
        if !message.contains(&cause) {
            message = if message.is_empty() { cause } else { format!("{message}: {cause}") };
        }
    }
    message
}

/// The advice of the first error in the chain that has some.
pub(crate) fn hint(error: &anyhow::Error) -> Option<String> {
    error.chain().find_map(|cause| {
        None.or_else(|| cause.downcast_ref::<ReadError>()?.hint())
            .or_else(|| cause.downcast_ref::<DataError>()?.hint())
            .or_else(|| cause.downcast_ref::<FeatureError>()?.hint())
            .or_else(|| cause.downcast_ref::<EncodeError>()?.hint())
            .or_else(|| cause.downcast_ref::<EvalError>()?.hint())
            .or_else(|| cause.downcast_ref::<ProtocolError>()?.hint())
            .or_else(|| cause.downcast_ref::<TextError>()?.hint())
            .or_else(|| cause.downcast_ref::<SimilarityError>()?.hint())
            .or_else(|| cause.downcast_ref::<WorldError>()?.hint())
            .or_else(|| cause.downcast_ref::<ModelError>()?.hint())
            .or_else(|| cause.downcast_ref::<TrainError>()?.hint())
            .or_else(|| cause.downcast_ref::<BenchError>()?.hint())
            .or_else(|| cause.downcast_ref::<SearchError>()?.hint())
            .or_else(|| Some(cause.downcast_ref::<ServerError>()?.advice()?.render(Dialect::Terminal)))
            .or_else(|| Some(cause.downcast_ref::<UnknownDevice>()?.hint().to_owned()))
            .or_else(|| Some(cause.downcast_ref::<UnknownFormat>()?.hint()))
    })
}
