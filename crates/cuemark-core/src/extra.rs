//! Fields that a file carries and cuemark does not know.

use serde_json::{Map, Value};

/// Unknown fields of one record, in file order, kept so that a round trip loses nothing.
///
/// Empty in nearly every record, so it takes one pointer until something is put into it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Extra(Option<Box<Map<String, Value>>>);

impl Extra {
    /// Keeps `fields`.
    pub fn new(fields: Map<String, Value>) -> Self {
        Self((!fields.is_empty()).then(|| Box::new(fields)))
    }

    /// One field's value.
    pub fn get(&self, field: &str) -> Option<&Value> {
        self.0.as_ref()?.get(field)
    }

    /// Sets one field.
    pub fn insert(&mut self, field: impl Into<String>, value: Value) {
        self.0.get_or_insert_default().insert(field.into(), value);
    }

    /// Every field, in file order.
    pub fn iter(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.0.iter().flat_map(|fields| fields.iter())
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.as_ref().is_none_or(|fields| fields.is_empty())
    }
}
