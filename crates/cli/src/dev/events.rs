//! Events in the cluster, for the view.

use std::collections::BTreeSet;

use jiff::Timestamp;
use opkit_client::{DynamicClient, Kind, ListOptions, Unstructured};
use opkit_dashboard::Event;
use serde_json::Value;

use super::rows::Row;

/// Number of events that are shown.
const EVENTS_MAX: usize = 200;
/// Number of events that are read of one namespace, or of all: a cluster may have many thousands.
const EVENTS_READ_MAX: u32 = 1_000;
/// Number of namespaces whose events are read.
const NAMESPACES_MAX: usize = 10;

/// Returns the latest events, newest first: those of the namespaces of objects, or of all
/// namespaces. Without a response there are none.
pub(crate) async fn latest(client: &DynamicClient, of: Option<&[Row]>) -> Vec<Event> {
    let events = client.resource(Kind {
        group: String::new(),
        version: "v1".to_owned(),
        kind: "Event".to_owned(),
        plural: "events".to_owned(),
        namespaced: true,
    });
    let all = ListOptions::new().limit(EVENTS_READ_MAX);
    let lists = match of {
        None => vec![all],
        Some(rows) => {
            let namespaces = namespaces(rows).into_iter();
            let lists = namespaces.map(|namespace| all.clone().in_namespace(namespace));
            lists.collect()
        }
    };
    let mut found = Vec::new();
    for options in &lists {
        let list = events.list(options).await;
        found.extend(list.iter().flat_map(|list| list.items.iter().map(event)));
    }
    let mut events: Vec<Event> = found;
    events.sort_by_key(|event| std::cmp::Reverse(event.time));
    events.truncate(EVENTS_MAX);
    events
}

/// Returns the namespaces of the events of objects. Those of cluster-scoped objects are in
/// `default`.
fn namespaces(rows: &[Row]) -> BTreeSet<&str> {
    let namespaces = rows.iter().map(|row| row.namespace.as_deref());
    let namespaces: BTreeSet<_> = namespaces.map(|it| it.unwrap_or("default")).collect();
    namespaces.into_iter().take(NAMESPACES_MAX).collect()
}

fn event(object: &Unstructured) -> Event {
    let text = |path: &[&str]| {
        let value = object.get(path).and_then(Value::as_str);
        value.unwrap_or_default().to_owned()
    };
    // Events of events.k8s.io have their times and counts in other fields.
    let times: [&[&str]; 5] = [
        &["series", "lastObservedTime"],
        &["lastTimestamp"],
        &["eventTime"],
        &["firstTimestamp"],
        &["metadata", "creationTimestamp"],
    ];
    let mut times = times
        .iter()
        .filter_map(|path| text(path).parse::<Timestamp>().ok());
    let count = object
        .get_i64(&["series", "count"])
        .or(object.get_i64(&["count"]));
    let kind = text(&["involvedObject", "kind"]);
    let mut event = Event::default();
    event.time = times.next().unwrap_or_default();
    event.is_warning = text(&["type"]) == "Warning";
    event.object = format!("{kind} {}", text(&["involvedObject", "name"]));
    event.reason = text(&["reason"]);
    event.message = text(&["message"]);
    event.count = count
        .and_then(|count| u64::try_from(count).ok())
        .unwrap_or(1);
    event
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_event_is_read_from_either_api() {
        let read = |value: Value| event(&serde_json::from_value(value).unwrap());
        let old = read(json!({
            "apiVersion": "v1", "kind": "Event", "metadata": {"name": "a"}, "type": "Warning",
            "involvedObject": {"kind": "Robot", "name": "one"}, "reason": "Failed",
            "message": "text", "lastTimestamp": "2026-01-01T00:00:05Z", "count": 3,
        }));
        assert_eq!(old.object, "Robot one");
        assert!(old.is_warning);
        assert_eq!(
            (old.reason.as_str(), old.message.as_str(), old.count),
            ("Failed", "text", 3)
        );
        let new = read(json!({
            "apiVersion": "v1", "kind": "Event", "metadata": {"name": "a"}, "type": "Normal",
            "eventTime": "2026-01-01T00:00:05.000000Z",
            "series": {"count": 7, "lastObservedTime": "2026-01-01T00:00:09.000000Z"},
        }));
        assert_eq!(new.count, 7);
        assert!(new.time > old.time && !new.is_warning);
    }
}
