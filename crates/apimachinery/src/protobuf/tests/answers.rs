//! Answers of a real API server: read, compared with its JSON, and written again.

use super::*;

fn answers() -> Vec<(Vec<u8>, Value)> {
    let answers = recorded(include_str!("../../../testdata/protobuf-answers.txt"));
    assert_eq!(answers.len(), 36);
    answers
}

/// Without what Go's JSON shows although it is empty, which protobuf cannot tell from nothing,
/// and without the kinds of claims inside of a StatefulSet, which are not on the wire.
fn without_empty(value: &Value) -> Value {
    match value {
        Value::Object(object) => object
            .iter()
            .map(|(name, value)| (name.clone(), without_empty(value)))
            .filter(|(_, value)| *value != json!({}) && !value.is_null())
            .collect(),
        Value::Array(items) => items
            .iter()
            .map(|item| {
                let mut item = without_empty(item);
                if item["kind"] == "PersistentVolumeClaim"
                    && let Value::Object(claim) = &mut item
                {
                    claim.remove("apiVersion");
                    claim.remove("kind");
                }
                item
            })
            .collect(),
        other => other.clone(),
    }
}

#[test]
fn answers_are_the_json_of_the_same_server() {
    for (bytes, json) in answers() {
        let object = decode(&bytes).unwrap();
        assert_eq!(
            without_empty(&object),
            without_empty(&json),
            "{}",
            json["kind"]
        );
    }
}

#[test]
fn answers_are_written_byte_for_byte() {
    for (bytes, json) in answers() {
        let object = decode(&bytes).unwrap();
        let written = encode(&object).unwrap();
        assert!(
            written == bytes,
            "{}:\n{}\n{}",
            json["kind"],
            bytes.escape_ascii(),
            written.escape_ascii()
        );
    }
}

#[test]
fn json_of_the_server_is_written_as_its_protobuf() {
    for (bytes, json) in answers() {
        assert_eq!(
            decode(&encode(&json).unwrap()),
            decode(&bytes),
            "{}",
            json["kind"]
        );
    }
}

#[test]
fn lists_come_apart() {
    let mut lists = answers()
        .into_iter()
        .filter(|(_, json)| json["kind"] == "NamespaceList");
    let (bytes, json) = lists.next().unwrap();
    let envelope = envelope(&bytes).unwrap();
    assert_eq!(
        (envelope.api_version, envelope.kind),
        ("v1", "NamespaceList")
    );
    let list = ListParts::read(envelope.raw).unwrap();
    assert_eq!(list.resource_version, json["metadata"]["resourceVersion"]);
    assert_eq!(list.continue_token, json["metadata"]["continue"]);
    assert_eq!(
        list.remaining_item_count,
        json["metadata"]["remainingItemCount"].as_i64()
    );
    let message = MessageType::of("v1", "Namespace").unwrap();
    let items: Vec<Value> = list
        .items()
        .map(|item| Value::deserialize(Deserializer::new(message, item)).unwrap())
        .collect();
    assert_eq!(Value::from(items), json["items"]);
}
