//! The default of every setting of every method, written down: one that changes silently changes what a run file means.

use std::fmt::Write as _;

use cuemark_models::{FullSize, ModelCard, registry::MODELS};

#[test]
fn defaults_are_those_that_were_written_down() {
    let mut all = String::new();
    for card in MODELS {
        let settings = toml::Table::from_iter([(card.name.to_owned(), least(card, &card.full_sizes[0]).into())]);
        write!(all, "{}\n\n", toml::to_string(&settings).unwrap().trim_end()).unwrap();
    }
    insta::assert_snapshot!(all);
}

/// What the method makes of a table that says only what it must; that is taken from a published configuration.
fn least(card: &ModelCard, size: &FullSize) -> toml::Table {
    let published: toml::Table = size.settings.parse().unwrap();
    let mut said = toml::Table::new();
    loop {
        let problem = match card.settings(&said) {
            Ok(settings) => return settings,
            Err(error) => error.to_string(),
        };
        let missing = problem.split_once("missing field `").and_then(|(_, rest)| rest.split_once('`'));
        let (key, _) = missing.unwrap_or_else(|| panic!("{}: {problem}", card.name));
        assert!(said.insert(key.to_owned(), published[key].clone()).is_none(), "{}: {problem}", card.name);
    }
}
