//! Schemas of enums with data: objects of which exactly one alternative is set.

use schemars::{Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::SchemaOf;
use super::schema::Part;

/// Enum with data.
#[derive(Debug, Clone, Copy)]
pub struct Union {
    /// Name of the field that names the alternative. Without it, the only field of an object is the
    /// alternative.
    pub tag: Option<&'static str>,
    /// Description of the enum.
    pub description: Option<&'static str>,
    /// Alternatives.
    pub members: &'static [Member],
    /// Keywords and rules for the enum, with the rules that exactly one alternative is set.
    pub own: Part,
}

/// Alternative of a [`Union`].
#[derive(Debug, Clone, Copy)]
pub struct Member {
    /// Value of the tag.
    pub value: &'static str,
    /// Name of the field with the data.
    pub field: Option<&'static str>,
    /// Description of the alternative.
    pub description: Option<&'static str>,
    /// Function that returns the schema of the data.
    pub schema: Option<SchemaOf>,
}

/// Data of an alternative without data, in a union without a tag: an empty object.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Empty {}

impl Union {
    /// Returns the schema of the enum.
    pub fn schema(&self, generator: &mut SchemaGenerator) -> Schema {
        let mut properties = Map::new();
        if let Some(tag) = self.tag {
            let values: Vec<&str> = self.members.iter().map(|member| member.value).collect();
            properties.insert(tag.to_owned(), json!({"type": "string", "enum": values}));
        }
        for member in self.members {
            let Some(field) = member.field else {
                continue;
            };
            let mut schema = match member.schema {
                Some(schema) => schema(generator).to_value(),
                None => json!({"type": "object"}),
            };
            if let (Some(text), Some(schema)) = (member.description, schema.as_object_mut()) {
                schema.insert("description".to_owned(), json!(text));
            }
            properties.insert(field.to_owned(), schema);
        }
        let mut schema = Map::from_iter([("type".to_owned(), json!("object"))]);
        if let Some(text) = self.description {
            schema.insert("description".to_owned(), json!(text));
        }
        schema.insert("properties".to_owned(), Value::Object(properties));
        if let Some(tag) = self.tag {
            schema.insert("required".to_owned(), json!([tag]));
        }
        self.own.add_to(&mut schema);
        Schema::from(schema)
    }
}
