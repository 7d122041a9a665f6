//! The desired child: checked, and completed with its owner. This module does no I/O.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{FieldsV1, ManagedFieldsEntry, ObjectMeta};
use opkit_apimachinery::managedfields::FieldSet;
use opkit_client::{Kind, ObjectKey};
use serde_json::{Map, Value, json};

use crate::context::apply::annotation::{APPLIED, OWNER, owner_annotation, set_applied};
use crate::context::apply::hash::hash_of;
use crate::context::status::conditions::without_nulls;
use crate::error::ApplyError;
use crate::object::owner::Owner;

/// Fields of the metadata that are removed from the applied content: those that only the server
/// sets, and `uid` and `resourceVersion`, which `Desired::body` adds.
const NOT_APPLIED: [&str; 6] = [
    "creationTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// Relation of a child to the reconciled object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Relation {
    /// The child has a controller reference to the reconciled object.
    Owned,
    /// The child has a controller reference to the reconciled object, and is never changed after
    /// its creation.
    Once,
    /// The child has no owner reference: an annotation of the child names the owner, and an
    /// annotation of the reconciled object lists the child.
    Unowned,
}

#[derive(Debug)]
pub(crate) struct Desired {
    pub(crate) kind: Kind,
    pub(crate) key: ObjectKey,
    pub(crate) relation: Relation,
    /// The content to apply, with the owner reference and the annotations, but without
    /// `resourceVersion` and UID.
    pub(crate) content: Value,
    /// The `resourceVersion` that the child must have; `None` if the user requires none.
    pub(crate) resource_version: Option<String>,
    pub(crate) hash: u64,
}

impl Desired {
    /// Checks `child` and creates the content that the field manager `manager` applies for `owner`.
    pub(crate) fn new(
        owner: &Owner,
        manager: &str,
        kind: Kind,
        child: Value,
        relation: Relation,
    ) -> Result<Self, ApplyError> {
        let mut content = match without_nulls(child) {
            Value::Object(content) => content,
            _ => Map::new(),
        };
        content.remove("status");
        content.insert("apiVersion".into(), kind.api_version().into());
        content.insert("kind".into(), kind.kind.clone().into());
        let mut meta = match content.remove("metadata") {
            Some(Value::Object(meta)) => meta,
            _ => Map::new(),
        };
        let text = |meta: &Map<String, Value>, field: &str| {
            meta.get(field)
                .and_then(Value::as_str)
                .filter(|s| !s.is_empty())
                .map(str::to_owned)
        };
        let resource_version = text(&meta, "resourceVersion");
        for field in NOT_APPLIED {
            meta.remove(field);
        }
        let Some(name) = text(&meta, "name") else {
            return Err(ApplyError::Unnamed {
                kind: Box::new(kind),
                owner: owner.to_string(),
            });
        };
        let given = text(&meta, "namespace");
        let namespace = match relation {
            Relation::Unowned => any_namespace(owner, &kind, &name, given)?,
            _ => namespace(owner, &kind, &name, given)?,
        };
        if let Some(namespace) = &namespace {
            meta.insert("namespace".into(), namespace.clone().into());
        }
        let key = ObjectKey { namespace, name };
        let is_secret = kind.group.is_empty() && kind.kind == "Secret";
        // The server converts stringData to data, which matters only for children that are
        // compared.
        if is_secret && relation != Relation::Once && content.contains_key("stringData") {
            return Err(ApplyError::StringData { key });
        }
        let annotations = meta.entry("annotations").or_insert_with(|| json!({}));
        if let Some(annotations) = annotations.as_object_mut() {
            // These belong to the object that the child was copied from.
            annotations.remove(APPLIED);
            annotations.remove(OWNER);
            if relation == Relation::Unowned {
                annotations.insert(OWNER.into(), owner_annotation(owner).into());
            }
        }
        if relation != Relation::Unowned {
            add_owner(owner, &mut meta);
        }
        content.insert("metadata".into(), meta.into());
        let mut content = Value::Object(content);
        // Prune deletes by this annotation, and never deletes a child that is only created.
        if relation != Relation::Once {
            set_applied(&mut content, manager);
        }
        let hash = hash_of(&content);
        Ok(Self {
            kind,
            key,
            relation,
            content,
            resource_version,
            hash,
        })
    }

    /// Reports whether `current` has the `resourceVersion` that the user requires; true if the user
    /// requires none.
    pub(crate) fn is_at(&self, current: &ObjectMeta) -> bool {
        self.resource_version.is_none() || self.resource_version == current.resource_version
    }

    /// Returns the body of the apply request, with `uid` and `version` if given. With the UID, the
    /// request fails if the object was deleted, instead of creating a new object or changing
    /// another one of the same name.
    pub(crate) fn body(&self, uid: Option<&str>, version: Option<&str>) -> Value {
        let mut body = self.content.clone();
        if let Some(meta) = body.get_mut("metadata").and_then(Value::as_object_mut) {
            for (field, value) in [("uid", uid), ("resourceVersion", version)] {
                if let Some(value) = value {
                    meta.insert(field.into(), value.into());
                }
            }
        }
        body
    }
}

/// Returns the namespace of a child with an owner reference. A child of a namespaced owner must be
/// in the namespace of the owner.
fn namespace(
    owner: &Owner,
    kind: &Kind,
    name: &str,
    namespace: Option<String>,
) -> Result<Option<String>, ApplyError> {
    let refused = |namespace: Option<String>, why| {
        Err(ApplyError::Scope {
            kind: Box::new(kind.clone()),
            key: ObjectKey {
                namespace,
                name: name.to_owned(),
            },
            owner: owner.to_string(),
            why,
        })
    };
    match (&owner.key.namespace, kind.namespaced, namespace) {
        (Some(_), false, _) => refused(None, "the child is cluster-scoped"),
        (Some(own), true, None) => Ok(Some(own.clone())),
        (Some(own), true, Some(other)) if *own != other => refused(
            Some(other),
            "an owner and its children must be in the same namespace",
        ),
        (None, true, None) => refused(None, "the child needs a namespace"),
        (_, true, namespace) => Ok(namespace),
        (None, false, _) => Ok(None),
    }
}

/// Returns the namespace of a child without an owner reference: `namespace` if given, else the
/// namespace of the owner.
fn any_namespace(
    owner: &Owner,
    kind: &Kind,
    name: &str,
    namespace: Option<String>,
) -> Result<Option<String>, ApplyError> {
    if !kind.namespaced {
        return Ok(None);
    }
    let namespace = namespace.or_else(|| owner.key.namespace.clone());
    match namespace {
        Some(namespace) => Ok(Some(namespace)),
        None => Err(ApplyError::Scope {
            kind: Box::new(kind.clone()),
            key: name.into(),
            owner: owner.to_string(),
            why: "the child needs a namespace",
        }),
    }
}

fn add_owner(owner: &Owner, meta: &mut Map<String, Value>) {
    let references = meta.entry("ownerReferences").or_insert_with(|| json!([]));
    if let Some(references) = references.as_array_mut() {
        references.retain(|reference| {
            reference.get("uid").and_then(Value::as_str) != Some(&*owner.uid())
        });
        references.push(owner.reference());
    }
}

/// Returns the JSON patch of `managedFields` that gives the field manager `manager` fields of other
/// entries with the operation `Apply`: the fields that `manager` owns by `Update`, because it
/// created the object, and all fields of the managers `others`. Returns `None` if there is nothing
/// to transfer. client-go calls this csaupgrade. Without the patch, a field that is no longer
/// applied would stay, because its `Update` entry would still own it.
pub(crate) fn upgrade_patch(meta: &ObjectMeta, manager: &str, others: &[String]) -> Option<Value> {
    let entries = meta.managed_fields.as_ref()?;
    let is_applied = |entry: &ManagedFieldsEntry| is_own(entry, manager, "Apply");
    let is_taken = |entry: &ManagedFieldsEntry| {
        let name = entry.manager.as_deref().unwrap_or_default();
        !is_applied(entry)
            && is_of_object(entry)
            && (is_own(entry, manager, "Update") || others.iter().any(|other| other == name))
    };
    let first = entries.iter().find(|entry| is_taken(entry))?;
    let applied = entries.iter().find(|entry| is_applied(entry));
    let mut upgraded = applied.unwrap_or(first).clone();
    upgraded.manager = Some(manager.to_owned());
    upgraded.operation = Some("Apply".to_owned());
    for taken in entries.iter().filter(|entry| is_taken(entry)) {
        if let (Some(fields), Some(more)) = (&mut upgraded.fields_v1, &taken.fields_v1) {
            unite(fields, more);
        }
    }
    let rest = entries
        .iter()
        .filter(|entry| !is_taken(entry) && !is_applied(entry))
        .cloned();
    let managed: Vec<_> = std::iter::once(upgraded).chain(rest).collect();
    Some(json!([
        {"op": "test", "path": "/metadata/resourceVersion", "value": meta.resource_version},
        {"op": "replace", "path": "/metadata/managedFields", "value": managed},
    ]))
}

/// Reports whether an entry of `managedFields` belongs to `manager` and `operation`, and is for the
/// object itself, not for a subresource.
pub(crate) fn is_own(entry: &ManagedFieldsEntry, manager: &str, operation: &str) -> bool {
    entry.manager.as_deref() == Some(manager)
        && entry.operation.as_deref() == Some(operation)
        && is_of_object(entry)
}

/// Reports whether an entry of `managedFields` is for the object itself, not for a subresource.
fn is_of_object(entry: &ManagedFieldsEntry) -> bool {
    entry.subresource.as_deref().unwrap_or_default().is_empty()
}

/// Adds the fields of `more` to `fields`. Does nothing if `fields` or `more` is not valid.
fn unite(fields: &mut FieldsV1, more: &FieldsV1) {
    let decode = |fields: &FieldsV1| FieldSet::from_fields_v1(&fields.0);
    if let (Some(own), Some(more)) = (decode(fields), decode(more)) {
        fields.0 = own.union(&more).to_fields_v1();
    }
}

#[cfg(test)]
mod tests;
