//! Validation of Events of both API groups. An Event is validated in the form of the core group.

use serde_json::{Value, json};

use super::field::{Errors, Field};
use super::format;

const NAMESPACE: &str = "does not match event.namespace";
/// Fields that cannot change, and whose names are those of the core group.
const IMMUTABLE: &[&str] = &[
    "involvedObject",
    "reason",
    "message",
    "source",
    "firstTimestamp",
    "lastTimestamp",
    "count",
    "reason",
    "type",
    "eventTime",
    "action",
    "related",
    "reportingComponent",
    "reportingInstance",
];

/// Adds the errors in an Event. `is_new_group` reports whether the request is one of
/// `events.k8s.io`. `live` is the stored Event, if there is one.
pub(super) fn event(
    object: &Field<'_>,
    is_new_group: bool,
    live: Option<&Field<'_>>,
    errors: &mut Errors,
) {
    let namespace = object.at(&["metadata", "namespace"]).text();
    let regarding = object.at(&["involvedObject", "namespace"]);
    let has_time = object.get("eventTime").is_set();
    if has_time {
        let is_cluster = matches!(namespace, "default" | "kube-system");
        if regarding.is_empty() && !is_cluster {
            errors.invalid_text(&regarding, NAMESPACE);
        }
        reported(object, is_new_group, errors);
    } else {
        let fits = match regarding.text() {
            "" => matches!(namespace, "" | "default"),
            text => text == namespace,
        };
        if !fits {
            errors.invalid_text(&regarding, NAMESPACE);
        }
    }
    for rule in format::dns_subdomain(namespace) {
        errors.invalid_value("namespace", json!(namespace), &rule);
    }
    if !is_new_group {
        return;
    }
    match live {
        None => {
            series(object, errors);
            created(object, errors);
        }
        Some(live) => {
            if object.get("series").value != live.get("series").value {
                series(object, errors);
            }
            changed(live, object, errors);
        }
    }
}

/// Adds the errors in the fields of an Event with an `eventTime`.
fn reported(object: &Field<'_>, is_new_group: bool, errors: &mut Errors) {
    let controller = object.get("reportingComponent");
    let controller = match is_new_group {
        true => controller.renamed("reportingController"),
        false => controller,
    };
    errors.not_empty(&controller);
    errors.rules(&controller, format::qualified_name(controller.text()));
    let mut limited = |name: &str, max: usize, is_required: bool| {
        let field = object.get(name);
        if is_required {
            errors.not_empty(&field);
        }
        if field.text().len() > max {
            let detail = format!("can have at most {max} characters");
            errors.invalid_value(&field.path, json!(""), &detail);
        }
    };
    limited("reportingInstance", 128, true);
    limited("action", 128, true);
    limited("reason", 128, true);
    limited("message", 1024, false);
}

fn series(object: &Field<'_>, errors: &mut Errors) {
    let series = object.get("series");
    if !series.is_set() {
        return;
    }
    if series.get("count").int() < 2 {
        errors.invalid_value("series.count", json!(""), "should be at least 2");
    }
    let time = series.get("lastObservedTime");
    if !time.is_set() {
        errors.required(&time, "");
    }
}

/// Adds the errors in a new Event of `events.k8s.io`.
fn created(object: &Field<'_>, errors: &mut Errors) {
    let time = object.get("eventTime");
    if !time.is_set() {
        errors.required(&time, "");
    }
    let type_ = object.get("type");
    if !type_.is_one_of(&["Normal", "Warning"]) {
        let detail = format!("has invalid value: {}", type_.text());
        errors.invalid_value(&type_.path, json!(""), &detail);
    }
    let source = object.get("source");
    let has_source = !source.get("component").is_empty() || !source.get("host").is_empty();
    for (name, is_present) in [
        ("firstTimestamp", object.get("firstTimestamp").is_set()),
        ("lastTimestamp", object.get("lastTimestamp").is_set()),
        ("count", object.get("count").int() != 0),
        ("source", has_source),
    ] {
        if is_present {
            errors.invalid_value(name, json!(""), "needs to be unset");
        }
    }
}

fn changed(live: &Field<'_>, object: &Field<'_>, errors: &mut Errors) {
    let without_empty = |value: &Value| match value {
        Value::String(text) if text.is_empty() => Value::Null,
        Value::Object(fields) if fields.is_empty() => Value::Null,
        value => value.clone(),
    };
    for name in IMMUTABLE {
        let (before, after) = (live.get(name), object.get(name));
        if without_empty(before.value) != without_empty(after.value) {
            let after = match *name {
                "reportingComponent" => after.renamed("reportingController"),
                _ => after,
            };
            errors.invalid(&after, "field is immutable");
        }
    }
}
