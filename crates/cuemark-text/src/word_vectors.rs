//! Published word vectors in text files: GloVe, and anything that looks like it.

use cuemark_formats::{Result, Source};
use rustc_hash::FxHashMap;

/// The vectors of some words.
#[derive(Debug, Clone, Default)]
pub struct WordVectors {
    width: usize,
    vectors: FxHashMap<String, Vec<f32>>,
}

impl WordVectors {
    /// Reads the vectors of the words that `wanted` asks for: `WORD NUMBER NUMBER …`, one word a line.
    ///
    /// The first line sets the width; a first line of two numbers is a header and is passed over. A word may contain
    /// spaces, as a few of GloVe's do: the last `width` fields are the numbers. The first of several vectors of one word counts.
    ///
    /// # Errors
    /// When the file cannot be read, and for the first line with too few numbers or one that is no finite number.
    pub fn read(source: &Source, wanted: impl Fn(&str) -> bool) -> Result<Self> {
        let mut found = Self::default();
        source.for_each_line(|number, line| {
            let line = line.trim_end();
            let fields = line.split(' ').count();
            let header = number == 1 && fields == 2 && line.split(' ').all(|field| field.parse::<u64>().is_ok());
            if line.is_empty() || header {
                return Ok(());
            }
            if found.width == 0 {
                found.width = fields - 1;
            }
            let width = found.width;
            if fields <= width || width == 0 {
                let problem = format!("expected a word and {} numbers, found {} fields", width.max(1), fields);
                return Err(source.record(number, "vector", problem));
            }
            let word = line.splitn(fields - width + 1, ' ').take(fields - width).collect::<Vec<_>>().join(" ");
            if !wanted(&word) || found.vectors.contains_key(&word) {
                return Ok(());
            }
            let numbers = line.rsplitn(width + 1, ' ').take(width).map(str::parse::<f32>);
            let mut vector = numbers.collect::<std::result::Result<Vec<f32>, _>>().unwrap_or_default();
            vector.reverse();
            if vector.len() != width || vector.iter().any(|value| !value.is_finite()) {
                return Err(source.record(
                    number,
                    "vector",
                    format!("the vector of `{word}` holds something that is no number"),
                ));
            }
            source.charge(number, 2 * (word.len() + size_of::<(String, Vec<f32>)>()) + width * size_of::<f32>())?;
            found.vectors.insert(word, vector);
            Ok(())
        })?;
        if found.width == 0 {
            return Err(source.fault("holds no word vector"));
        }
        Ok(found)
    }

    /// Numbers per word.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The vector of a word.
    pub fn get(&self, word: &str) -> Option<&[f32]> {
        self.vectors.get(word).map(Vec::as_slice)
    }

    /// How many words were found.
    pub fn len(&self) -> usize {
        self.vectors.len()
    }

    /// Whether none was.
    pub fn is_empty(&self) -> bool {
        self.vectors.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<WordVectors> {
        let folder = tempfile::tempdir().unwrap();
        let path = camino::Utf8PathBuf::from_path_buf(folder.path().join("vectors.txt")).unwrap();
        std::fs::write(&path, text).unwrap();
        WordVectors::read(&Source::new(path), |word| word != "unwanted")
    }

    #[test]
    fn words_with_spaces_and_headers_are_read_and_the_rest_left_out() {
        let vectors = read("4 2\nball 0.5 -1\n. . . 1e-3 2\nunwanted 3 4\nball 9 9\n").unwrap();
        assert_eq!((vectors.width(), vectors.len()), (2, 2));
        assert_eq!(vectors.get("ball"), Some([0.5, -1.0].as_slice()));
        assert_eq!(vectors.get(". . ."), Some([0.001, 2.0].as_slice()));
    }

    #[test]
    fn a_bad_line_is_named() {
        assert!(
            read("ball 0.5 -1\nbox 1\n")
                .unwrap_err()
                .to_string()
                .contains(":2: `vector`: expected a word and 2 numbers")
        );
        assert!(read("ball 0.5 x\n").unwrap_err().to_string().contains(":1: `vector`"));
        assert!(read("ball 0.5 NaN\n").unwrap_err().to_string().contains("no number"));
        assert!(read("\n").unwrap_err().to_string().contains("no word vector"));
    }
}
