//! The versions of a custom resource: the version in which objects are stored, and the schemas and
//! the conversion between the versions.

use std::collections::BTreeMap;
use std::sync::Arc;

use opkit_apimachinery::schema::{NoDefinitions, Schema, Typed};
use opkit_apimachinery::structural;
use serde_json::{Value, json};

use crate::kinds::Kind;
use crate::object;
use crate::store::Stored;

/// The versions of a custom resource.
#[derive(Debug)]
pub(crate) struct Versions {
    /// The `apiVersion` of stored objects.
    pub(crate) storage: String,
    /// The conversion webhook: the field `webhook` of the CRD. `None` if conversion changes only
    /// `apiVersion`.
    pub(crate) webhook: Option<Value>,
    /// The schemas by `apiVersion`.
    schemas: BTreeMap<String, Arc<Schema>>,
    /// The versions of the CRD as they were written, to notice a change.
    sources: BTreeMap<String, Value>,
    /// Whether all versions have the same schema, and differ in `apiVersion` only.
    is_uniform: bool,
    /// The revision of the last change of the schemas. Objects that were stored since then have the
    /// form of the storage version.
    since: u64,
}

impl Versions {
    /// Reads the versions of a CRD. `revision` is the current revision of the store, and `before`
    /// are the versions of the CRD before its change.
    pub(crate) fn of(crd: &Value, revision: u64, before: Option<&Self>) -> Self {
        let group = object::text(crd, &["spec", "group"]);
        let mut schemas = BTreeMap::new();
        let mut sources = BTreeMap::new();
        for version in object::items(crd, &["spec", "versions"]) {
            let name = format!("{group}/{}", object::text(version, &["name"]));
            let source = object::at(version, &["schema", "openAPIV3Schema"]);
            if let Ok(schema) = Schema::parse(source) {
                schemas.insert(name.clone(), Arc::new(schema));
            }
            sources.insert(name, source.clone());
        }
        let conversion = object::at(crd, &["spec", "conversion"]);
        let webhook = (object::text(conversion, &["strategy"]) == "Webhook")
            .then(|| object::at(conversion, &["webhook"]).clone());
        let storage = super::storage_version(crd).unwrap_or_default();
        let storage = format!("{group}/{}", storage.as_str().unwrap_or_default());
        let mut different = sources.values();
        let first = different.next();
        let is_uniform = webhook.is_none() && different.all(|source| Some(source) == first);
        let is_same = |before: &&Self| before.storage == storage && before.sources == sources;
        Self {
            since: before
                .filter(is_same)
                .map_or(revision, |before| before.since),
            storage,
            webhook,
            schemas,
            sources,
            is_uniform,
        }
    }

    /// Reports whether the stored text of an object is that of the object in the version of `kind`,
    /// except for `apiVersion`.
    pub(crate) fn is_current(&self, kind: &Kind, stored: &Stored) -> bool {
        stored.revision() > self.since && (self.is_uniform || self.storage == kind.api_version())
    }

    /// Removes unknown fields from a stored object, and sets the defaults of its schema.
    pub(crate) fn normalize(&self, object: &mut Value) {
        if let Some(schema) = self.schema_of(object) {
            let typed = Typed::new(&schema, &NoDefinitions);
            structural::prune(object, &typed);
            structural::apply_defaults(object, &typed);
        }
    }

    /// Removes unknown fields and nulls from a converted object.
    pub(crate) fn coerce(&self, object: &mut Value) {
        if let Some(schema) = self.schema_of(object) {
            let typed = Typed::new(&schema, &NoDefinitions);
            structural::prune(object, &typed);
            structural::drop_nulls(object, &typed);
        }
    }

    /// Returns the schema of a version.
    pub(crate) fn schema(&self, api_version: &str) -> Option<&Schema> {
        self.schemas.get(api_version).map(AsRef::as_ref)
    }

    fn schema_of(&self, object: &Value) -> Option<Arc<Schema>> {
        let version = object::text(object, &["apiVersion"]);
        self.schemas.get(version).cloned()
    }

    /// Converts an object by changing its `apiVersion`, and removes the fields that the new version
    /// does not have.
    pub(crate) fn relabel(&self, object: &mut Value, api_version: &str) {
        object::set_field(object, "apiVersion", json!(api_version));
        self.coerce(object);
    }
}
