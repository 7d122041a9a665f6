//! Workload simulation: Deployments make ReplicaSets, ReplicaSets make Pods, Pods run at once.
//!
//! Each file has a pure plan over the present state and a thin step that carries it out. No
//! container runs: a pod becomes Running and Ready as soon as it is seen.

pub(crate) mod deployment;
pub(crate) mod pod;
pub(crate) mod replicaset;

use std::sync::Arc;

use opkit_apimachinery::selector::LabelSelector;
use serde_json::{Value, json};

use crate::controllers::MANAGER;
use crate::object;
use crate::registry::{Registry, Write};
use crate::status::ApiResult;
use crate::store::Key;
use crate::target::Target;

/// The name of the object of that kind that controls `object`.
pub(crate) fn controller_of<'a>(object: &'a Value, kind: &str) -> Option<&'a str> {
    let owner = controller_reference(object)?;
    (object::text(owner, &["kind"]) == kind).then(|| object::text(owner, &["name"]))
}

fn controller_reference(object: &Value) -> Option<&Value> {
    object::items(object, &["metadata", "ownerReferences"])
        .iter()
        .find(|owner| object::at(owner, &["controller"]) == &json!(true))
}

/// A reference that makes `owner` the controller of what carries it.
fn owned_by(owner: &Value) -> Value {
    json!({
        "apiVersion": object::text(owner, &["apiVersion"]), "kind": object::text(owner, &["kind"]),
        "name": object::name(owner), "uid": object::uid(owner),
        "controller": true, "blockOwnerDeletion": true,
    })
}

/// Whether anybody controls `object`.
pub(crate) fn is_controlled(object: &Value) -> bool {
    controller_reference(object).is_some()
}

/// The objects of `resource` that `owner` controls: those its selector chooses are adopted if
/// nobody controls them, and those it no longer chooses are let go.
fn claim(registry: &Registry, owner: &Value, resource: &str) -> ApiResult<Vec<Value>> {
    let selector = LabelSelector::from_object(object::at(owner, &["spec", "selector"]));
    let kind = registry.kind_stored(resource);
    let (Ok(selector), Some(kind)) = (selector, kind) else {
        return Ok(Vec::new());
    };
    let (objects, _) = registry
        .store
        .list(resource, Some(object::namespace(owner)));
    let mut claimed = Vec::new();
    for object in objects {
        let controller = controller_reference(&object);
        let is_ours = controller.is_some_and(|c| object::text(c, &["uid"]) == object::uid(owner));
        let is_chosen = selector.matches(object::labels(&object));
        let is_leaving = object::is_deleting(&object) || object::is_deleting(owner);
        let target = Target::new(&kind, object::namespace(&object), object::name(&object));
        match (is_ours, is_chosen) {
            (true, false) if !is_leaving => {
                change_owners(registry, &target, |owners| {
                    owners.retain(|o| object::text(o, &["uid"]) != object::uid(owner));
                })?;
            }
            (true, _) => claimed.push(Value::clone(&object)),
            (false, true) if controller.is_none() && !is_leaving => {
                let adopted = change_owners(registry, &target, |owners| {
                    owners.push(owned_by(owner));
                })?;
                claimed.push(Value::clone(&adopted));
            }
            (false, _) => {}
        }
    }
    Ok(claimed)
}

fn change_owners(
    registry: &Registry,
    target: &Target,
    change: impl Fn(&mut Vec<Value>),
) -> ApiResult<Arc<Value>> {
    registry.modify(target, &mut Write::by(MANAGER), |live| {
        let mut owners = object::items(live, &["metadata", "ownerReferences"]).to_vec();
        change(&mut owners);
        let mut new = live.clone();
        let owners = if owners.is_empty() {
            Value::Null
        } else {
            json!(owners)
        };
        object::set_meta(&mut new, "ownerReferences", owners);
        Ok(new)
    })
}

/// Who says what about an object.
struct Happening<'a> {
    component: &'a str,
    reason: &'a str,
    message: String,
}

/// Writes a Kubernetes Event. One that cannot be written is only logged, as in a cluster.
fn tell(registry: &Registry, regarding: &Value, happening: &Happening<'_>) {
    if let Err(error) = try_tell(registry, regarding, happening) {
        tracing::debug!(?error, reason = happening.reason, "cannot write an event");
    }
}

fn try_tell(registry: &Registry, regarding: &Value, happening: &Happening<'_>) -> ApiResult<()> {
    let kind = registry.builtin("", "events")?;
    let now = registry.clock.now_rfc3339();
    let namespace = object::namespace(regarding);
    let name = format!(
        "{}.{:016x}",
        object::name(regarding),
        registry.random.next()
    );
    let event = json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": name, "namespace": namespace},
        "involvedObject": {
            "apiVersion": object::text(regarding, &["apiVersion"]),
            "kind": object::text(regarding, &["kind"]),
            "name": object::name(regarding), "namespace": namespace, "uid": object::uid(regarding),
            "resourceVersion": object::meta(regarding, "resourceVersion"),
        },
        "reason": happening.reason, "message": happening.message, "type": "Normal", "count": 1,
        "source": {"component": happening.component},
        "reportingComponent": happening.component, "reportingInstance": "",
        "firstTimestamp": now, "lastTimestamp": now, "eventTime": null,
    });
    registry.create(
        &Target::new(&kind, namespace, ""),
        event,
        &mut Write::by(happening.component),
    )?;
    Ok(())
}

/// Writes the fields of a status that differ.
fn set_status(
    registry: &Registry,
    group: &str,
    plural: &str,
    key: &Key,
    manager: &str,
    status: &Value,
) -> ApiResult<()> {
    let kind = registry.builtin(group, plural)?;
    let target = Target::new(&kind, &key.namespace, &key.name).subresource("status");
    registry.modify(&target, &mut Write::by(manager), |live| {
        let mut new = live.clone();
        for (field, value) in status.as_object().into_iter().flatten() {
            object::set(&mut new, &["status", field], value.clone());
        }
        Ok(new)
    })?;
    Ok(())
}

/// A counter in a status.
fn whole(value: i64) -> Value {
    // Counters that are zero are left out, as Go's `omitempty` does.
    if value == 0 {
        Value::Null
    } else {
        json!(value)
    }
}
