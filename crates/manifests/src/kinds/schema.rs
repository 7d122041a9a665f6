//! Schema keywords and CEL rules from `#[opkit(...)]` attributes, which are added to the schemas
//! that schemars derives.

use schemars::Schema;
use schemars::transform::Transform;
use serde_json::{Map, Value, json};

/// Schema keywords and CEL rules from the `#[opkit(...)]` attributes of a struct. As a schemars
/// transform, this type adds them to the schema of the struct.
#[derive(Debug, Clone, Copy)]
pub struct SchemaTable {
    /// Fields of the struct whose attributes add something to the schema.
    pub properties: &'static [Property],
    /// Keywords and rules for the struct itself.
    pub own: Part,
    /// Whether the schema keeps the defaults of the fields. The schema of a status has no defaults.
    pub has_defaults: bool,
}

/// Schema keywords and CEL rules from the `#[opkit(...)]` attributes of one field, or of a struct
/// with one unnamed field. As a schemars transform, this type adds them to the schema of the
/// struct.
#[derive(Debug, Clone, Copy)]
pub struct Property {
    /// JSON name of the field. Empty for a struct with one unnamed field.
    pub name: &'static str,
    /// Keywords and rules for the field itself.
    pub own: Part,
    /// Keywords and rules for the items, if the field is a list.
    pub items: Part,
    /// Keywords and rules for the values, if the field is a map.
    pub values: Part,
}

/// Keywords and CEL rules to add to one schema.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    /// Schema keywords and their values: keywords of JSON schema, and extensions of Kubernetes.
    pub keywords: &'static [(&'static str, Keyword)],
    /// CEL rules.
    pub rules: &'static [Rule],
}

/// Value of a schema keyword.
#[derive(Debug, Clone, Copy)]
pub enum Keyword {
    /// Boolean, such as the value of `nullable`.
    Bool(bool),
    /// Integer, such as the value of `maximum`.
    Integer(i64),
    /// JSON text of any value, such as the value of `enum`.
    Json(&'static str),
    /// String, such as the value of `pattern`.
    Text(&'static str),
    /// List of strings, such as the value of `x-kubernetes-list-map-keys`.
    Texts(&'static [&'static str]),
}

/// CEL rule of `x-kubernetes-validations`.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// CEL expression that is true for a valid value.
    pub rule: &'static str,
    /// Message for an invalid value.
    pub message: Option<&'static str>,
    /// CEL expression that returns the message for an invalid value.
    pub message_expression: Option<&'static str>,
    /// Reason in the API server's error response, such as `FieldValueInvalid`.
    pub reason: Option<&'static str>,
    /// Path of the field that the API server reports as invalid.
    pub field_path: Option<&'static str>,
    /// Whether the rule is evaluated for new objects too, with an absent `oldSelf`.
    pub optional_old_self: bool,
}

/// Values of an enum without data. As a schemars transform, this type replaces the schema of the
/// enum.
#[derive(Debug, Clone, Copy)]
pub struct UnitEnum {
    /// Values, in the order of the variants.
    pub values: &'static [&'static str],
    /// Keywords and rules for the enum.
    pub own: Part,
}

impl Transform for SchemaTable {
    fn transform(&mut self, schema: &mut Schema) {
        let schema = schema.ensure_object();
        self.own.add_to(schema);
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
            if let Some(schema) = schema.as_object_mut() {
                property.add_to(schema);
            }
        }
    }
}

impl Transform for Property {
    fn transform(&mut self, schema: &mut Schema) {
        self.add_to(schema.ensure_object());
    }
}

impl Property {
    fn add_to(&self, schema: &mut Map<String, Value>) {
        self.own.add_to(schema);
        self.items.add_below(schema, "items");
        self.values.add_below(schema, "additionalProperties");
    }
}

impl Transform for UnitEnum {
    /// Replaces the schema of the enum by a string schema with one list of all values. schemars
    /// writes a separate schema for each variant that has a doc comment.
    fn transform(&mut self, schema: &mut Schema) {
        let schema = schema.ensure_object();
        let description = schema.remove("description");
        schema.clear();
        schema.extend(description.map(|text| ("description".to_owned(), text)));
        schema.insert("type".to_owned(), json!("string"));
        schema.insert("enum".to_owned(), json!(self.values));
        self.own.add_to(schema);
    }
}

impl Part {
    pub(super) fn add_to(&self, schema: &mut Map<String, Value>) {
        for (name, keyword) in self.keywords {
            let value = match keyword {
                Keyword::Bool(value) => json!(value),
                Keyword::Integer(value) => json!(value),
                // The macro wrote the text, so it is always valid.
                Keyword::Json(text) => serde_json::from_str(text).unwrap_or_default(),
                Keyword::Text(value) => json!(value),
                Keyword::Texts(values) => json!(values),
            };
            schema.insert((*name).to_owned(), value);
        }
        add_rules(schema, self.rules);
    }

    fn add_below(&self, schema: &mut Map<String, Value>, name: &str) {
        if self.keywords.is_empty() && self.rules.is_empty() {
            return;
        }
        let Some(below) = schema.get_mut(name) else {
            return;
        };
        if below.is_boolean() {
            *below = json!({});
        }
        if let Value::Object(below) = below {
            self.add_to(below);
        }
    }
}

pub(super) fn add_rules(schema: &mut Map<String, Value>, rules: &[Rule]) {
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
            ("messageExpression", self.message_expression),
            ("reason", self.reason),
            ("fieldPath", self.field_path),
        ];
        let parts = parts
            .into_iter()
            .filter_map(|(name, text)| Some((name.to_owned(), json!(text?))));
        let optional = self
            .optional_old_self
            .then(|| ("optionalOldSelf".to_owned(), json!(true)));
        Value::Object(parts.chain(optional).collect())
    }
}
