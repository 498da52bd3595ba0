//! Unknown fields of single rows (one prediction, one moment), kept with the record that lists them.
//!
//! Rows have no room for foreign fields, so the record's [`Extra`] keeps them in a list under the rows' own name, one
//! entry per row, `null` where a row had none. A step that drops or re-orders rows makes the list meaningless; one that
//! changes their number makes the writers ignore it.

use cuemark_core::Extra;
use serde_json::{Map, Value};

/// The unknown fields of the rows read so far.
#[derive(Default)]
pub(crate) struct RowExtras(Vec<Value>);

impl RowExtras {
    /// Keeps `fields` for the row at `index`; rows come in order.
    pub(crate) fn set(&mut self, index: usize, fields: Map<String, Value>) {
        if !fields.is_empty() {
            self.0.resize(index, Value::Null);
            self.0.push(Value::Object(fields));
        }
    }

    /// Hands the fields of `count` rows over to the record, under the rows' name.
    pub(crate) fn move_into(mut self, record: &mut Map<String, Value>, name: &str, count: usize) {
        if !self.0.is_empty() {
            self.0.resize(count, Value::Null);
            record.insert(name.to_owned(), Value::Array(self.0));
        }
    }
}

/// The unknown fields of each of `count` rows, in order, as [`RowExtras`] left them.
pub(crate) fn of_rows<'e>(extra: &'e Extra, name: &str, count: usize) -> impl Iterator<Item = &'e Map<String, Value>> {
    static NONE: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);
    let kept = extra.get(name).and_then(Value::as_array).filter(|rows| rows.len() == count);
    (0..count).map(move |row| kept.and_then(|rows| rows.get(row)?.as_object()).unwrap_or(&NONE))
}
