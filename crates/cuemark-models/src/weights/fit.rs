//! Whether a checkpoint and a network go together, name by name.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{AGAIN, Shapes};
use crate::{Given, ModelCard, Result};

/// How a checkpoint and a network go together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fit {
    /// What both have in one shape.
    pub taken: Vec<Parameter>,
    /// What the network wants and the file lacks.
    pub missing: Vec<Parameter>,
    /// The same where somebody said that it may be: these are drawn anew.
    pub allowed: Vec<Parameter>,
    /// What the file holds and the network has no place for.
    pub extra: Vec<Parameter>,
    /// What both have in different shapes.
    pub misshaped: Vec<Misshaped>,
}

/// A parameter and its shape.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Parameter {
    /// Its name in the authors' code.
    pub name: String,
    /// Its extents.
    pub shape: Vec<usize>,
}

/// A parameter that has one shape here and another there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Misshaped {
    /// Its name in the authors' code.
    pub name: String,
    /// Its extents in the file.
    pub found: Vec<usize>,
    /// Those that the network wants.
    pub wanted: Vec<usize>,
}

impl Fit {
    /// Of a network's parameters and those of a file; what begins with one of `may_miss` may be absent.
    pub fn of(wanted: &Shapes, found: &Shapes, may_miss: &[String]) -> Self {
        let named = |(name, shape): (&String, &Vec<usize>)| Parameter { name: name.clone(), shape: shape.clone() };
        let absent = wanted.iter().filter(|(name, _)| !found.contains_key(*name)).map(named);
        let is_allowed = |parameter: &Parameter| may_miss.iter().any(|prefix| parameter.name.starts_with(prefix));
        let (allowed, missing) = absent.partition(is_allowed);
        // Some published files keep heads a second time inside their decoder.
        let twice = |name: &String| name.strip_prefix(AGAIN).is_some_and(|name| wanted.contains_key(name));
        let extra = found.iter().filter(|(name, _)| !wanted.contains_key(*name) && !twice(name)).map(named).collect();
        let (mut taken, mut misshaped) = (Vec::new(), Vec::new());
        for (name, wanted) in wanted {
            match found.get(name) {
                Some(found) if found == wanted => taken.push(Parameter { name: name.clone(), shape: found.clone() }),
                Some(found) => {
                    misshaped.push(Misshaped { name: name.clone(), found: found.clone(), wanted: wanted.clone() });
                }
                None => {}
            }
        }
        Self { taken, missing, allowed, extra, misshaped }
    }

    /// Whether every name is accounted for.
    pub fn is_whole(&self) -> bool {
        self.faults() == 0
    }

    /// Names that are missing, left over or misshaped.
    pub fn faults(&self) -> usize {
        self.missing.len() + self.extra.len() + self.misshaped.len()
    }
}

/// A network's sizes.
#[derive(Debug, Clone)]
pub struct Sizes {
    /// The `[model]` table of a run file.
    pub settings: toml::Table,
    /// Widths of what it is given.
    pub given: Given,
}

impl Sizes {
    /// The parameters of the network of these sizes; nothing is drawn.
    ///
    /// # Errors
    /// When the settings do not build.
    pub fn shapes(&self, card: &ModelCard) -> Result<Shapes> {
        let params = cuemark_tensor::Params::counted();
        card.build(&self.settings, &self.given, params.builder())?;
        Ok(params.shapes())
    }

    /// The sizes that fit a file best: from each published configuration, numbers are changed one after another as long as
    /// fewer names are missing, left over or misshaped. What no shape tells (heads, rates, margins) stays as published.
    ///
    /// # Errors
    /// When the method has no published configuration to begin with.
    pub fn of_file(card: &'static ModelCard, found: &Shapes) -> Result<Self> {
        let mut best: Option<(usize, Self)> = None;
        for size in card.full_sizes {
            let settings = size.settings.parse::<toml::Table>().unwrap_or_default();
            let start = Self {
                settings: card.settings(&settings)?,
                given: Given::widths(size.visual, size.words, crate::card::BERT_VOCABULARY),
            };
            let knobs = start.knobs();
            let (faults, sizes) = start.nearer(card, found, &knobs)?;
            if best.as_ref().is_none_or(|(fewest, _)| faults < *fewest) {
                best = Some((faults, sizes));
            }
        }
        let problem = || "no published configuration is known; give a run file".to_owned();
        best.map(|(_, sizes)| sizes).ok_or_else(|| card.fault(problem()))
    }

    /// The network of these settings, with the widths that the file's shapes tell.
    ///
    /// # Errors
    /// When the settings do not build.
    pub fn of_file_as(card: &'static ModelCard, settings: toml::Table, found: &Shapes) -> Result<Self> {
        let (visual, words) = card.full_sizes.first().map_or((1, 1), |size| (size.visual, size.words));
        let start = Self { settings, given: Given::widths(visual, words, crate::card::BERT_VOCABULARY) };
        Ok(start.nearer(card, found, &WIDTHS)?.1)
    }

    /// The same with every number as the file has it, where its shapes tell, and how many names still do not fit.
    fn nearer(mut self, card: &'static ModelCard, found: &Shapes, knobs: &[Knob]) -> Result<(usize, Self)> {
        let faults = |sizes: &Self| sizes.shapes(card).map(|shapes| Fit::of(&shapes, found, &[]).faults());
        let mut fewest = faults(&self)?;
        // Twice, since what one number tells may wait for another.
        for knob in knobs.iter().chain(knobs) {
            if fewest == 0 {
                break;
            }
            for value in self.candidates(card, found, knob)? {
                let changed = self.with(knob, value);
                // Numbers that cannot go together do not build.
                if let Ok(now) = faults(&changed)
                    && now < fewest
                {
                    (fewest, self) = (now, changed);
                }
            }
        }
        Ok((fewest, self))
    }

    /// Every whole number that can be changed.
    fn knobs(&self) -> Vec<Knob> {
        let mut knobs = WIDTHS.to_vec();
        whole_numbers(&self.settings, &mut Vec::new(), &mut knobs);
        knobs
    }

    /// Values of a number worth a try: the one that makes a shape right which changes with it, and small ones, which are
    /// counts of layers as a rule.
    fn candidates(&self, card: &ModelCard, found: &Shapes, knob: &Knob) -> Result<Vec<usize>> {
        let value = self.value(knob);
        let other = if value == 0 { 1 } else { 2 * value };
        let mut tried: Vec<usize> = if value <= MOST_LAYERS { (1..=MOST_LAYERS).collect() } else { Vec::new() };
        let shapes = self.shapes(card)?;
        if let Ok(changed) = self.with(knob, other).shapes(card) {
            let implied = shapes.iter().filter_map(|(name, now)| {
                let (then, wanted) = (changed.get(name)?, found.get(name)?);
                implied_value([value, other], now, then, wanted)
            });
            tried.extend(implied.take(1));
        }
        Ok(tried)
    }

    fn value(&self, knob: &Knob) -> usize {
        match knob {
            Knob::Visual => self.given.visual,
            Knob::Words => self.given.words,
            Knob::Vocabulary => self.given.vocabulary,
            Knob::Audio => self.given.audio,
            Knob::Setting(path) => get(&self.settings, path),
        }
    }

    fn with(&self, knob: &Knob, value: usize) -> Self {
        let mut changed = self.clone();
        match knob {
            Knob::Visual => changed.given.visual = value,
            Knob::Words => changed.given.words = value,
            Knob::Vocabulary => changed.given.vocabulary = value,
            Knob::Audio => changed.given.audio = value,
            Knob::Setting(path) => set(&mut changed.settings, path, value),
        }
        changed
    }
}

/// What the data decides.
const WIDTHS: [Knob; 4] = [Knob::Visual, Knob::Words, Knob::Vocabulary, Knob::Audio];

/// Counts of layers, heads and the like go up to here.
const MOST_LAYERS: usize = 12;

/// A whole number among a network's sizes.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Knob {
    Visual,
    Words,
    Vocabulary,
    Audio,
    /// In the settings, by the keys that lead to it.
    Setting(Vec<String>),
}

/// Puts a number where the keys lead.
fn set(table: &mut toml::Table, path: &[String], value: usize) {
    match path {
        [] => {}
        [key] => drop(table.insert(key.clone(), toml::Value::Integer(value as i64))),
        [key, rest @ ..] => {
            if let Some(toml::Value::Table(inner)) = table.get_mut(key) {
                set(inner, rest, value);
            }
        }
    }
}

/// The number to which the keys lead; 0 where there is none.
fn get(table: &toml::Table, path: &[String]) -> usize {
    let (Some(key), rest) = (path.first(), path.get(1..).unwrap_or_default()) else { return 0 };
    match table.get(key) {
        Some(toml::Value::Table(inner)) => get(inner, rest),
        Some(toml::Value::Integer(value)) => usize::try_from(*value).unwrap_or(0),
        _ => 0,
    }
}

fn whole_numbers(table: &toml::Table, path: &mut Vec<String>, knobs: &mut Vec<Knob>) {
    for (key, value) in table {
        path.push(key.clone());
        match value {
            toml::Value::Integer(_) => knobs.push(Knob::Setting(path.clone())),
            toml::Value::Table(inner) => whole_numbers(inner, path, knobs),
            _ => {}
        }
        path.pop();
    }
}

/// The value of a number under which one extent, which is `now` for the first value and `then` for the other, becomes `wanted`.
fn implied_value([value, other]: [usize; 2], now: &[usize], then: &[usize], wanted: &[usize]) -> Option<usize> {
    if now.len() != then.len() || now.len() != wanted.len() {
        return None;
    }
    let axis = (0..now.len()).find(|axis| now[*axis] != then[*axis])?;
    let signed = |number: usize| i64::try_from(number).ok();
    let (from, slope) = (signed(now[axis])?, signed(then[axis])? - signed(now[axis])?);
    let steps = (signed(wanted[axis])? - from) * (signed(other)? - signed(value)?);
    (steps % slope == 0).then(|| signed(value).map(|value| value + steps / slope)).flatten()?.try_into().ok()
}

/// Names and shapes of a file's tensors.
pub(super) fn shapes_of<'a>(tensors: impl Iterator<Item = (&'a String, &'a cuemark_tensor::Tensor)>) -> Shapes {
    tensors.map(|(name, tensor)| (name.clone(), tensor.dims().to_vec())).collect::<BTreeMap<_, _>>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::{MODELS, find};

    fn shapes(names: &[(&str, &[usize])]) -> Shapes {
        names.iter().map(|(name, shape)| ((*name).to_owned(), shape.to_vec())).collect()
    }

    #[test]
    fn every_name_is_taken_missing_left_over_or_misshaped() {
        let wanted = shapes(&[("a", &[2]), ("b", &[3]), ("c", &[4]), ("head.d", &[5])]);
        let found = shapes(&[("a", &[2]), ("b", &[9]), ("e", &[1]), ("transformer.decoder.a", &[2])]);
        let fit = Fit::of(&wanted, &found, &["head.".to_owned()]);
        let names = |parameters: &[Parameter]| parameters.iter().map(|p| p.name.clone()).collect::<Vec<_>>();
        assert_eq!((names(&fit.taken), names(&fit.missing)), (vec!["a".to_owned()], vec!["c".to_owned()]));
        assert_eq!((names(&fit.allowed), names(&fit.extra)), (vec!["head.d".to_owned()], vec!["e".to_owned()]));
        assert_eq!(fit.misshaped, [Misshaped { name: "b".into(), found: vec![9], wanted: vec![3] }]);
        assert!(!fit.is_whole() && fit.faults() == 3);
    }

    #[test]
    fn sizes_are_found_in_the_shapes_of_a_file() {
        // Other widths and another number of layers than published.
        let card = find("qd-detr").unwrap();
        let settings = "encoder_layers = 3\nproposals = 7\n[network]\nhidden = 64".parse().unwrap();
        let told = Sizes { settings: card.settings(&settings).unwrap(), given: Given::widths(100, 40, 0) };
        let found = Sizes::of_file(card, &told.shapes(card).unwrap()).unwrap();
        let fit = Fit::of(&found.shapes(card).unwrap(), &told.shapes(card).unwrap(), &[]);
        assert!(fit.is_whole(), "{:?} {:?} {:?}", fit.missing, fit.extra, fit.misshaped);
        assert_eq!((found.given.visual, found.given.words), (100, 40));
    }

    /// The published configurations of every method fit themselves, whatever their features' width.
    #[test]
    fn every_method_finds_its_own_sizes() {
        for card in MODELS.iter().filter(|card| !card.full_sizes.is_empty()) {
            let size = &card.full_sizes[0];
            let settings = card.settings(&size.settings.parse().unwrap()).unwrap();
            let given = Given::widths(size.visual + 6, size.words, crate::card::BERT_VOCABULARY);
            let Ok(wanted) = (Sizes { settings, given }).shapes(card) else { continue };
            let found = Sizes::of_file(card, &wanted).unwrap();
            assert!(Fit::of(&found.shapes(card).unwrap(), &wanted, &[]).is_whole(), "{}", card.name);
        }
    }
}
