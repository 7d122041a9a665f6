//! Field selectors of the built-in kinds: which fields may be selected by, and what their values
//! are.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::Value;

use super::{Kind, SchemaSource, sections};
use crate::table::jsonpath;

const TEXT: &str = include_str!("../../data/field-selectors.txt");

/// The selectors of one resource: names, and beside each its rule, which is empty where the value
/// is at the field's own place.
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
    /// The fields that a selector may name beyond `metadata.name` and `metadata.namespace`. Those
    /// of a custom kind are in its CRD.
    pub(crate) fn field_selectors(&self) -> &'static [&'static str] {
        self.selectors()
            .map(|selectors| selectors.names.as_slice())
            .unwrap_or_default()
    }

    /// The value that a selector compares `field` of `object` with; empty if it is unset. A field
    /// that no selector of this kind may name is read at its own place.
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

/// The scalar at a path as text, unless it is empty.
fn text(object: &Value, path: &str) -> Option<String> {
    let text = match jsonpath(object, path).first()? {
        Value::String(text) => text.clone(),
        value @ (Value::Bool(_) | Value::Number(_)) => value.to_string(),
        _ => return None,
    };
    (!text.is_empty()).then_some(text)
}
