//! The verbs of the API on any kind: what happens between a decoded request and the store.
//!
//! Nothing here knows a kind by name but through data: its schema, its subresources, the lists in
//! [`rules`]. A write is prepared outside the store's lock and committed at the revision it was
//! made from.

mod convert;
mod create;
mod delete;
mod hooks;
mod metadata;
mod page;
mod patch;
mod prepare;
mod read;
mod rules;
mod scale;
mod size;
mod unmodelled;
mod update;

use std::sync::Arc;

use opkit_apimachinery::identity::segment_flaw;
use serde_json::Value;

use crate::{
    clock::Clock,
    kinds::{Catalog, Kind},
    random::Random,
    schemas::Schemas,
    status::{ApiError, ApiResult},
    store::{Key, Store},
};

pub(crate) use convert::{from_storage, storage_name};
pub(crate) use delete::{CRD_CLEANUP, DeleteOptions, FOREGROUND, ORPHAN, Preconditions};
pub(crate) use page::{PageRequest, Token};
pub(crate) use patch::{Patch, PatchType};
pub(crate) use read::Filter;
pub(crate) use unmodelled::Unmodelled;

/// All that the verbs work on.
#[derive(Debug)]
pub(crate) struct Registry {
    pub(crate) catalog: Catalog,
    pub(crate) schemas: Schemas,
    pub(crate) store: Store,
    pub(crate) clock: Clock,
    pub(crate) random: Random,
    /// Whether lists and watches heed `shardSelector`.
    pub(crate) sharded_list_and_watch: bool,
    pub(crate) unmodelled: Unmodelled,
}

/// Which object or subresource a request is about.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) kind: Arc<Kind>,
    /// Empty for cluster-scoped kinds.
    pub(crate) namespace: String,
    /// Empty on create, where the body names the object.
    pub(crate) name: String,
    /// Empty for the object itself.
    pub(crate) subresource: String,
}

impl Target {
    pub(crate) fn new(kind: &Arc<Kind>, namespace: &str, name: &str) -> Self {
        let namespace = if kind.namespaced { namespace } else { "" };
        Self {
            kind: kind.clone(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            subresource: String::new(),
        }
    }

    pub(crate) fn subresource(mut self, name: &str) -> Self {
        name.clone_into(&mut self.subresource);
        self
    }

    pub(crate) fn key(&self) -> Key {
        Key::new(self.namespace.as_str(), self.name.as_str())
    }

    /// Where the kind's objects are filed.
    pub(crate) fn storage(&self) -> String {
        storage_name(&self.kind)
    }

    pub(crate) fn not_found(&self) -> ApiError {
        ApiError::not_found(&self.kind, &self.name)
    }
}

/// What to do about fields that a kind does not have.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum FieldValidation {
    Ignore,
    #[default]
    Warn,
    Strict,
}

/// Who writes and how; collects the warnings for the answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Write {
    /// The name under which changes are recorded in `managedFields`.
    pub(crate) manager: String,
    /// Do everything but store the result.
    pub(crate) dry_run: bool,
    /// Server-side apply: take fields away from other managers.
    pub(crate) force: bool,
    pub(crate) field_validation: FieldValidation,
    pub(crate) warnings: Vec<String>,
}

impl Write {
    /// A write by a part of the control plane itself.
    pub(crate) fn by(manager: &str) -> Self {
        Self {
            manager: manager.to_owned(),
            ..Self::default()
        }
    }
}

impl Registry {
    /// The kind whose objects are filed under `resource`, in one of its versions.
    pub(crate) fn kind_stored(&self, resource: &str) -> Option<Arc<Kind>> {
        let mut served = self.catalog.all().into_iter();
        let found = served.find(|kind| storage_name(kind) == resource);
        found.or_else(|| self.catalog.unserved(resource))
    }

    /// A built-in kind that the control plane itself works with.
    pub(crate) fn builtin(&self, group: &str, plural: &str) -> ApiResult<Arc<Kind>> {
        let kind = self.catalog.get(group, "v1", plural);
        kind.ok_or_else(|| ApiError::internal(format!("{plural} is not in the table of kinds")))
    }

    /// The object as it is stored.
    fn stored(&self, target: &Target) -> ApiResult<Arc<Value>> {
        let name = target.name.as_str();
        if let Some(flaw) = segment_flaw(name).filter(|_| !name.is_empty()) {
            let message = format!("Name parameter invalid: {name:?}: {flaw}");
            return Err(ApiError::bad_request(message));
        }
        self.store
            .get(&target.storage(), &target.key())
            .ok_or_else(|| target.not_found())
    }
}
