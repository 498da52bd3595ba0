//! The perceptron's weights and the file they are kept in.
//!
//! Layout, little-endian: `CMTG`, version `u32` = 1, number of features `u32`; then per feature, in ascending order of
//! its number: the number `u32`, how many tags it speaks for `u8`, and for each of them the tag's place in `Pos::ALL`
//! `u8` and the weight `i16`.

use rustc_hash::FxHashMap;

use crate::{Pos, Result, TextError};

const MAGIC: &[u8; 4] = b"CMTG";
const VERSION: u32 = 1;

/// Weights by feature.
#[derive(Debug, Default)]
pub(super) struct Model {
    /// Where each feature's weights lie in `weights`: first and number.
    places: FxHashMap<u32, (u32, u8)>,
    weights: Vec<(u8, i16)>,
}

impl Model {
    /// Adds the feature's weights to the scores.
    pub(super) fn add(&self, feature: u32, scores: &mut [i32; Pos::ALL.len()]) {
        let Some(&(first, count)) = self.places.get(&feature) else { return };
        let first = first as usize;
        for &(tag, weight) in self.weights.get(first..first + usize::from(count)).unwrap_or_default() {
            scores[usize::from(tag)] += i32::from(weight);
        }
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let mut bytes = Bytes(bytes);
        if bytes.take::<4>()? != *MAGIC {
            return Err(TextError::Model("does not begin with `CMTG`"));
        }
        if u32::from_le_bytes(bytes.take()?) != VERSION {
            return Err(TextError::Model("is of another version"));
        }
        let features = u32::from_le_bytes(bytes.take()?) as usize;
        // Each feature takes at least five bytes, so a count that lies cannot make us reserve more than the file holds.
        let features_possible = features.min(bytes.0.len() / 5);
        let mut model = Self::default();
        model.places.reserve(features_possible);
        model.weights.reserve(features_possible * 2);
        for _ in 0..features {
            let feature = u32::from_le_bytes(bytes.take()?);
            let [count] = bytes.take()?;
            model.places.insert(feature, (model.weights.len() as u32, count));
            for _ in 0..count {
                let [tag] = bytes.take()?;
                if usize::from(tag) >= Pos::ALL.len() {
                    return Err(TextError::Model("names a tag that does not exist"));
                }
                model.weights.push((tag, i16::from_le_bytes(bytes.take()?)));
            }
        }
        if bytes.0.is_empty() { Ok(model) } else { Err(TextError::Model("goes on after its end")) }
    }
}

/// The file for these weights; `features` in ascending order.
pub(super) fn to_bytes(features: &[(u32, Vec<(u8, i16)>)]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(12 + features.len() * 12);
    bytes.extend(MAGIC);
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend((features.len() as u32).to_le_bytes());
    for (feature, weights) in features {
        bytes.extend(feature.to_le_bytes());
        bytes.push(weights.len() as u8);
        for (tag, weight) in weights {
            bytes.push(*tag);
            bytes.extend(weight.to_le_bytes());
        }
    }
    bytes
}

struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (head, tail) = self.0.split_first_chunk().ok_or(TextError::Model("ends too early"))?;
        self.0 = tail;
        Ok(*head)
    }
}
