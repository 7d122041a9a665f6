//! The OpenAPI definitions of the built-in kinds.
//!
//! At start, the text of all definitions (1 MB) is only split into names and JSON, because parsing
//! the whole text would be slow. Each definition is parsed on first use.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock};

use opkit_apimachinery::schema::Schema;
use parking_lot::RwLock;
use serde_json::Value;

const TEXT: &str = include_str!("../../data/v1.36/definitions.txt");

static BUILTIN: LazyLock<Definitions> = LazyLock::new(|| Definitions::scan(TEXT));

/// OpenAPI definitions by name, such as `io.k8s.api.apps.v1.Deployment`. Only the schemas are kept
/// after they are parsed: most of a definition is its descriptions.
#[derive(Debug, Default)]
pub(crate) struct Definitions {
    lines: BTreeMap<&'static str, &'static str>,
    schemas: RwLock<HashMap<&'static str, Arc<Schema>>>,
}

impl Definitions {
    /// Returns the definitions of the built-in kinds, which all servers in the process share.
    pub(crate) fn builtin() -> &'static Self {
        &BUILTIN
    }

    /// Splits `text` into definitions. Each line is `NAME\tJSON`.
    fn scan(text: &'static str) -> Self {
        let lines = text
            .lines()
            .filter_map(|line| line.split_once('\t'))
            .collect();
        Self {
            lines,
            schemas: RwLock::default(),
        }
    }

    /// Returns the JSON text of a definition.
    pub(crate) fn raw(&self, name: &str) -> Option<&'static str> {
        self.lines.get(name).copied()
    }

    /// Parses a definition as JSON.
    pub(crate) fn value(&self, name: &str) -> Option<Value> {
        serde_json::from_str(self.raw(name)?).ok()
    }

    /// Returns the schema of a definition. Each schema is parsed at most once.
    pub(crate) fn schema(&self, name: &str) -> Option<Arc<Schema>> {
        if let Some(schema) = self.schemas.read().get(name) {
            return Some(schema.clone());
        }
        let (&name, _) = self.lines.get_key_value(name)?;
        let schema = Arc::new(Schema::parse(&self.value(name)?).ok()?);
        Some(self.schemas.write().entry(name).or_insert(schema).clone())
    }

    /// Returns the length of the text of all definitions, in bytes. It is part of the hash of the
    /// OpenAPI documents.
    pub(crate) fn size(&self) -> usize {
        self.lines.values().map(|line| line.len()).sum()
    }

    /// Returns the names of all definitions, sorted.
    #[cfg(test)]
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.lines.keys().copied()
    }
}
