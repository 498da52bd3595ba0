//! Queries as numbers: words, markers, phrases, parses.

use std::borrow::Cow;
use std::sync::Arc;

use cuemark_core::{Query, Truth};
use cuemark_formats::Source;
use cuemark_models::{Input, Text};
use cuemark_text::{Parse, ParseFile, ParseProvider, Relation, ShallowParser, Vocabulary, verb_lemma, verbs, words_of};
use rustc_hash::FxHashMap;

use crate::published_text::PublishedText;
use crate::{DataConfig, Result};

/// The most verbs that a model's dictionary of actions holds.
const VERBS: usize = 80;

/// Roles that occur less often than this share of the most frequent one are no phrases.
const RARE_ROLE: f64 = 0.1;

/// Takes queries apart the way one model wants them.
pub(crate) struct Reader {
    /// The published encoder whose tokens queries are read as.
    published: Option<Arc<PublishedText>>,
    provider: Box<dyn ParseProvider>,
    parses: bool,
    phrases: usize,
    markers: bool,
    roles: Vec<Option<Relation>>,
}

/// One query, taken apart.
pub(crate) struct ReadQuery {
    /// As it was written.
    text: String,
    /// Its words, lower case.
    pub(crate) words: Vec<String>,
    /// How they hang together.
    pub(crate) parse: Option<Parse>,
    /// Its phrases, as ranges of its words.
    pub(crate) phrases: Vec<std::ops::Range<usize>>,
}

impl Reader {
    /// A reader for a model that wants `input`; the roles that count as phrases are those of `train`.
    pub(crate) fn new(
        data: &DataConfig,
        input: &Input,
        train: &[Truth],
        published: Option<Arc<PublishedText>>,
    ) -> Result<Self> {
        let provider: Box<dyn ParseProvider> = match data.parses() {
            Some(path) => Box::new(WithFallback(ParseFile::read(&Source::new(path))?)),
            None => Box::new(ShallowParser),
        };
        let markers = input.text == Text::Tokens;
        let (parses, phrases) = (input.parses, input.phrases);
        let mut reader = Self { published, provider, parses, phrases, markers, roles: Vec::new() };
        if input.phrases > 0 {
            reader.roles = reader.frequent_roles(train)?;
        }
        Ok(reader)
    }

    /// A reader of sentences that no file has parsed, for a model that wants `input` and whose phrases have these roles.
    pub(crate) fn of_roles(input: &Input, roles: Vec<Option<Relation>>, published: Option<Arc<PublishedText>>) -> Self {
        let markers = input.text == Text::Tokens;
        let provider = Box::new(ShallowParser);
        Self { published, provider, parses: input.parses, phrases: input.phrases, markers, roles }
    }

    /// The roles that count as phrases, in the order of their numbers.
    pub(crate) fn roles(&self) -> Vec<Option<Relation>> {
        let mut roles = self.roles.clone();
        roles.sort();
        roles
    }

    fn frequent_roles(&self, train: &[Truth]) -> Result<Vec<Option<Relation>>> {
        let mut counts: FxHashMap<Option<Relation>, usize> = FxHashMap::default();
        for truth in train {
            for role in self.provider.parse(&truth.query)?.roles() {
                *counts.entry(role.relation).or_default() += 1;
            }
        }
        let most = counts.values().copied().max().unwrap_or(0) as f64;
        Ok(counts.into_iter().filter(|(_, count)| *count as f64 >= RARE_ROLE * most).map(|(role, _)| role).collect())
    }

    /// Takes one query apart.
    pub(crate) fn read(&self, query: &Query) -> Result<ReadQuery> {
        if !self.parses && self.phrases == 0 {
            let text = query.text.clone();
            return Ok(ReadQuery { text, words: words_of(&query.text), parse: None, phrases: Vec::new() });
        }
        let (words, parse) = self.provider.parse(query)?.in_words();
        let roles = parse.roles().into_iter().filter(|role| self.roles.contains(&role.relation));
        let mut phrases: Vec<_> = roles.map(|role| role.tokens).filter(|tokens| !tokens.is_empty()).collect();
        phrases.truncate(self.phrases);
        if phrases.is_empty() && self.phrases > 0 {
            // A sentence without a phrase is its own only one.
            phrases.push(0..words.len());
        }
        Ok(ReadQuery { text: query.text.clone(), words, parse: self.parses.then_some(parse), phrases })
    }

    /// A query as numbers: tokens of the published encoder where there is one, else words.
    pub(crate) fn sentence(&self, read: &ReadQuery, vocabulary: &Vocabulary) -> Result<Vec<u32>> {
        match &self.published {
            Some(text) => text.tokens(&read.text),
            None => Ok(self.numbers(&read.words, vocabulary)),
        }
    }

    /// The phrases of a query as numbers, each read like a sentence of its own.
    pub(crate) fn phrases(&self, read: &ReadQuery, vocabulary: &Vocabulary) -> Result<Vec<Vec<u32>>> {
        let phrase = |range: &std::ops::Range<usize>| match &self.published {
            Some(text) => text.tokens(&read.words[range.clone()].join(" ")),
            None => Ok(self.numbers(&read.words[range.clone()], vocabulary)),
        };
        read.phrases.iter().map(phrase).collect()
    }

    /// Words as numbers, between markers where the model wants them. A sentence without a word is one unknown word.
    fn numbers(&self, words: &[String], vocabulary: &Vocabulary) -> Vec<u32> {
        let mut ids: Vec<u32> = words.iter().map(|word| vocabulary.id(word)).collect();
        if ids.is_empty() {
            ids.push(Vocabulary::UNKNOWN);
        }
        if self.markers {
            ids.insert(0, Vocabulary::START);
            ids.push(Vocabulary::END);
        }
        ids
    }
}

/// Queries that a file of parses does not have are parsed by ourselves: people bring new sentences, and rewritten ones keep
/// their ids. A model that is asked with the verb masked must not be told the verb by the parse of the old sentence.
struct WithFallback(ParseFile);

impl ParseProvider for WithFallback {
    fn parse(&self, query: &Query) -> cuemark_text::Result<Cow<'_, Parse>> {
        match self.0.parse(query) {
            Ok(parse) if is_of(&parse, &query.text) => Ok(parse),
            _ => ShallowParser.parse(query).map(|parse| Cow::Owned(parse.into_owned())),
        }
    }
}

/// Whether the parse is of this sentence; parsers differ in how they cut words and in what they do with marks.
fn is_of(parse: &Parse, sentence: &str) -> bool {
    fn letters(text: &str) -> impl Iterator<Item = char> {
        text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase)
    }
    parse.tokens.iter().flat_map(|token| letters(&token.text)).eq(letters(sentence))
}

/// The most frequent verbs of the queries, each in the form in which it occurs most often; the most frequent first.
pub(crate) fn frequent_verbs(train: &[Truth], vocabulary: &Vocabulary) -> Vec<String> {
    let mut counts: FxHashMap<String, usize> = FxHashMap::default();
    for truth in train {
        for verb in verbs(&truth.query.text) {
            *counts.entry(verb).or_default() += 1;
        }
    }
    let mut counted: Vec<(String, usize)> = counts.into_iter().collect();
    counted.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
    // The vocabulary lists frequent words first, so the first form found is the most frequent one.
    let form = |verb: &String| vocabulary.words().iter().find(|word| verb_lemma(word) == *verb).cloned();
    counted.iter().filter_map(|(verb, _)| form(verb)).take(VERBS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use cuemark_core::QueryId;

    #[test]
    fn a_rewritten_query_is_not_given_the_parse_of_the_old_sentence() {
        let folder = tempfile::tempdir().unwrap();
        let path = camino::Utf8PathBuf::from_path_buf(folder.path().join("parses.jsonl")).unwrap();
        let token = |text: &str, tag: &str| format!(r#"{{"text":"{text}","tag":"{tag}","bytes":[0,1]}}"#);
        let line = format!(
            r#"{{"qid":"1","tokens":[{},{},{}]}}"#,
            token("She", "PRON"),
            token("ca", "AUX"),
            token("n't", "PART")
        );
        std::fs::write(&path, line + "\n").unwrap();
        let provider = WithFallback(ParseFile::read(&Source::new(&path)).unwrap());
        let words = |text: &str| {
            let query = Query { id: QueryId::new("1"), text: text.to_owned() };
            provider.parse(&query).unwrap().tokens.iter().map(|token| token.text.clone()).collect::<Vec<_>>()
        };
        assert_eq!(words("she can't."), ["She", "ca", "n't"], "cut and marked otherwise, but the same sentence");
        assert!(!words("she [MASK]").contains(&"ca".to_owned()));
    }
}
