//! Field selectors of the built-in kinds: the fields that a selector can name, and the value of
//! each field.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::Value;

use super::{Kind, SchemaSource, sections};
use crate::table::jsonpath;

const TEXT: &str = include_str!("../../data/field-selectors.txt");

/// The names that field selectors of one resource can use, and for each name the rule that computes
/// the value. An empty rule means the value of the field with this name.
#[derive(Debug, Default)]
struct Selectors {
    names: Vec<&'static str>,
    rules: Vec<&'static str>,
}

static TABLE: LazyLock<BTreeMap<&'static str, Selectors>> = LazyLock::new(|| {
    let resources = sections(TEXT).into_iter();
    resources
        .map(|(resource, lines)| {
            let (names, rules) = lines
                .into_iter()
                .map(|line| line.split_once(": ").unwrap_or((line, "")))
                .unzip();
            (resource, Selectors { names, rules })
        })
        .collect()
});

impl Kind {
    /// Returns the fields that a field selector can use besides `metadata.name` and
    /// `metadata.namespace`. Those of a custom kind are the `selectableFields` of its CRD.
    pub(crate) fn field_selectors(&self) -> Vec<&str> {
        if let Some(custom) = &self.custom {
            return custom
                .selectable_fields
                .iter()
                .map(String::as_str)
                .collect();
        }
        self.selectors()
            .map(|selectors| selectors.names.clone())
            .unwrap_or_default()
    }

    /// Returns the value of `field` that a field selector compares, or an empty string if the field
    /// is not set. Without a rule for the field, `field` is a path in the object.
    pub(crate) fn field_value(&self, object: &Value, field: &str) -> String {
        let known = self
            .selectors()
            .into_iter()
            .flat_map(|s| s.names.iter().zip(&s.rules));
        let rule = known
            .filter(|(name, _)| **name == field)
            .map(|(_, rule)| *rule)
            .next();
        let (paths, otherwise) = match rule.unwrap_or_default() {
            "" => return text(object, &format!(".{field}")).unwrap_or_default(),
            rule => rule.split_once(" else ").unwrap_or((rule, "")),
        };
        let mut found = paths
            .split_whitespace()
            .filter_map(|path| text(object, path));
        found.next().unwrap_or_else(|| otherwise.to_owned())
    }

    fn selectors(&self) -> Option<&'static Selectors> {
        match self.schema {
            SchemaSource::Definition(_) => TABLE.get(self.resource_line().as_str()),
            SchemaSource::Custom(_) => None,
        }
    }
}

/// Returns the scalar at a path as text, or `None` if the text is empty.
fn text(object: &Value, path: &str) -> Option<String> {
    let text = match jsonpath(object, path).first()? {
        Value::String(text) => text.clone(),
        value @ (Value::Bool(_) | Value::Number(_)) => value.to_string(),
        _ => return None,
    };
    (!text.is_empty()).then_some(text)
}
