//! The OpenAPI definitions of the built-in kinds.
//!
//! A definition is found in the text of all definitions by binary search and parsed on first use.
//! The descriptions, which are three quarters of the text, are in a file of their own: a server
//! that serves no OpenAPI document never touches that memory.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use opkit_apimachinery::schema::Schema;
use parking_lot::RwLock;
use serde_json::{Map, Value};

/// One definition in each line, `NAME\tJSON`, sorted by name.
const TEXT: &str = include_str!("../../data/v1.36/definitions.txt");

/// The descriptions of one definition in each line, `NAME\tJSON`, sorted by name. The JSON object
/// has the description of each property, and that of the definition under an empty name.
const DESCRIPTIONS: &str = include_str!("../../data/v1.36/descriptions.txt");

static BUILTIN: LazyLock<Definitions> = LazyLock::new(Definitions::default);

/// OpenAPI definitions by name, such as `io.k8s.api.apps.v1.Deployment`. Only the schemas are kept
/// after they are parsed.
#[derive(Debug, Default)]
pub(crate) struct Definitions {
    schemas: RwLock<HashMap<&'static str, Arc<Schema>>>,
}

impl Definitions {
    /// Returns the definitions of the built-in kinds, which all servers in the process share.
    pub(crate) fn builtin() -> &'static Self {
        &BUILTIN
    }

    /// Returns the JSON text of a definition without its descriptions.
    pub(crate) fn raw(&self, name: &str) -> Option<&'static str> {
        find(TEXT, name).map(|(_, json)| json)
    }

    /// Parses a definition without its descriptions.
    pub(crate) fn structure(&self, name: &str) -> Option<Value> {
        serde_json::from_str(self.raw(name)?).ok()
    }

    /// Parses a definition with its descriptions.
    pub(crate) fn value(&self, name: &str) -> Option<Value> {
        let mut definition = self.structure(name)?;
        for (property, text) in self.descriptions(name) {
            let described = match property.as_str() {
                "" => Some(&mut definition),
                property => definition
                    .get_mut("properties")
                    .and_then(|properties| properties.get_mut(property)),
            };
            if let Some(Value::Object(schema)) = described {
                schema.insert("description".to_owned(), text);
            }
        }
        Some(definition)
    }

    /// Returns the descriptions of a definition by property; see [`DESCRIPTIONS`].
    pub(crate) fn descriptions(&self, name: &str) -> Map<String, Value> {
        find(DESCRIPTIONS, name)
            .and_then(|(_, json)| serde_json::from_str(json).ok())
            .unwrap_or_default()
    }

    /// Returns the schema of a definition. Each schema is parsed at most once.
    pub(crate) fn schema(&self, name: &str) -> Option<Arc<Schema>> {
        if let Some(schema) = self.schemas.read().get(name) {
            return Some(schema.clone());
        }
        let (name, _) = find(TEXT, name)?;
        let schema = Arc::new(Schema::parse(&self.structure(name)?).ok()?);
        Some(self.schemas.write().entry(name).or_insert(schema).clone())
    }

    /// Returns the length of the text of all definitions, in bytes. It is part of the hash of the
    /// OpenAPI documents.
    pub(crate) fn size(&self) -> usize {
        TEXT.len() + DESCRIPTIONS.len()
    }

    /// Returns the names of all definitions, sorted.
    #[cfg(test)]
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> + '_ {
        TEXT.lines().filter_map(split).map(|(name, _)| name)
    }
}

/// Returns the line of `text` whose name is `name`. The lines of `text` are sorted by name.
fn find(text: &'static str, name: &str) -> Option<(&'static str, &'static str)> {
    let (mut low, mut high) = (0, text.len());
    let is_end = |byte: &u8| *byte == b'\n';
    while low < high {
        let middle = low + (high - low) / 2;
        let mut before = text.as_bytes().get(low..middle)?.iter();
        let start = before.rposition(is_end).map_or(low, |end| low + end + 1);
        let mut after = text.as_bytes().get(middle..high)?.iter();
        let end = after.position(is_end).map_or(high, |end| middle + end);
        let (found, json) = split(text.get(start..end)?)?;
        match found.cmp(name) {
            Ordering::Less => low = end + 1,
            Ordering::Equal => return Some((found, json)),
            Ordering::Greater => high = start,
        }
    }
    None
}

fn split(line: &'static str) -> Option<(&'static str, &'static str)> {
    line.split_once('\t')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_definition_is_found_and_no_other() {
        for text in [TEXT, DESCRIPTIONS] {
            for line in text.lines() {
                let (name, json) = line.split_once('\t').unwrap();
                assert_eq!(find(text, name), Some((name, json)));
                assert_eq!(find(text, &name[..name.len() - 1]), None, "{name}");
                assert_eq!(find(text, &format!("{name} ")), None, "{name}");
            }
        }
        assert_eq!(find(TEXT, ""), None);
        assert_eq!(find("", "a"), None);
    }

    #[test]
    fn descriptions_are_of_known_properties() {
        let definitions = Definitions::builtin();
        for (name, _) in DESCRIPTIONS.lines().filter_map(split) {
            let value = definitions.value(name).unwrap();
            for (property, text) in definitions.descriptions(name) {
                let schema = match property.as_str() {
                    "" => &value,
                    property => &value["properties"][property],
                };
                assert_eq!(schema["description"], text, "{name} {property}");
            }
        }
    }
}
