//! The moments and questions of a comparison.

use anyhow::{Context as _, ensure};
use camino::{Utf8Path, Utf8PathBuf};
use rayon::prelude::*;

use crate::COUNT;

/// Where the vectors lie and how many of them count.
pub struct Input {
    pub folder: Utf8PathBuf,
    pub width: usize,
    pub count: usize,
}

impl Input {
    pub fn new(folder: &str, width: &str, count: &str) -> anyhow::Result<Self> {
        Ok(Self { folder: folder.into(), width: width.parse()?, count: count.parse()? })
    }

    pub fn moments(&self) -> anyhow::Result<Vectors> {
        Vectors::read(&self.folder.join("moments.f32"), self.width, self.count)
    }

    pub fn queries(&self) -> anyhow::Result<Vectors> {
        Vectors::read(&self.folder.join("queries.f32"), self.width, usize::MAX)
    }

    /// The words by which another process finds the same.
    pub fn words(&self) -> [String; 3] {
        [self.folder.to_string(), self.width.to_string(), self.count.to_string()]
    }
}

/// Vectors of one width, one behind the other.
pub struct Vectors {
    pub width: usize,
    pub numbers: Vec<f32>,
}

impl Vectors {
    fn read(path: &Utf8Path, width: usize, most: usize) -> anyhow::Result<Self> {
        let bytes = std::fs::read(path).with_context(|| path.to_string())?;
        let (fours, _) = bytes.as_chunks::<4>();
        let numbers: Vec<f32> =
            fours.iter().take(most.saturating_mul(width)).map(|four| f32::from_le_bytes(*four)).collect();
        ensure!(!numbers.is_empty() && numbers.len().is_multiple_of(width), "`{path}` holds no vectors of {width}");
        Ok(Self { width, numbers })
    }

    pub fn rows(&self) -> std::slice::ChunksExact<'_, f32> {
        self.numbers.chunks_exact(self.width)
    }

    pub fn row(&self, row: usize) -> Option<&[f32]> {
        self.numbers.get(row * self.width..(row + 1) * self.width)
    }
}

/// Moments and queries with their true answers.
pub struct Truth {
    moments: Vectors,
    queries: Vectors,
    /// The tenth best product with each query.
    tenth: Vec<f32>,
}

impl Truth {
    pub fn new(input: &Input) -> anyhow::Result<Self> {
        let (moments, queries) = (input.moments()?, input.queries()?);
        let rows: Vec<&[f32]> = queries.rows().collect();
        let tenth = |query: &&[f32]| {
            let mut scores: Vec<f32> = moments.rows().map(|moment| product(query, moment)).collect();
            *scores.select_nth_unstable_by(COUNT - 1, |a, b| b.total_cmp(a)).1
        };
        let tenth = rows.par_iter().map(tenth).collect();
        Ok(Self { moments, queries, tenth })
    }

    /// How many queries there are.
    pub fn queries(&self) -> usize {
        self.tenth.len()
    }

    /// How many moments there are.
    pub fn moments(&self) -> usize {
        self.moments.rows().len()
    }

    /// How much of the ten nearest was found, on average over the queries. A tie with the tenth counts.
    pub fn recall(&self, found: &[Vec<usize>]) -> f64 {
        let mut right = 0;
        for ((query, found), tenth) in self.queries.rows().zip(found).zip(&self.tenth) {
            let mut found = found.clone();
            found.sort_unstable();
            found.dedup();
            let hit = |row: &&usize| self.moments.row(**row).is_some_and(|row| product(query, row) >= tenth - 1e-6);
            right += found.iter().filter(hit).count().min(COUNT);
        }
        right as f64 / (COUNT * self.tenth.len()) as f64
    }
}

pub fn product(a: &[f32], b: &[f32]) -> f32 {
    // Eight sums side by side, which the compiler turns into vectors.
    let (a, rest_a) = a.as_chunks::<8>();
    let (b, rest_b) = b.as_chunks::<8>();
    let mut sums = [0f32; 8];
    for (a, b) in a.iter().zip(b) {
        for (sum, (a, b)) in sums.iter_mut().zip(a.iter().zip(b)) {
            *sum += a * b;
        }
    }
    sums.iter().sum::<f32>() + rest_a.iter().zip(rest_b).map(|(a, b)| a * b).sum::<f32>()
}
