//! Query ids as files state them.

use std::fmt;

use cuemark_core::QueryId;
use serde::de::{Deserialize, Deserializer, Visitor};

/// A query id that a file states, as a whole number or as text; `7` and `"7"` are the same.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct PublishedId(String);

impl PublishedId {
    /// As our type.
    pub(crate) fn to_query_id(&self) -> QueryId {
        QueryId::from(self.0.as_str())
    }
}

impl<'de> Deserialize<'de> for PublishedId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NumberOrText;

        impl Visitor<'_> for NumberOrText {
            type Value = PublishedId;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an id (a whole number or text)")
            }

            fn visit_u64<E>(self, number: u64) -> Result<PublishedId, E> {
                Ok(PublishedId(number.to_string()))
            }

            fn visit_i64<E>(self, number: i64) -> Result<PublishedId, E> {
                Ok(PublishedId(number.to_string()))
            }

            fn visit_str<E>(self, text: &str) -> Result<PublishedId, E> {
                Ok(PublishedId(text.to_owned()))
            }
        }

        deserializer.deserialize_any(NumberOrText)
    }
}
