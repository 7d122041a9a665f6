use serde_json::{Value, json};

use super::*;

/// Returns the event in JSON and in protobuf.
fn written(kind: &str, object: &Value) -> [(Vec<u8>, Encoding); 2] {
    let line = json!({"type": kind, "object": object}).to_string();
    let object = protobuf::encode(object).unwrap();
    let frame = WatchEventParts {
        type_: kind,
        object: &object,
    };
    [
        (line.into_bytes(), Encoding::Json),
        (frame.to_vec(), Encoding::Protobuf),
    ]
}

fn config_map(metadata: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
}

#[test]
fn lines_are_taken_apart() {
    let object = r#"{"metadata":{"name":"a","resourceVersion":"7"}}"#;
    let expected = [
        ("ADDED", EventKind::Added),
        ("MODIFIED", EventKind::Modified),
        ("DELETED", EventKind::Deleted),
        ("BOOKMARK", EventKind::Bookmark),
        ("ERROR", EventKind::Error),
    ];
    for (name, kind) in expected {
        for line in [
            format!(r#"{{"type":"{name}","object":{object}}}"#),
            format!(r#"{{ "type": "{name}", "object": {object} }}"#),
            format!(r#"{{"object":{object},"type":"{name}"}}"#),
        ] {
            let event = WatchEvent::read(line.as_bytes(), Encoding::Json).unwrap();
            assert_eq!(event.kind, kind);
            assert!(matches!(event.raw(), Ok(Raw::Json(raw)) if raw == object.as_bytes()));
        }
    }
}

#[test]
fn a_frame_holds_a_message_without_its_envelope() {
    let object = config_map(json!({"name": "a"}));
    let [_, (frame, encoding)] = written("ADDED", &object);
    let event = WatchEvent::read(&frame, encoding).unwrap();
    assert_eq!(event.kind, EventKind::Added);
    let Ok(Raw::Protobuf(message)) = event.raw() else {
        panic!("{event:?}");
    };
    let kind = protobuf::MessageType::of("v1", "ConfigMap").unwrap();
    let read = Value::deserialize(protobuf::Deserializer::new(kind, message)).unwrap();
    assert_eq!(read["metadata"]["name"], "a");
}

#[test]
fn an_invalid_event_is_an_error() {
    for line in [
        "",
        "{}",
        r#"{"type":"UNHEARD-OF","object":{}}"#,
        "Bad Gateway",
    ] {
        for encoding in [Encoding::Json, Encoding::Protobuf] {
            assert!(
                WatchEvent::read(line.as_bytes(), encoding).is_err(),
                "{line}"
            );
        }
    }
}

#[test]
fn a_bookmark_shows_whether_it_ends_a_list() {
    let end = json!({"resourceVersion": "8", "annotations": {"k8s.io/initial-events-end": "true"}});
    let cases = [
        (json!({"resourceVersion": "7"}), "7", false),
        (end, "8", true),
    ];
    for (metadata, version, ends_list) in cases {
        for (bytes, encoding) in written("BOOKMARK", &config_map(metadata)) {
            let event = WatchEvent::read(&bytes, encoding).unwrap();
            let expected = Bookmark {
                resource_version: version.to_owned(),
                ends_list,
            };
            assert_eq!(event.bookmark().unwrap(), expected);
        }
    }
    let nothing = WatchEvent::read(br#"{"type":"BOOKMARK","object":{}}"#, Encoding::Json).unwrap();
    assert!(nothing.bookmark().is_err());
}

#[test]
fn an_error_is_a_status() {
    let status = json!({"apiVersion": "v1", "kind": "Status", "code": 410, "reason": "Expired"});
    for (bytes, encoding) in written("ERROR", &status) {
        let event = WatchEvent::read(&bytes, encoding).unwrap();
        assert_eq!(event.status().unwrap().code, 410, "{encoding:?}");
    }
}
