//! Readings of words, from WordNet's index files and the counts of its tagged texts.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use cuemark_text::Pos;

use crate::Result;
use crate::vocabulary::Vocabulary;

/// The open classes in WordNet's order, with the number that sense keys use.
const CLASSES: [(Pos, &str, char); 4] =
    [(Pos::Noun, "noun", '1'), (Pos::Verb, "verb", '2'), (Pos::Adj, "adj", '3'), (Pos::Adv, "adv", '4')];

/// A word's readings with how often each was counted.
type Readings = BTreeMap<Pos, f64>;

pub(crate) struct WordNet {
    pub(crate) words: BTreeMap<String, Readings>,
    /// Form, class and base.
    irregular: BTreeSet<(String, char, String)>,
}

impl WordNet {
    pub(crate) fn read(folder: &Path, vocabulary: &Vocabulary) -> Result<Self> {
        let counts = read_counts(folder)?;
        let names = read_names(folder)?;
        let mut words: BTreeMap<String, Readings> = BTreeMap::new();
        for (class, file, number) in CLASSES {
            for line in std::fs::read_to_string(folder.join(format!("index.{file}")))?.lines() {
                let word = line.split(' ').next().unwrap_or_default();
                if !is_plain(word) {
                    continue;
                }
                let count = counts.get(&(word.to_owned(), number)).copied().unwrap_or(0.0);
                let class = if class == Pos::Noun && names.contains(word) { Pos::Propn } else { class };
                words.entry(word.to_owned()).or_default().insert(class, count + 0.5);
            }
        }
        for readings in words.values_mut() {
            let total: f64 = readings.values().sum();
            readings.retain(|_, count| *count >= 0.02 * total || total < 20.0 && *count > 0.5);
        }
        let mut this = Self { words, irregular: read_irregular(folder)? };
        this.add_vocabulary(vocabulary);
        this.drop_what_says_nothing();
        Ok(this)
    }

    /// Our own lists win over WordNet; see the head of `closed.txt`.
    fn add_vocabulary(&mut self, vocabulary: &Vocabulary) {
        for (word, tags) in &vocabulary.closed {
            let readings = self.words.entry(word.clone()).or_default();
            if is_closed(tags) {
                readings.clear();
            }
            let total = readings.values().sum::<f64>().max(1.0);
            for tag in tags {
                let held = readings.entry(*tag).or_insert(0.0);
                *held = held.max(0.2 * total);
            }
        }
        for (class, entries) in &vocabulary.classes {
            let tag = match class.as_str() {
                "adj" | "partadj" => continue,
                "advmanner" => Pos::Adv,
                "name" | "city" | "title" => Pos::Propn,
                verb if verb.starts_with('v') => Pos::Verb,
                _ => Pos::Noun,
            };
            for entry in entries.iter().filter(|entry| !entry.base.contains('~')) {
                // A word of the closed classes can be a name (*Will*), but nothing else that its list does not say.
                let closed = vocabulary.closed.get(&entry.base.to_lowercase()).is_some_and(|tags| is_closed(tags));
                if closed && tag != Pos::Propn {
                    continue;
                }
                let readings = self.words.entry(entry.base.to_lowercase()).or_default();
                let total: f64 = readings.values().sum();
                let held = readings.entry(tag).or_insert(0.0);
                *held = held.max(0.15 * total).max(2.0);
                let letter = if tag == Pos::Verb { 'V' } else { 'N' };
                for form in &entry.irregular {
                    self.irregular.insert((form.clone(), letter, entry.base.clone()));
                }
            }
        }
    }

    /// Leaves out words that a tagger treats rightly without: rare names, and rare nouns that can be nothing else.
    fn drop_what_says_nothing(&mut self) {
        self.words.retain(|word, readings| {
            let rare = readings.values().sum::<f64>() < 1.0;
            let lone = readings.len() == 1;
            let name = lone && readings.contains_key(&Pos::Propn);
            let long_noun = lone && readings.contains_key(&Pos::Noun) && (word.len() > 11 || word.contains('-'));
            !(rare && (name || long_noun))
        });
    }

    /// Whether some form of this verb is irregular.
    pub(crate) fn is_irregular(&self, verb: &str) -> bool {
        self.irregular.iter().any(|(_, class, base)| *class == 'V' && base == verb)
    }

    pub(crate) fn write(&self, folder: &Path) -> Result<()> {
        let mut lexicon = String::from(
            "# Words with their readings and the share of each in ninths; written by the example train_tagger.\n\
             # Derived from WordNet 3.0, Copyright 2006 by Princeton University, all rights reserved: see WORDNET.txt.\n",
        );
        for (word, readings) in &self.words {
            let total: f64 = readings.values().sum();
            lexicon.push_str(word);
            lexicon.push(' ');
            for (tag, count) in readings {
                let share = (9.0 * count / total).round().clamp(1.0, 9.0);
                write!(lexicon, "{}{share}", letter(*tag))?;
            }
            lexicon.push('\n');
        }
        std::fs::write(folder.join("lexicon.txt"), lexicon)?;
        let mut irregular = String::from(
            "# Irregular forms: form, class of the base (N or V), base; written by the example train_tagger.\n\
             # Derived from WordNet 3.0, Copyright 2006 by Princeton University, all rights reserved: see WORDNET.txt.\n",
        );
        for (form, class, base) in &self.irregular {
            let wanted = if *class == 'N' { Pos::Noun } else { Pos::Verb };
            if self.words.get(base).is_some_and(|readings| readings.contains_key(&wanted)) {
                writeln!(irregular, "{form} {class} {base}")?;
            }
        }
        std::fs::write(folder.join("irregular.txt"), irregular)?;
        Ok(())
    }
}

/// Whether these readings of `closed.txt` are all that a word has.
fn is_closed(tags: &[Pos]) -> bool {
    !tags.iter().all(|tag| matches!(tag, Pos::Adj | Pos::Adv | Pos::Noun | Pos::Verb))
}

/// The letter of a tag in `lexicon.txt`.
fn letter(tag: Pos) -> char {
    match tag {
        Pos::Noun => 'N',
        Pos::Verb => 'V',
        Pos::Adj => 'J',
        Pos::Adv => 'R',
        Pos::Det => 'D',
        Pos::Pron => 'P',
        Pos::Adp => 'I',
        Pos::Sconj => 'S',
        Pos::Cconj => 'C',
        Pos::Aux => 'U',
        Pos::Part => 'T',
        Pos::Num => 'M',
        Pos::Propn => 'E',
        Pos::Intj => 'Y',
        _ => '?',
    }
}

/// One word of letters, perhaps with a hyphen or an apostrophe inside.
fn is_plain(word: &str) -> bool {
    word.len() >= 2
        && word.starts_with(|c: char| c.is_ascii_lowercase())
        && word.chars().all(|c| c.is_ascii_lowercase() || c == '-')
}

/// How often each word was tagged with each class, summed over its senses.
fn read_counts(folder: &Path) -> Result<BTreeMap<(String, char), f64>> {
    let mut counts = BTreeMap::new();
    for line in std::fs::read_to_string(folder.join("cntlist.rev"))?.lines() {
        let mut fields = line.split(' ');
        let (Some(key), Some(_), Some(count)) = (fields.next(), fields.next(), fields.next()) else { continue };
        let Some((word, sense)) = key.split_once('%') else { continue };
        // Sense keys set satellite adjectives (5) apart; to us they are adjectives.
        let class = if sense.starts_with('5') { '3' } else { sense.chars().next().unwrap_or('0') };
        *counts.entry((word.to_owned(), class)).or_insert(0.0) += count.parse::<f64>()?;
    }
    Ok(counts)
}

/// Nouns that are written with a capital wherever they stand.
fn read_names(folder: &Path) -> Result<BTreeSet<String>> {
    let (mut capital, mut plain) = (BTreeSet::new(), BTreeSet::new());
    for line in std::fs::read_to_string(folder.join("data.noun"))?.lines().filter(|line| !line.starts_with(' ')) {
        let fields: Vec<&str> = line.split(' ').collect();
        let words = fields.get(3).and_then(|count| usize::from_str_radix(count, 16).ok()).unwrap_or(0);
        for word in fields.iter().skip(4).step_by(2).take(words) {
            let kept = if word.starts_with(char::is_uppercase) { &mut capital } else { &mut plain };
            kept.insert(word.to_lowercase());
        }
    }
    Ok(capital.difference(&plain).cloned().collect())
}

fn read_irregular(folder: &Path) -> Result<BTreeSet<(String, char, String)>> {
    let mut irregular = BTreeSet::new();
    for (file, class) in [("noun.exc", 'N'), ("verb.exc", 'V')] {
        for line in std::fs::read_to_string(folder.join(file))?.lines() {
            let mut words = line.split(' ');
            let form = words.next().unwrap_or_default();
            for base in words.filter(|base| is_plain(base) && is_plain(form)) {
                irregular.insert((form.to_owned(), class, base.to_owned()));
            }
        }
    }
    Ok(irregular)
}
