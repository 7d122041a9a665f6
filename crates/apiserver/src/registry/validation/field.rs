//! A field of an object with its path, and the list to which validation adds errors.

use opkit_apimachinery::structural::FieldError;
use serde_json::{Value, json};

use crate::object;

/// A field of an object: its value, which is null if the field is missing, and its path, such as
/// `spec.containers[0].name`.
#[derive(Clone, Debug)]
pub(super) struct Field<'a> {
    pub(super) path: String,
    pub(super) value: &'a Value,
}

impl<'a> Field<'a> {
    /// Creates the field that is the whole object. Its path is empty.
    pub(super) fn root(value: &'a Value) -> Self {
        let path = String::new();
        Self { path, value }
    }

    /// Creates a field with a value and the path that messages have for it.
    pub(super) fn new(path: impl Into<String>, value: &'a Value) -> Self {
        let path = path.into();
        Self { path, value }
    }

    /// Returns a field of this object.
    pub(super) fn get(&self, name: &str) -> Self {
        Self::new(self.join(name), object::at(self.value, &[name]))
    }

    /// Returns the field at a path of names below this object.
    pub(super) fn at(&self, names: &[&str]) -> Self {
        names
            .iter()
            .fold(self.clone(), |field, name| field.get(name))
    }

    /// Returns this field under the path of another field of the same object.
    pub(super) fn renamed(&self, path: impl Into<String>) -> Self {
        Self::new(path, self.value)
    }

    /// Returns the path of a field of this object.
    pub(super) fn join(&self, name: &str) -> String {
        match self.path.as_str() {
            "" => name.to_owned(),
            path => format!("{path}.{name}"),
        }
    }

    /// Returns the path of an item of this list.
    pub(super) fn index(&self, index: usize) -> String {
        format!("{}[{index}]", self.path)
    }

    /// Returns the path of an entry of this map.
    pub(super) fn key(&self, key: &str) -> String {
        format!("{}[{key}]", self.path)
    }

    /// Returns the items of this list.
    pub(super) fn items(&self) -> impl Iterator<Item = Field<'a>> + use<'a> {
        let path = self.path.clone();
        let items = self.value.as_array().map(Vec::as_slice).unwrap_or_default();
        let items = items.iter().enumerate();
        items.map(move |(index, value)| Field::new(format!("{path}[{index}]"), value))
    }

    /// Returns the entries of this map. The path of an entry has its key in brackets.
    pub(super) fn entries(&self) -> impl Iterator<Item = (&'a str, Field<'a>)> + use<'a> {
        let path = self.path.clone();
        let entries = self.value.as_object().into_iter().flatten();
        entries.map(move |(key, value)| (key.as_str(), Field::new(format!("{path}[{key}]"), value)))
    }

    /// Returns the number of items of this list, or of entries of this map.
    pub(super) fn len(&self) -> usize {
        let items = self.value.as_array().map(Vec::len);
        let entries = self.value.as_object().map(serde_json::Map::len);
        items.or(entries).unwrap_or_default()
    }

    /// Returns the text of the field, or an empty string if the field is missing.
    pub(super) fn text(&self) -> &'a str {
        self.value.as_str().unwrap_or_default()
    }

    /// Returns the integer of the field, or 0 if the field is missing.
    pub(super) fn int(&self) -> i64 {
        self.value.as_i64().unwrap_or_default()
    }

    /// Returns the boolean of the field, or `false` if the field is missing.
    pub(super) fn is_true(&self) -> bool {
        self.value.as_bool().unwrap_or_default()
    }

    /// Reports whether the object has the field.
    pub(super) fn is_set(&self) -> bool {
        !self.value.is_null()
    }

    /// Reports whether the field is missing, an empty text, an empty list or an empty map.
    pub(super) fn is_empty(&self) -> bool {
        match self.value {
            Value::Null => true,
            Value::String(text) => text.is_empty(),
            Value::Array(_) | Value::Object(_) => self.len() == 0,
            Value::Bool(_) | Value::Number(_) => false,
        }
    }

    /// Reports whether the text of the field is one of `texts`.
    pub(super) fn is_one_of(&self, texts: &[&str]) -> bool {
        texts.contains(&self.text())
    }
}

/// The errors in an object, in the order in which Kubernetes lists them.
#[derive(Debug, Default)]
pub(super) struct Errors(pub(super) Vec<FieldError>);

impl Errors {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn required(&mut self, field: &Field<'_>, detail: &str) {
        self.0.push(FieldError::required(&field.path, detail));
    }

    pub(super) fn forbidden(&mut self, field: &Field<'_>, detail: &str) {
        self.0.push(FieldError::forbidden(&field.path, detail));
    }

    /// Adds the error for a field whose value is malformed. A missing field is printed as null.
    pub(super) fn invalid(&mut self, field: &Field<'_>, detail: &str) {
        self.invalid_value(&field.path, field.value.clone(), detail);
    }

    /// Adds the error for a text that is malformed. A missing field is printed as an empty text.
    pub(super) fn invalid_text(&mut self, field: &Field<'_>, detail: &str) {
        self.invalid_value(&field.path, json!(field.text()), detail);
    }

    /// Adds the error for an integer that is out of range. A missing field is printed as 0.
    pub(super) fn invalid_int(&mut self, field: &Field<'_>, detail: &str) {
        self.invalid_value(&field.path, json!(field.int()), detail);
    }

    /// Adds an error with a value that is not that of the field.
    pub(super) fn invalid_value(&mut self, path: impl Into<String>, value: Value, detail: &str) {
        self.0.push(FieldError::invalid(path, &value, detail));
    }

    /// Adds an error that has `value` in it as it is, in the format of a Go struct.
    pub(super) fn invalid_printed(&mut self, path: impl Into<String>, value: &str, detail: &str) {
        let mut error = FieldError::invalid(path, &Value::Null, "");
        error.detail = match value {
            "" => format!("Invalid value: {detail}"),
            value => format!("Invalid value: {value}: {detail}"),
        };
        self.0.push(error);
    }

    /// Adds an error for each violated rule of a text.
    pub(super) fn rules(&mut self, field: &Field<'_>, rules: Vec<String>) {
        for rule in rules {
            self.invalid_text(field, &rule);
        }
    }

    pub(super) fn not_supported(&mut self, field: &Field<'_>, supported: &[&str]) {
        let value = json!(field.text());
        let error = FieldError::not_supported(&field.path, &value, supported);
        self.0.push(error);
    }

    /// Adds an error if the text of the field is not one of the `supported` texts.
    pub(super) fn supported(&mut self, field: &Field<'_>, supported: &[&str]) {
        if !field.is_one_of(supported) {
            self.not_supported(field, supported);
        }
    }

    /// Adds an error if the field is present and its text is not one of the `supported` texts.
    pub(super) fn supported_if_set(&mut self, field: &Field<'_>, supported: &[&str]) {
        if field.is_set() {
            self.supported(field, supported);
        }
    }

    /// Adds an error if the text is missing or is not one of the `supported` texts.
    pub(super) fn required_of(&mut self, field: &Field<'_>, supported: &[&str]) {
        match field.text() {
            "" => self.required(field, ""),
            _ => self.supported(field, supported),
        }
    }

    pub(super) fn duplicate(&mut self, path: impl Into<String>, value: &str) {
        self.0.push(FieldError::duplicate(path, &json!(value)));
    }

    pub(super) fn not_found(&mut self, path: impl Into<String>, value: &str) {
        self.0.push(FieldError::not_found(path, &json!(value)));
    }

    /// Adds an error if the text of the field is empty.
    pub(super) fn not_empty(&mut self, field: &Field<'_>) {
        if field.text().is_empty() {
            self.required(field, "");
        }
    }

    /// Adds an error if the integer of the field is negative.
    pub(super) fn not_negative(&mut self, field: &Field<'_>) {
        if field.int() < 0 {
            self.invalid_int(field, "must be greater than or equal to 0");
        }
    }

    /// Adds an error if the text is longer than `max` bytes.
    pub(super) fn not_longer(&mut self, field: &Field<'_>, max: usize) {
        if field.text().len() > max {
            let max = u64::try_from(max).unwrap_or(u64::MAX);
            self.0.push(FieldError::too_long(&field.path, max));
        }
    }

    /// Adds an error if the list or map has more than `max` entries.
    pub(super) fn not_more(&mut self, field: &Field<'_>, max: usize) {
        if field.len() > max {
            let limit = u64::try_from(max).unwrap_or(u64::MAX);
            self.0
                .push(FieldError::too_many(&field.path, field.len(), limit));
        }
    }

    /// Adds an error if the field differs between `live` and `new`.
    pub(super) fn immutable(&mut self, new: &Field<'_>, live: &Value) {
        if new.value != live {
            self.invalid(new, "field is immutable");
        }
    }
}
