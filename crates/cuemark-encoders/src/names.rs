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
    /// What rows are made of: each name with what it means.
    vectors: Vec<Vec<f32>>,
    /// Each name by itself: what a word of a question is compared with.
    plain: Vec<Vec<f32>>,
    /// Of the texts that they were encoded from.
    sum: String,
}

/// A name as it is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Described {
    /// What it is called.
    pub(crate) name: &'static str,
    /// The same with what it means.
    pub(crate) text: &'static str,
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
    /// Names with their vectors as they are described and by themselves, in one order; vectors are brought to length 1, and names
    /// without a direction are left out.
    pub(crate) fn new(named: impl IntoIterator<Item = (Described, [Vec<f32>; 2])>) -> Self {
        let (mut all, mut texts) = (Self::default(), Vec::new());
        for (described, [vector, plain]) in named {
            texts.push(described);
            if let (Some(vector), Some(plain)) = (unit(vector), unit(plain)) {
                all.names.push(described.name);
                all.vectors.push(vector);
                all.plain.push(plain);
            }
        }
        all.sum = sum_of(&texts);
        all
    }

    /// Every vector, in the order of the networks' outputs.
    pub fn vectors(&self) -> impl Iterator<Item = &[f32]> {
        self.vectors.iter().map(Vec::as_slice)
    }

    /// The name that is nearest to a word's vector of length 1, and the cosine between them; `None` without names.
    pub fn nearest(&self, vector: &[f32]) -> Option<(&'static str, f32)> {
        let cosines = self.plain.iter().map(|name| dot(name, vector));
        self.names.iter().copied().zip(cosines).max_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// The vectors as bytes that `from_bytes` reads: which names they are of and how wide, then their numbers.
    pub fn to_bytes(&self) -> Vec<u8> {
        let width = self.vectors.first().map_or(0, Vec::len);
        let mut bytes = heading(&self.sum, self.names.len(), width).into_bytes();
        let all = self.vectors.iter().chain(&self.plain).flatten();
        bytes.extend(all.flat_map(|number| number.to_le_bytes()));
        bytes
    }

    /// What [`Names::to_bytes`] wrote of these very names; `None` of others, and of what is cut short.
    pub(crate) fn from_bytes(named: &[Described], width: usize, bytes: &[u8]) -> Option<Self> {
        let sum = sum_of(named);
        let numbers = bytes.strip_prefix(heading(&sum, named.len(), width).as_bytes())?;
        if width == 0 || numbers.len() != 2 * named.len() * width * size_of::<f32>() {
            return None;
        }
        let number = |four: &[u8]| Some(f32::from_le_bytes(four.try_into().ok()?)).filter(|number| number.is_finite());
        let rows = numbers.chunks_exact(width * size_of::<f32>());
        let rows = rows.map(|row| row.chunks_exact(size_of::<f32>()).map(number).collect::<Option<Vec<f32>>>());
        let mut vectors = rows.collect::<Option<Vec<Vec<f32>>>>()?;
        let plain = vectors.split_off(named.len());
        Some(Self { names: named.iter().map(|one| one.name).collect(), vectors, plain, sum })
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
fn heading(sum: &str, count: usize, width: usize) -> String {
    format!("cuemark names 2, {count} of {width}, {sum}\n")
}

fn sum_of(named: &[Described]) -> String {
    let mut hash = Sha256::new();
    for one in named {
        hash.update(format!("{}\n{}\n", one.name, one.text));
    }
    hex(&hash.finalize())
}

fn unit(vector: Vec<f32>) -> Option<Vec<f32>> {
    let length = dot(&vector, &vector).sqrt();
    (length.is_finite() && length > 0.0).then(|| vector.into_iter().map(|value| value / length).collect())
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three names at angles, none at right angles to all others.
    fn names() -> Names {
        let named = |name, vector: [f32; 3]| (Described { name, text: name }, [vector.to_vec(), vector.to_vec()]);
        Names::new([
            named("dog", [2.0, 0.0, 0.0]),
            named("puppy", [0.6, 0.0, 0.8]),
            named("car", [0.1, 1.0, 0.2]),
            named("nothing", [0.0, 0.0, 0.0]),
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
        let named = |name, text| Described { name, text };
        let all = [named("dog", "dog: barks"), named("car", "car: drives")];
        let vectors = [[vec![1.0, 0.0], vec![0.6, 0.8]], [vec![0.0, 1.0], vec![0.8, -0.6]]];
        let names = Names::new(all.into_iter().zip(vectors));
        assert_eq!(names.nearest(&[0.6, 0.8]), Some(("dog", 1.0)), "a word is compared with the name alone");
        let bytes = names.to_bytes();
        let read = Names::from_bytes(&all, 2, &bytes).unwrap();
        assert_eq!((&read.names, &read.vectors, &read.plain), (&names.names, &names.vectors, &names.plain));
        assert!(Names::from_bytes(&[all[0], named("bus", "car: drives")], 2, &bytes).is_none(), "another name");
        assert!(Names::from_bytes(&[all[0], named("car", "car: stands")], 2, &bytes).is_none(), "another meaning");
        assert!(Names::from_bytes(&all, 3, &bytes).is_none(), "another width");
        assert!(Names::from_bytes(&all, 2, &bytes[..bytes.len() - 1]).is_none(), "cut short");
        let mut wild = bytes;
        let last = wild.len() - 4;
        wild[last..].copy_from_slice(&f32::NAN.to_le_bytes());
        assert!(Names::from_bytes(&all, 2, &wild).is_none(), "no number");
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
