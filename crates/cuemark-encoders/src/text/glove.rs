//! GloVe (Pennington et al., EMNLP 2014): a sentence is the mean of its words' vectors.

use std::fs::File;

use camino::Utf8Path;
use cuemark_features::tensor_file;
use cuemark_formats::{ReadError, Source};
use cuemark_text::WordVectors;
use parquet::column::reader::ColumnReader;
use parquet::data_type::ByteArray;
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use rustc_hash::FxHashMap;

use super::TextEncoder;
use crate::Result;
use crate::weights::WeightsFolder;

const WORDS: &str = "words.parquet";
const VECTORS: &str = "vectors.npy";
/// Words of the largest published list, several times over.
const MOST_WORDS: usize = 20_000_000;

/// Word vectors, and sentences as their mean.
pub struct Glove {
    name: String,
    width: usize,
    table: Table,
}

enum Table {
    /// A package's: the number of every word, and all vectors one after the other.
    Packed { words: FxHashMap<String, usize>, values: Vec<f32> },
    /// A text file's.
    Text(WordVectors),
}

/// Whether a folder holds word vectors, or is a text file of them.
pub(super) fn is_one(folder: &WeightsFolder) -> bool {
    folder.find(&[WORDS]).is_some_and(|_| folder.path().is_dir()) || text_file(folder).is_some()
}

fn text_file(folder: &WeightsFolder) -> Option<&Utf8Path> {
    let plain = folder.path().as_str().trim_end_matches(".gz").trim_end_matches(".zst");
    (folder.path().is_file() && plain.ends_with(".txt")).then(|| folder.path())
}

impl Glove {
    /// Reads the vectors of a package, or a text file of them (`WORD NUMBER NUMBER …`, one word a line).
    ///
    /// # Errors
    /// When a file cannot be read, is damaged, or words and vectors do not fit each other.
    pub fn load(folder: &WeightsFolder) -> Result<Self> {
        let name = folder.name().to_owned();
        if let Some(path) = text_file(folder) {
            let vectors = WordVectors::read(&Source::new(path), |_| true)?;
            return Ok(Self { name, width: vectors.width(), table: Table::Text(vectors) });
        }
        let path = folder.file(VECTORS)?;
        let array = tensor_file::read(&path)?.into_values().next();
        let fault = |problem: String| ReadError::file(&path, problem);
        let array = array.ok_or_else(|| fault("holds no array".to_owned()))?;
        let &[rows, width] = array.shape.as_slice() else {
            return Err(fault(format!("shape {:?} is not words × numbers", array.shape)).into());
        };
        let words = words(&folder.file(WORDS)?)?;
        if words.len() != rows || width == 0 {
            return Err(fault(format!("holds {rows} vectors of {} words", words.len())).into());
        }
        let words = words.into_iter().zip(0..).collect();
        Ok(Self { name, width, table: Table::Packed { words, values: array.values } })
    }

    /// The vector of a word, written in lower case.
    pub fn word(&self, word: &str) -> Option<&[f32]> {
        match &self.table {
            Table::Packed { words, values } => {
                let place = words.get(word)?.checked_mul(self.width)?;
                values.get(place..place + self.width)
            }
            Table::Text(vectors) => vectors.get(word),
        }
    }
}

impl TextEncoder for Glove {
    fn name(&self) -> &str {
        &self.name
    }

    fn width(&self) -> usize {
        self.width
    }

    /// Words in lower case without punctuation; unknown ones are passed over, and a sentence without a known word is zeros.
    fn encode(&self, sentences: &[&str]) -> Result<Vec<Vec<f32>>> {
        let mean = |sentence: &&str| {
            let mut sum = vec![0f32; self.width];
            let words = cuemark_text::words_of(sentence);
            let known: Vec<&[f32]> = words.iter().filter_map(|word| self.word(word)).collect();
            for vector in &known {
                sum.iter_mut().zip(*vector).for_each(|(sum, value)| *sum += value);
            }
            let count = known.len().max(1) as f32;
            sum.iter_mut().for_each(|sum| *sum /= count);
            sum
        };
        Ok(sentences.iter().map(mean).collect())
    }
}

/// The one column of text of a Parquet file, in order.
fn words(path: &Utf8Path) -> Result<Vec<String>> {
    let file = File::open(path).map_err(|source| ReadError::Io { path: path.to_owned(), source })?;
    let fault = |error: parquet::errors::ParquetError| ReadError::file(path, error.to_string());
    let odd = |problem: &str| ReadError::file(path, problem);
    let reader = SerializedFileReader::new(file).map_err(fault)?;
    let mut words = Vec::new();
    for group in 0..reader.num_row_groups() {
        let group = reader.get_row_group(group).map_err(fault)?;
        let ColumnReader::ByteArrayColumnReader(mut column) = group.get_column_reader(0).map_err(fault)? else {
            return Err(odd("its first column is not text").into());
        };
        loop {
            let (mut levels, mut values) = (Vec::new(), Vec::<ByteArray>::new());
            let (rows, found, _) = column.read_records(1 << 16, Some(&mut levels), None, &mut values).map_err(fault)?;
            if rows == 0 {
                break;
            }
            if found != rows || words.len() + rows > MOST_WORDS {
                return Err(odd("a word is missing, or there are too many").into());
            }
            for value in &values {
                words.push(value.as_utf8().map_err(fault)?.to_owned());
            }
        }
    }
    Ok(words)
}
