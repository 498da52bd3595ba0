//! What the tagger looks at.

use crate::lexicon::{Kind, Lexicon, Reading, VERB_KINDS};
use crate::{Pos, Token};

/// The open classes: tags that new words join.
const OPEN: u32 = 1 << Pos::Noun as u32
    | 1 << Pos::Verb as u32
    | 1 << Pos::Adj as u32
    | 1 << Pos::Adv as u32
    | 1 << Pos::Propn as u32;

/// What is known about one token before any tag is given.
struct Word {
    /// Hash of the word in lower case.
    id: u32,
    reading: Reading,
    likeliest: Pos,
    allowed: u32,
    /// Hashes of the last two and three letters, where the word has more.
    endings: [u32; 2],
    capital: bool,
    /// Whether the word's identity may be used: always, except now and then in training.
    named: bool,
    /// What lies ahead in the same clause: 0 no verb, 1 a word that can be one, 2 one that can be nothing else.
    verb_ahead: u8,
}

/// One sentence on its way through the tagger.
pub(super) struct Sentence {
    words: Vec<Word>,
    tags: Vec<Pos>,
    /// Whether the clause has no verb yet (0), an auxiliary (1) or a main verb (2).
    clause: u8,
    /// Whether any word begins with a capital: in text without capitals their absence says nothing.
    capitals: bool,
}

/// Stands for the tag before the first and after the last token.
const OUTSIDE: u32 = 31;

impl Sentence {
    pub(super) fn new(tokens: &[Token<'_>]) -> Self {
        let lexicon = Lexicon::embedded();
        let mut lower = String::new();
        let mut words: Vec<Word> = Vec::with_capacity(tokens.len());
        for (index, token) in tokens.iter().enumerate() {
            lower.clear();
            lower.extend(token.text.chars().flat_map(char::to_lowercase));
            if lower.contains('\u{2019}') {
                lower = lower.replace('\u{2019}', "'");
            }
            words.push(Word::new(token.text, &lower, index, lexicon));
        }
        look_ahead(&mut words);
        let capitals = words.iter().skip(1).any(|word| word.capital);
        Self { tags: Vec::with_capacity(words.len()), words, clause: 0, capitals }
    }

    /// Hides a word's identity from the tagger, so that it learns to do without.
    pub(super) fn hide(&mut self, index: usize) {
        if let Some(word) = self.words.get_mut(index) {
            word.named = false;
        }
    }

    /// Whether `index` is a word of the open classes alone.
    pub(super) fn is_open(&self, index: usize) -> bool {
        self.words.get(index).is_some_and(|word| word.allowed & !OPEN == 0)
    }

    /// A bit per tag (by place in [`Pos::ALL`]) that the token may have.
    pub(super) fn allowed(&self, index: usize) -> u32 {
        self.words[index].allowed
    }

    pub(super) fn assign(&mut self, index: usize, tag: Pos) {
        debug_assert_eq!(index, self.tags.len());
        self.tags.push(tag);
        self.clause = match tag {
            Pos::Verb => 2,
            Pos::Aux => self.clause.max(1),
            Pos::Cconj | Pos::Sconj | Pos::Punct => 0,
            _ => self.clause,
        };
    }

    pub(super) fn into_tags(self) -> Vec<Pos> {
        self.tags
    }

    /// Calls `each` with the hash of everything that speaks for one tag or another at `index`; all tags before it must
    /// have been assigned.
    pub(super) fn for_each_feature(&self, index: usize, mut each: impl FnMut(u32)) {
        let word = &self.words[index];
        let kinds = word.reading.kinds;
        let likeliest = word.likeliest as u32;
        let before = |back: usize| index.checked_sub(back).and_then(|at| self.words.get(at));
        let tag_before =
            |back: usize| index.checked_sub(back).and_then(|at| self.tags.get(at)).map_or(OUTSIDE, |tag| *tag as u32);
        let kinds_of = |word: Option<&Word>| word.map_or(1 << OUTSIDE, |word| word.reading.kinds);
        // Neighbours of the open classes speak by what they can be, so that words never met in training serve as well.
        let id_of =
            |word: Option<&Word>| word.map_or(OUTSIDE, |word| if word.allowed & !OPEN == 0 { 0 } else { word.id });
        let (tag1, tag2) = (tag_before(1), tag_before(2));
        let (last, next, next2) = (before(1), self.words.get(index + 1), self.words.get(index + 2));
        let (last_id, next_id) = (id_of(last), id_of(next));
        let (last_kinds, next_kinds, next2_kinds) = (kinds_of(last), kinds_of(next), kinds_of(next2));
        let clause = u32::from(self.clause) * 3 + u32::from(word.verb_ahead);
        let case = u32::from(word.capital) * 4 + u32::from(index == 0) * 2 + u32::from(self.capitals);

        each(hash(0, kinds, 0, 0));
        each(hash(1, kinds, likeliest, tag1));
        each(hash(2, kinds, tag1, tag2));
        each(hash(3, kinds, next_kinds, 0));
        each(hash(4, kinds, tag1, next_kinds));
        each(hash(5, kinds, clause, tag1));
        each(hash(6, kinds, clause, next_kinds));
        each(hash(7, kinds, next_kinds, next2_kinds));
        each(hash(8, kinds, last_kinds, tag1));
        each(hash(9, likeliest, tag1, next_kinds));
        each(hash(10, likeliest, clause, 0));
        each(hash(11, case, kinds & Kind::Name.bit(), likeliest));
        each(hash(12, case, tag1, kinds));
        each(hash(13, word.endings[0], tag1, 0));
        each(hash(14, word.endings[1], u32::from(kinds == 0), 0));
        each(hash(15, last_id, kinds, 0));
        each(hash(16, next_id, kinds, tag1));
        each(hash(17, last_id, next_id, kinds));
        each(hash(18, tag1, tag2, clause));
        each(hash(19, id_of(next2), kinds, next_kinds));
        if word.named {
            each(hash(20, word.id, 0, 0));
            each(hash(21, word.id, tag1, 0));
            each(hash(22, word.id, next_kinds, 0));
            each(hash(23, word.id, last_id, 0));
            each(hash(24, word.id, next_id, 0));
            each(hash(25, word.id, clause, 0));
            each(hash(26, word.id, tag1, next_kinds));
        }
    }
}

impl Word {
    fn new(text: &str, lower: &str, index: usize, lexicon: &Lexicon) -> Self {
        let reading = lexicon.look_up(lower);
        let mut word = Self {
            id: hash_text(lower),
            likeliest: reading.likeliest(),
            allowed: 0,
            endings: [ending(lower, 2), ending(lower, 3)],
            capital: text.chars().next().is_some_and(char::is_uppercase),
            named: true,
            verb_ahead: 0,
            reading,
        };
        word.allowed = allowed(&word, lower, index);
        word
    }
}

/// The tags a word may have, from its readings and its shape.
fn allowed(word: &Word, lower: &str, index: usize) -> u32 {
    let Word { reading, capital, .. } = word;
    let bit = |tag: Pos| 1 << tag as u32;
    let mut tags = reading.tags();
    if tags == 0 {
        return match lower.chars().next() {
            Some(first) if first.is_ascii_digit() => {
                // 3rd, 2nd; 4x4, 1980s; everything else that opens with a digit is a number.
                if lower.ends_with("nd") || lower.ends_with("rd") || lower.ends_with("st") || lower.ends_with("th") {
                    bit(Pos::Adj)
                } else {
                    bit(Pos::Num)
                }
            }
            // A word nobody knows is a name only with a capital.
            Some(first) if first.is_alphanumeric() => OPEN & !(u32::from(!capital) << Pos::Propn as u32),
            Some('&' | '%' | '$' | '+' | '=' | '#' | '@' | '*' | '<' | '>' | '°' | '£' | '€') => bit(Pos::Sym),
            Some(first) if first.is_ascii_punctuation() || "“”‘’–—…¿¡«»".contains(first) => {
                bit(Pos::Punct)
            }
            Some(first) if first.is_ascii() => bit(Pos::X),
            _ => bit(Pos::Sym),
        };
    }
    // A participle can stand for an adjective, a gerund for a noun, whether or not the lexicon says so.
    if reading.kinds & (Kind::Ing.bit() | Kind::Past.bit()) != 0 {
        tags |= bit(Pos::Adj);
    }
    if reading.has(Kind::Ing) {
        tags |= bit(Pos::Noun);
    }
    // Any open-class word with a capital inside the sentence may be a name.
    if *capital && index > 0 && tags & !OPEN == 0 {
        tags |= bit(Pos::Propn);
    }
    tags
}

/// Fills in `verb_ahead`, going backwards; a conjunction or a mark ends the clause.
fn look_ahead(words: &mut [Word]) {
    let ends = 1 << Pos::Cconj as u32 | 1 << Pos::Sconj as u32 | 1 << Pos::Punct as u32;
    let mut ahead = 0;
    for word in words.iter_mut().rev() {
        word.verb_ahead = ahead;
        let kinds = word.reading.kinds;
        let verbal = VERB_KINDS | Kind::Aux.bit();
        if word.allowed & !ends == 0 {
            ahead = 0;
        } else if kinds != 0 && kinds & !verbal == 0 {
            ahead = 2;
        } else if kinds & verbal != 0 {
            ahead = ahead.max(1);
        }
    }
}

/// The last `letters` characters; 0 for a word that is not longer than that.
fn ending(word: &str, letters: usize) -> u32 {
    match word.char_indices().rev().nth(letters - 1) {
        Some((at, _)) if at > 0 => hash_text(&word[at..]),
        _ => 0,
    }
}

fn hash_text(text: &str) -> u32 {
    let mixed = cuemark_core::digest::fnv1a(text.as_bytes());
    (mixed ^ (mixed >> 32)) as u32
}

/// One number for a template and what it saw. Two features may share a number; with some ten thousand in use that is rare.
fn hash(template: u32, a: u32, b: u32, c: u32) -> u32 {
    let mut mixed = u64::from(template).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for part in [a, b, c] {
        mixed = (mixed ^ u64::from(part)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        mixed ^= mixed >> 32;
    }
    mixed as u32
}
