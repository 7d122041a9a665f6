use serde_json::{Value, json};

use super::deserialize::{Types, decode};
use super::encoder::Encoder;
use super::head::Head;
use super::meta::{Meta, field};
use super::reader::Reader;
use super::strings::{Interner, Vocabulary};
use super::{json, visit};

mod shapes;

const TYPES: Types<'static> = Types {
    api_version: "v1",
    kind: "Thing",
};

struct Tapes {
    vocabulary: Vocabulary,
    interner: Interner,
}

impl Tapes {
    fn new() -> Self {
        Self {
            vocabulary: Vocabulary::default(),
            interner: Interner::new(),
        }
    }

    fn of_text(&mut self, text: &str, object: u32) -> Result<Vec<u8>, json::InvalidJson> {
        let mut out = Vec::new();
        let mut encoder = Encoder::new(&mut out, &self.vocabulary, &mut self.interner, object);
        json::encode(text, &mut encoder, &|manager| manager == "ours", None)?;
        Ok(out)
    }

    fn of_value(&mut self, value: &Value, object: u32) -> Vec<u8> {
        let mut out = Vec::new();
        let mut encoder = Encoder::new(&mut out, &self.vocabulary, &mut self.interner, object);
        visit::encode(value, &mut encoder, &|manager| manager == "ours").unwrap();
        out
    }

    fn value(&self, tape: &[u8]) -> Value {
        decode(tape, &self.vocabulary, TYPES, None).unwrap()
    }
}

fn object() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Thing",
        "metadata": {
            "name": "web",
            "namespace": "shops",
            "uid": "0f8fad5b-d9cb-469f-a165-70867728950e",
            "resourceVersion": "184467",
            "generation": 3,
            "creationTimestamp": "2026-11-15T14:33:48Z",
            "deletionTimestamp": "2026-11-15T14:33:49Z",
            "labels": {"app": "web", "tier/x": "a\"b\\c\u{1F916}\n"},
            "annotations": {"a": "", "number": "0123"},
            "finalizers": ["opkit.dev/one", "opkit.dev/two"],
            "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "uid": "7c9e6679-7425-40de-944b-e07fc1f90ae7", "controller": true},
                {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"},
            ],
        },
        "spec": {
            "numbers": [0, 14, 15, 127, 128, 300, u64::MAX, -1, -15, -16, i64::MIN, 1.5, -0.25, 1e300],
            "flags": [true, false, null, [], {}],
            "id": "containerd://0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
            "only": "0123456789abcdef",
            "odd": "x123456789abcdef0",
            "deep": {"a": {"b": {"c": [{"d": [1]}]}}},
        },
    })
}

/// Returns the object as it is expected back: without the managed fields of other managers.
fn with_managers(mut object: Value, managers: &[&str]) -> Value {
    let entry = |manager: &&str| json!({"manager": manager, "operation": "Apply", "fieldsV1": {"f:spec": {"f:id": {}}}});
    object["metadata"]["managedFields"] = managers.iter().map(entry).collect();
    object
}

#[test]
fn json_round_trips() {
    let mut tapes = Tapes::new();
    for round in 0..4 {
        let wire = with_managers(object(), &["kubectl", "ours", "kubelet"]);
        let tape = tapes.of_text(&wire.to_string(), round).unwrap();
        assert_eq!(
            tapes.value(&tape),
            with_managers(object(), &["ours"]),
            "round {round}"
        );
        let strangers = with_managers(object(), &["kubectl"]);
        let tape = tapes
            .of_text(&serde_json::to_string_pretty(&strangers).unwrap(), round)
            .unwrap();
        assert_eq!(tapes.value(&tape), object(), "round {round}");
    }
}

#[test]
fn serde_values_round_trip() {
    let mut tapes = Tapes::new();
    for round in 0..4 {
        let wire = with_managers(object(), &["kubectl", "ours", "kubelet"]);
        let tape = tapes.of_value(&wire, round);
        assert_eq!(
            tapes.value(&tape),
            with_managers(object(), &["ours"]),
            "round {round}"
        );
        let tape = tapes.of_value(&with_managers(object(), &["kubectl"]), round);
        assert_eq!(tapes.value(&tape), object(), "round {round}");
    }
}

#[test]
fn both_ways_write_the_same() {
    let (mut a, mut b) = (Tapes::new(), Tapes::new());
    let object = object();
    assert_eq!(
        a.of_text(&object.to_string(), 1).unwrap(),
        b.of_value(&object, 1)
    );
}

#[test]
fn a_tape_is_small() {
    let mut tapes = Tapes::new();
    let wire = with_managers(object(), &["kubectl"]).to_string();
    tapes.of_text(&wire, 2).unwrap();
    let tape = tapes.of_text(&wire, 4).unwrap();
    assert!(
        tape.len() * 3 < wire.len(),
        "{} of {}",
        tape.len(),
        wire.len()
    );
}

#[test]
fn metadata_is_read_in_place() {
    let mut tapes = Tapes::new();
    let tape = tapes.of_value(&object(), 0);
    let reader = field(Reader::new(&tape, &tapes.vocabulary), "metadata")
        .unwrap()
        .unwrap();
    let typed = Meta::of_tape(reader).to_object_meta();
    for meta in [Meta::of_tape(reader), Meta::from(&typed)] {
        assert_eq!(meta.name(), "web");
        assert_eq!(meta.namespace().as_deref(), Some("shops"));
        assert_eq!(
            meta.uid().as_deref(),
            Some("0f8fad5b-d9cb-469f-a165-70867728950e")
        );
        assert_eq!(meta.resource_version().as_deref(), Some("184467"));
        assert_eq!(meta.generation(), Some(3));
        assert!(meta.is_deleting());
        assert_eq!(meta.label("app").as_deref(), Some("web"));
        assert_eq!(meta.label("other"), None);
        assert_eq!(meta.annotation("number").as_deref(), Some("0123"));
        assert_eq!(meta.labels().len(), 2);
        assert_eq!(meta.annotations().len(), 2);
        assert_eq!(meta.finalizers(), ["opkit.dev/one", "opkit.dev/two"]);
        let owners = meta.owners();
        assert_eq!(owners.len(), 2);
        assert_eq!(meta.controller().unwrap().name, "web-1");
        assert_eq!(owners[1].kind, "Node");
    }
    assert_eq!(typed.labels.unwrap()["tier/x"], "a\"b\\c\u{1F916}\n");
}

#[test]
fn the_head_is_read_first() {
    let text = object().to_string();
    let head = Head::of_json(&text).unwrap();
    assert_eq!(
        (&*head.name, head.namespace.as_deref()),
        ("web", Some("shops"))
    );
    assert_eq!(head.resource_version.as_deref(), Some("184467"));
    assert_eq!(
        head.uid.as_deref(),
        Some("0f8fad5b-d9cb-469f-a165-70867728950e")
    );
    let node = Head::of_json(r#"{"spec":[{}],"metadata":{"namespace":"","name":"n"}}"#).unwrap();
    assert_eq!((&*node.name, node.namespace), ("n", None));
    for text in [
        "",
        "{}",
        "[]",
        "null",
        r#"{"metadata":{}}"#,
        r#"{"metadata":{"name":1}}"#,
        r#"{"metadata":{"name":"a"#,
    ] {
        assert!(Head::of_json(text).is_err(), "{text}");
    }
}

#[test]
fn unwanted_managed_fields_are_passed_over() {
    let text = with_managers(object(), &["kubectl", "kubelet"]).to_string();
    let head = Head::of_json(&text).unwrap();
    assert!(head.managed_fields.is_some(), "they come before the name");
    let mut tapes = Tapes::new();
    let mut out = Vec::new();
    let mut encoder = Encoder::new(&mut out, &tapes.vocabulary, &mut tapes.interner, 0);
    json::encode(
        &text,
        &mut encoder,
        &|_| panic!("not looked at"),
        head.managed_fields,
    )
    .unwrap();
    assert_eq!(tapes.value(&out), object());
}

#[test]
fn damaged_text_is_an_error() {
    let mut tapes = Tapes::new();
    let text = with_managers(object(), &["ours"]).to_string();
    for end in 0..text.len() {
        if text.is_char_boundary(end) {
            assert!(tapes.of_text(&text[..end], 0).is_err(), "up to {end}");
        }
    }
    for text in [
        "{} {}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{\"a\" 1}",
        "{\"a\":[1 2]}",
        "{\"a\":tru}",
        "{\"a\":1e999}",
        "{\"a\":\"\\x\"}",
        "{a:1}",
        "{\"a\":-}",
        "{\"a\":]}",
    ] {
        assert!(tapes.of_text(text, 0).is_err(), "{text}");
    }
    let deep = format!("{{\"a\":{}1{}}}", "[".repeat(200), "]".repeat(200));
    assert!(tapes.of_text(&deep, 0).is_err());
}

/// A damaged tape should not occur; if it does, it is an error and not a panic.
#[test]
fn a_damaged_tape_is_an_error() {
    let mut tapes = Tapes::new();
    let tape = tapes.of_value(&object(), 0);
    for end in 0..tape.len() {
        assert!(
            decode::<Value>(&tape[..end], &tapes.vocabulary, TYPES, None).is_err(),
            "up to {end}"
        );
    }
    for at in 0..tape.len() {
        for bit in 0..8 {
            let mut tape = tape.clone();
            tape[at] ^= 1 << bit;
            // Any outcome except a panic.
            let _ = decode::<Value>(&tape, &tapes.vocabulary, TYPES, None);
        }
    }
}
