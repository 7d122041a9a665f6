//! Events in the cluster, for the view.

use jiff::Timestamp;
use opkit_client::{DynamicClient, Kind, ListOptions, Unstructured};
use opkit_dashboard::Event;
use serde_json::Value;

/// Number of events that are shown.
const EVENTS_MAX: usize = 200;

/// Returns the latest events of all namespaces, newest first. Without a response there are none.
pub(crate) async fn latest(client: &DynamicClient) -> Vec<Event> {
    let events = client.resource(Kind {
        group: String::new(),
        version: "v1".to_owned(),
        kind: "Event".to_owned(),
        plural: "events".to_owned(),
        namespaced: true,
    });
    let Ok(list) = events.list(&ListOptions::new()).await else {
        return Vec::new();
    };
    let mut events: Vec<Event> = list.items.iter().map(event).collect();
    events.sort_by_key(|event| std::cmp::Reverse(event.time));
    events.truncate(EVENTS_MAX);
    events
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
