//! The planned writes of one cluster, as one change of each object.

use opkit_apimachinery::differences::differences;
use opkit_apimachinery::redact::redact;
use opkit_client::PlannedChange;
use opkit_debug::{ObjectName, PlannedEffect, PlannedObject};
use serde_json::Value;

/// Changes of the objects of one cluster.
pub(super) struct Changes {
    cluster: Option<String>,
    seen: usize,
    objects: Vec<Written>,
}

/// An object with all writes of it.
struct Written {
    group: String,
    plural: String,
    namespace: Option<String>,
    name: String,
    /// Object before the first write.
    before: Option<Value>,
    /// Object after the last write.
    after: Option<Value>,
    reconciled: Vec<ObjectName>,
    unchecked: Option<String>,
}

impl Changes {
    pub(super) fn new(cluster: Option<&str>) -> Self {
        Self {
            cluster: cluster.map(str::to_owned),
            seen: 0,
            objects: Vec::new(),
        }
    }

    /// Returns the number of added writes.
    pub(super) fn seen(&self) -> usize {
        self.seen
    }

    /// Adds a write by the reconcile of an object.
    pub(super) fn add(&mut self, change: PlannedChange, by: Option<&ObjectName>) {
        self.seen = self.seen.saturating_add(1);
        let PlannedChange {
            info,
            before,
            after,
            unchecked,
            ..
        } = change;
        let namespace = info.namespace.filter(|_| info.plural != "namespaces");
        let name = info.name.unwrap_or_default();
        let known = self.objects.iter().position(|it| {
            it.group == info.group
                && it.plural == info.plural
                && it.namespace == namespace
                && it.name == name
        });
        let written = match known.and_then(|at| self.objects.get_mut(at)) {
            Some(written) => written,
            None => {
                self.objects.push(Written {
                    group: info.group,
                    plural: info.plural,
                    namespace,
                    name,
                    before,
                    after: None,
                    reconciled: Vec::new(),
                    unchecked: None,
                });
                let Some(written) = self.objects.last_mut() else {
                    return;
                };
                written
            }
        };
        written.after = after;
        // The later writes of a new object are never validated: the server does not have it.
        let is_first_of_new = written.before.is_none() && written.reconciled.is_empty();
        if written.before.is_some() || is_first_of_new {
            written.unchecked = written.unchecked.take().or(unchecked);
        }
        if let Some(by) = by.filter(|by| !written.reconciled.contains(by)) {
            written.reconciled.push(by.clone());
        }
    }

    /// Returns the changed objects, in the order of their first writes. An object that is as it was
    /// before the plan is left out.
    pub(super) fn objects(&mut self) -> Vec<PlannedObject> {
        let written = std::mem::take(&mut self.objects).into_iter();
        written.filter_map(|it| self.object(it)).collect()
    }

    fn object(&self, written: Written) -> Option<PlannedObject> {
        let Written { before, after, .. } = written;
        let kind = [&after, &before].into_iter().flatten().find_map(|object| {
            let kind = object.get("kind").and_then(Value::as_str);
            kind.map(str::to_owned)
        });
        let mut planned = PlannedObject {
            cluster: self.cluster.clone(),
            group: written.group,
            kind: kind.unwrap_or(written.plural),
            namespace: written.namespace,
            name: written.name,
            reconciled: written.reconciled,
            unchecked: written.unchecked,
            ..PlannedObject::default()
        };
        match (before, after) {
            (None, None) => return None,
            (None, Some(after)) => {
                planned.change = PlannedEffect::Created;
                planned.object = Some(shown(&planned.kind, after));
            }
            (Some(_), None) => planned.change = PlannedEffect::Deleted,
            (Some(before), Some(after)) if is_deleted(&after) && !is_deleted(&before) => {
                planned.change = PlannedEffect::Deleted;
            }
            (Some(before), Some(after)) => {
                planned.change = PlannedEffect::Changed;
                planned.fields = differences(&before, &after);
                if planned.fields.is_empty() {
                    return None;
                }
            }
        }
        Some(planned)
    }
}

fn is_deleted(object: &Value) -> bool {
    object.pointer("/metadata/deletionTimestamp").is_some()
}

/// Returns a new object without secret values, and without what only the server sets.
fn shown(kind: &str, mut object: Value) -> Value {
    redact(kind, &mut object);
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
        if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
            for name in [
                "creationTimestamp",
                "generation",
                "managedFields",
                "resourceVersion",
                "uid",
            ] {
                metadata.remove(name);
            }
        }
    }
    object
}

#[cfg(test)]
mod tests;
