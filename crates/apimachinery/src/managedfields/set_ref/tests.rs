use serde_json::json;

use super::*;

#[test]
fn contains_finds_fields_below_and_atomic_fields_above() {
    let fields = json!({
        "f:metadata": {"f:annotations": {"f:opkit.dev/applied": {}}},
        "f:spec": {"f:replicas": {}, "f:selector": {}},
        "f:status": {"f:conditions": {
            "k:{\"type\":\"Ready\"}": {".": {}, "f:status": {}},
            "k:{\"port\":80}": {},
        }},
        "f:finalizers": {"v:\"a/b\"": {}},
    });
    let check = |path: &str, expected: bool| {
        let set = FieldSetRef::new(&fields).unwrap();
        assert_eq!(set.contains(path), expected, "{path}");
    };
    check(".spec.replicas", true);
    check(".spec", true);
    check(".spec.selector.app", true);
    check(".spec.repl", false);
    check(".spec.replicasMax", false);
    check(".spec.paused", false);
    check(".metadata.annotations.opkit.dev/applied", true);
    check(".metadata.annotations.opkit", false);
    check(".status.conditions[Ready].status", true);
    check(".status.conditions[Ready].reason", false);
    check(".status.conditions[Live].status", false);
    // The name of a key field is not the value of a key.
    check(".status.conditions[type].status", false);
    check(".status.conditions[80].any", true);
    check(".finalizers[a/b]", true);
    check(".finalizers[a/c]", false);
}

#[test]
fn an_empty_set_contains_nothing() {
    let empty = json!({});
    assert!(!FieldSetRef::new(&empty).unwrap().contains(".spec"));
    assert_eq!(FieldSetRef::new(&json!([])), None);
}

#[test]
fn item_keys_are_those_of_valid_steps() {
    let fields = json!({
        ".": {}, "k:{\"type\":\"Ready\"}": {}, "k:{": {}, "v:1": {}, "k:{\"type\":\"Live\"}": {},
    });
    let keys = FieldSetRef::new(&fields).unwrap().item_keys();
    let types: Vec<_> = keys.map(|key| key["type"].clone()).collect();
    assert_eq!(types, ["Live", "Ready"]);
}
