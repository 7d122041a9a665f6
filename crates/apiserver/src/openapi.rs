//! OpenAPI. For v3 there is an index, and for each group version a document with schemas and paths.
//!
//! kubectl reads the paths to find out whether the server validates fields, and the schemas for
//! `kubectl explain` and for patches. A document is built on the first request for it, and cached
//! until the catalog of kinds changes. The index has a hash of each document, so that clients can
//! cache the documents on disk. The hash is computed without building the document.
//!
//! OpenAPI v2 is one document, which is built from those of OpenAPI v3 (see [`v2`]).

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use opkit_apimachinery::identity::GroupVersion;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use crate::aggregator::Route;
use crate::kinds::{Catalog, Definitions, Kind, SchemaSource};

mod custom;
mod document;
mod paths;
#[cfg(test)]
mod tests;
mod v2;

pub(crate) use v2::Document;

/// The documents that were built since the last change of the catalog of kinds.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    /// The generation of the catalog for which the documents were built, and the documents by path,
    /// such as `apis/apps/v1`.
    documents: Mutex<(u64, BTreeMap<String, Arc<Value>>)>,
    v2: v2::Cache,
}

impl Cache {
    /// Returns the document of OpenAPI v2.
    pub(crate) fn v2(&self, catalog: &Catalog) -> Arc<v2::Document> {
        self.v2.document(catalog)
    }

    /// Returns the body of the response to a GET below `/openapi`, or `None` if nothing is served
    /// at the path. A hash in the query is ignored: a request with an old hash gets the current
    /// document.
    pub(crate) fn respond(
        &self,
        path: &[&str],
        catalog: &Catalog,
        routes: &[Arc<Route>],
    ) -> Option<Arc<Value>> {
        match *path {
            ["openapi", "v3"] => Some(Arc::new(index(catalog, routes))),
            ["openapi", "v3", "api", version] => self.document("", version, catalog),
            ["openapi", "v3", "apis", group, version] => self.document(group, version, catalog),
            _ => None,
        }
    }

    /// Returns the document of one group version, and builds the document if it is not in the
    /// cache.
    fn document(&self, group: &str, version: &str, catalog: &Catalog) -> Option<Arc<Value>> {
        let path = document_path(group, version);
        // Read before the kinds: if the catalog changes meanwhile, the document counts as stale
        // although it may be new, and never the other way round.
        let generation = catalog.generation();
        {
            let mut documents = self.documents.lock();
            if documents.0 != generation {
                *documents = (generation, BTreeMap::new());
            }
            if let Some(document) = documents.1.get(&path) {
                return Some(Arc::clone(document));
            }
        }
        let kinds: Vec<Arc<Kind>> = catalog
            .all()
            .into_iter()
            .filter(|kind| kind.group == group && kind.version == version)
            .collect();
        if kinds.is_empty() {
            return None;
        }
        let built = Arc::new(document::build(group, version, &kinds));
        let mut documents = self.documents.lock();
        if documents.0 == generation {
            documents.1.insert(path, Arc::clone(&built));
        }
        Some(built)
    }
}

/// Returns the index: the URL of the document of each group version, including those of aggregated
/// API servers.
fn index(catalog: &Catalog, routes: &[Arc<Route>]) -> Value {
    let mut hashers: BTreeMap<String, DefaultHasher> = BTreeMap::new();
    for kind in catalog.all() {
        let path = document_path(&kind.group, &kind.version);
        hash_kind(&kind, hashers.entry(path).or_default());
    }
    let mut paths: Map<String, Value> = hashers
        .into_iter()
        .map(|(path, hasher)| {
            let url = format!("/openapi/v3/{path}?hash={:016X}", hasher.finish());
            (path, json!({"serverRelativeURL": url}))
        })
        .collect();
    for route in routes {
        let path = document_path(&route.group, &route.version);
        match &route.documents.openapi_url {
            Some(url) => paths.insert(path, json!({"serverRelativeURL": url})),
            None => paths.remove(&path),
        };
    }
    json!({"paths": paths})
}

/// Hashes all properties of a kind on which the OpenAPI document depends.
fn hash_kind(kind: &Kind, hasher: &mut DefaultHasher) {
    (
        &kind.group,
        &kind.version,
        &kind.kind,
        &kind.plural,
        kind.namespaced,
    )
        .hash(hasher);
    kind.verbs.hash(hasher);
    for subresource in &kind.subresources {
        (&subresource.name, &subresource.verbs).hash(hasher);
    }
    match &kind.schema {
        // The definitions are part of the program: its version and their size differ between builds
        // with other definitions.
        SchemaSource::Definition(name) => {
            (
                name,
                env!("CARGO_PKG_VERSION"),
                Definitions::builtin().size(),
            )
                .hash(hasher);
        }
        SchemaSource::Custom(schema) => schema.to_string().hash(hasher),
    }
}

/// Returns the path of a document, such as `api/v1` or `apis/apps/v1`.
fn document_path(group: &str, version: &str) -> String {
    let path = GroupVersion::new(group, version).path();
    path.unwrap_or_default().trim_matches('/').to_owned()
}

fn put(object: &mut Value, field: &str, value: Value) {
    if let Some(fields) = object.as_object_mut() {
        fields.insert(field.to_owned(), value);
    }
}
