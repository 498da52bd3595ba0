//! The names that rows of a space are made of, and taking a row apart into them again.

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
    fn what_points_away_from_every_name_has_no_parts() {
        assert!(names().take_apart(&[-1.0, -1.0, -1.0], 3).is_empty());
        assert!(names().take_apart(&[0.0; 3], 3).is_empty());
        assert!(names().take_apart(&[f32::NAN; 3], 3).is_empty());
        assert!(names().take_apart(&mixed(&[(0, 1.0)]), 0).is_empty());
        assert!(Names::default().take_apart(&[1.0], 3).is_empty());
    }
}
