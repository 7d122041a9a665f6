//! A child as it shall be: checked, completed with its owner, ready to be sent. No I/O.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{FieldsV1, ManagedFieldsEntry, ObjectMeta};
use opkit_apimachinery::managedfields::FieldSet;
use opkit_client::{Kind, ObjectKey};
use serde_json::{Map, Value, json};

use crate::context::apply::annotation::{APPLIED, OWNER, add_mark, owner_mark};
use crate::context::apply::hash::hash_of;
use crate::context::status::conditions::without_nulls;
use crate::error::ApplyError;
use crate::object::owner::Owner;

/// Fields of the metadata that only the server sets, or that are set apart here.
const NOT_APPLIED: [&str; 6] = [
    "creationTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// How a child belongs to the reconciled object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Relation {
    /// By a controller reference.
    Owned,
    /// By a controller reference; it is created, and then left alone.
    Once,
    /// By a mark, and a record on the reconciled object.
    Unowned,
}

#[derive(Debug)]
pub(crate) struct Desired {
    pub(crate) kind: Kind,
    pub(crate) key: ObjectKey,
    pub(crate) relation: Relation,
    /// What is applied, with the owner reference and the mark, without version and UID.
    pub(crate) content: Value,
    /// The version that the child must have, if the user asks for one.
    pub(crate) resource_version: Option<String>,
    pub(crate) hash: u64,
}

impl Desired {
    /// What `manager` shall apply for `owner`.
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
        // The server makes data of it, which is no drift of what is only created.
        if is_secret && relation != Relation::Once && content.contains_key("stringData") {
            return Err(ApplyError::StringData { key });
        }
        let annotations = meta.entry("annotations").or_insert_with(|| json!({}));
        if let Some(annotations) = annotations.as_object_mut() {
            // Those of an object that the child was copied from.
            annotations.remove(APPLIED);
            annotations.remove(OWNER);
            if relation == Relation::Unowned {
                annotations.insert(OWNER.into(), owner_mark(owner).into());
            }
        }
        if relation != Relation::Unowned {
            add_owner(owner, &mut meta);
        }
        content.insert("metadata".into(), meta.into());
        let mut content = Value::Object(content);
        // What is only created is never pruned, which goes by this mark.
        if relation != Relation::Once {
            add_mark(&mut content, manager);
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

    /// Whether `current` is at the version that the user asks for, if one.
    pub(crate) fn is_at(&self, current: &ObjectMeta) -> bool {
        self.resource_version.is_none() || self.resource_version == current.resource_version
    }

    /// The body of the apply request, at `version` if one is given. The UID makes it fail, instead
    /// of making or taking over another object, should this one be gone meanwhile.
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

/// The namespace rule of owner references: an owner in a namespace has children there only.
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
        (Some(_), false, _) => refused(None, "the child is not in a namespace"),
        (Some(own), true, None) => Ok(Some(own.clone())),
        (Some(own), true, Some(other)) if *own != other => refused(
            Some(other),
            "an owner and its children are in one namespace",
        ),
        (None, true, None) => refused(None, "the child needs a namespace"),
        (_, true, namespace) => Ok(namespace),
        (None, false, _) => Ok(None),
    }
}

/// The namespace of a child without an owner reference: any, by default that of the owner.
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

/// The JSON patch that turns what `manager` owns by having created the object, and what each of
/// `others` owns in any way, into what `manager` owns by having applied it; `None` if there is
/// nothing to turn. client-go calls this csaupgrade: without it a field that is no longer applied
/// would stay, owned by the creation.
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

/// Whether an entry says what `manager` owns of the object itself by `operation`.
pub(crate) fn is_own(entry: &ManagedFieldsEntry, manager: &str, operation: &str) -> bool {
    entry.manager.as_deref() == Some(manager)
        && entry.operation.as_deref() == Some(operation)
        && is_of_object(entry)
}

/// Whether an entry is of the object itself, and not of a subresource.
fn is_of_object(entry: &ManagedFieldsEntry) -> bool {
    entry.subresource.as_deref().unwrap_or_default().is_empty()
}

/// Adds the fields of `more` to `fields`; no change if one of them is not valid.
fn unite(fields: &mut FieldsV1, more: &FieldsV1) {
    let decode = |fields: &FieldsV1| FieldSet::from_fields_v1(&fields.0);
    if let (Some(own), Some(more)) = (decode(fields), decode(more)) {
        fields.0 = own.union(&more).to_fields_v1();
    }
}

#[cfg(test)]
mod tests;
