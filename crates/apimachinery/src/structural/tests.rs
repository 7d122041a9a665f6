use serde_json::{Value, json};

use super::*;
use crate::schema::{NoDefinitions, Schema, Typed};

/// Returns a schema with every keyword that pruning and defaulting handle.
fn schema() -> Schema {
    let integer = json!({"type": "integer"});
    Schema::parse(&json!({"type": "object", "properties": {"spec": {
        "type": "object",
        "properties": {
            "a": {"type": "string"},
            "d": {"type": "integer", "default": 3},
            "n": {"type": "string", "nullable": true},
            "nd": {"type": "string", "nullable": true, "default": "x"},
            "o": {"type": "object", "properties": {"x": {"type": "integer", "default": 1}, "y": integer}},
            "l": {"type": "array", "items": {
                "type": "object",
                "properties": {"p": integer, "q": {"type": "string", "default": "TCP"}},
            }},
            "m": {"type": "object", "additionalProperties": {
                "type": "object", "properties": {"v": {"type": "integer", "default": 7}},
            }},
            "keep": {
                "type": "object",
                "x-kubernetes-preserve-unknown-fields": true,
                "properties": {"k": {"type": "object", "properties": {"z": integer}}},
            },
            "keeplist": {
                "type": "array",
                "x-kubernetes-preserve-unknown-fields": true,
                "items": {"type": "object", "properties": {
                    "z": {"type": "object", "properties": {"w": integer}},
                }},
            },
            "emb": {
                "type": "object",
                "x-kubernetes-embedded-resource": true,
                "properties": {"spec": {"type": "object", "properties": {"s": integer}}},
            },
        },
    }}}))
    .unwrap()
}

// All results were compared with kube-apiserver 1.36.3.

#[test]
fn unknown_fields_are_removed() {
    fn check(spec: Value, kept: Value, dropped: &[&str]) {
        let schema = schema();
        let typed = Typed::new(&schema, &NoDefinitions);
        let mut object = json!({"kind": "A", "spec": spec});
        assert_eq!(unknown_fields(&object, &typed), dropped);
        assert_eq!(prune(&mut object, &typed), dropped);
        assert_eq!(object, json!({"kind": "A", "spec": kept}));
    }
    check(json!({"a": "x", "zz": 1}), json!({"a": "x"}), &["spec.zz"]);
    check(
        json!({"o": {"u": {"v": 1}}}),
        json!({"o": {}}),
        &["spec.o.u"],
    );
    check(
        json!({"l": [{}, {"p": 1, "u": 2}]}),
        json!({"l": [{}, {"p": 1}]}),
        &["spec.l[1].u"],
    );
    check(
        json!({"m": {"j": {"u": 1}}}),
        json!({"m": {"j": {}}}),
        &["spec.m.j.u"],
    );
    check(
        json!({"keep": {"k": {"z": 1, "u": 2}, "free": {"deep": 1}}}),
        json!({"keep": {"k": {"z": 1}, "free": {"deep": 1}}}),
        &["spec.keep.k.u"],
    );
    check(
        json!({"keeplist": [{"z": {"w": 1, "u": 1}, "free": 1}]}),
        json!({"keeplist": [{"z": {"w": 1}, "free": 1}]}),
        &["spec.keeplist[0].z.u"],
    );
    check(
        json!({"emb": {"kind": "Pod", "metadata": {"name": "x", "foo": 1}, "spec": {"s": 1, "u": 2}, "extra": 1}}),
        json!({"emb": {"kind": "Pod", "metadata": {"name": "x"}, "spec": {"s": 1}}}),
        &["spec.emb.extra", "spec.emb.metadata.foo", "spec.emb.spec.u"],
    );
}

#[test]
fn the_root_keeps_its_metadata() {
    let schema = schema();
    let mut object = json!({
        "apiVersion": "x/v1", "kind": "A", "other": 1,
        "metadata": {"name": "a", "foo": 1, "managedFields": [{"fieldsV1": {"f:a": {}}}]},
    });
    let dropped = prune(&mut object, &Typed::new(&schema, &NoDefinitions));
    assert_eq!(dropped, ["metadata.foo", "other"]);
    let expected = json!({
        "apiVersion": "x/v1", "kind": "A",
        "metadata": {"name": "a", "managedFields": [{"fieldsV1": {"f:a": {}}}]},
    });
    assert_eq!(object, expected);
}

#[test]
fn defaults_are_set() {
    fn check(spec: Value, expected: Value) {
        let schema = schema();
        let mut object = json!({"spec": spec});
        apply_defaults(&mut object, &Typed::new(&schema, &NoDefinitions));
        assert_eq!(object, json!({"spec": expected}));
    }
    check(json!({}), json!({"d": 3, "nd": "x"}));
    check(
        json!({"a": null, "d": null, "n": null, "nd": null}),
        json!({"d": 3, "n": null, "nd": null}),
    );
    check(
        json!({"o": {"y": null}}),
        json!({"d": 3, "nd": "x", "o": {"x": 1}}),
    );
    check(
        json!({"l": [{}, {"q": null}]}),
        json!({"d": 3, "nd": "x", "l": [{"q": "TCP"}, {"q": "TCP"}]}),
    );
    check(
        json!({"m": {"k": {}}}),
        json!({"d": 3, "nd": "x", "m": {"k": {"v": 7}}}),
    );
    check(json!({"l": null, "o": null}), json!({"d": 3, "nd": "x"}));
}

#[test]
fn setting_defaults_alone_keeps_nulls() {
    let schema = schema();
    let mut object = json!({"spec": {"a": null, "d": null}});
    fill_defaults(&mut object, &Typed::new(&schema, &NoDefinitions));
    assert_eq!(object, json!({"spec": {"a": null, "d": 3, "nd": "x"}}));
}

#[test]
fn field_errors_print_as_in_kubernetes() {
    fn check(error: FieldError, expected: &str, reason: &str) {
        assert_eq!(error.to_string(), expected);
        assert_eq!(error.reason(), reason);
    }
    check(
        FieldError::invalid("a", &json!("x"), "must be y"),
        r#"a: Invalid value: "x": must be y"#,
        "FieldValueInvalid",
    );
    check(
        FieldError::required("a.b", ""),
        "a.b: Required value",
        "FieldValueRequired",
    );
    check(
        FieldError::forbidden("a", "field is immutable"),
        "a: Forbidden: field is immutable",
        "FieldValueForbidden",
    );
    check(
        FieldError::not_supported("a", &json!("x"), &["b", "c"]),
        r#"a: Unsupported value: "x": supported values: "b", "c""#,
        "FieldValueNotSupported",
    );
    check(
        FieldError::duplicate("a[1]", &json!({"b": 1})),
        r#"a[1]: Duplicate value: {"b":1}"#,
        "FieldValueDuplicate",
    );
    check(
        FieldError::not_found("a", &json!("x")),
        r#"a: Not found: "x""#,
        "FieldValueNotFound",
    );
    check(
        FieldError::too_long("a", 1),
        "a: Too long: may not be more than 1 byte",
        "FieldValueTooLong",
    );
    check(
        FieldError::too_many("a", 3, 2),
        "a: Too many: 3: must have at most 2 items",
        "FieldValueTooMany",
    );
}

#[test]
fn built_in_kinds_are_written_as_go_writes_them() {
    fn check(object: Value, expected: Value) {
        let meta = json!({"type": "object", "properties": {
            "labels": {"type": "object", "additionalProperties": {"type": "string", "default": ""}},
            "name": {"type": "string"},
        }});
        let pod_spec = json!({"type": "object", "required": ["containers"], "properties": {
            "containers": {"type": "array", "items": {"allOf": [{"$ref": "Container"}], "default": {}}},
            "volumes": {"type": "array", "items": {"type": "object"}},
        }});
        let container = json!({"type": "object", "properties": {
            "args": {"type": "array", "items": {"type": "string"}},
            "resources": {"allOf": [{"$ref": "Resources"}], "default": {}},
            "securityContext": {"$ref": "Security"},
            "anything": {"$ref": "Json"},
            "limits": {"type": "object", "additionalProperties": {"$ref": "x.api.resource.Quantity"}},
        }});
        let any = json!({"type": "object", "properties": {"x": {"type": "integer"}}});
        let definitions: std::collections::BTreeMap<String, std::sync::Arc<Schema>> = [
            ("Meta", meta),
            ("PodSpec", pod_spec),
            ("Container", container),
            ("Resources", any.clone()),
            ("Security", any),
            ("Json", json!({"description": "any valid JSON value"})),
        ]
        .into_iter()
        .map(|(name, document)| (name.to_owned(), Schema::parse(&document).unwrap().into()))
        .collect();
        let pod = Schema::parse(&json!({"type": "object", "properties": {
            "metadata": {"allOf": [{"$ref": "Meta"}], "default": {}},
            "spec": {"allOf": [{"$ref": "PodSpec"}], "default": {}},
        }}))
        .unwrap();
        let mut written = object;
        normalize(&mut written, &Typed::new(&pod, &definitions));
        assert_eq!(written, expected);
    }
    check(
        json!({"metadata": {"labels": {"a": null, "b": "c"}, "name": null}, "spec": {"containers": null, "volumes": []}}),
        json!({"metadata": {"labels": {"a": "", "b": "c"}}, "spec": {"containers": null}}),
    );
    check(
        json!({"spec": {"containers": [{"args": [], "resources": null, "securityContext": {}}]}}),
        json!({"spec": {"containers": [{"resources": {}, "securityContext": {}}]}}),
    );
    check(
        json!({"spec": {"containers": [{"args": ["1000m"], "limits": {"a": "1000m", "b": 2, "c": "?"}}]}}),
        json!({"spec": {"containers": [{"args": ["1000m"], "limits": {"a": "1", "b": "2", "c": "?"}}]}}),
    );
    for kept in [json!([]), json!({}), json!(0), json!(""), json!({"a": []})] {
        let pod = json!({"spec": {"containers": [{"anything": kept}]}});
        check(pod.clone(), pod);
    }
}
