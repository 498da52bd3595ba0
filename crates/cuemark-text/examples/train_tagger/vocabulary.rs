//! The word lists of `training/`.

use std::collections::BTreeMap;
use std::path::Path;

use cuemark_text::Pos;

use crate::Result;
use crate::inflect::{with_ed, with_ing, with_s};

/// One entry of a class: its forms, each one or more tokens.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) base: String,
    /// Irregular forms: past and participle of a verb, plural of a noun.
    pub(crate) irregular: Vec<String>,
    /// What follows the verb (*up*), with its tag.
    pub(crate) particle: Option<(String, Pos)>,
}

/// `vocabulary.txt` and `closed.txt`.
pub(crate) struct Vocabulary {
    pub(crate) classes: BTreeMap<String, Vec<Entry>>,
    /// Words with the readings that `closed.txt` gives them.
    pub(crate) closed: BTreeMap<String, Vec<Pos>>,
}

impl Vocabulary {
    pub(crate) fn read(folder: &Path) -> Result<Self> {
        let mut classes = BTreeMap::new();
        for (class, words) in lines(&std::fs::read_to_string(folder.join("vocabulary.txt"))?) {
            let phrases: Vec<&str> =
                if words.contains('|') { words.split('|').collect() } else { words.split_whitespace().collect() };
            classes.insert(class.to_owned(), phrases.into_iter().map(Entry::read).collect::<Vec<_>>());
        }
        let names = std::fs::read_to_string(folder.join("../data/names.txt"))?;
        let names = names.lines().filter(|line| !line.starts_with('#')).flat_map(str::split_whitespace);
        classes.entry("name".to_owned()).or_default().extend(names.map(Entry::regular));
        // A verb's irregular forms are written once and hold wherever the verb stands.
        let irregular: BTreeMap<String, Vec<String>> = classes
            .values()
            .flatten()
            .filter(|entry: &&Entry| entry.irregular.len() == 2)
            .map(|entry| (entry.base.clone(), entry.irregular.clone()))
            .collect();
        for (class, entries) in &mut classes {
            if class.starts_with('v') {
                for entry in entries {
                    entry.irregular = irregular.get(&entry.base).cloned().unwrap_or_default();
                }
            }
        }
        let mut closed: BTreeMap<String, Vec<Pos>> = BTreeMap::new();
        for (tag, words) in lines(&std::fs::read_to_string(folder.join("closed.txt"))?) {
            let tag = Pos::from_name(tag).ok_or_else(|| format!("closed.txt: `{tag}` is no tag"))?;
            for word in words.split_whitespace() {
                let readings = closed.entry(word.to_owned()).or_default();
                if !readings.contains(&tag) {
                    readings.push(tag);
                }
            }
        }
        Ok(Self { classes, closed })
    }
}

fn lines(text: &str) -> Vec<(&str, &str)> {
    text.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(':')).collect()
}

impl Entry {
    fn read(text: &str) -> Self {
        let text = text.trim();
        if let Some((verb, particle)) = text.split_once(' ') {
            let (particle, tag) = match particle.split_once("/R") {
                Some((particle, _)) => (particle, Pos::Adv),
                None => (particle, Pos::Adp),
            };
            return Self { particle: Some((particle.to_owned(), tag)), ..Self::read(verb) };
        }
        let mut forms = text.split('/').map(str::to_owned);
        let base = forms.next().unwrap_or_default();
        Self { base, irregular: forms.collect(), particle: None }
    }

    /// An entry of one word without irregular forms.
    pub(crate) fn regular(word: &str) -> Self {
        Self { base: word.to_owned(), irregular: Vec::new(), particle: None }
    }

    /// The verb in a form of the grammar: b, s, ing, d, n.
    pub(crate) fn verb(&self, form: &str) -> Option<String> {
        Some(match form {
            "b" => self.base.clone(),
            "s" if self.base == "have" => "has".to_owned(),
            "s" => with_s(&self.base),
            "ing" => with_ing(&self.base),
            "d" => self.irregular.first().cloned().unwrap_or_else(|| with_ed(&self.base)),
            "n" => self.irregular.get(1).cloned().unwrap_or_else(|| with_ed(&self.base)),
            _ => return None,
        })
    }

    /// The noun's plural.
    pub(crate) fn plural(&self) -> String {
        self.irregular.first().cloned().unwrap_or_else(|| with_s(&self.base))
    }
}
