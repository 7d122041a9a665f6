//! Server-side apply.

use serde_json::{Map, Value};

use super::managers::{self, Entry, Identity, Managers, Operation};
use super::topology::Node;
use super::update::record_update;
use super::walk::{self, Comparison};
use super::{ApplyError, Conflict, FieldSet, Manager, UNOWNED, last_applied};
use crate::schema::Typed;
use crate::structural::normalize;

/// Manager of the fields that were set before any ownership was recorded.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// Field manager of `kubectl apply --server-side`.
const KUBECTL: &str = "kubectl";

/// Applies a configuration server-side, and returns the object to store, with its
/// `metadata.managedFields`.
///
/// `config` is merged into `live` (`None` if the object is new). Fields that `manager` applied
/// before and does not apply now are removed, unless another manager owns them. If another manager
/// owns a field with a different value, the result is a conflict; with `force`, `manager` becomes
/// the owner of the field. If another manager owns a field with the same value, both managers own
/// the field. If nothing changes, the result is equal to `live`, including the times.
///
/// A manager named `kubectl` takes over, without conflict, the fields of an earlier client-side
/// apply that have not changed since.
///
/// The caller removes `status` and other fields that the endpoint does not accept, and afterwards
/// sets the fields of the server (`uid`, `creationTimestamp`).
///
/// # Examples
///
/// ```
/// use opkit_apimachinery::managedfields::{Manager, apply};
/// use opkit_apimachinery::schema::{NoDefinitions, Schema, Typed};
/// use serde_json::json;
///
/// let schema = Schema::parse(&json!({"type": "object", "properties": {
///     "spec": {"type": "object", "properties": {"size": {"type": "integer"}}},
/// }}))?;
/// let typed = Typed::new(&schema, &NoDefinitions);
/// let by = |name| Manager { name, api_version: "example.com/v1", subresource: "" };
/// let time = "2024-01-01T00:00:00Z";
///
/// let object = apply(None, &json!({"spec": {"size": 1}}), &typed, &by("cook"), false, time)?;
/// let config = json!({"spec": {"size": 2}});
/// let error = apply(Some(&object), &config, &typed, &by("guest"), false, time).unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     r#"Apply failed with 1 conflict: conflict with "cook": .spec.size"#,
/// );
/// let object = apply(Some(&object), &config, &typed, &by("guest"), true, time)?;
/// assert_eq!(object.pointer("/spec/size"), Some(&json!(2)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// [`ApplyError::Conflicts`] if another manager owns a field that would change and `force` is not
/// set. The other variants if the configuration contains managed fields or does not fit its schema.
pub fn apply(
    live: Option<&Value>,
    config: &Value,
    schema: &Typed<'_>,
    manager: &Manager<'_>,
    force: bool,
    time: &str,
) -> Result<Value, ApplyError> {
    let applied = apply_config(live, config, schema, manager, force, time);
    let mut new = match (applied, live) {
        (Err(ApplyError::Conflicts(conflicts)), Some(live)) if manager.name == KUBECTL => {
            let allowed = last_applied::unchanged_fields(live, schema, manager.api_version);
            let rest = conflicts
                .into_iter()
                .filter(|conflict| !allowed.contains(&conflict.field));
            let rest: Vec<Conflict> = rest.collect();
            if !rest.is_empty() {
                return Err(ApplyError::Conflicts(rest));
            }
            apply_config(Some(live), config, schema, manager, true, time)?
        }
        (applied, _) => applied?,
    };
    if manager.name == KUBECTL {
        last_applied::refresh(&mut new, config);
    }
    Ok(new)
}

fn apply_config(
    live: Option<&Value>,
    config: &Value,
    schema: &Typed<'_>,
    manager: &Manager<'_>,
    force: bool,
    time: &str,
) -> Result<Value, ApplyError> {
    if config
        .pointer("/metadata/managedFields")
        .is_some_and(|fields| !fields.is_null())
    {
        return Err(ApplyError::Invalid(
            "metadata.managedFields must be nil".to_owned(),
        ));
    }
    let root = Node::root(schema);
    walk::check(config, &root).map_err(|wrong| {
        let object = describe(config);
        ApplyError::Schema(format!(
            "failed to create typed patch object ({object}): {wrong}"
        ))
    })?;
    let mut owners = match live {
        None => Managers::default(),
        Some(live) => Managers::decode(live).map_err(|wrong| {
            ApplyError::Invalid(format!("failed to decode managed fields: {wrong}"))
        })?,
    };
    let mut old = live.cloned().unwrap_or_else(|| Value::Object(Map::new()));
    managers::strip(&mut old);
    if live.is_some() && owners.is_empty() {
        let before = Manager {
            name: BEFORE_FIRST_APPLY,
            ..*manager
        };
        record_update(&mut owners, None, &old, &root, &before, time);
    }
    let mut new = merge_applied(&mut owners, &old, config, &root, manager);
    let comparison = walk::compare(&old, &new, &root);
    let identity = Identity::new(manager, Operation::Apply);
    let conflicts = conflicts(&owners, &identity, &comparison);
    if !force && !conflicts.is_empty() {
        return Err(ApplyError::Conflicts(conflicts));
    }
    owners.take(
        &comparison.changed().union(&comparison.removed),
        Some(&identity),
    );
    if let Some(own) = owners.entries.get_mut(&identity) {
        own.fields = own.fields.difference(&UNOWNED);
        if new != old {
            own.time = Some(time.to_owned());
        }
    }
    owners.take(&FieldSet::default(), None);
    owners.cap();
    normalize(&mut new, schema);
    owners.encode(&mut new);
    Ok(new)
}

/// Merges the configuration into the object, removes the fields that the manager no longer applies,
/// and records the fields that the manager owns now.
fn merge_applied(
    owners: &mut Managers,
    old: &Value,
    config: &Value,
    root: &Node<'_>,
    manager: &Manager<'_>,
) -> Value {
    let merged = walk::merge(Some(old), Some(config), root).unwrap_or(Value::Null);
    let Node::Known { typed, .. } = root else {
        return merged;
    };
    let identity = Identity::new(manager, Operation::Apply);
    let last = owners.entries.remove(&identity);
    let entry = Entry {
        api_version: manager.api_version.to_owned(),
        fields: FieldSet::of(config, typed),
        time: last.as_ref().and_then(|last| last.time.clone()),
    };
    owners.entries.insert(identity, entry);
    match last {
        Some(last) if !last.fields.is_empty() => prune(&merged, &last.fields, owners, root),
        _ => merged,
    }
}

/// Removes each field, list item and map item that the manager applied last time and that no
/// manager owns now.
fn prune(merged: &Value, last: &FieldSet, owners: &Managers, root: &Node<'_>) -> Value {
    let Node::Known { typed, .. } = root else {
        return merged.clone();
    };
    let remove = |fields: &FieldSet| walk::remove_items(merged, fields, root);
    let fields_of = |value: &Option<Value>| match value {
        Some(value) => FieldSet::of(value, typed).with_named_parents(root),
        None => FieldSet::default(),
    };
    let last = last.with_named_parents(root);
    let all = FieldSet::of(merged, typed).with_named_parents(root);
    let pruned = fields_of(&remove(&last));
    let owned = owners
        .entries
        .values()
        .fold(FieldSet::default(), |owned, entry| {
            owned.union(&entry.fields)
        })
        .with_named_parents(root);
    let kept = fields_of(&remove(&all.difference(&pruned.union(&owned))));
    remove(&all.difference(&kept).intersection(&last)).unwrap_or(Value::Null)
}

pub(super) fn conflicts(
    owners: &Managers,
    by: &Identity,
    comparison: &Comparison,
) -> Vec<Conflict> {
    let changed = comparison.changed();
    let mut conflicts = Vec::new();
    for (owner, entry) in owners.entries.iter().filter(|(owner, _)| *owner != by) {
        for field in entry.fields.intersection(&changed).paths() {
            conflicts.push(Conflict {
                manager: owner.manager.clone(),
                operation: owner.operation.as_str().to_owned(),
                api_version: entry.api_version.clone(),
                subresource: owner.subresource.clone(),
                time: entry.time.clone(),
                field,
            });
        }
    }
    conflicts
}

/// Formats an object as in Kubernetes' error messages: `default/web; apps/v1, Kind=Deployment`.
fn describe(object: &Value) -> String {
    let text = |pointer: &str| {
        object
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let version = match text("/apiVersion") {
        core if !core.contains('/') => format!("/{core}"),
        group_version => group_version.to_owned(),
    };
    let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
    format!("{namespace}/{name}; {version}, Kind={}", text("/kind"))
}
