//! Words per second, on one thread: the 300 hand-checked sentences, over and over.

use cuemark_text::{Tagger, shallow_parse, tokenize};
use divan::Bencher;
use divan::counter::ItemsCount;

fn main() {
    divan::main();
}

fn sentences() -> Vec<String> {
    let text = include_str!("../../../fixtures/text/hand_checked.tsv");
    let tagged = text.lines().filter(|line| !line.starts_with("# ")).filter_map(|line| line.split('\t').nth(1));
    let plain =
        |line: &str| line.split(' ').filter_map(|token| Some(token.rsplit_once('/')?.0)).collect::<Vec<_>>().join(" ");
    tagged.map(plain).collect()
}

fn words(sentences: &[String]) -> ItemsCount {
    ItemsCount::new(sentences.iter().map(|sentence| tokenize(sentence).len()).sum::<usize>())
}

#[divan::bench]
fn tag(bencher: Bencher) {
    let sentences = sentences();
    let tagger = Tagger::embedded();
    bencher
        .counter(words(&sentences))
        .bench(|| sentences.iter().map(|sentence| tagger.tag(&tokenize(sentence)).len()).sum::<usize>());
}

#[divan::bench]
fn parse(bencher: Bencher) {
    let sentences = sentences();
    bencher
        .counter(words(&sentences))
        .bench(|| sentences.iter().map(|sentence| shallow_parse(sentence).dependencies.len()).sum::<usize>());
}
