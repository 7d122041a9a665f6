//! Tables of declared types, and their additions to the schemas that schemars derives.

use schemars::Schema;
use schemars::transform::Transform;
use serde_json::{Map, Value, json};

/// Additions of a struct's attributes to its schema.
#[derive(Debug, Clone, Copy)]
pub struct SchemaTable {
    /// Fields with additions.
    pub properties: &'static [Property],
    /// CEL rules of the whole struct.
    pub rules: &'static [Rule],
    /// Whether the schema contains the defaults of the fields; the schema of a status does not.
    pub has_defaults: bool,
}

/// Additions of a field's attributes to its schema.
#[derive(Debug, Clone, Copy)]
pub struct Property {
    /// JSON name of the field.
    pub name: &'static str,
    /// Additions to the schema of the field itself.
    pub own: Part,
    /// Additions to the schema of its items.
    pub items: Part,
    /// Additions to the schema of its map values.
    pub values: Part,
}

/// Additions to one schema.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    /// Keywords of JSON schema and of Kubernetes' extensions.
    pub keywords: &'static [(&'static str, Keyword)],
    /// CEL rules.
    pub rules: &'static [Rule],
}

/// Value of a keyword.
#[derive(Debug, Clone, Copy)]
pub enum Keyword {
    /// Boolean, such as of `nullable`.
    Bool(bool),
    /// Integer, such as of a limit.
    Integer(i64),
    /// String, such as a pattern.
    Text(&'static str),
    /// List of strings, such as map keys.
    Texts(&'static [&'static str]),
}

/// CEL rule of `x-kubernetes-validations`.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// CEL expression that is true for a valid value.
    pub rule: &'static str,
    /// Message for an invalid value.
    pub message: Option<&'static str>,
    /// Reason in the response.
    pub reason: Option<&'static str>,
    /// Path of the field that is reported.
    pub field_path: Option<&'static str>,
}

/// Values of an enum with unit variants.
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
            // `true` is the schema of any value.
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
    /// Puts the values into one list; schemars writes a separate schema for each variant that has a
    /// doc comment.
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
