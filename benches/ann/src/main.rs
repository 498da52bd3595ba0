//! Our graph beside crates for nearest neighbours, and beside Python's hnswlib.
//!
//! `ann compare VECTORS WIDTH COUNT PYTHON SCRATCH [SIDE…]` measures, `ann damage VECTORS WIDTH COUNT PYTHON SCRATCH [SIDE…]` kills
//! writers and flips bytes. VECTORS holds `moments.f32` and `queries.f32`, as `search_speed` writes them; the first COUNT
//! moments are used. SCRATCH is emptied. Every side works in processes of its own, which the other commands of `commands` are.

mod commands;
mod compare;
mod damage;
mod sides;
mod system;
mod vectors;

use anyhow::bail;

use crate::vectors::Input;

/// Links of a moment; twice as many on the ground.
pub const LINKS: usize = 16;
/// Candidates kept while a moment is put in.
pub const BUILD_EXPANSION: usize = 96;
/// Neighbours asked for.
pub const COUNT: usize = 10;

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["compare", vectors, width, count, python, scratch, sides @ ..] => {
            compare::run(&Input::new(vectors, width, count)?, python, scratch.as_ref(), &sides::chosen(sides)?)
        }
        ["damage", vectors, width, count, python, scratch, sides @ ..] => {
            damage::run(&Input::new(vectors, width, count)?, python, scratch.as_ref(), &sides::chosen(sides)?)
        }
        ["build", side, vectors, width, count, folder] => {
            commands::build(side, &Input::new(vectors, width, count)?, folder.as_ref())
        }
        ["rewrite", side, vectors, width, count, folder] => {
            commands::rewrite(side, &Input::new(vectors, width, count)?, folder.as_ref())
        }
        ["answer", side, vectors, width, count, folder] => {
            commands::answer(side, &Input::new(vectors, width, count)?, folder.as_ref())
        }
        _ => bail!("ann compare|damage VECTORS WIDTH COUNT PYTHON SCRATCH [SIDE…]"),
    }
}
