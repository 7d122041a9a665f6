//! Memory of the applied children, so that no request is sent while a child is still as applied.
//!
//! For each child, the memory stores the hash of the applied content and a fingerprint of the
//! server's response. The fingerprint covers the fields that this controller owns (`fieldsV1` of
//! its entry in `managedFields`) and their values in the response. So it differs if another client
//! has changed or taken over such a field. It does not differ if fields of other managers change,
//! or if the server writes a quantity in another form.

use std::any::TypeId;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, ObjectMeta};
use opkit_apimachinery::managedfields::FieldSetRef;
use opkit_client::ObjectKey;
use parking_lot::Mutex;
use serde_json::Value;

use crate::context::apply::desired::{Desired, is_own};

#[derive(Debug, Clone)]
struct Applied {
    uid: Option<String>,
    sent: u64,
    fingerprint: u64,
    /// Latest `resourceVersion` at which the child was found to match the applied content.
    resource_version: Option<String>,
}

/// Number of entries up to which no entries of deleted children are searched for, because little
/// memory could be freed.
const CLEANUP_THRESHOLD: usize = 1024;

/// The applied children of one controller. The entry of a deleted child is removed when the
/// deletion is reported. The deletion of a child that existed only between two events is not
/// reported, so its entry is removed later, when the number of entries has doubled since the last
/// cleanup.
#[derive(Debug, Default)]
pub(crate) struct AppliedChildren {
    children: Mutex<HashMap<(TypeId, ObjectKey), Applied>>,
    /// Number of entries that were left after the last cleanup.
    known: AtomicUsize,
}

impl AppliedChildren {
    /// Reports whether `current` still has the state that the last apply of `desired` left, so that
    /// no request is needed. `json`, which encodes the object, is called only if needed and without
    /// holding the lock.
    pub(crate) fn is_as_applied(
        &self,
        kind: TypeId,
        desired: &Desired,
        current: &ObjectMeta,
        manager: &str,
        json: impl FnOnce() -> Option<Value>,
    ) -> bool {
        let key = (kind, desired.key.clone());
        let Some(applied) = self.children.lock().get(&key).cloned() else {
            return false;
        };
        if desired.resource_version.is_some()
            || applied.uid != current.uid
            || applied.sent != desired.hash
        {
            return false;
        }
        if applied.resource_version == current.resource_version {
            return true;
        }
        let found = json().and_then(|json| fingerprint(current, &json, manager));
        if found != Some(applied.fingerprint) {
            return false;
        }
        if let Some(known) = self.children.lock().get_mut(&key)
            && known.sent == applied.sent
            && known.fingerprint == applied.fingerprint
        {
            known.resource_version = current.resource_version.clone();
        }
        true
    }

    /// Reports whether there is no entry for the object with this UID.
    pub(crate) fn is_new(&self, kind: TypeId, key: &ObjectKey, uid: Option<&str>) -> bool {
        let children = self.children.lock();
        let known = children.get(&(kind, key.clone()));
        known.is_none_or(|known| known.uid.as_deref() != uid)
    }

    /// Stores the server's response to the apply of `desired`.
    pub(crate) fn remember(
        &self,
        kind: TypeId,
        desired: &Desired,
        response: &ObjectMeta,
        json: &Value,
        manager: &str,
    ) {
        let key = (kind, desired.key.clone());
        let fingerprint = fingerprint(response, json, manager);
        let mut children = self.children.lock();
        match fingerprint {
            Some(fingerprint) => {
                let applied = Applied {
                    uid: response.uid.clone(),
                    sent: desired.hash,
                    fingerprint,
                    resource_version: response.resource_version.clone(),
                };
                children.insert(key, applied);
            }
            // The server does not track fields: apply each time.
            None => {
                children.remove(&key);
            }
        }
    }

    /// Removes the entries of children for which `exists` is false, if the number of entries has
    /// doubled since the last cleanup.
    pub(crate) fn drop_deleted(&self, exists: impl Fn(TypeId, &ObjectKey) -> bool) {
        let most = self
            .known
            .load(Relaxed)
            .saturating_mul(2)
            .max(CLEANUP_THRESHOLD);
        let all: Vec<_> = {
            let children = self.children.lock();
            if children.len() <= most {
                return;
            }
            children.keys().cloned().collect()
        };
        // Without the lock, because the cache has locks of its own.
        let deleted = all.iter().filter(|(kind, key)| !exists(*kind, key));
        let deleted: Vec<_> = deleted.collect();
        let mut children = self.children.lock();
        for child in deleted {
            children.remove(child);
        }
        self.known.store(children.len(), Relaxed);
        children.shrink_to(most);
    }

    pub(crate) fn forget(&self, kind: TypeId, key: &ObjectKey) {
        self.children.lock().remove(&(kind, key.clone()));
    }
}

/// Same as `is_as_applied`, for a child without an entry in the memory: uses the annotation and the
/// managed fields of `current`.
pub(crate) fn is_recognized(
    desired: &Desired,
    current: &ObjectMeta,
    json: &Value,
    manager: &str,
) -> bool {
    let mut entries = current.managed_fields.iter().flatten();
    // Fields that are owned by the creation must first be transferred to the apply.
    let is_created = |entry: &ManagedFieldsEntry| is_own(entry, manager, "Update");
    desired.resource_version.is_none()
        && !entries.clone().any(is_created)
        && entries.any(|entry| {
            let version = entry.api_version.as_deref();
            is_own(entry, manager, "Apply") && version == Some(&desired.kind.api_version())
        })
        && fields_of(current, manager)
            .is_some_and(|fields| fields.is_as_applied(&desired.content, json))
}

/// Returns the fields that `manager` has applied to an object.
fn fields_of<'m>(meta: &'m ObjectMeta, manager: &str) -> Option<FieldSetRef<'m>> {
    let mut entries = meta.managed_fields.iter().flatten();
    let entry = entries.find(|entry| is_own(entry, manager, "Apply"))?;
    FieldSetRef::new(&entry.fields_v1.as_ref()?.0)
}

/// Returns a fingerprint of the fields that `manager` has applied to an object, and their values.
/// Fingerprints are comparable only within one process.
fn fingerprint(meta: &ObjectMeta, json: &Value, manager: &str) -> Option<u64> {
    let fields = fields_of(meta, manager)?;
    let mut hasher = DefaultHasher::new();
    fields.project(json).hash(&mut hasher);
    Some(hasher.finish())
}

#[cfg(test)]
mod tests;
