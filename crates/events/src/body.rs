//! Request bodies of the two event APIs. The bodies are JSON values, because k8s-openapi's types
//! would tie this crate to one Kubernetes version.

use jiff::Timestamp;
use opkit_client::Kind;
use serde_json::{Value, json};

use crate::correlator::Post;
use crate::event::RecordedEvent;
use crate::{EventApi, Reporter};

/// Returns the kind `Event` of `api`.
pub(crate) fn kind(api: EventApi) -> Kind {
    let group = match api {
        EventApi::EventsV1 => "events.k8s.io",
        EventApi::CoreV1 => "",
    };
    Kind {
        group: group.into(),
        version: "v1".into(),
        kind: "Event".into(),
        plural: "events".into(),
        namespaced: true,
    }
}

/// Returns the namespace to post `event` in: `default` for events about cluster-scoped objects.
pub(crate) fn namespace_of(event: &RecordedEvent) -> &str {
    event.about.key.namespace.as_deref().unwrap_or("default")
}

/// Returns the complete event, for a create request.
pub(crate) fn new_event(api: EventApi, post: &Post, reporter: &Reporter) -> Value {
    let event = &post.event;
    let about = &event.about;
    let metadata = json!({"name": post.name, "namespace": namespace_of(event)});
    let object = without_nulls(json!({
        "apiVersion": about.kind.api_version(),
        "kind": about.kind.kind,
        "namespace": about.key.namespace,
        "name": about.key.name,
        "uid": about.uid,
        "resourceVersion": about.resource_version,
    }));
    without_nulls(match api {
        EventApi::EventsV1 => json!({
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": metadata,
            "eventTime": micro_time(post.first),
            "type": event.event_type.as_str(),
            "reason": event.reason,
            "note": event.note,
            "action": "Reconcile",
            "reportingController": reporter.controller,
            "reportingInstance": reporter.instance,
            "regarding": object,
            "series": (post.count > 1).then(|| series(post)),
        }),
        EventApi::CoreV1 => json!({
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": metadata,
            "type": event.event_type.as_str(),
            "reason": event.reason,
            "message": event.note,
            "involvedObject": object,
            "count": post.count,
            "firstTimestamp": time(post.first),
            "lastTimestamp": time(post.last),
            "source": {"component": reporter.controller},
            "reportingComponent": reporter.controller,
            "reportingInstance": reporter.instance,
        }),
    })
}

/// Returns the object without top-level fields that are null.
fn without_nulls(mut object: Value) -> Value {
    if let Some(fields) = object.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    object
}

/// Returns the fields that change when an event is repeated, for a merge patch.
pub(crate) fn change(api: EventApi, post: &Post) -> Value {
    match api {
        EventApi::EventsV1 => json!({"series": series(post)}),
        EventApi::CoreV1 => json!({
            "count": post.count,
            "lastTimestamp": time(post.last),
            "message": post.event.note,
        }),
    }
}

/// Returns the `series` field of an `events.k8s.io/v1` event.
fn series(post: &Post) -> Value {
    json!({"count": post.count, "lastObservedTime": micro_time(post.last)})
}

/// Formats a Kubernetes MicroTime, which has exactly six digits after the decimal point.
fn micro_time(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}

/// Formats a Kubernetes Time, which has no fraction of a second.
fn time(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
