//! Who answered what: the facts without which a score says nothing.

use std::fmt;

use cuemark_features::FeatureVariant;
use cuemark_text::variants::QueryText;
use cuemark_train::Among;
use serde::{Deserialize, Serialize};

/// What gave the answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answerer {
    /// A trained model.
    Model,
    /// A prediction file that somebody brought. Default.
    #[default]
    File,
    /// A baseline that never looks at a video; trust cards compare with these.
    Baseline,
    /// The world's own event log, which knows. Reports, which compare nothing with it, take it for a file.
    Oracle,
}

macro_rules! names {
    ($type:ident: $($case:ident = $name:literal),+ $(,)?) => {
        impl $type {
            /// Its name in files: the one that JSON has.
            pub fn name(self) -> &'static str {
                match self { $(Self::$case => $name),+ }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

names!(Answerer: Model = "model", File = "file", Baseline = "baseline", Oracle = "oracle");

/// Who answered what. Text fields are empty where nothing is known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct About {
    /// Our name of the model, a baseline's name, or a prediction file's stem.
    pub model: String,
    /// What gave the answers.
    pub kind: Answerer,
    /// Ablation or configuration; empty for the plain model.
    pub variant: String,
    /// Our name of the dataset.
    pub dataset: String,
    /// How the splits were made: `standard`, `cd`, `centre`, `world` …
    pub protocol: String,
    /// The split that was answered.
    pub split: String,
    /// What its queries said.
    pub text: QueryText,
    /// What was shown of its videos.
    pub footage: FeatureVariant,
    /// Where its queries were searched.
    pub among: Among,
    /// The feature recipe.
    pub features: String,
    /// The seed of the training, or of what a baseline drew.
    pub seed: Option<u64>,
    /// Trainable parameters.
    pub parameters: Option<u64>,
    /// Milliseconds to answer one query.
    pub ms_per_query: Option<f64>,
    /// What computed the answers.
    pub device: Option<String>,
    /// The version of cuemark that evaluated.
    pub cuemark: String,
}

impl Default for About {
    fn default() -> Self {
        Self {
            model: String::new(),
            kind: Answerer::default(),
            variant: String::new(),
            dataset: String::new(),
            protocol: String::new(),
            split: String::new(),
            text: QueryText::default(),
            footage: FeatureVariant::default(),
            among: Among::default(),
            features: String::new(),
            seed: None,
            parameters: None,
            ms_per_query: None,
            device: None,
            cuemark: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }
}

impl About {
    /// Whether queries and videos were what their dataset says.
    pub fn is_plain(&self) -> bool {
        self.text == QueryText::Original && self.footage == FeatureVariant::Seen
    }

    /// The file that its evaluation is stored in: `test-iid.json`, `test-iid.mask-verb.json`, `test-iid.zeroed.pool.json`.
    ///
    /// Characters of a split's name that could lead out of the folder become `_`.
    pub fn file_name(&self) -> String {
        let safe = |c: char| if c.is_alphanumeric() || matches!(c, '-' | '_') { c } else { '_' };
        let mut name: String = self.split.chars().map(safe).collect();
        for (part, plain) in [
            (self.text.name(), QueryText::Original.name()),
            (self.footage.name(), FeatureVariant::Seen.name()),
            (self.among.name(), Among::Own.name()),
        ] {
            if part != plain {
                name = format!("{name}.{part}");
            }
        }
        format!("{name}.json")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_named_after_what_was_asked_and_stay_in_their_folder() {
        let about = About { split: "test-iid".into(), ..About::default() };
        assert_eq!(about.file_name(), "test-iid.json");
        let masked = About { text: QueryText::MaskVerb, among: Among::Pool, ..about.clone() };
        assert_eq!(masked.file_name(), "test-iid.mask-verb.pool.json");
        let hostile = About { split: "../../etc/passwd".into(), ..about };
        assert_eq!(hostile.file_name(), "______etc_passwd.json");
    }

    #[test]
    fn names_are_those_that_json_has() {
        assert_eq!(serde_json::to_value(Answerer::Baseline).unwrap(), Answerer::Baseline.name());
        assert_eq!(serde_json::to_value(FeatureVariant::Zeroed).unwrap(), FeatureVariant::Zeroed.name());
        assert_eq!(serde_json::to_value(Among::Own).unwrap(), Among::Own.name());
    }
}
