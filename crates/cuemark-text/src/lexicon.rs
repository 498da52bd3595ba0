//! Which parts of speech a word can have, and the base forms it may be an inflection of.
//!
//! `data/lexicon.txt` lists base forms with their readings: open-class words from WordNet 3.0 (see `data/WORDNET.txt`
//! for its licence) with the share each reading has in WordNet's tagged texts, closed-class words from
//! `training/closed.txt`. `data/irregular.txt` lists irregular forms with their base. Both are written by
//! `cargo run --release -p cuemark-text --example train_tagger`.

use std::sync::OnceLock;

use rustc_hash::FxHashMap;

use crate::Pos;

/// What a word can be, finer than [`Pos`]: the form of a noun or verb is kept. A set of these is a [`Reading`]'s `kinds`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Noun,
    Plural,
    Base,
    Third,
    Ing,
    Past,
    Adj,
    Adv,
    Det,
    Pron,
    Adp,
    Sconj,
    Cconj,
    Aux,
    Part,
    Num,
    Name,
    Intj,
}

impl Kind {
    pub(crate) const ALL: [Self; 18] = [
        Self::Noun,
        Self::Plural,
        Self::Base,
        Self::Third,
        Self::Ing,
        Self::Past,
        Self::Adj,
        Self::Adv,
        Self::Det,
        Self::Pron,
        Self::Adp,
        Self::Sconj,
        Self::Cconj,
        Self::Aux,
        Self::Part,
        Self::Num,
        Self::Name,
        Self::Intj,
    ];

    pub(crate) fn bit(self) -> u32 {
        1 << self as u32
    }

    fn pos(self) -> Pos {
        match self {
            Self::Noun | Self::Plural => Pos::Noun,
            Self::Base | Self::Third | Self::Ing | Self::Past => Pos::Verb,
            Self::Adj => Pos::Adj,
            Self::Adv => Pos::Adv,
            Self::Det => Pos::Det,
            Self::Pron => Pos::Pron,
            Self::Adp => Pos::Adp,
            Self::Sconj => Pos::Sconj,
            Self::Cconj => Pos::Cconj,
            Self::Aux => Pos::Aux,
            Self::Part => Pos::Part,
            Self::Num => Pos::Num,
            Self::Name => Pos::Propn,
            Self::Intj => Pos::Intj,
        }
    }

    /// The kind that a letter of `lexicon.txt` stands for.
    fn from_letter(letter: u8) -> Option<Self> {
        Some(match letter {
            b'N' => Self::Noun,
            b'V' => Self::Base,
            b'J' => Self::Adj,
            b'R' => Self::Adv,
            b'D' => Self::Det,
            b'P' => Self::Pron,
            b'I' => Self::Adp,
            b'S' => Self::Sconj,
            b'C' => Self::Cconj,
            b'U' => Self::Aux,
            b'T' => Self::Part,
            b'M' => Self::Num,
            b'E' => Self::Name,
            b'Y' => Self::Intj,
            _ => return None,
        })
    }
}

/// Every verb form.
pub(crate) const VERB_KINDS: u32 =
    1 << Kind::Base as u32 | 1 << Kind::Third as u32 | 1 << Kind::Ing as u32 | 1 << Kind::Past as u32;

/// What a word can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Reading {
    /// A bit per [`Kind`]; 0 for a word that is not known.
    pub(crate) kinds: u32,
    /// Weight of each kind, in ninths, by the order of [`Kind::ALL`].
    shares: [u8; 18],
}

impl Reading {
    fn add(&mut self, kind: Kind, share: u8) {
        self.kinds |= kind.bit();
        let held = &mut self.shares[kind as usize];
        *held = (*held).max(share);
    }

    /// The likeliest tag; ties go to the earlier of [`Kind::ALL`]. Nouns when nothing is known.
    pub(crate) fn likeliest(&self) -> Pos {
        let mut best = (0, Pos::Noun);
        for (kind, share) in Kind::ALL.into_iter().zip(self.shares) {
            if share > best.0 {
                best = (share, kind.pos());
            }
        }
        best.1
    }

    pub(crate) fn has(&self, kind: Kind) -> bool {
        self.kinds & kind.bit() != 0
    }

    /// A bit per tag (by place in [`Pos::ALL`]) that the word can have.
    pub(crate) fn tags(&self) -> u32 {
        let mut tags = 0;
        for kind in Kind::ALL {
            if self.has(kind) {
                tags |= 1 << kind.pos() as u32;
            }
        }
        tags
    }
}

/// Base forms and irregular forms.
pub(crate) struct Lexicon {
    words: FxHashMap<&'static str, &'static str>,
    irregular: FxHashMap<&'static str, Vec<(Kind, &'static str)>>,
}

impl Lexicon {
    /// The lexicon that comes with the crate, read at first use (a few milliseconds).
    pub(crate) fn embedded() -> &'static Self {
        static LEXICON: OnceLock<Lexicon> = OnceLock::new();
        LEXICON.get_or_init(|| Self::read(include_str!("../data/lexicon.txt"), include_str!("../data/irregular.txt")))
    }

    /// Lines of `word readings`, and lines of `form letter base` where the letter is N or V.
    fn read(words: &'static str, irregular: &'static str) -> Self {
        let words = words.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(' '));
        let mut forms: FxHashMap<&str, Vec<(Kind, &str)>> = FxHashMap::default();
        for line in irregular.lines().filter(|line| !line.starts_with('#')) {
            let mut fields = line.split(' ');
            if let (Some(form), Some(letter), Some(base)) = (fields.next(), fields.next(), fields.next()) {
                let kind = match letter {
                    "N" => Kind::Plural,
                    _ if form.ends_with("ing") => Kind::Ing,
                    _ if form.ends_with('s') && form != "was" => Kind::Third,
                    _ => Kind::Past,
                };
                forms.entry(form).or_default().push((kind, base));
            }
        }
        Self { words: words.collect(), irregular: forms }
    }

    /// Everything `word`, in lower case, can be: its own readings and those it has as an inflection of another word.
    pub(crate) fn look_up(&self, word: &str) -> Reading {
        let mut reading = Reading::default();
        let mut closed = false;
        for (kind, share) in self.own(word) {
            closed |= !matches!(kind, Kind::Noun | Kind::Base | Kind::Adj | Kind::Adv | Kind::Name);
            reading.add(kind, share);
        }
        if !closed {
            self.for_each_base(word, |kind, base_kind, base| {
                if let Some((_, share)) = self.own(base).find(|(own, _)| *own == base_kind) {
                    reading.add(kind, share);
                }
            });
        }
        reading
    }

    /// The base form of `word` (in lower case) as a form of `kind`'s class; `None` when no known word gives it.
    pub(crate) fn base_of(&self, word: &str, class: Kind) -> Option<String> {
        let mut found = None;
        self.for_each_base(word, |_, base_kind, base| {
            let known = self.own(base).any(|(own, _)| own == base_kind);
            if base_kind == class && known && found.is_none() {
                found = Some(base.to_owned());
            }
        });
        found
    }

    /// Whether `word` itself is listed as a base form of that class.
    pub(crate) fn lists(&self, word: &str, class: Kind) -> bool {
        self.own(word).any(|(kind, _)| kind == class)
    }

    /// A word's own readings with their shares (1 to 9).
    fn own<'a>(&'a self, word: &str) -> impl Iterator<Item = (Kind, u8)> + 'a {
        let codes = self.words.get(word).map_or(&[][..], |codes| codes.as_bytes());
        codes.chunks_exact(2).filter_map(|code| Some((Kind::from_letter(code[0])?, code[1].wrapping_sub(b'0'))))
    }

    /// Calls `each` with (kind of the form, class of the base, base) for every base that `word` could be formed from;
    /// irregular ones first. The bases need not exist.
    fn for_each_base(&self, word: &str, mut each: impl FnMut(Kind, Kind, &str)) {
        for &(kind, base) in self.irregular.get(word).map_or(&[][..], Vec::as_slice) {
            each(kind, if kind == Kind::Plural { Kind::Noun } else { Kind::Base }, base);
        }
        let mut base = String::with_capacity(word.len() + 1);
        for (ending, replacements) in ENDINGS {
            let Some(stem) = word.strip_suffix(ending).filter(|stem| stem.len() >= 2) else { continue };
            let mut form = |stem: &str, replacement: &str| {
                base.clear();
                base.push_str(stem);
                base.push_str(replacement);
                match *ending {
                    "s" | "es" | "ies" => {
                        each(Kind::Plural, Kind::Noun, &base);
                        each(Kind::Third, Kind::Base, &base);
                    }
                    "ed" | "ied" => each(Kind::Past, Kind::Base, &base),
                    "ing" => each(Kind::Ing, Kind::Base, &base),
                    "er" | "est" | "ier" | "iest" => each(Kind::Adj, Kind::Adj, &base),
                    _ => each(Kind::Adv, Kind::Adj, &base),
                }
            };
            // *putting* is of *put* before it is of *putt*, *hoping* of *hope* before *hop*.
            if replacements.contains(&"e") && ends_in_double_consonant(stem) {
                form(&stem[..stem.len() - 1], "");
            }
            if replacements.contains(&"e") && ends_short(stem) {
                form(stem, "e");
            }
            for replacement in *replacements {
                form(stem, replacement);
            }
        }
    }
}

/// Regular endings and what stands in their place in the base form, likelier first.
const ENDINGS: &[(&str, &[&str])] = &[
    ("ies", &["y"]),
    ("s", &[""]),
    ("es", &[""]),
    ("ied", &["y"]),
    ("ed", &["", "e"]),
    ("ing", &["", "e"]),
    ("ier", &["y"]),
    ("iest", &["y"]),
    ("er", &["", "e"]),
    ("est", &["", "e"]),
    ("ily", &["y"]),
    ("ly", &["", "le"]),
];

/// Whether the stem ends in one consonant after one vowel, as in *hop-ing*: had it no *e*, the consonant would be double.
fn ends_short(stem: &str) -> bool {
    let vowel = |letter: &u8| b"aeiouy".contains(letter);
    match stem.as_bytes() {
        [before, middle, last] | [.., before, middle, last] => {
            !vowel(before) && vowel(middle) && !vowel(last) && !b"wx".contains(last)
        }
        _ => false,
    }
}

/// Whether an ASCII consonant stands twice at the end, as in *stopp-ed*.
fn ends_in_double_consonant(stem: &str) -> bool {
    match stem.as_bytes() {
        [.., before, last] => before == last && last.is_ascii_lowercase() && !b"aeiou".contains(last),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> Lexicon {
        Lexicon::read(
            "open V5J4N1\ncut V7N2\nman N9V1\nstop V6N3\nleave V9N1\nthe D9\ncarry V9\nbox N8V2",
            "men N man\nleft V leave\ncut V cut",
        )
    }

    #[test]
    fn inflected_words_have_the_readings_of_their_base() {
        let lexicon = small();
        assert_eq!(lexicon.look_up("opens").kinds, Kind::Plural.bit() | Kind::Third.bit());
        assert_eq!(lexicon.look_up("opens").likeliest(), Pos::Verb);
        assert_eq!(lexicon.look_up("men").kinds, Kind::Plural.bit());
        assert_eq!(lexicon.look_up("left").kinds, Kind::Past.bit());
        assert_eq!(lexicon.look_up("stopped").kinds, Kind::Past.bit());
        assert_eq!(lexicon.look_up("carried").kinds, Kind::Past.bit());
        assert_eq!(lexicon.look_up("boxes").kinds, Kind::Plural.bit() | Kind::Third.bit());
        assert_eq!(lexicon.look_up("cut").kinds, Kind::Noun.bit() | Kind::Base.bit() | Kind::Past.bit());
        assert_eq!(lexicon.look_up("blorks").kinds, 0);
    }

    #[test]
    fn bases_are_found_by_class() {
        let lexicon = small();
        assert_eq!(lexicon.base_of("leaves", Kind::Base).as_deref(), Some("leave"));
        assert_eq!(lexicon.base_of("left", Kind::Base).as_deref(), Some("leave"));
        assert_eq!(lexicon.base_of("men", Kind::Noun).as_deref(), Some("man"));
        assert_eq!(lexicon.base_of("men", Kind::Base), None);
    }

    #[test]
    fn the_embedded_lexicon_knows_common_words() {
        let lexicon = Lexicon::embedded();
        assert_eq!(lexicon.look_up("the").tags(), 1 << Pos::Det as u32);
        assert_eq!(lexicon.look_up("men").tags(), 1 << Pos::Noun as u32);
        assert!(lexicon.look_up("took").has(Kind::Past));
        assert_eq!(lexicon.base_of("took", Kind::Base).as_deref(), Some("take"));
    }
}
