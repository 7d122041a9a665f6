//! The cells of an Event of the core group or of `events.k8s.io`. The two groups have different
//! field names.

use jiff::Timestamp;
use serde_json::Value;

use super::cell::{integer, since, string};

const UNKNOWN: &str = "<unknown>";

/// Returns the first string that is not empty at one of `paths`, which are field names of both
/// groups.
fn either<'a>(event: &'a Value, paths: &[&str]) -> &'a str {
    paths
        .iter()
        .map(|path| string(event, path))
        .find(|text| !text.is_empty())
        .unwrap_or_default()
}

pub(super) fn first_seen(event: &Value, now: Timestamp) -> String {
    [".firstTimestamp", ".deprecatedFirstTimestamp", ".eventTime"]
        .iter()
        .find_map(|path| since(event, path, now))
        .unwrap_or_else(|| UNKNOWN.to_owned())
}

pub(super) fn last_seen(event: &Value, now: Timestamp) -> String {
    if event.get("series").is_some_and(Value::is_object) {
        return since(event, ".series.lastObservedTime", now).unwrap_or_else(|| UNKNOWN.to_owned());
    }
    [".lastTimestamp", ".deprecatedLastTimestamp"]
        .iter()
        .find_map(|path| since(event, path, now))
        .unwrap_or_else(|| first_seen(event, now))
}

/// Returns the count of an event, or 1 if the event has no count.
pub(super) fn count(event: &Value) -> i64 {
    if event.get("series").is_some_and(Value::is_object) {
        return integer(event, ".series.count");
    }
    let count = integer(event, ".count").max(integer(event, ".deprecatedCount"));
    count.max(1)
}

/// Returns kind and name of the object that the event is about, such as `pod/web-0`.
pub(super) fn object(event: &Value) -> String {
    let kind = either(event, &[".involvedObject.kind", ".regarding.kind"]).to_lowercase();
    match either(event, &[".involvedObject.name", ".regarding.name"]) {
        "" => kind,
        name => format!("{kind}/{name}"),
    }
}

/// Returns component and host of the source of an event, such as `kubelet, node-1`.
pub(super) fn source(event: &Value) -> String {
    const COMPONENT: &[&str] = &[
        ".source.component",
        ".deprecatedSource.component",
        ".reportingComponent",
        ".reportingController",
    ];
    const HOST: &[&str] = &[
        ".source.host",
        ".deprecatedSource.host",
        ".reportingInstance",
    ];
    let component = either(event, COMPONENT);
    match either(event, HOST) {
        "" => component.to_owned(),
        host => format!("{component}, {host}"),
    }
}
