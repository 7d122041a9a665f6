//! Responses of a real API server: decoded, compared with its JSON, and encoded again.

use super::*;

fn responses() -> Vec<(Vec<u8>, Value)> {
    let responses = recorded(include_str!("../../../testdata/protobuf-responses.txt"));
    assert_eq!(responses.len(), 36);
    responses
}

/// Removes the fields that are not on the wire: lists that Go prints as null, and the kinds of
/// the claims in a StatefulSet.
fn on_the_wire(mut json: Value) -> Value {
    if let Some(Value::Object(status)) = json.get_mut("status")
        && status.get("currentMetrics") == Some(&Value::Null)
    {
        status.remove("currentMetrics");
    }
    let claims = json.pointer_mut("/spec/volumeClaimTemplates");
    for claim in claims.and_then(Value::as_array_mut).into_iter().flatten() {
        let claim = claim.as_object_mut().unwrap();
        claim.remove("apiVersion");
        claim.remove("kind");
    }
    json
}

#[test]
fn responses_decode_to_the_json_of_the_same_server() {
    for (bytes, json) in responses() {
        let json = on_the_wire(json);
        assert_eq!(decode(&bytes).unwrap(), json, "{}", json["kind"]);
    }
}

#[test]
fn responses_are_encoded_byte_for_byte() {
    for (bytes, json) in responses() {
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
fn json_of_the_server_is_encoded_as_its_protobuf() {
    for (bytes, json) in responses() {
        assert_eq!(
            decode(&encode(&json).unwrap()),
            decode(&bytes),
            "{}",
            json["kind"]
        );
    }
}

#[test]
fn lists_are_split() {
    let mut lists = responses()
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
