//! How good the tagger and the phrases are on 300 sentences tagged by hand; see the head of the file for its layout.

use cuemark_text::{Pos, shallow_parse};

/// One sentence of `fixtures/text/hand_checked.tsv`.
struct Checked {
    style: String,
    words: Vec<String>,
    tags: Vec<Pos>,
    first_verb: Option<usize>,
    /// Every (verb, noun) pair.
    pairs: Vec<(usize, usize)>,
}

fn read() -> Vec<Checked> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/text/hand_checked.tsv");
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().filter(|line| !line.starts_with("# ")).map(Checked::read).collect()
}

impl Checked {
    fn read(line: &str) -> Self {
        let [style, tokens, first_verb, phrases] = line.split('\t').collect::<Vec<_>>().try_into().unwrap();
        let (words, tags) = tokens
            .split(' ')
            .map(|token| token.rsplit_once('/').unwrap())
            .map(|(word, tag)| (word.to_owned(), Pos::from_name(tag).unwrap()))
            .unzip();
        let mut pairs = Vec::new();
        for phrase in phrases.split(' ').filter(|phrase| *phrase != "-") {
            let (verb, nouns) = phrase.split_once(':').unwrap();
            for noun in nouns.split(',').filter(|noun| !noun.is_empty()) {
                pairs.push((verb.parse().unwrap(), noun.parse().unwrap()));
            }
        }
        Self { style: style.to_owned(), words, tags, first_verb: first_verb.parse().ok(), pairs }
    }
}

/// Right, found and wanted, over all sentences of a style.
#[derive(Default)]
struct Count {
    sentences: usize,
    tokens: usize,
    tags_right: usize,
    first_right: usize,
    pairs_right: usize,
    pairs_found: usize,
    pairs_wanted: usize,
}

impl Count {
    fn add(&mut self, checked: &Checked) {
        let parse = shallow_parse(&checked.words.join(" "));
        let words: Vec<&str> = parse.tokens.iter().map(|token| token.text.as_str()).collect();
        assert_eq!(words, checked.words, "the tokeniser cuts as the file does");
        let pairs: Vec<(usize, usize)> =
            parse.phrases.iter().flat_map(|phrase| phrase.nouns.iter().map(|noun| (phrase.verb, *noun))).collect();
        self.sentences += 1;
        self.tokens += checked.tags.len();
        self.tags_right += parse.tokens.iter().zip(&checked.tags).filter(|(token, tag)| token.tag == **tag).count();
        self.first_right += usize::from(parse.first_verb() == checked.first_verb);
        self.pairs_right += pairs.iter().filter(|pair| checked.pairs.contains(pair)).count();
        self.pairs_found += pairs.len();
        self.pairs_wanted += checked.pairs.len();
    }

    fn tags(&self) -> f64 {
        self.tags_right as f64 / self.tokens as f64
    }

    fn first_verbs(&self) -> f64 {
        self.first_right as f64 / self.sentences as f64
    }

    fn phrases_f1(&self) -> f64 {
        2.0 * self.pairs_right as f64 / (self.pairs_found + self.pairs_wanted) as f64
    }

    fn print(&self, name: &str) {
        eprintln!(
            "{name:>13}: {:3} sentences, {:4} tokens: tags {:.2} %, first verb {:.2} %, phrase F1 {:.2} %",
            self.sentences,
            self.tokens,
            100.0 * self.tags(),
            100.0 * self.first_verbs(),
            100.0 * self.phrases_f1()
        );
    }
}

#[test]
fn the_tagger_is_as_good_as_we_say() {
    let sentences = read();
    assert_eq!(sentences.len(), 300);
    let mut all = Count::default();
    let mut styles: Vec<(&str, Count)> = Vec::new();
    for checked in &sentences {
        all.add(checked);
        if !styles.iter().any(|(style, _)| *style == checked.style) {
            styles.push((&checked.style, Count::default()));
        }
        if let Some((_, count)) = styles.iter_mut().find(|(style, _)| *style == checked.style) {
            count.add(checked);
        }
    }
    for (style, count) in &styles {
        count.print(style);
    }
    all.print("all");
    // Floors, not figures: a point or more below what is measured, so that a change must do harm to fail.
    assert!(all.tags() >= 0.98, "tags {}", all.tags());
    assert!(all.first_verbs() >= 0.97, "first verbs {}", all.first_verbs());
    assert!(all.phrases_f1() >= 0.95, "phrases {}", all.phrases_f1());
}

#[test]
fn the_sentences_agree_with_themselves() {
    for checked in read() {
        let first = checked.tags.iter().position(|tag| *tag == Pos::Verb);
        assert_eq!(first, checked.first_verb, "{:?}", checked.words);
        for (verb, noun) in checked.pairs {
            assert_eq!(checked.tags[verb], Pos::Verb, "{:?}", checked.words);
            assert!(checked.tags[noun].is_noun(), "{:?}", checked.words);
        }
    }
}
