//! The `cuemark` command.
fn main() {}
