//! The names of the classes that networks were trained to tell apart, in the order of their outputs.

/// Kinetics-400: 400 actions.
pub fn kinetics_400() -> Vec<&'static str> {
    include_str!("classes/kinetics400.txt").lines().collect()
}

/// ImageNet: 1000 objects.
pub fn imagenet() -> Vec<&'static str> {
    include_str!("classes/imagenet.txt").lines().collect()
}

/// ImageNet's classes with what each is: `goldfish, cyprinid: small golden or orange-red freshwater fishes …`. A breed's name says little to a
/// sentence encoder, and its kind and its gloss in WordNet say much (`WORDNET.txt` has the notice, `fixtures/encoders/describe.py`
/// made the list).
pub fn imagenet_described() -> Vec<&'static str> {
    include_str!("classes/imagenet_described.txt").lines().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_as_many_names_as_outputs_and_none_is_empty() {
        for (names, count) in [(kinetics_400(), 400), (imagenet(), 1000), (imagenet_described(), 1000)] {
            assert_eq!(names.len(), count);
            assert!(names.iter().all(|name| !name.trim().is_empty()));
        }
        assert_eq!(kinetics_400()[6], "arm wrestling");
        assert_eq!(imagenet()[0], "tench");
        for (name, described) in imagenet().into_iter().zip(imagenet_described()) {
            assert!(described.starts_with(name) && described.contains(": "), "{name}: {described}");
        }
    }

    #[test]
    fn the_published_list_of_actions_has_the_same_order() {
        let Some(path) = cuemark_testkit::shared("data/lists/kinetics400_label_map.txt") else { return };
        let published = std::fs::read_to_string(path).unwrap();
        assert_eq!(published.lines().map(str::trim).collect::<Vec<_>>(), kinetics_400());
    }
}
