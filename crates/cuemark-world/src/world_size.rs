//! How many films a world has, by name.

use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize};

/// A world's size. Nothing but the number of films hangs on it: a larger world is not an easier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WorldSize {
    /// What `cuemark demo` trains on: minutes on two cores.
    Demo,
    /// What run files called `world` are made for; a tenth of a real dataset.
    Small,
    /// The size of the real datasets, for run files called `world-full`: some 42,000 queries to learn from.
    Full,
}

impl WorldSize {
    /// Every size, smallest first.
    pub const ALL: [Self; 3] = [Self::Demo, Self::Small, Self::Full];

    /// Its name in commands and matrices.
    pub fn name(self) -> &'static str {
        match self {
            Self::Demo => "demo",
            Self::Small => "small",
            Self::Full => "full",
        }
    }

    /// Films over all splits, three queries each.
    pub fn films(self) -> usize {
        match self {
            Self::Demo => 700,
            Self::Small => 2_000,
            Self::Full => 20_000,
        }
    }
}

impl FromStr for WorldSize {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let of_name = Self::ALL.into_iter().find(|size| size.name() == name);
        of_name.ok_or_else(|| format!("`{name}` is no size of a world: demo, small or full"))
    }
}

/// Reads a number of films, or the name of a size.
pub(crate) fn films_or_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Said {
        Films(usize),
        Name(String),
    }
    match Said::deserialize(deserializer)? {
        Said::Films(films) => Ok(films),
        Said::Name(name) => name.parse().map(WorldSize::films).map_err(serde::de::Error::custom),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WorldOptions;

    #[test]
    fn a_matrix_may_say_a_number_or_a_name() {
        let videos = |json: &str| serde_json::from_str::<WorldOptions>(json).map(|options| options.videos);
        assert_eq!(videos("{\"videos\":120}").unwrap(), 120);
        assert_eq!(videos("{\"videos\":\"full\"}").unwrap(), 20_000);
        assert_eq!(videos("{}").unwrap(), WorldSize::Small.films(), "what nobody names is small");
        let unknown = videos("{\"videos\":\"huge\"}").unwrap_err().to_string();
        assert!(unknown.contains("`huge` is no size of a world: demo, small or full"), "{unknown}");
    }
}
