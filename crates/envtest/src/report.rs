//! Report of a failed test: the object, its events and its reconciles.

use k8s_openapi::api::core::v1::Event;
use opkit_apimachinery::redact::redact;
use opkit_client::{Kind, ListOptions, ObjectKey, ResponseFormat, RestClient};
use opkit_controller::ReconcileLog;
use serde_json::Value;

/// Number of reconciles in a report.
const RECONCILES: usize = 10;

/// Returns the object, its events and the last reconciles as text.
pub(crate) async fn about(
    client: &RestClient,
    log: &ReconcileLog,
    kind: &Kind,
    key: &ObjectKey,
) -> String {
    let mut text = format!("--- {} {key}\n", kind.kind);
    text.push_str(&match client.get(kind, key).await {
        Ok(bytes) => readable(kind, &bytes),
        Err(error) => format!("{error}\n"),
    });
    text.push_str("--- events\n");
    for event in events(client, key).await {
        text.push_str(&event);
    }
    text.push_str("--- last reconciles, newest last\n");
    let records = log.records();
    for record in records
        .iter()
        .skip(records.len().saturating_sub(RECONCILES))
    {
        text.push_str(&format!("{record}\n"));
    }
    if records.is_empty() {
        text.push_str("none\n");
    }
    text
}

/// Returns the object without managed fields and without secret values.
fn readable(kind: &Kind, bytes: &[u8]) -> String {
    let Ok(mut object) = serde_json::from_slice::<Value>(bytes) else {
        return format!("a response of {} bytes that is not JSON\n", bytes.len());
    };
    redact(&kind.kind, &mut object);
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    serde_json::to_string_pretty(&object)
        .map(|text| text + "\n")
        .unwrap_or_default()
}

async fn events(client: &RestClient, key: &ObjectKey) -> Vec<String> {
    let kind = Kind::of::<Event>();
    let mut options = ListOptions::new();
    options.namespace = key.namespace.clone();
    let list = client
        .list(&kind, &options, ResponseFormat::default())
        .await;
    let Ok(list) = list else {
        return Vec::new();
    };
    let list: Value = serde_json::from_slice(&list.body).unwrap_or_default();
    let items = list
        .get("items")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let text = |event: &Value, path: &str| {
        event
            .pointer(path)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    items
        .iter()
        .filter(|event| text(event, "/involvedObject/name") == key.name)
        .map(|event| {
            let about = text(event, "/involvedObject/kind");
            let (reason, message) = (text(event, "/reason"), text(event, "/message"));
            format!("{} {about}: {reason}: {message}\n", text(event, "/type"))
        })
        .collect()
}

#[cfg(test)]
mod tests;
