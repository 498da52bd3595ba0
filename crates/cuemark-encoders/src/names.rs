//! The names that rows of a space are made of, and taking a row apart into them again.

use cuemark_core::digest::hex;
use sha2::{Digest as _, Sha256};

/// Rounds in which the weights of the names found so far are brought into balance.
const ROUNDS: usize = 20;
/// What is left of a row is not worth another name when no name explains more of it than this share of its length.
const LEAST: f32 = 0.05;

/// Names with their places in a space, of length 1.
#[derive(Debug, Clone, Default)]
pub struct Names {
    names: Vec<&'static str>,
    vectors: Vec<Vec<f32>>,
}

/// A name and how much of it is in a row.
#[derive(Debug, Clone, PartialEq)]
pub struct Part<'a> {
    /// As its dataset has it.
    pub name: &'static str,
    /// Its place in the space, of length 1.
    pub vector: &'a [f32],
    /// More than 0; the row is about the sum of its parts' vectors, each times its weight.
    pub weight: f32,
}

impl Names {
    /// Names and their vectors in one order; vectors are brought to length 1, and names without a direction are left out.
    pub(crate) fn new(named: impl IntoIterator<Item = (&'static str, Vec<f32>)>) -> Self {
        let mut all = Self::default();
        for (name, vector) in named {
            let length = dot(&vector, &vector).sqrt();
            if length.is_finite() && length > 0.0 {
                all.names.push(name);
                all.vectors.push(vector.into_iter().map(|value| value / length).collect());
            }
        }
        all
    }

    /// Every vector, in the order of the networks' outputs.
    pub fn vectors(&self) -> impl Iterator<Item = &[f32]> {
        self.vectors.iter().map(Vec::as_slice)
    }

    /// The name whose vector is nearest to one of length 1, and the cosine between them; `None` without names.
    pub fn nearest(&self, vector: &[f32]) -> Option<(&'static str, f32)> {
        let cosines = self.vectors.iter().map(|name| dot(name, vector));
        self.names.iter().copied().zip(cosines).max_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// The vectors as bytes that `from_bytes` reads: which names they are of and how wide, then their numbers.
    pub fn to_bytes(&self) -> Vec<u8> {
        let width = self.vectors.first().map_or(0, Vec::len);
        let mut bytes = heading(&self.names, width).into_bytes();
        bytes.extend(self.vectors.iter().flatten().flat_map(|number| number.to_le_bytes()));
        bytes
    }

    /// What [`Names::to_bytes`] wrote of these very names; `None` of others, and of what is cut short.
    pub(crate) fn from_bytes(names: &[&'static str], width: usize, bytes: &[u8]) -> Option<Self> {
        let numbers = bytes.strip_prefix(heading(names, width).as_bytes())?;
        if width == 0 || numbers.len() != names.len() * width * size_of::<f32>() {
            return None;
        }
        let number = |four: &[u8]| Some(f32::from_le_bytes(four.try_into().ok()?)).filter(|number| number.is_finite());
        let rows = numbers.chunks_exact(width * size_of::<f32>());
        let vectors = rows.map(|row| row.chunks_exact(size_of::<f32>()).map(number).collect::<Option<Vec<f32>>>());
        Some(Self { names: names.to_vec(), vectors: vectors.collect::<Option<_>>()? })
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// What a row is made of: at most `most` names, the weightiest first.
    ///
    /// Orthogonal matching pursuit without negative weights: the name that explains most of what is left joins, then all weights
    /// are fitted anew. It finds the names behind a row as long as a few of them make up most of it and are not near-synonyms, of
    /// which it may name the other; a row that is a little of everything gives a few names that together come near.
    pub fn take_apart(&self, row: &[f32], most: usize) -> Vec<Part<'_>> {
        let length = dot(row, row).sqrt();
        let mut rest = row.to_vec();
        let mut found: Vec<(usize, f32)> = Vec::new();
        while found.len() < most {
            let explained = self.vectors.iter().map(|vector| dot(vector, &rest)).enumerate();
            let Some((place, explains)) = explained.max_by(|a, b| a.1.total_cmp(&b.1)) else { break };
            // A name that is there already explains nothing more: its weight is the best it can be.
            if explains.is_nan() || explains <= LEAST * length || found.iter().any(|(other, _)| *other == place) {
                break;
            }
            found.push((place, 0.0));
            for _ in 0..ROUNDS {
                for (place, weight) in &mut found {
                    let Some(vector) = self.vectors.get(*place) else { continue };
                    let better = (*weight + dot(vector, &rest)).max(0.0);
                    let step = better - *weight;
                    rest.iter_mut().zip(vector).for_each(|(rest, value)| *rest -= step * value);
                    *weight = better;
                }
            }
        }
        let part = |(place, weight): (usize, f32)| {
            Some(Part { name: self.names.get(place)?, vector: self.vectors.get(place)?, weight })
        };
        let mut parts: Vec<Part> = found.into_iter().filter(|(_, weight)| *weight > 0.0).filter_map(part).collect();
        parts.sort_by(|a, b| b.weight.total_cmp(&a.weight));
        parts
    }
}

/// What the vectors of names are written under.
fn heading(names: &[&str], width: usize) -> String {
    let sum = hex(&Sha256::digest(names.join("\n")));
    format!("cuemark names 1, {} of {width}, {sum}\n", names.len())
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three names at angles, none at right angles to all others.
    fn names() -> Names {
        Names::new([
            ("dog", vec![2.0, 0.0, 0.0]),
            ("puppy", vec![0.6, 0.0, 0.8]),
            ("car", vec![0.1, 1.0, 0.2]),
            ("nothing", vec![0.0, 0.0, 0.0]),
        ])
    }

    fn mixed(parts: &[(usize, f32)]) -> Vec<f32> {
        let names = names();
        let mut row = vec![0.0; 3];
        for (place, weight) in parts {
            row.iter_mut().zip(&names.vectors[*place]).for_each(|(row, value)| *row += weight * value);
        }
        row
    }

    #[test]
    fn a_mixture_is_taken_apart_into_what_it_was_made_of() {
        let (names, row) = (names(), mixed(&[(0, 0.6), (2, 0.3)]));
        assert_eq!(names.len(), 3, "a name without a direction is left out");
        let parts = names.take_apart(&row, 3);
        assert_eq!((parts[0].name, parts[1].name), ("dog", "car"), "{parts:?}");
        assert!((parts[0].weight - 0.6).abs() < 0.02 && (parts[1].weight - 0.3).abs() < 0.02, "{parts:?}");
    }

    #[test]
    fn names_are_read_as_they_were_written_and_those_of_others_are_not() {
        let names = names();
        let bytes = names.to_bytes();
        let read = Names::from_bytes(&names.names, 3, &bytes).unwrap();
        assert_eq!((read.names, read.vectors), (names.names.clone(), names.vectors.clone()));
        assert!(Names::from_bytes(&["dog", "puppy", "bus"], 3, &bytes).is_none(), "other names");
        assert!(Names::from_bytes(&names.names, 4, &bytes).is_none(), "another width");
        assert!(Names::from_bytes(&names.names, 3, &bytes[..bytes.len() - 1]).is_none(), "cut short");
        let mut wild = bytes;
        let last = wild.len() - 4;
        wild[last..].copy_from_slice(&f32::NAN.to_le_bytes());
        assert!(Names::from_bytes(&names.names, 3, &wild).is_none(), "no number");
    }

    #[test]
    fn what_points_away_from_every_name_has_no_parts() {
        assert!(names().take_apart(&[-1.0, -1.0, -1.0], 3).is_empty());
        assert!(names().take_apart(&[0.0; 3], 3).is_empty());
        assert!(names().take_apart(&[f32::NAN; 3], 3).is_empty());
        assert!(names().take_apart(&mixed(&[(0, 1.0)]), 0).is_empty());
        assert!(Names::default().take_apart(&[1.0], 3).is_empty());
    }
}
