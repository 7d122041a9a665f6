//! Simulation of workloads: Deployments create ReplicaSets, ReplicaSets create Pods, and Pods run
//! immediately.
//!
//! The controllers of Deployments and ReplicaSets have a pure function `plan`, which computes the
//! next changes from the current state, and a function `step`, which makes these changes. No
//! containers are run: a pod becomes Running and Ready as soon as the controller sees it.

pub(crate) mod deployment;
pub(crate) mod pod;
pub(crate) mod replicaset;

use opkit_apimachinery::selector::LabelSelector;
use serde_json::{Value, json};

use crate::controllers::MANAGER;
use crate::object;
use crate::registry::{Registry, Write};
use crate::status::ApiResult;
use crate::store::{Committed, Key};
use crate::target::Target;

/// Returns the name of the controller in these owner references, if the controller is of this kind.
pub(crate) fn controller_of<'a>(owners: &'a [Value], kind: &str) -> Option<&'a str> {
    let owner = controller_reference(owners)?;
    (object::text(owner, &["kind"]) == kind).then(|| object::text(owner, &["name"]))
}

/// Returns the owner reference of the controller.
pub(crate) fn controller_reference(owners: &[Value]) -> Option<&Value> {
    owners
        .iter()
        .find(|owner| object::at(owner, &["controller"]) == &json!(true))
}

/// Returns an owner reference that makes `owner` the controller of an object.
pub(crate) fn owned_by(owner: &Value) -> Value {
    json!({
        "apiVersion": object::text(owner, &["apiVersion"]), "kind": object::text(owner, &["kind"]),
        "name": object::name(owner), "uid": object::uid(owner),
        "controller": true, "blockOwnerDeletion": true,
    })
}

/// Returns the objects of `resource` that `owner` controls. Before that, adopts objects without a
/// controller that match the selector of `owner`, and releases objects that no longer match.
async fn claim(registry: &Registry, owner: &Value, resource: &str) -> ApiResult<Vec<Value>> {
    let selector = LabelSelector::from_object(object::at(owner, &["spec", "selector"]));
    let kind = registry.kind_stored(resource);
    let (Ok(selector), Some(kind)) = (selector, kind) else {
        return Ok(Vec::new());
    };
    let (objects, _) = registry
        .store
        .list_stored(resource, Some(object::namespace(owner)));
    let mut claimed = Vec::new();
    // Most objects belong to other owners, and are not decoded.
    for object in objects {
        let owners = object.owners();
        let controller = controller_reference(&owners);
        let is_ours = controller.is_some_and(|c| object::text(c, &["uid"]) == object::uid(owner));
        let is_chosen = selector.matches(object.labels().as_ref());
        let is_leaving = object.is_deleting() || object::is_deleting(owner);
        let target = Target::new(&kind, object.namespace(), object.name());
        match (is_ours, is_chosen) {
            (true, false) if !is_leaving => {
                change_owners(registry, &target, |owners| {
                    owners.retain(|o| object::text(o, &["uid"]) != object::uid(owner));
                })
                .await?;
            }
            (true, _) => claimed.push(object.decode()),
            (false, true) if controller.is_none() && !is_leaving => {
                let adopted = change_owners(registry, &target, |owners| {
                    owners.push(owned_by(owner));
                })
                .await?;
                claimed.push(adopted.into_object());
            }
            (false, _) => {}
        }
    }
    Ok(claimed)
}

async fn change_owners(
    registry: &Registry,
    target: &Target,
    change: impl Fn(&mut Vec<Value>) + Sync,
) -> ApiResult<Committed> {
    registry
        .modify(target, &mut Write::by(MANAGER), |live| {
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
        .await
}

/// The content of a Kubernetes Event.
struct EventContent<'a> {
    component: &'a str,
    reason: &'a str,
    message: String,
}

/// Creates a Kubernetes Event about the object `regarding`. As in a cluster, a failure is only
/// logged.
async fn record_event(registry: &Registry, regarding: &Value, content: &EventContent<'_>) {
    if let Err(error) = try_record_event(registry, regarding, content).await {
        tracing::debug!(?error, reason = content.reason, "cannot create an event");
    }
}

async fn try_record_event(
    registry: &Registry,
    regarding: &Value,
    content: &EventContent<'_>,
) -> ApiResult<()> {
    let kind = registry.builtin("", "events")?;
    let now = registry.clock.now_rfc3339();
    let namespace = object::namespace(regarding);
    let name = format!(
        "{}.{:016x}",
        object::name(regarding),
        registry.random.next()
    );
    let type_ = match content.reason.starts_with("Failed") {
        true => "Warning",
        false => "Normal",
    };
    let event = json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": name, "namespace": namespace},
        "involvedObject": {
            "apiVersion": object::text(regarding, &["apiVersion"]),
            "kind": object::text(regarding, &["kind"]),
            "name": object::name(regarding), "namespace": namespace, "uid": object::uid(regarding),
            "resourceVersion": object::meta(regarding, "resourceVersion"),
        },
        "reason": content.reason, "message": content.message, "type": type_, "count": 1,
        "source": {"component": content.component},
        "reportingComponent": content.component, "reportingInstance": "",
        "firstTimestamp": now, "lastTimestamp": now, "eventTime": null,
    });
    registry
        .create(
            &Target::new(&kind, namespace, ""),
            event,
            &mut Write::by(content.component),
        )
        .await?;
    Ok(())
}

/// Sets the fields in `status` in the status of an object, and keeps all other fields.
async fn set_status(
    registry: &Registry,
    group: &str,
    plural: &str,
    key: &Key,
    manager: &str,
    status: &Value,
) -> ApiResult<()> {
    let kind = registry.builtin(group, plural)?;
    let target = Target::new(&kind, &key.namespace, &key.name).subresource("status");
    registry
        .modify(&target, &mut Write::by(manager), |live| {
            let mut new = live.clone();
            for (field, value) in status.as_object().into_iter().flatten() {
                object::set(&mut new, &["status", field], value.clone());
            }
            Ok(new)
        })
        .await?;
    Ok(())
}

/// Returns the value of a status counter. The value is null, so that the field is left out, if the
/// counter is 0.
fn counter(value: i64) -> Value {
    // As Go's `omitempty`.
    if value == 0 {
        Value::Null
    } else {
        json!(value)
    }
}
