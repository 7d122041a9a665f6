use serde_json::json;

use super::*;

#[test]
fn values_of_secrets_and_applied_copies_are_replaced() {
    let annotated = |kind: &str| {
        json!({
            "kind": kind,
            "metadata": {"name": "a", "annotations": {
                LAST_APPLIED_CONFIGURATION: "{\"data\":{\"password\":\"hunter2\"}}", "b": "c",
            }},
            "data": {"password": "hunter2"},
        })
    };
    for (kind, shows_data) in [("Secret", false), ("ConfigMap", true)] {
        let list = json!({"kind": format!("{kind}List"), "items": [annotated(kind)]});
        let mut untyped = annotated(kind);
        untyped.as_object_mut().unwrap().remove("kind");
        for mut object in [annotated(kind), list, untyped] {
            redact(kind, &mut object);
            let text = object.to_string();
            assert_eq!(text.contains("hunter2"), shows_data, "{text}");
            assert!(!text.contains("{\\\"data"), "{text}");
            assert!(text.contains("\"b\":\"c\""), "{text}");
        }
    }
}
