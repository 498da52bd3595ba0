//! What tensors are computed on, as requests name it.

/// The device of a request that names none.
pub(crate) fn cpu() -> String {
    "cpu".to_owned()
}
