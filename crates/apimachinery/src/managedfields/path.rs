//! One element of a path into an object, as field ownership records it.

use std::fmt;

use serde_json::{Map, Value};

use crate::golang;

/// One element of a path: a field, a list item by key or value, or an index.
///
/// The values of keys and of set items are stored, compared and displayed as JSON text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum PathElement {
    /// A field of an object, written as `f:name`.
    Field(String),
    /// A list item, identified by its key fields, which are sorted by name: `k:{"name":"a"}`.
    Key(Vec<(String, String)>),
    /// An item of a set, identified by its value: `v:"a"`.
    Value(String),
    /// A list item, identified by its index: `i:0`.
    Index(u64),
}

impl PathElement {
    /// Returns the path element of a list item with these key fields.
    pub(crate) fn key(fields: impl IntoIterator<Item = (String, Value)>) -> Self {
        let mut fields: Vec<(String, String)> = fields
            .into_iter()
            .map(|(name, value)| (name, scalar_text(&value)))
            .collect();
        fields.sort();
        Self::Key(fields)
    }

    /// Returns the path element of the item of a set with this value.
    pub(crate) fn value(value: &Value) -> Self {
        Self::Value(scalar_text(value))
    }

    /// Parses an element in the format of FieldsV1. Returns `None` if the text is not valid.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (kind, rest) = text.split_once(':')?;
        match kind {
            "f" => Some(Self::Field(rest.to_owned())),
            "v" => Some(Self::value(&serde_json::from_str(rest).ok()?)),
            "i" => Some(Self::Index(rest.parse().ok()?)),
            "k" => Some(Self::key(
                serde_json::from_str::<Map<String, Value>>(rest).ok()?,
            )),
            _ => None,
        }
    }

    /// Returns the element in the format of FieldsV1.
    pub(crate) fn encode(&self) -> String {
        match self {
            Self::Field(name) => format!("f:{name}"),
            Self::Value(json) => format!("v:{json}"),
            Self::Index(index) => format!("i:{index}"),
            Self::Key(fields) => {
                let fields = fields.iter().map(|(name, json)| {
                    format!("{}:{json}", golang::json(&Value::from(name.as_str())))
                });
                format!("k:{{{}}}", fields.collect::<Vec<_>>().join(","))
            }
        }
    }
}

/// Formats the element as in Kubernetes' paths: `.spec.containers[name="a"].image`.
impl fmt::Display for PathElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Value(json) => write!(f, "[={json}]"),
            Self::Index(index) => write!(f, "[{index}]"),
            Self::Key(fields) => {
                let fields = fields.iter().map(|(name, json)| format!("{name}={json}"));
                write!(f, "[{}]", fields.collect::<Vec<_>>().join(","))
            }
        }
    }
}

/// Returns the JSON text of a value, which is the same for `1` and `1.0`.
fn scalar_text(value: &Value) -> String {
    match value {
        Value::Number(number) if !number.is_i64() => golang::value(value),
        value => golang::json(value),
    }
}
