//! Arguments of tools: requests of crate `cuemark`, and the schemas that say so.

use rmcp::model::JsonObject;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::McpError;
use crate::error::Result;

/// Reads a request, or a part of one, from arguments; a field that it does not have is an error that names it.
pub(crate) fn read<T: DeserializeOwned>(arguments: JsonObject) -> Result<T> {
    serde_path_to_error::deserialize(Value::Object(arguments)).map_err(|error| {
        let path = error.path().to_string();
        McpError::argument(if path == "." { "arguments" } else { &path }, error.inner().to_string())
    })
}

/// Takes the arguments called `names` out of others.
pub(crate) fn take(arguments: &mut JsonObject, names: &[&str]) -> JsonObject {
    names.iter().filter_map(|name| Some(((*name).to_owned(), arguments.shift_remove(*name)?))).collect()
}

/// Refuses arguments that a request has and a tool does not.
pub(crate) fn refuse(arguments: &JsonObject, names: &[&str]) -> Result<()> {
    match names.iter().find(|name| arguments.contains_key(**name)) {
        Some(name) => Err(McpError::argument(name, "assistants cannot set this")),
        None => Ok(()),
    }
}

/// The schema of a tool's arguments.
#[derive(Debug, Default)]
pub(crate) struct Schema {
    properties: JsonObject,
    required: Vec<String>,
}

impl Schema {
    /// The fields of a request, with its doc comments.
    pub(crate) fn of<T: JsonSchema>() -> Self {
        let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
        let whole = settings.into_generator().into_root_schema_for::<T>().to_value();
        let properties = whole.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
        let required = whole.get("required").and_then(Value::as_array).into_iter().flatten();
        Self { properties, required: required.filter_map(|name| Some(name.as_str()?.to_owned())).collect() }
    }

    /// The fields of both.
    pub(crate) fn and(mut self, other: Self) -> Self {
        self.properties.extend(other.properties);
        self.required.extend(other.required);
        self
    }

    /// Less some fields.
    pub(crate) fn without(mut self, names: &[&str]) -> Self {
        self.properties.retain(|name, _| !names.contains(&name.as_str()));
        self.required.retain(|name| !names.contains(&name.as_str()));
        self
    }

    /// `name` may be left out, and means what `description` says.
    pub(crate) fn optional(mut self, name: &str, description: &str) -> Self {
        self.required.retain(|required| required != name);
        self.set(name, "description", description.into())
    }

    /// A word of the schema of one field.
    pub(crate) fn set(mut self, name: &str, word: &str, value: Value) -> Self {
        if let Some(Value::Object(property)) = self.properties.get_mut(name) {
            property.insert(word.to_owned(), value);
        }
        self
    }

    pub(crate) fn into_object(self) -> JsonObject {
        let Self { properties, required } = self;
        let whole = json!({
            "type": "object", "properties": properties, "required": required, "additionalProperties": false,
        });
        match whole {
            Value::Object(whole) => whole,
            _ => JsonObject::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use cuemark::{Asking, CutClip, IndexPlace};

    use super::*;

    fn object(value: &Value) -> JsonObject {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn a_schema_has_the_fields_of_the_requests_with_their_help_and_nothing_to_look_up() {
        let schema = Schema::of::<IndexPlace>().and(Schema::of::<Asking>()).without(&["device"]).into_object();
        assert_eq!(schema["required"], json!(["index"]));
        assert!(schema["properties"].get("device").is_none());
        let sentence = &schema["properties"]["sentence"];
        assert!(sentence["description"].as_str().unwrap().contains("must be said or written"), "{sentence}");
        assert_eq!(schema["properties"]["limit"]["default"], json!(10));
        assert!(!Value::Object(schema).to_string().contains("$ref"));
        let cut = Schema::of::<CutClip>().optional("out", "where to").into_object();
        assert_eq!(cut["required"], json!(["film", "start", "end"]));
    }

    #[test]
    fn what_is_wrong_with_an_argument_names_it() {
        let said = |value: Value| read::<Asking>(object(&value)).unwrap_err().to_string();
        assert!(said(json!({ "limit": "many" })).starts_with("`limit`: invalid type"));
        assert!(said(json!({ "tags": ["a", 3] })).starts_with("`tags[1]`: "));
        assert!(said(json!({ "sentense": "a dog" })).contains("sentense"));
    }
}
