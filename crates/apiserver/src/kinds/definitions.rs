//! The OpenAPI definitions of the built-in kinds.
//!
//! To parse all of them, 1 MB of text, would slow down the start. The lines are only split into
//! name and JSON, and each definition is parsed on first use.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock};

use parking_lot::RwLock;
use serde_json::Value;

const TEXT: &str = include_str!("../../data/v1.36/definitions.txt");

static BUILTIN: LazyLock<Definitions> = LazyLock::new(|| Definitions::scan(TEXT));

/// Definitions by name (`io.k8s.api.apps.v1.Deployment`), parsed lazily.
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

    /// Splits `text`, which has lines of `NAME\tJSON`.
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

    /// Returns a definition, which is parsed at most once.
    pub(crate) fn value(&self, name: &str) -> Option<Arc<Value>> {
        if let Some(value) = self.parsed.read().get(name) {
            return Some(Arc::clone(value));
        }
        let (&name, &raw) = self.lines.get_key_value(name)?;
        let value = Arc::new(serde_json::from_str(raw).ok()?);
        Some(Arc::clone(self.parsed.write().entry(name).or_insert(value)))
    }

    /// Returns the number of bytes of all definitions, by which one set differs from another.
    pub(crate) fn size(&self) -> usize {
        self.lines.values().map(|line| line.len()).sum()
    }

    /// Returns all names, sorted.
    #[cfg(test)]
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.lines.keys().copied()
    }
}
