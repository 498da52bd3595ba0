//! Visual encoders against PyTorch, torchvision and transformers; extraction on films that are made here.
//!
//! The reference's figures are in `fixtures/encoders/visual/reference.json`; `make.py` beside it says how they came about.

mod architectures;
mod extraction;
mod formula;
mod published;
mod videos;
