use serde_json::{Value, json};

use super::extract;

fn extracted(fields: Value, spec: Value) -> Value {
    let object = json!({
        "apiVersion": "v1",
        "kind": "Robot",
        "metadata": {
            "name": "one",
            "namespace": "garden",
            "labels": {"a": "1", "b": "2"},
            "managedFields": [{"manager": "me", "operation": "Apply", "fieldsV1": fields}],
        },
        "spec": spec,
    });
    extract(&object, "me", "")
}

#[test]
fn items_of_lists_are_found_by_key_and_by_value() {
    let fields = json!({
        "f:metadata": {"f:labels": {"f:b": {}}},
        "f:spec": {
            "f:tools": {"k:{\"name\":\"saw\"}": {".": {}, "f:name": {}, "f:size": {}}},
            "f:tags": {"v:\"x\"": {}},
            "f:whole": {},
            "f:absent": {},
        },
    });
    let spec = json!({
        "tools": [{"name": "axe", "size": 1}, {"name": "saw", "size": 2, "color": "red"}],
        "tags": ["w", "x"],
        "whole": {"any": ["thing"]},
        "color": "red",
    });
    assert_eq!(
        extracted(fields, spec),
        json!({
            "apiVersion": "v1",
            "kind": "Robot",
            "metadata": {"name": "one", "namespace": "garden", "labels": {"b": "2"}},
            "spec": {
                "tools": [{"name": "saw", "size": 2}],
                "tags": ["x"],
                "whole": {"any": ["thing"]},
            },
        })
    );
}

#[test]
fn only_applied_fields_of_the_subresource_are_extracted() {
    let object = json!({
        "apiVersion": "v1",
        "kind": "Robot",
        "metadata": {"name": "one", "managedFields": [
            {"manager": "me", "operation": "Update", "fieldsV1": {"f:spec": {"f:a": {}}}},
            {"manager": "me", "operation": "Apply", "subresource": "status",
             "fieldsV1": {"f:status": {"f:ready": {}}}},
        ]},
        "spec": {"a": 1},
        "status": {"ready": true},
    });
    let bare = json!({"apiVersion": "v1", "kind": "Robot", "metadata": {"name": "one"}});
    assert_eq!(extract(&object, "me", ""), bare);
    assert_eq!(extract(&object, "you", "status"), bare);
    assert_eq!(
        extract(&object, "me", "status")["status"],
        json!({"ready": true})
    );
}
