//! Sentences with their tags, from `training/grammar.txt`.

use std::collections::BTreeMap;
use std::path::Path;

use cuemark_core::Rng;
use cuemark_text::Pos;

use crate::Result;
use crate::vocabulary::{Entry, Vocabulary};
use crate::wordnet::WordNet;

type Tagged = Vec<(String, Pos)>;

/// One part of a rule.
enum Item {
    Symbol(String),
    Word(String, Pos),
    /// A draw from a class, in a form; for a verb with a particle perhaps with a symbol in between.
    Draw {
        class: String,
        form: String,
        between: Option<String>,
    },
}

pub(crate) struct Grammar<'a> {
    rules: BTreeMap<String, (Vec<f64>, Vec<Vec<Item>>)>,
    vocabulary: &'a Vocabulary,
    /// WordNet's words by class with their weights: noun, verb, adj, adv.
    wordnet: BTreeMap<&'static str, (Vec<f64>, Vec<Entry>)>,
}

/// Styles whose sentences begin with a capital; TVR's and ActivityNet's nearly always do.
const CAPITALISED: [&str; 4] = ["ACTIVITYNET", "TACOS", "TVR", "QVH"];

/// Deeper than this, a symbol takes its first rule, which leads out.
const DEEPEST: usize = 14;

impl<'a> Grammar<'a> {
    pub(crate) fn read(path: &Path, vocabulary: &'a Vocabulary, wordnet: &WordNet) -> Result<Self> {
        let mut rules: BTreeMap<String, (Vec<f64>, Vec<Vec<Item>>)> = BTreeMap::new();
        for line in std::fs::read_to_string(path)?.lines() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (head, items) = line.split_once(':').ok_or_else(|| format!("grammar: no colon in `{line}`"))?;
            let (symbol, weight) = head.split_once(' ').ok_or_else(|| format!("grammar: no weight in `{line}`"))?;
            let items = items.split_whitespace().map(Item::read).collect::<Result<Vec<_>>>()?;
            let (weights, bodies) = rules.entry(symbol.to_owned()).or_default();
            weights.push(weight.trim().parse()?);
            bodies.push(items);
        }
        let this = Self { rules, vocabulary, wordnet: wordnet_classes(wordnet) };
        this.check()?;
        Ok(this)
    }

    fn check(&self) -> Result<()> {
        for item in self.rules.values().flat_map(|(_, bodies)| bodies.iter().flatten()) {
            match item {
                Item::Symbol(symbol) | Item::Draw { between: Some(symbol), .. } if !self.rules.contains_key(symbol) => {
                    return Err(format!("grammar: no rule for `{symbol}`").into());
                }
                Item::Draw { class, .. }
                    if !class.starts_with("wn.") && !self.vocabulary.classes.contains_key(class) =>
                {
                    return Err(format!("grammar: no class `{class}`").into());
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// One sentence: words with their tags.
    pub(crate) fn sentence(&self, rng: &mut Rng) -> Tagged {
        let (weights, bodies) = &self.rules["SENTENCE"];
        let style = rng.weighted(weights).unwrap_or(0);
        let capital = match &bodies[style][0] {
            Item::Symbol(style) if CAPITALISED.contains(&style.as_str()) => rng.chance(0.93),
            _ => rng.chance(0.12),
        };
        let mut out = Tagged::new();
        self.expand_body(&bodies[style], 0, rng, &mut out);
        // Names in a text without capitals, as in MSR-VTT.
        if !capital && rng.chance(0.5) {
            for (word, _) in &mut out {
                *word = word.to_lowercase();
            }
        }
        misspell(&mut out, rng);
        finish(&mut out, capital);
        out
    }

    fn expand(&self, symbol: &str, depth: usize, rng: &mut Rng, out: &mut Tagged) {
        let (weights, bodies) = &self.rules[symbol];
        let choice = if depth > DEEPEST { 0 } else { rng.weighted(weights).unwrap_or(0) };
        self.expand_body(&bodies[choice], depth + 1, rng, out);
    }

    fn expand_body(&self, body: &[Item], depth: usize, rng: &mut Rng, out: &mut Tagged) {
        for item in body {
            match item {
                Item::Symbol(symbol) => self.expand(symbol, depth, rng, out),
                Item::Word(word, tag) => out.push((word.clone(), *tag)),
                Item::Draw { class, form, between } => self.draw(class, form, between.as_deref(), depth, rng, out),
            }
        }
    }

    fn draw(&self, class: &str, form: &str, between: Option<&str>, depth: usize, rng: &mut Rng, out: &mut Tagged) {
        let entry = match class.strip_prefix("wn.") {
            Some(open) => {
                let (weights, entries) = &self.wordnet[open];
                &entries[rng.weighted(weights).unwrap_or(0)]
            }
            None => {
                let entries = &self.vocabulary.classes[class];
                &entries[rng.below(entries.len())]
            }
        };
        match class {
            "adj" | "partadj" | "wn.adj" => out.push((entry.base.clone(), Pos::Adj)),
            "advmanner" | "wn.adv" => out.push((entry.base.clone(), Pos::Adv)),
            "name" | "city" | "title" => out.push((entry.base.clone(), Pos::Propn)),
            _ if class.starts_with('v') || class == "wn.verb" => {
                out.push((entry.verb(form).unwrap_or_default(), Pos::Verb));
                if let Some(symbol) = between {
                    self.expand(symbol, depth, rng, out);
                }
                out.extend(entry.particle.clone());
            }
            _ if form == "pl" => out.push((entry.plural(), Pos::Noun)),
            _ => out.extend(entry.base.split('~').map(|word| (word.to_owned(), Pos::Noun))),
        }
    }
}

impl Item {
    fn read(text: &str) -> Result<Self> {
        if let Some(draw) = text.strip_prefix('@') {
            let (draw, between) = match draw.split_once('+') {
                Some((draw, symbol)) => (draw, Some(symbol.to_owned())),
                None => (draw, None),
            };
            let (class, form) = match draw.strip_prefix("wn.") {
                Some(rest) => {
                    let (open, form) = rest.split_once('.').unwrap_or((rest, ""));
                    (format!("wn.{open}"), form)
                }
                None => draw.split_once('.').map_or((draw.to_owned(), ""), |(class, form)| (class.to_owned(), form)),
            };
            return Ok(Self::Draw { class, form: form.to_owned(), between });
        }
        match text.rsplit_once('/') {
            Some((word, tag)) => {
                let tag = Pos::from_name(tag).ok_or_else(|| format!("grammar: `{tag}` is no tag"))?;
                Ok(Self::Word(word.to_owned(), tag))
            }
            None => Ok(Self::Symbol(text.to_owned())),
        }
    }
}

/// Two letters change places in one word of fifty, so that the tagger learns what to make of words it does not know.
fn misspell(sentence: &mut Tagged, rng: &mut Rng) {
    for (word, tag) in sentence {
        let open = matches!(tag, Pos::Noun | Pos::Verb | Pos::Adj | Pos::Adv | Pos::Propn);
        if open && word.len() > 4 && word.is_ascii() && rng.chance(0.02) {
            let mut letters: Vec<char> = word.chars().collect();
            letters.swap(1, 2);
            *word = letters.into_iter().collect();
        }
    }
}

/// *a* becomes *an* where a vowel follows; the first letter becomes a capital where the style asks for it.
fn finish(sentence: &mut Tagged, capital: bool) {
    for index in 1..sentence.len() {
        let vowel = sentence[index].0.starts_with(['a', 'e', 'i', 'o', 'u', 'A', 'E', 'I', 'O']);
        if vowel && sentence[index - 1].0 == "a" {
            "an".clone_into(&mut sentence[index - 1].0);
        }
    }
    if let (true, Some((word, _))) = (capital, sentence.first_mut())
        && let Some(first) = word.get(..1).map(str::to_uppercase)
    {
        word.replace_range(..1, &first);
    }
}

/// Common words of each open class; those that are mostly of that class more often than others.
fn wordnet_classes(wordnet: &WordNet) -> BTreeMap<&'static str, (Vec<f64>, Vec<Entry>)> {
    let mut classes: BTreeMap<&'static str, (Vec<f64>, Vec<Entry>)> = BTreeMap::new();
    for (word, readings) in &wordnet.words {
        let open = readings.keys().all(|tag| matches!(tag, Pos::Noun | Pos::Verb | Pos::Adj | Pos::Adv));
        let total: f64 = readings.values().sum();
        for (tag, count) in readings.iter().filter(|_| open) {
            let class = match tag {
                Pos::Noun => "noun",
                Pos::Verb if wordnet.is_irregular(word) => continue,
                Pos::Verb => "verb",
                Pos::Adj => "adj",
                _ => "adv",
            };
            let (weights, entries) = classes.entry(class).or_default();
            weights.push(count.sqrt() * (count / total));
            entries.push(Entry::regular(word));
        }
    }
    classes
}
