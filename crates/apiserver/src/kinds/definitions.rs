//! The OpenAPI definitions of the built-in kinds.
//!
//! At start, the text of all definitions (1 MB) is only split into names and JSON, because parsing
//! the whole text would be slow. Each definition is parsed on first use.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock};

use parking_lot::RwLock;
use serde_json::Value;

const TEXT: &str = include_str!("../../data/v1.36/definitions.txt");

static BUILTIN: LazyLock<Definitions> = LazyLock::new(|| Definitions::scan(TEXT));

/// OpenAPI definitions by name, such as `io.k8s.api.apps.v1.Deployment`. Each definition is parsed
/// on first use.
#[derive(Debug, Default)]
pub(crate) struct Definitions {
    lines: BTreeMap<&'static str, &'static str>,
    parsed: RwLock<HashMap<&'static str, Arc<Value>>>,
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
            parsed: RwLock::default(),
        }
    }

    /// Returns the JSON text of a definition.
    pub(crate) fn raw(&self, name: &str) -> Option<&'static str> {
        self.lines.get(name).copied()
    }

    /// Returns a definition as JSON. Each definition is parsed at most once.
    pub(crate) fn value(&self, name: &str) -> Option<Arc<Value>> {
        if let Some(value) = self.parsed.read().get(name) {
            return Some(Arc::clone(value));
        }
        let (&name, &raw) = self.lines.get_key_value(name)?;
        let value = Arc::new(serde_json::from_str(raw).ok()?);
        Some(Arc::clone(self.parsed.write().entry(name).or_insert(value)))
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
