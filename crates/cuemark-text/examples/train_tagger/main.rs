//! Makes the data files of `cuemark-text`: the lexicon, the irregular forms and the tagger.
//!
//! ```console
//! $ apt-get download wordnet-base && dpkg-deb -x wordnet-base_*.deb /tmp/wordnet
//! $ cargo run --release -p cuemark-text --example train_tagger -- lexicon /tmp/wordnet/usr/share/wordnet
//! $ cargo run --release -p cuemark-text --example train_tagger -- tagger /tmp/wordnet/usr/share/wordnet
//! ```
//! Two runs, since the tagger looks words up in the lexicon that is compiled into the crate. The same inputs give the
//! same files, byte for byte.

#![allow(clippy::print_stdout)]

mod grammar;
mod inflect;
mod vocabulary;
mod wordnet;

use std::error::Error;
use std::path::Path;

use cuemark_core::Rng;
use cuemark_text::{Pos, Token, Trainer};

use crate::grammar::Grammar;
use crate::vocabulary::Vocabulary;
use crate::wordnet::WordNet;

/// Everything that can go wrong stops the program with its message.
pub(crate) type Result<T> = std::result::Result<T, Box<dyn Error>>;

const SEED: u64 = 20_240_607;
const SENTENCES: usize = 80_000;
const PASSES: usize = 4;
/// Features met less often than this are left out of the model.
const LEAST_SEEN: u32 = 12;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [step, wordnet] = arguments.as_slice() else {
        return Err("give the step (lexicon, tagger or sample) and WordNet's folder".into());
    };
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let vocabulary = Vocabulary::read(&here.join("training"))?;
    let wordnet = WordNet::read(Path::new(wordnet), &vocabulary)?;
    match step.as_str() {
        "lexicon" => wordnet.write(&here.join("data")),
        "tagger" => train(here, &vocabulary, &wordnet),
        "sample" => sample(here, &vocabulary, &wordnet),
        _ => Err(format!("`{step}` is no step").into()),
    }
}

fn train(here: &Path, vocabulary: &Vocabulary, wordnet: &WordNet) -> Result<()> {
    let grammar = Grammar::read(&here.join("training/grammar.txt"), vocabulary, wordnet)?;
    let mut rng = Rng::stream(SEED, "sentences");
    let mut sentences: Vec<Vec<(String, Pos)>> = (0..SENTENCES).map(|_| grammar.sentence(&mut rng)).collect();
    let mut trainer = Trainer::new(SEED);
    for pass in 1..=PASSES {
        rng.shuffle(&mut sentences);
        let (mut right, mut total) = (0, 0);
        for sentence in &sentences {
            let tokens: Vec<Token<'_>> = sentence.iter().map(|(text, _)| Token { text, start: 0 }).collect();
            let gold: Vec<Pos> = sentence.iter().map(|(_, tag)| *tag).collect();
            right += trainer.learn(&tokens, &gold);
            total += gold.len();
        }
        println!("pass {pass}: {:.2} % of {total} tokens right while learning", 100.0 * right as f64 / total as f64);
    }
    let bytes = trainer.finish(LEAST_SEEN);
    println!("model: {} kB", bytes.len() / 1000);
    std::fs::write(here.join("data/tagger.bin"), bytes)?;
    Ok(())
}

/// Prints some training sentences, to be looked at.
fn sample(here: &Path, vocabulary: &Vocabulary, wordnet: &WordNet) -> Result<()> {
    let grammar = Grammar::read(&here.join("training/grammar.txt"), vocabulary, wordnet)?;
    let mut rng = Rng::stream(SEED, "sample");
    for _ in 0..60 {
        let words: Vec<String> = grammar.sentence(&mut rng).iter().map(|(text, tag)| format!("{text}/{tag}")).collect();
        println!("{}", words.join(" "));
    }
    Ok(())
}
