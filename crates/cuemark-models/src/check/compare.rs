//! Comparing a trace with its fixture.

use std::collections::BTreeMap;

use candle_core::backprop::GradStore;
use cuemark_tensor::{DType, Device, Params, Tensor};
use serde::Serialize;

use super::{Fixture, Tolerance, Trace};
use crate::{ModelCard, Result};

/// How far our network is from its reference.
#[derive(Debug, Clone, Serialize)]
pub struct ParityReport {
    /// Whether every tensor is within tolerance.
    pub passed: bool,
    /// Every output, loss and gradient of the fixture, in its order.
    pub tensors: Vec<TensorCheck>,
}

/// How far one tensor is from the reference.
#[derive(Debug, Clone, Serialize)]
pub struct TensorCheck {
    /// Full name in the fixture.
    pub name: String,
    /// Largest absolute deviation; `None` when there is nothing to compare.
    pub max_abs: Option<f64>,
    /// Largest deviation relative to the reference: value by value for outputs and losses, to the largest value of the
    /// tensor for gradients.
    pub max_rel: Option<f64>,
    /// Whether it is within tolerance.
    pub ok: bool,
    /// What is wrong, when the two cannot be compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// Runs the fixture through our network and compares everything it holds.
///
/// # Errors
/// When a parameter is missing, misshaped or left over, or an input is not there. Values that are merely wrong are no
/// error: they are in the report.
pub fn check(card: &ModelCard, fixture: &Fixture, device: &Device) -> Result<ParityReport> {
    let params = Params::loaded(fixture.parameters(), device);
    let trace = (card.check)(fixture, &params.builder())?;
    if let Some(name) = params.unused().first() {
        return Err(fixture.fault(&format!("param.{name}"), "is in the fixture and the network has no such parameter"));
    }
    let mut tensors = Vec::new();
    for (name, reference) in fixture.under("out.").chain(fixture.under("loss.")) {
        tensors.push(check_value(name, reference, &trace, fixture.tolerance())?);
    }
    let mut gradients: BTreeMap<&str, GradStore> = BTreeMap::new();
    for (name, reference) in fixture.under("grad.") {
        let parameter = &name["grad.".len()..];
        let loss_name = fixture.grad_of(parameter)?;
        let Some(loss) = trace.tensors.get(loss_name) else {
            return Err(fixture.fault(name, format!("belongs to `{loss_name}`, which the network does not give")));
        };
        if !gradients.contains_key(loss_name) {
            gradients.insert(loss_name, loss.backward()?);
        }
        let var = params.var(parameter).or_else(|| trace.watched.get(parameter).cloned());
        let Some(var) = var else {
            return Err(fixture.fault(name, "is the gradient of a parameter that the network does not have"));
        };
        let ours = gradients.get(loss_name).and_then(|store| store.get(var.as_tensor()));
        tensors.push(match ours {
            Some(ours) => check_gradient(name, reference, ours, fixture.tolerance())?,
            None => not_comparable(name, "no gradient reaches it".to_owned()),
        });
    }
    Ok(ParityReport { passed: tensors.iter().all(|tensor| tensor.ok), tensors })
}

fn check_value(name: &str, reference: &Tensor, trace: &Trace, tolerance: Tolerance) -> Result<TensorCheck> {
    let Some(ours) = trace.tensors.get(name) else {
        return Ok(not_comparable(name, "the network does not give it".to_owned()));
    };
    if ours.dims() != reference.dims() {
        return Ok(not_comparable(name, format!("shape {:?}, the reference has {:?}", ours.dims(), reference.dims())));
    }
    let (ours, reference) = (flat(ours)?, flat(reference)?);
    let compared = match trace.masks.get(name) {
        Some(mask) => flat(mask)?.into_iter().map(|value| value != 0.0).collect(),
        None => vec![true; ours.len()],
    };
    if compared.len() != ours.len() {
        return Ok(not_comparable(name, "its mask has another shape".to_owned()));
    }
    let (mut max_abs, mut max_rel, mut ok) = (0f64, 0f64, true);
    for ((a, b), _) in ours.iter().zip(&reference).zip(&compared).filter(|(_, compared)| **compared) {
        let deviation = (a - b).abs();
        // Written so that a NaN on either side fails.
        ok &= deviation <= tolerance.abs.max(tolerance.rel * b.abs()) || a == b;
        max_abs = max_abs.max(if deviation.is_nan() { f64::INFINITY } else { deviation });
        max_rel = max_rel.max(if *b == 0.0 { 0.0 } else { deviation / b.abs() });
    }
    Ok(TensorCheck { name: name.to_owned(), max_abs: Some(max_abs), max_rel: Some(max_rel), ok, problem: None })
}

fn check_gradient(name: &str, reference: &Tensor, ours: &Tensor, tolerance: Tolerance) -> Result<TensorCheck> {
    if ours.dims() != reference.dims() {
        return Ok(not_comparable(name, format!("shape {:?}, the reference has {:?}", ours.dims(), reference.dims())));
    }
    let (ours, reference) = (flat(ours)?, flat(reference)?);
    let scale = reference.iter().fold(0f64, |largest, value| largest.max(value.abs()));
    let deviations = ours.iter().zip(&reference).map(|(a, b)| (a - b).abs());
    let max_abs =
        deviations.fold(0f64, |largest, value| if value.is_nan() { f64::INFINITY } else { largest.max(value) });
    let max_rel = if scale > 0.0 { max_abs / scale } else { max_abs };
    let ok = max_abs <= tolerance.grad_rel * scale;
    Ok(TensorCheck { name: name.to_owned(), max_abs: Some(max_abs), max_rel: Some(max_rel), ok, problem: None })
}

fn not_comparable(name: &str, problem: String) -> TensorCheck {
    TensorCheck { name: name.to_owned(), max_abs: None, max_rel: None, ok: false, problem: Some(problem) }
}

fn flat(tensor: &Tensor) -> Result<Vec<f64>> {
    Ok(tensor.to_device(&Device::Cpu)?.to_dtype(DType::F64)?.flatten_all()?.to_vec1()?)
}
