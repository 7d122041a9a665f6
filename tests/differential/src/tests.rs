use serde_json::{Value, json};

use crate::{Difference, Known, Normalizer, RecordedResponse, Script, compare};

fn response(status: u16, body: Value) -> RecordedResponse {
    RecordedResponse {
        step: "get".to_owned(),
        request: "GET /x".to_owned(),
        status,
        content_type: "application/json".to_owned(),
        warnings: Vec::new(),
        body,
    }
}

fn differences(real: &RecordedResponse, embedded: &RecordedResponse) -> Vec<Difference> {
    let text = "about: a\nsteps: [{name: get, method: GET, path: /x}]";
    let mut script: Script = serde_saphyr::from_str(text).unwrap();
    script.name = "s".to_owned();
    compare(
        &script,
        std::slice::from_ref(real),
        std::slice::from_ref(embedded),
    )
    .unwrap()
}

#[test]
fn values_that_differ_from_run_to_run_are_replaced() {
    let mut normalizer = Normalizer::new("time: 2026-01-01T00:00:00Z");
    let uid = "0a1b2c3d-1111-2222-3333-444455556666";
    let object = |version: &str| {
        json!({"metadata": {
            "name": "a-x7k2p", "generateName": "a-", "resourceVersion": version, "uid": uid,
            "creationTimestamp": "2024-05-06T07:08:09Z",
        }})
    };
    let named = |version: &str| {
        json!({"metadata": {
            "name": "a-<suffix 1>", "generateName": "a-", "resourceVersion": version,
            "uid": "<uid 1>", "creationTimestamp": "<time>",
        }})
    };
    assert_eq!(normalizer.body(&object("5")), named("<version 1>"));
    assert_eq!(normalizer.body(&object("9")), named("<version 2>"));
    assert_eq!(normalizer.body(&object("5")), named("<version 1>"));
    let message = format!("a-x7k2p {uid} 2026-01-01T00:00:00Z too old resource version: 1 (77)");
    assert_eq!(
        normalizer.text(&message),
        "a-<suffix 1> <uid 1> 2026-01-01T00:00:00Z too old resource version: 1 (<version>)"
    );
    let quoted = r#"{\"resourceVersion\":\"77\"}"#;
    assert_eq!(
        normalizer.text(quoted),
        r#"{\"resourceVersion\":\"<version>\"}"#
    );
}

#[test]
fn differences_are_reported_with_their_pointer() {
    let real = response(200, json!({"a": {"b/c": 1}, "d": [1, 2]}));
    let embedded = response(200, json!({"a": {"b/c": 2}, "d": [1, 3], "e": null}));
    let found = differences(&real, &embedded);
    let pointers: Vec<&str> = found.iter().map(|found| found.pointer.as_str()).collect();
    assert_eq!(pointers, ["/body/a/b~1c", "/body/d/1", "/body/e"]);
    let refused = differences(&real, &response(404, json!({"message": "gone"})));
    assert_eq!(refused.len(), 1);
    assert_eq!(refused[0].embedded.as_deref(), Some("404 gone"));
}

#[test]
fn an_obsolete_known_difference_is_reported() {
    let real = response(200, json!({"items": [{"a": 1}, {"a": 1}], "b": 1}));
    let embedded = response(200, json!({"items": [{"a": 2}, {"a": 2}], "b": 2}));
    let known = Known {
        reason: "so".to_owned(),
        places: vec![
            "s / get / /body/items/*/a".to_owned(),
            "s / get / /body/c".to_owned(),
        ],
    };
    let left = Known::explain(&[known], differences(&real, &embedded)).unwrap();
    assert_eq!(left.differences.len(), 1);
    assert_eq!(left.differences[0].pointer, "/body/b");
    assert_eq!(left.obsolete, ["s / get / /body/c"]);
}
