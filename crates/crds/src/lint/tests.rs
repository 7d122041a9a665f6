use serde_json::json;

use super::*;

/// Returns a CRD without findings.
fn crd() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "robots.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"kind": "Robot", "plural": "robots", "listKind": "RobotList"},
            "scope": "Namespaced",
            "versions": [{
                "name": "v1",
                "additionalPrinterColumns": [
                    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
                ],
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "properties": {
                        "apiVersion": {"type": "string"},
                        "kind": {"type": "string"},
                        "metadata": {"type": "object"},
                        "spec": spec(),
                        "status": status(),
                    },
                }},
            }],
        },
    })
}

fn spec() -> Value {
    json!({
        "type": "object",
        "description": "Desired state.",
        "required": ["image"],
        "properties": {
            "image": {"type": "string", "description": "Image."},
            "size": {"type": "integer", "format": "int32", "description": "Size."},
            "region": {"type": "string", "description": "Region.", "enum": ["Eu", "Us", ""]},
            "tools": {
                "type": "array", "description": "Tools.",
                "x-kubernetes-list-type": "atomic",
                "items": {
                    "type": "object",
                    "required": ["name"],
                    "properties": {"name": {"type": "string", "description": "Name."}},
                },
            },
            "labels": {
                "type": "object", "description": "Labels.",
                "additionalProperties": {"type": "string"},
            },
            "template": {
                "type": "object", "description": "Any object.",
                "x-kubernetes-embedded-resource": true,
                "properties": {"a_b": {"type": "number"}},
            },
        },
    })
}

fn status() -> Value {
    json!({
        "type": "object",
        "description": "Observed state.",
        "properties": {
            "conditions": {
                "type": "array", "description": "Conditions.",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["type"],
                "items": {
                    "type": "object",
                    "required": ["type", "status"],
                    "properties": {
                        "type": {"type": "string", "description": "Type."},
                        "status": {"type": "string", "description": "Status."},
                    },
                },
            },
        },
    })
}

const VERSION: &str = "/spec/versions/0";

/// Sets the value at a path of the version, or removes it with null.
fn set(crd: &mut Value, path: &str, value: Value) {
    let schema = format!("{VERSION}/schema/openAPIV3Schema/properties");
    let starts = [
        ("~", String::new()),
        ("/spec.", format!("{schema}/spec/properties/")),
        ("/status.", format!("{schema}/status/properties/")),
        ("/spec/", format!("{schema}/spec/")),
        ("/status/", format!("{schema}/status/")),
        ("", VERSION.to_owned()),
    ];
    let pointer = starts.iter().find_map(|(start, full)| {
        let rest = path.strip_prefix(start)?;
        Some(format!("{full}{rest}"))
    });
    let pointer = pointer.unwrap();
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    let parent = crd.pointer_mut(parent).unwrap().as_object_mut().unwrap();
    match value {
        Value::Null => parent.remove(key),
        value => parent.insert(key.to_owned(), value),
    };
}

/// Checks the rules and paths that are reported after some changes.
fn check(changes: &[(&str, Value)], expected: &[(&str, &str)]) {
    let mut crd = crd();
    for (path, value) in changes {
        set(&mut crd, path, value.clone());
    }
    let findings = lint(&[crd], &[]).unwrap();
    let found: Vec<_> = findings
        .iter()
        .map(|it| (it.rule, it.path.as_str()))
        .collect();
    assert_eq!(found, expected, "{changes:?}");
}

#[test]
fn a_crd_by_the_conventions_has_no_findings() {
    check(&[], &[]);
}

#[test]
fn kinds_and_versions() {
    let kind = |kind: &str| {
        vec![
            ("~/spec/names/kind", json!(kind)),
            ("~/spec/names/listKind", json!(format!("{kind}List"))),
        ]
    };
    check(&kind("robot"), &[("kind-name", ".spec.names.kind")]);
    check(&kind("RobotList"), &[("kind-name", ".spec.names.kind")]);
    check(
        &[("~/spec/names/listKind", json!("Robots"))],
        &[("kind-name", ".spec.names.listKind")],
    );
    check(
        &[("~/spec/group", json!("example"))],
        &[("group-name", ".spec.group")],
    );
    check(&[("/name", json!("1.0"))], &[("version-name", ".")]);
    check(
        &[("/additionalPrinterColumns", Value::Null)],
        &[("printer-columns", ".")],
    );
    check(
        &[(
            "/additionalPrinterColumns",
            json!([{"name": "A", "jsonPath": ".spec.size"}]),
        )],
        &[("printer-columns", ".")],
    );
}

#[test]
fn sizes() {
    let text = |length: usize| [("/spec/description", json!("x".repeat(length)))];
    check(&text(200_000), &[]);
    check(&text(300_000), &[("apply-size", ".")]);
    check(&text(1_600_000), &[("etcd-size", ".")]);
}

#[test]
fn names_and_types_of_fields() {
    check(
        &[(
            "/spec.max_size",
            json!({"type": "string", "description": "Size."}),
        )],
        &[("field-name", ".spec.max_size")],
    );
    check(
        &[("/spec.image", json!({"type": "string"}))],
        &[("description", ".spec.image")],
    );
    for (name, rule) in [
        ("reference", "reference-name"),
        ("podReferences", "reference-name"),
        ("startTimestamp", "timestamp-name"),
    ] {
        let path = format!("/spec.{name}");
        let reported = format!(".spec.{name}");
        check(
            &[(&path, json!({"type": "string", "description": "It."}))],
            &[(rule, &reported)],
        );
    }
    check(
        &[("/spec.size/type", json!("number"))],
        &[("no-floats", ".spec.size")],
    );
    for format in [json!("uint32"), Value::Null] {
        check(
            &[("/spec.size/format", format)],
            &[("integer-format", ".spec.size")],
        );
    }
    check(
        &[("/spec.region/enum", json!(["eu", "Us", "us-west"]))],
        &[("enum-value", ".spec.region")],
    );
    check(
        &[("/spec.size/nullable", json!(true))],
        &[("no-nullable", ".spec.size")],
    );
}

#[test]
fn lists_maps_and_objects() {
    check(
        &[("/spec.tools/x-kubernetes-list-type", Value::Null)],
        &[("list-type", ".spec.tools")],
    );
    check(
        &[("/spec.tools/items/required", Value::Null)],
        &[("array-of-struct", ".spec.tools")],
    );
    check(
        &[
            ("/spec.tools/items/required", Value::Null),
            ("/spec.tools/items/oneOf", json!([{"required": ["name"]}])),
        ],
        &[],
    );
    let values = json!({"type": "object", "properties": {}});
    check(
        &[("/spec.labels/additionalProperties", values)],
        &[("no-maps", ".spec.labels")],
    );
    check(
        &[(
            "/spec.any",
            json!({"type": "object", "description": "Any.", "x-kubernetes-preserve-unknown-fields": true}),
        )],
        &[("preserve-unknown-fields", ".spec.any")],
    );
    check(
        &[("/spec.image/default", json!("nginx"))],
        &[("default-or-required", ".spec.image")],
    );
}

#[test]
fn the_status() {
    check(
        &[("/subresources", Value::Null)],
        &[("status-subresource", ".status")],
    );
    check(
        &[("/status/required", json!(["conditions"]))],
        &[("status-optional", ".status")],
    );
    check(
        &[(
            "/status.phase",
            json!({"type": "string", "description": "Phase."}),
        )],
        &[("no-phase", ".status.phase")],
    );
    check(
        &[("/status.conditions", Value::Null)],
        &[("status-conditions", ".status")],
    );
    for (path, value) in [
        ("/status.conditions/x-kubernetes-list-type", json!("atomic")),
        (
            "/status.conditions/x-kubernetes-list-map-keys",
            json!(["type", "status"]),
        ),
        ("/status.conditions/items/required", json!(["type"])),
    ] {
        check(&[(path, value)], &[("conditions", ".status.conditions")]);
    }
    // A kind without a status needs no subresource.
    check(
        &[
            ("/schema/openAPIV3Schema/properties/status", Value::Null),
            ("/subresources", Value::Null),
        ],
        &[],
    );
}

#[test]
fn rules_need_messages_and_bounds() {
    let rule = |rule: &str| json!([{"rule": rule, "message": "wrong"}]);
    check(
        &[(
            "/spec.size/x-kubernetes-validations",
            json!([{"rule": "self > 0"}]),
        )],
        &[("rule-message", ".spec.size")],
    );
    // The rule is evaluated for each tool.
    let name = "/spec.tools/items/properties/name";
    check(
        &[
            (
                &format!("{name}/x-kubernetes-validations"),
                rule("self != ''"),
            ),
            (&format!("{name}/maxLength"), json!(63)),
        ],
        &[("unbounded", ".spec.tools")],
    );
    // The rule reads the tools and their names, but not the labels.
    check(
        &[(
            "/spec/x-kubernetes-validations",
            rule("self.tools.all(t, t.name != '')"),
        )],
        &[
            ("unbounded", ".spec.tools"),
            ("unbounded", ".spec.tools[*].name"),
        ],
    );
    check(
        &[
            (
                "/spec/x-kubernetes-validations",
                rule("self.tools.all(t, t.name != '')"),
            ),
            ("/spec.tools/maxItems", json!(16)),
            (&format!("{name}/maxLength"), json!(63)),
        ],
        &[],
    );
    check(
        &[(
            "/spec/x-kubernetes-validations",
            rule("self.size > 0 && self.region != ''"),
        )],
        &[],
    );
}

#[test]
fn rules_are_switched_off_by_name() {
    let mut crd = crd();
    set(&mut crd, "/name", json!("one"));
    assert_eq!(lint(&[crd.clone()], &[]).unwrap().len(), 1);
    assert_eq!(lint(&[crd], &["version-name"]).unwrap(), []);
}

#[test]
fn every_rule_is_sorted_and_reported_by_a_test() {
    let names: Vec<_> = RULES.iter().map(|it| it.name).collect();
    let mut sorted = names.clone();
    sorted.sort_unstable();
    assert_eq!(names, sorted);
    let tests = include_str!("tests.rs");
    for name in names {
        let quoted = format!("\"{name}\"");
        assert!(tests.contains(&quoted), "{name} has no test");
    }
}

#[test]
fn other_documents_are_refused() {
    let error = lint(&[json!({"kind": "Pod", "metadata": {"name": "one"}})], &[]).unwrap_err();
    assert!(error.to_string().starts_with("Pod one is not"), "{error}");
}

#[test]
fn findings_as_text() {
    let mut crd = crd();
    set(&mut crd, "/name", json!("one"));
    set(&mut crd, "/subresources", Value::Null);
    let text = render_findings(&lint(&[crd], &[]).unwrap());
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 5, "{text}");
    assert_eq!(
        lines[0],
        "warning  version-name             robots.example.com one ."
    );
    assert!(lines[1].starts_with("         the version \"one\" is not such as v1"));
    assert_eq!(
        lines[2],
        "error    status-subresource       robots.example.com one .status"
    );
    assert_eq!(lines[4], "1 error, 1 warning");
    assert_eq!(render_findings(&[]), "0 errors, 0 warnings\n");
}
