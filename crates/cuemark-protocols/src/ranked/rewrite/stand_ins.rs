//! What stands in for a name: `Phoebe` becomes `a woman`, later `the woman`.

use std::collections::HashMap;
use std::ops::Range;

use cuemark_formats::Source;
use cuemark_text::names::NameList;

use crate::Result;

/// Names with the nouns that stand in for them; names on no list become a person.
///
/// In one sentence the first mention of somebody is `a woman`, another person with the same noun `another woman`, and
/// later mentions are `the woman` and `the other woman`. Possessive marks stay where they are.
#[derive(Debug, Clone, Default)]
pub struct StandIns {
    nouns: HashMap<String, String>,
    /// Words of the longest name.
    longest: usize,
}

/// A name in a sentence and the noun that stands in for it.
struct Mention {
    bytes: Range<usize>,
    noun: String,
}

impl StandIns {
    /// Takes pairs of a name (one word or several, with its capitals) and a noun.
    pub fn new<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut stand_ins = Self::default();
        for (name, noun) in pairs {
            let words: Vec<&str> = name.split_whitespace().collect();
            stand_ins.longest = stand_ins.longest.max(words.len());
            stand_ins.nouns.insert(words.join(" "), noun.trim().to_owned());
        }
        stand_ins
    }

    /// Reads `name,noun` lines, no header.
    ///
    /// # Errors
    /// When a line is not a name and a noun.
    pub fn read(source: &Source) -> Result<Self> {
        let mut pairs: Vec<(String, String)> = Vec::new();
        source.for_each_line(|line, text| match text.split_once(',') {
            Some((name, noun)) if !name.trim().is_empty() && !noun.trim().is_empty() && !noun.contains(',') => {
                pairs.push((name.trim().to_owned(), noun.trim().to_owned()));
                Ok(())
            }
            _ => Err(source.record(line, "name", format!("`{text}` is not `name,noun`"))),
        })?;
        Ok(Self::new(pairs.iter().map(|(name, noun)| (name.as_str(), noun.as_str()))))
    }

    /// The sentence with stand-ins for the names of this list and for what `names` scores at `bar` or above.
    ///
    /// ```
    /// use cuemark_protocols::ranked::rewrite::StandIns;
    /// use cuemark_text::names::NameList;
    /// let stand_ins = StandIns::new([("Phoebe", "woman"), ("Rachel Green", "woman"), ("Ross", "man")]);
    /// let text = stand_ins.replace("Phoebe takes Rachel Green's cup and Phoebe runs to Ross.", NameList::embedded(), 0.8);
    /// assert_eq!(text, "A woman takes another woman's cup and the woman runs to a man.");
    /// ```
    pub fn replace(&self, sentence: &str, names: &NameList, bar: f64) -> String {
        let mut out = String::with_capacity(sentence.len() + 16);
        let mut people: Vec<(&str, &str)> = Vec::new();
        let mentions = self.mentions(sentence, names, bar);
        let mut copied = 0;
        for mention in &mentions {
            let name = &sentence[mention.bytes.clone()];
            out.push_str(&sentence[copied..mention.bytes.start]);
            copied = mention.bytes.end;
            let phrase = refer(&mut people, name, &mention.noun);
            let before = out.trim_end();
            if before.is_empty() || before.ends_with(['.', '!', '?']) {
                let mut letters = phrase.chars();
                out.extend(letters.next().into_iter().flat_map(char::to_uppercase));
                out.push_str(letters.as_str());
            } else {
                out.push_str(&phrase);
            }
        }
        out.push_str(&sentence[copied..]);
        out
    }

    /// Names in order, none overlapping another: the longest on the list first, then what the recogniser finds.
    fn mentions(&self, sentence: &str, names: &NameList, bar: f64) -> Vec<Mention> {
        let words = words(sentence);
        let mut mentions: Vec<Mention> = Vec::new();
        let mut next = 0;
        while next < words.len() {
            let listed = (1..=self.longest.min(words.len() - next)).rev().find_map(|count| {
                let bytes = words[next].start..words[next + count - 1].end;
                Some((count, self.nouns.get(&sentence[bytes.clone()])?, bytes))
            });
            if let Some((count, noun, bytes)) = listed {
                mentions.push(Mention { bytes, noun: noun.clone() });
                next += count;
            } else {
                next += 1;
            }
        }
        for found in names.score(sentence).into_iter().filter(|found| found.score >= bar) {
            if mentions
                .iter()
                .any(|mention| mention.bytes.start < found.bytes.end && found.bytes.start < mention.bytes.end)
            {
                continue;
            }
            mentions.push(Mention { bytes: found.bytes, noun: "person".to_owned() });
        }
        mentions.sort_by_key(|mention| mention.bytes.start);
        join_neighbours(sentence, mentions)
    }
}

/// `Mrs.` and `Xyzzy`, or a given name and a surname, are one person: recognised neighbours become one mention.
fn join_neighbours(sentence: &str, mentions: Vec<Mention>) -> Vec<Mention> {
    let mut joined: Vec<Mention> = Vec::new();
    for mention in mentions {
        match joined.last_mut() {
            Some(last) if &sentence[last.bytes.end..mention.bytes.start] == " " => {
                last.bytes.end = mention.bytes.end;
                // A listed half knows more than a recognised one.
                if last.noun == "person" {
                    last.noun = mention.noun;
                }
            }
            _ => joined.push(mention),
        }
    }
    joined
}

/// `a woman`, `another woman`, `the woman`, `the other woman`: depends on who was mentioned before.
fn refer<'a>(people: &mut Vec<(&'a str, &'a str)>, name: &'a str, noun: &'a str) -> String {
    let alike: Vec<&str> = people.iter().filter(|(_, other)| *other == noun).map(|(name, _)| *name).collect();
    match alike.iter().position(|other| *other == name) {
        Some(0) => format!("the {noun}"),
        Some(_) => format!("the other {noun}"),
        None => {
            people.push((name, noun));
            match (alike.is_empty(), noun.starts_with(['a', 'e', 'i', 'o', 'u'])) {
                (false, _) => format!("another {noun}"),
                (true, true) => format!("an {noun}"),
                (true, false) => format!("a {noun}"),
            }
        }
    }
}

/// Runs of letters, digits and hyphens, in **bytes**.
fn words(sentence: &str) -> Vec<Range<usize>> {
    let mut words: Vec<Range<usize>> = Vec::new();
    for (at, letter) in sentence.char_indices() {
        let inside = letter.is_alphanumeric() || letter == '-';
        let end = at + letter.len_utf8();
        match words.last_mut() {
            Some(word) if inside && word.end == at => word.end = end,
            _ if inside => words.push(at..end),
            _ => {}
        }
    }
    words
}
