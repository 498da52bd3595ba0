//! Where parses come from: our own parser, or a file that somebody else's parser (or the world's grammar) wrote.

use std::borrow::Cow;

use camino::Utf8PathBuf;
use cuemark_core::{Query, QueryId};
use cuemark_formats::json::decode_line;
use cuemark_formats::{Overwrite, ReadError, Source, WholeFile};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::{Dependency, Parse, Phrase, Result, TaggedToken, TextError, shallow_parse};

/// Gives the parse of a query.
pub trait ParseProvider: Send + Sync {
    /// The parse of one query, with positions that [`Parse::check`] has passed.
    ///
    /// # Errors
    /// When the provider does not know the query.
    fn parse(&self, query: &Query) -> Result<Cow<'_, Parse>>;
}

/// Our shallow parser: knows every query, makes mistakes.
#[derive(Debug, Clone, Copy, Default)]
pub struct ShallowParser;

impl ParseProvider for ShallowParser {
    fn parse(&self, query: &Query) -> Result<Cow<'_, Parse>> {
        Ok(Cow::Owned(shallow_parse(&query.text)))
    }
}

/// Parses read from a file of JSON lines, by query id; the layout is described at [`Parse`].
#[derive(Debug, Clone)]
pub struct ParseFile {
    path: Utf8PathBuf,
    parses: FxHashMap<QueryId, Parse>,
}

impl ParseFile {
    /// Reads the whole of `source`, checking every parse.
    ///
    /// # Errors
    /// When the file cannot be read, a line is not a parse, a position names no token, or a query stands twice; the
    /// error names the line and the field.
    pub fn read(source: &Source) -> Result<Self> {
        let mut parses = FxHashMap::default();
        source.for_each_line(|line, text| {
            let Record { qid, tokens, phrases, dependencies } = decode_line(source, line, text)?;
            let parse = Parse { tokens, phrases, dependencies };
            parse.check().map_err(|fault| source.record(line, fault.field, fault.problem))?;
            let qid = qid.into_id();
            if parses.contains_key(&qid) {
                return Err(source.record(line, "qid", format!("query `{qid}` stands in the file twice")));
            }
            parses.insert(qid, parse);
            Ok(())
        })?;
        Ok(Self { path: source.path().to_owned(), parses })
    }

    /// Number of parses.
    pub fn len(&self) -> usize {
        self.parses.len()
    }

    /// Whether the file held none.
    pub fn is_empty(&self) -> bool {
        self.parses.is_empty()
    }
}

impl ParseProvider for ParseFile {
    fn parse(&self, query: &Query) -> Result<Cow<'_, Parse>> {
        match self.parses.get(&query.id) {
            Some(parse) => Ok(Cow::Borrowed(parse)),
            None => Err(TextError::MissingParse { path: self.path.clone(), qid: query.id.clone() }),
        }
    }
}

/// Writes parses as JSON lines that [`ParseFile::read`] reads, in the order given.
///
/// # Errors
/// When the file is there and may not be replaced, or cannot be written.
pub fn write_parses<'a>(
    path: impl Into<Utf8PathBuf>,
    overwrite: Overwrite,
    parses: impl IntoIterator<Item = (&'a QueryId, &'a Parse)>,
) -> Result<()> {
    let path = path.into();
    let mut file = WholeFile::create(path.clone(), overwrite)?;
    let mut line = Vec::new();
    for (qid, parse) in parses {
        line.clear();
        serde_json::to_writer(&mut line, &Line { qid: qid.as_str(), parse })
            .map_err(std::io::Error::from)
            .map_err(|source| ReadError::Write { path: path.clone(), source })?;
        line.push(b'\n');
        file.put(&line)?;
    }
    Ok(file.finish()?)
}

/// One line as it is written.
#[derive(Serialize)]
struct Line<'a> {
    qid: &'a str,
    #[serde(flatten)]
    parse: &'a Parse,
}

/// One line as it is read; without `flatten`, which would lose the way to a bad field.
#[derive(Deserialize)]
struct Record {
    qid: Qid,
    tokens: Vec<TaggedToken>,
    #[serde(default)]
    phrases: Vec<Phrase>,
    #[serde(default)]
    dependencies: Vec<Dependency>,
}

/// Query ids may be numbers or text and are compared as text.
#[derive(Deserialize)]
#[serde(untagged)]
enum Qid {
    Number(serde_json::Number),
    Text(String),
}

impl Qid {
    fn into_id(self) -> QueryId {
        match self {
            Self::Number(number) => QueryId::new(number.to_string()),
            Self::Text(text) => QueryId::new(text),
        }
    }
}
