//! What was applied, so that nothing is sent while a child still reads as the server answered.
//!
//! Remembered per child: the hash of what was sent, and a fingerprint of the answer. The
//! fingerprint covers the set of fields that we own in the answer (`fieldsV1` of our entry in
//! `managedFields`, which knows the keys of lists) and their values, so that drift and a lost
//! ownership are seen, and fields of others and the server's rewriting of quantities are not.

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
    /// The last version that was found to be as applied.
    resource_version: Option<String>,
}

/// Below so many children there is nothing to gain by looking for those that are gone.
const FEW: usize = 1024;

/// The memory of one controller. An entry goes when its child is deleted, or later, when there are
/// twice as many as were there: a child that came and went between two events is not reported.
#[derive(Debug, Default)]
pub(crate) struct AppliedChildren {
    children: Mutex<HashMap<(TypeId, ObjectKey), Applied>>,
    /// How many there were when those that were gone had been dropped.
    known: AtomicUsize,
}

impl AppliedChildren {
    /// Whether `current` is as `desired` was applied, so that nothing needs to be sent. Its JSON is
    /// only made if it is needed, and not under the lock.
    pub(crate) fn holds(
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

    /// Whether nothing is remembered of this very object.
    pub(crate) fn is_new(&self, kind: TypeId, key: &ObjectKey, uid: Option<&str>) -> bool {
        let children = self.children.lock();
        let known = children.get(&(kind, key.clone()));
        known.is_none_or(|known| known.uid.as_deref() != uid)
    }

    /// Remembers the server's answer to the application of `desired`.
    pub(crate) fn remember(
        &self,
        kind: TypeId,
        desired: &Desired,
        answer: &ObjectMeta,
        json: &Value,
        manager: &str,
    ) {
        let key = (kind, desired.key.clone());
        let fingerprint = fingerprint(answer, json, manager);
        let mut children = self.children.lock();
        match fingerprint {
            Some(fingerprint) => {
                let applied = Applied {
                    uid: answer.uid.clone(),
                    sent: desired.hash,
                    fingerprint,
                    resource_version: answer.resource_version.clone(),
                };
                children.insert(key, applied);
            }
            // A server that does not track fields: apply each time.
            None => {
                children.remove(&key);
            }
        }
    }

    /// Drops the children that `is_there` denies, if there are many more than when this was last
    /// done.
    pub(crate) fn drop_gone(&self, is_there: impl Fn(TypeId, &ObjectKey) -> bool) {
        let most = self.known.load(Relaxed).saturating_mul(2).max(FEW);
        let all: Vec<_> = {
            let children = self.children.lock();
            if children.len() <= most {
                return;
            }
            children.keys().cloned().collect()
        };
        // Not under the lock: the cache has locks of its own.
        let gone = all.iter().filter(|(kind, key)| !is_there(*kind, key));
        let gone: Vec<_> = gone.collect();
        let mut children = self.children.lock();
        for child in gone {
            children.remove(child);
        }
        self.known.store(children.len(), Relaxed);
        children.shrink_to(most);
    }

    pub(crate) fn forget(&self, kind: TypeId, key: &ObjectKey) {
        self.children.lock().remove(&(kind, key.clone()));
    }
}

/// Whether `current`, of which nothing is remembered, shows by itself that it is as `desired` was
/// applied.
pub(crate) fn is_recognised(
    desired: &Desired,
    current: &ObjectMeta,
    json: &Value,
    manager: &str,
) -> bool {
    let mut entries = current.managed_fields.iter().flatten();
    // What a creation owns is still to be made an application.
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

/// Returns one number for the fields that `manager` has applied to an object, and their values. The
/// number is the same only within one process.
fn fingerprint(meta: &ObjectMeta, json: &Value, manager: &str) -> Option<u64> {
    let fields = fields_of(meta, manager)?;
    let mut hasher = DefaultHasher::new();
    fields.project(json).hash(&mut hasher);
    Some(hasher.finish())
}

#[cfg(test)]
mod tests;
