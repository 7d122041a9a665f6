//! The tables of declared types, and what they add to the schemas that schemars derives.

use schemars::Schema;
use schemars::transform::Transform;
use serde_json::{Map, Value, json};

/// The additions of a struct's attributes to its schema.
#[derive(Debug, Clone, Copy)]
pub struct SchemaTable {
    /// The fields that add something.
    pub properties: &'static [Property],
    /// CEL rules of the whole struct.
    pub rules: &'static [Rule],
    /// Whether the defaults of its fields are in the schema; those of a status are not.
    pub has_defaults: bool,
}

/// The additions of a field's attributes to its schema.
#[derive(Debug, Clone, Copy)]
pub struct Property {
    /// Its name on the wire.
    pub name: &'static str,
    /// To its own schema.
    pub own: Part,
    /// To the schema of its items.
    pub items: Part,
    /// To the schema of its values.
    pub values: Part,
}

/// An addition to one schema.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    /// Keywords of JSON schema, and Kubernetes' own.
    pub keywords: &'static [(&'static str, Keyword)],
    /// CEL rules.
    pub rules: &'static [Rule],
}

/// The value of a keyword.
#[derive(Debug, Clone, Copy)]
pub enum Keyword {
    /// A flag.
    Bool(bool),
    /// A limit.
    Integer(i64),
    /// A name or pattern.
    Text(&'static str),
    /// Several names.
    Texts(&'static [&'static str]),
}

/// A CEL rule of `x-kubernetes-validations`.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// The expression, which is true for a valid value.
    pub rule: &'static str,
    /// The message for an invalid value.
    pub message: Option<&'static str>,
    /// The reason in the response.
    pub reason: Option<&'static str>,
    /// The field that is reported.
    pub field_path: Option<&'static str>,
}

/// The values of an enum of plain variants.
#[derive(Debug, Clone, Copy)]
pub struct UnitEnum(pub &'static [&'static str]);

impl Transform for SchemaTable {
    fn transform(&mut self, schema: &mut Schema) {
        let schema = schema.ensure_object();
        add_rules(schema, self.rules);
        let Some(Value::Object(properties)) = schema.get_mut("properties") else {
            return;
        };
        if !self.has_defaults {
            for property in properties.values_mut() {
                property
                    .as_object_mut()
                    .map(|property| property.remove("default"));
            }
        }
        for property in self.properties {
            let Some(schema) = properties.get_mut(property.name) else {
                continue;
            };
            // `true`, the schema of anything.
            if schema.is_boolean() {
                *schema = json!({});
            }
            let Some(schema) = schema.as_object_mut() else {
                continue;
            };
            property.own.add_to(schema);
            property.items.add_below(schema, "items");
            property.values.add_below(schema, "additionalProperties");
        }
    }
}

impl Transform for UnitEnum {
    /// Puts the values in one list, where schemars writes a schema for each variant that has a
    /// comment.
    fn transform(&mut self, schema: &mut Schema) {
        let schema = schema.ensure_object();
        let description = schema.remove("description");
        schema.clear();
        schema.extend(description.map(|text| ("description".to_owned(), text)));
        schema.insert("type".to_owned(), json!("string"));
        schema.insert("enum".to_owned(), json!(self.0));
    }
}

impl Part {
    fn add_to(&self, schema: &mut Map<String, Value>) {
        for (name, keyword) in self.keywords {
            let value = match keyword {
                Keyword::Bool(value) => json!(value),
                Keyword::Integer(value) => json!(value),
                Keyword::Text(value) => json!(value),
                Keyword::Texts(values) => json!(values),
            };
            schema.insert((*name).to_owned(), value);
        }
        add_rules(schema, self.rules);
    }

    fn add_below(&self, schema: &mut Map<String, Value>, name: &str) {
        if let Some(Value::Object(below)) = schema.get_mut(name) {
            self.add_to(below);
        }
    }
}

fn add_rules(schema: &mut Map<String, Value>, rules: &[Rule]) {
    if rules.is_empty() {
        return;
    }
    let all = schema
        .entry("x-kubernetes-validations")
        .or_insert_with(|| json!([]));
    if let Value::Array(all) = all {
        all.extend(rules.iter().map(Rule::value));
    }
}

impl Rule {
    fn value(&self) -> Value {
        let parts = [
            ("rule", Some(self.rule)),
            ("message", self.message),
            ("reason", self.reason),
            ("fieldPath", self.field_path),
        ];
        let parts = parts
            .into_iter()
            .filter_map(|(name, text)| Some((name.to_owned(), json!(text?))));
        Value::Object(parts.collect())
    }
}
