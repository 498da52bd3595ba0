//! What a semantic-role labeller found, as parses: the phrases that TRM was published with.
//!
//! A line is what AllenNLP's SRL-BERT prints: `{"words": ["The", "man", …], "verbs": [{"verb": "puts", "tags": ["B-ARG0", "I-ARG0",
//! "B-V", …]}]}`, one line per query in the order of the queries, or in any order with a `qid`. Roles that occur less than a tenth as often
//! as the most frequent one are dropped, as the method's card has it. Every role becomes a stretch that hangs on its verb, so that
//! [`Parse::roles`] gives it back; a stretch that is a part of two verbs is a phrase once, with the first.

use std::collections::BTreeMap;
use std::ops::Range;

use cuemark_core::{Query, QueryId};
use cuemark_formats::Source;
use cuemark_formats::json::decode_line;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};

use crate::{Dependency, Parse, Phrase, Pos, Relation, Result, TaggedToken};

/// Roles that occur less often than this share of the most frequent one are no phrases.
const RARE: f64 = 0.1;

/// The longest sentence and the most verbs in it that are read: what takes time with their product must not take for ever.
const MOST_WORDS: usize = 512;
const MOST_VERBS: usize = 64;

/// The verb itself, as labellers call it.
const VERB: &str = "V";

/// Parses made of a labeller's output.
#[derive(Debug, Clone, PartialEq)]
pub struct LabelledRoles {
    /// In the order of the queries.
    pub parses: Vec<(QueryId, Parse)>,
    /// What was kept and what was not.
    pub report: RoleReport,
}

/// What was kept of a labeller's output, and what was not.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct RoleReport {
    /// Queries.
    pub queries: usize,
    /// Queries in which no verb was found.
    pub without_verb: usize,
    /// Kept roles and how often they occur.
    pub kept: BTreeMap<String, usize>,
    /// Rare roles, which are no phrases.
    pub rare: BTreeMap<String, usize>,
    /// Stretches that are a part of another verb already, or cross one.
    pub shared: usize,
}

#[derive(Deserialize)]
struct Line {
    #[serde(default, alias = "id")]
    qid: Option<Qid>,
    words: Vec<String>,
    #[serde(default)]
    verbs: Vec<Frame>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Qid {
    Text(String),
    Number(u64),
}

/// One verb and the part that each word plays for it.
#[derive(Deserialize)]
struct Frame {
    tags: Vec<String>,
}

/// One sentence as the labeller has it.
struct Labelled {
    words: Vec<String>,
    parts: Vec<Part>,
    /// In order, each once.
    verbs: Vec<usize>,
}

/// A stretch that plays a part for a verb.
struct Part {
    verb: usize,
    label: String,
    tokens: Range<usize>,
}

/// Reads the labeller's output for these queries.
///
/// # Errors
/// When a line is none of a labeller's, is about another sentence than its query, or a query has no line; the line is named.
pub fn read_labelled_roles(source: &Source, queries: &[&Query]) -> Result<LabelledRoles> {
    let place_of: FxHashMap<&str, usize> =
        queries.iter().enumerate().map(|(place, query)| (query.id.as_str(), place)).collect();
    let mut found: Vec<Option<Labelled>> = queries.iter().map(|_| None).collect();
    let mut next = 0;
    source.for_each_line(|number, text| {
        let line: Line = decode_line(source, number, text)?;
        let place = match line.qid {
            Some(qid) => {
                let qid = match qid {
                    Qid::Text(text) => text,
                    Qid::Number(number) => number.to_string(),
                };
                match place_of.get(qid.as_str()) {
                    Some(place) => *place,
                    // Labellers are run over whole datasets; what nobody asks about is passed over.
                    None => return Ok(()),
                }
            }
            None => {
                next += 1;
                next - 1
            }
        };
        let Some(query) = queries.get(place) else {
            return Err(source.record(number, "words", format!("there are only {} queries", queries.len())));
        };
        if !letters(&line.words.concat()).eq(letters(&query.text)) {
            let problem = format!("is about another sentence than query `{}`: `{}`", query.id, query.text);
            return Err(source.record(number, "words", problem));
        }
        for (field, found, most) in [("words", line.words.len(), MOST_WORDS), ("verbs", line.verbs.len(), MOST_VERBS)] {
            if found > most {
                return Err(source.record(number, field, format!("{found} are more than the {most} of a sentence")));
            }
        }
        let (mut parts, mut verbs) = (Vec::new(), Vec::new());
        for (index, frame) in line.verbs.iter().enumerate() {
            if frame.tags.len() != line.words.len() {
                let problem = format!("has {} tags for {} words", frame.tags.len(), line.words.len());
                return Err(source.record(number, format!("verbs[{index}].tags"), problem));
            }
            let stretches = stretches(&frame.tags);
            let Some(verb) = stretches.iter().find(|(label, _)| label == VERB).map(|(_, tokens)| tokens.start) else {
                continue;
            };
            verbs.push(verb);
            let others = stretches.into_iter().filter(|(label, _)| label != VERB);
            parts.extend(others.map(|(label, tokens)| Part { verb, label, tokens }));
        }
        verbs.sort_unstable();
        verbs.dedup();
        if found[place].replace(Labelled { words: line.words, parts, verbs }).is_some() {
            return Err(source.record(number, "qid", format!("query `{}` stands in the file twice", query.id)));
        }
        Ok(())
    })?;
    let mut report = RoleReport { queries: queries.len(), ..RoleReport::default() };
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for Labelled { parts, verbs, .. } in found.iter().flatten() {
        *counts.entry(VERB.to_owned()).or_default() += verbs.len();
        for part in parts {
            *counts.entry(part.label.clone()).or_default() += 1;
        }
    }
    let most = counts.values().copied().max().unwrap_or(0) as f64;
    (report.kept, report.rare) = counts.into_iter().partition(|(_, count)| *count as f64 >= RARE * most);
    let mut parses = Vec::with_capacity(queries.len());
    for (query, found) in queries.iter().zip(found) {
        let Some(Labelled { words, parts, verbs }) = found else {
            return Err(crate::TextError::MissingParse { path: source.path().to_owned(), qid: query.id.clone() });
        };
        report.without_verb += usize::from(verbs.is_empty());
        let kept: Vec<Part> = parts.into_iter().filter(|part| report.kept.contains_key(&part.label)).collect();
        let (parse, shared) = parse_of(&words, &verbs, kept);
        report.shared += shared;
        parses.push((query.id.clone(), parse));
    }
    Ok(LabelledRoles { parses, report })
}

/// Letters and digits in lower case: labellers differ in how they cut words and in what they do with marks.
fn letters(text: &str) -> impl Iterator<Item = char> {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase)
}

/// The stretches of `B-X I-X` tags, in order; an `I-X` that follows nothing begins one.
fn stretches(tags: &[String]) -> Vec<(String, Range<usize>)> {
    let mut found: Vec<(String, Range<usize>)> = Vec::new();
    for (at, tag) in tags.iter().enumerate() {
        let Some((begins, label)) = tag.split_once('-') else { continue };
        match found.last_mut() {
            Some((last, tokens)) if begins == "I" && last == label && tokens.end == at => tokens.end += 1,
            _ => found.push((label.to_owned(), at..at + 1)),
        }
    }
    found
}

/// The parse in which every part hangs on its verb, and how many parts found no place.
fn parse_of(words: &[String], verbs: &[usize], mut parts: Vec<Part>) -> (Parse, usize) {
    let is_word: Vec<bool> = words.iter().map(|word| word.chars().any(char::is_alphanumeric)).collect();
    let verb_at: FxHashSet<usize> = verbs.iter().copied().collect();
    let tag = |at: usize| match (verb_at.contains(&at), is_word[at]) {
        (true, _) => Pos::Verb,
        (false, true) => Pos::X,
        (false, false) => Pos::Punct,
    };
    let mut head: Vec<Option<(usize, Relation)>> = vec![None; words.len()];
    // Inner stretches first: what holds them takes them along.
    parts.sort_by_key(|part| (part.tokens.len(), part.verb, part.tokens.start));
    let mut lost = 0;
    for part in &parts {
        let inside = |at: usize| part.tokens.contains(&at);
        let words_inside: Vec<usize> = part.tokens.clone().filter(|at| is_word[*at]).collect();
        let hangs_outside = words_inside.iter().any(|at| head[*at].is_some_and(|(head, _)| !inside(head)));
        let holds_outside = (0..words.len()).any(|at| !inside(at) && head[at].is_some_and(|(head, _)| inside(head)));
        let roots: Vec<usize> = words_inside.iter().copied().filter(|at| head[*at].is_none()).collect();
        let [root, others @ ..] = &roots[..] else {
            lost += 1;
            continue;
        };
        if hangs_outside || holds_outside || inside(part.verb) || above(&head, part.verb).any(inside) {
            lost += 1;
            continue;
        }
        for other in others {
            head[*other] = Some((*root, Relation::Dep));
        }
        head[*root] = Some((part.verb, relation_of(&part.label)));
    }
    let dependencies = head.iter().enumerate().filter_map(|(dependent, head)| {
        let (head, relation) = (*head)?;
        Some(Dependency { head, dependent, relation })
    });
    let dependencies = dependencies.collect();
    let phrases = verbs.iter().map(|verb| Phrase { verb: *verb, nouns: Vec::new() }).collect();
    let tokens = words.iter().enumerate();
    let tokens = tokens.map(|(at, text)| TaggedToken { text: text.clone(), tag: tag(at), bytes: None }).collect();
    (Parse { tokens, phrases, dependencies }, lost)
}

/// What a token hangs on, directly or not.
fn above(head: &[Option<(usize, Relation)>], at: usize) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(at), |at| head.get(*at).copied().flatten().map(|(head, _)| head))
        .skip(1)
        .take(head.len())
}

/// The nearest of our own relations that is a role; labels are told apart before, when rare ones are dropped.
fn relation_of(label: &str) -> Relation {
    match label.trim_start_matches("C-").trim_start_matches("R-") {
        "ARG0" => Relation::Nsubj,
        "ARG1" => Relation::Dobj,
        "ARG2" | "ARG3" | "ARG4" | "ARG5" | "ARGA" => Relation::Iobj,
        "ARGM-TMP" => Relation::NmodTmod,
        "ARGM-MNR" | "ARGM-ADV" | "ARGM-MOD" | "ARGM-NEG" | "ARGM-DIS" => Relation::Advmod,
        "ARGM-PRP" | "ARGM-CAU" | "ARGM-PNC" | "ARGM-PRD" => Relation::Advcl,
        "ARGM-LOC" | "ARGM-DIR" | "ARGM-GOL" => Relation::Nmod,
        _ => Relation::NmodNpmod,
    }
}

#[cfg(test)]
mod tests {
    use camino::Utf8PathBuf;

    use super::*;

    fn query(id: &str, text: &str) -> Query {
        Query { id: id.into(), text: text.to_owned() }
    }

    fn read(lines: &str, queries: &[Query]) -> Result<LabelledRoles> {
        let folder = tempfile::tempdir().unwrap();
        let path = Utf8PathBuf::from_path_buf(folder.path().join("srl.jsonl")).unwrap();
        std::fs::write(&path, lines).unwrap();
        read_labelled_roles(&Source::new(path), &queries.iter().collect::<Vec<_>>())
    }

    /// The phrases that a model is given, as text.
    fn phrases(parse: &Parse) -> Vec<String> {
        let (words, parse) = parse.in_words();
        parse.roles().into_iter().map(|role| words[role.tokens].join(" ")).collect()
    }

    const PUTS: &str = r#"{"verbs": [{"verb": "puts", "description": "", "tags": ["B-ARG0", "I-ARG0", "B-V", "B-ARG1", "I-ARG1", "B-ARG2", "I-ARG2", "I-ARG2", "O"]}], "words": ["The", "man", "puts", "a", "cup", "on", "the", "table", "."]}"#;
    const RUNS: &str = r#"{"words": ["She", "wants", "to", "open", "the", "door"], "verbs": [
        {"verb": "wants", "tags": ["B-ARG0", "B-V", "B-ARG1", "I-ARG1", "I-ARG1", "I-ARG1"]},
        {"verb": "open", "tags": ["B-ARG0", "O", "O", "B-V", "B-ARG1", "I-ARG1"]}]}"#;

    #[test]
    fn every_role_comes_back_as_the_stretch_that_the_labeller_found() {
        let queries = [query("7", "The man puts a cup on the table."), query("8", "She wants to open the door")];
        let done = read(&format!("{PUTS}\n{}\n", RUNS.replace('\n', " ")), &queries).unwrap();
        assert_eq!(phrases(&done.parses[0].1), ["puts", "the man", "a cup", "on the table"]);
        // The door is inside of what she wants, and she is the subject of both verbs: a phrase once.
        assert_eq!(phrases(&done.parses[1].1), ["wants", "she", "to open the door", "open", "the door"]);
        assert_eq!((done.report.queries, done.report.without_verb, done.report.shared), (2, 0, 1));
        done.parses.iter().for_each(|(_, parse)| parse.check().unwrap());
    }

    #[test]
    fn rare_roles_are_dropped_by_the_cards_rule() {
        // Eleven verbs with an agent each, one of them with a manner: 1 is less than a tenth of 11.
        let common = r#"{"words": ["he", "runs"], "verbs": [{"tags": ["B-ARG0", "B-V"]}]}"#;
        let rare = r#"{"words": ["he", "runs", "fast"], "verbs": [{"tags": ["B-ARG0", "B-V", "B-ARGM-MNR"]}]}"#;
        let lines = [vec![common; 10], vec![rare]].concat().join("\n");
        let mut queries: Vec<Query> = (0..10).map(|n| query(&n.to_string(), "He runs.")).collect();
        queries.push(query("10", "He runs fast."));
        let done = read(&lines, &queries).unwrap();
        assert_eq!(done.report.kept, BTreeMap::from([("ARG0".to_owned(), 11), ("V".to_owned(), 11)]));
        assert_eq!(done.report.rare, BTreeMap::from([("ARGM-MNR".to_owned(), 1)]));
        assert_eq!(phrases(&done.parses[10].1), ["runs", "he"]);
        // One less, and it is a tenth exactly: kept.
        let done = read(&[vec![common; 9], vec![rare]].concat().join("\n"), &queries[1..]).unwrap();
        assert_eq!(phrases(&done.parses[9].1), ["runs", "he", "fast"]);
    }

    #[test]
    fn lines_with_ids_may_come_in_any_order_and_others_are_passed_over() {
        let line = |id: &str, word: &str| format!(r#"{{"qid": {id}, "words": ["{word}"], "verbs": []}}"#);
        let queries = [query("1", "one"), query("2", "two")];
        let done = read(&[line("\"9\"", "nine"), line("2", "two"), line("1", "one")].join("\n"), &queries).unwrap();
        let words: Vec<&str> = done.parses.iter().map(|(_, parse)| parse.tokens[0].text.as_str()).collect();
        assert_eq!((words, done.report.without_verb), (vec!["one", "two"], 2));
    }

    #[test]
    fn what_does_not_belong_together_is_named_with_its_line() {
        let queries = [query("1", "he runs"), query("2", "she runs")];
        let good = r#"{"words": ["he", "runs"], "verbs": []}"#;
        for (lines, said) in [
            (format!("{good}\n{good}"), ":2: `words`: is about another sentence than query `2`"),
            (good.to_owned(), "no parse for query `2`"),
            (r#"{"words": ["he", "runs"], "verbs": [{"tags": ["O"]}]}"#.to_owned(), "has 1 tags for 2 words"),
            (format!("{good}\nnonsense"), ":2"),
            (
                good.replace("[]", &format!("[{}]", vec![r#"{"tags": []}"#; 65].join(","))),
                "`verbs`: 65 are more than the 64",
            ),
        ] {
            let error = read(&lines, &queries).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
