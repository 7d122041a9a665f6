use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::managers::{self, Identity, Managers};
use super::*;
use crate::schema::{NoDefinitions, Schema, Typed};

mod properties;
mod replay;

const TIME: &str = "2026-01-01T00:00:00Z";

fn by(name: &str) -> Manager<'_> {
    Manager {
        name,
        api_version: "test.io/v1",
        subresource: "",
    }
}

/// Returns each manager's fields, as `manager/operation`.
fn owned(object: &Value) -> BTreeMap<String, Vec<String>> {
    let managers = Managers::decode(object).unwrap();
    let name =
        |identity: &Identity| format!("{}/{}", identity.manager, identity.operation.as_str());
    managers
        .entries
        .iter()
        .map(|(id, entry)| (name(id), entry.fields.paths()))
        .collect()
}

#[test]
fn fields_v1_is_read_and_written() {
    fn check(fields: Value, paths: &[&str]) {
        let set = FieldSet::from_fields_v1(&fields).unwrap();
        assert_eq!(set.paths(), paths);
        assert_eq!(set.to_fields_v1(), fields);
    }
    check(json!({}), &[]);
    check(json!({"f:a": {}}), &[".a"]);
    check(json!({"f:a": {"f:b": {}}}), &[".a.b"]);
    check(json!({"f:a": {".": {}, "f:b": {}}}), &[".a", ".a.b"]);
    check(
        json!({"f:l": {"k:{\"name\":\"a\",\"port\":80}": {".": {}, "f:name": {}}}}),
        &[".l[name=\"a\",port=80]", ".l[name=\"a\",port=80].name"],
    );
    check(
        json!({"f:s": {"v:\"x\"": {}, "v:1": {}, "v:true": {}}}),
        &[".s[=\"x\"]", ".s[=1]", ".s[=true]"],
    );
    check(json!({"f:l": {"i:0": {}}}), &[".l[0]"]);
    for malformed in [
        json!([]),
        json!({"x:a": {}}),
        json!({"f:a": 1}),
        json!({"k:{": {}}),
    ] {
        assert_eq!(FieldSet::from_fields_v1(&malformed), None, "{malformed}");
    }
}

#[test]
fn sets_are_combined() {
    fn check(combine: fn(&FieldSet, &FieldSet) -> FieldSet, expected: &[&str]) {
        let a = json!({"f:a": {}, "f:b": {".": {}, "f:c": {}, "f:d": {}}});
        let b = json!({"f:b": {"f:c": {}, "f:e": {}}, "f:f": {}});
        let set = |fields| FieldSet::from_fields_v1(fields).unwrap();
        assert_eq!(combine(&set(&a), &set(&b)).paths(), expected);
    }
    check(FieldSet::union, &[".a", ".b", ".f", ".b.c", ".b.d", ".b.e"]);
    check(FieldSet::intersection, &[".b.c"]);
    check(FieldSet::difference, &[".a", ".b", ".b.d"]);
}

/// Returns the parts of the built-in schemas that these tests use.
fn built_in() -> BTreeMap<String, Arc<Schema>> {
    let string = json!({"type": "string"});
    let port = json!({"type": "object", "required": ["containerPort"], "properties": {
        "containerPort": {"type": "integer", "default": 0},
        "name": string,
        "protocol": {"type": "string", "default": "TCP"},
    }});
    let container = json!({"type": "object", "required": ["name"], "properties": {
        "image": string,
        "name": {"type": "string", "default": ""},
        "ports": {
            "type": "array",
            "items": {"allOf": [{"$ref": "#/components/schemas/Port"}], "default": {}},
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["containerPort", "protocol"],
        },
        "resources": {"allOf": [{"$ref": "#/components/schemas/Resources"}], "default": {}},
    }});
    let spec = json!({"type": "object", "required": ["containers"], "properties": {
        "containers": {
            "type": "array",
            "items": {"allOf": [{"$ref": "#/components/schemas/Container"}], "default": {}},
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
        },
        "raw": {"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.runtime.RawExtension"},
    }});
    let documents = [
        ("Port", port),
        ("Container", container),
        ("Spec", spec),
        (
            "Resources",
            json!({"type": "object", "properties": {
                "limits": {"type": "object", "additionalProperties": {"$ref": "x.api.resource.Quantity"}},
            }}),
        ),
        (
            "Meta",
            json!({"type": "object", "properties": {
                "labels": {"type": "object", "additionalProperties": string},
                "name": string,
            }}),
        ),
        (
            "Pod",
            json!({"type": "object", "properties": {
                "metadata": {"allOf": [{"$ref": "#/components/schemas/Meta"}], "default": {}},
                "spec": {"allOf": [{"$ref": "#/components/schemas/Spec"}], "default": {}},
            }}),
        ),
    ];
    let parse = |(name, document): (&str, Value)| {
        (name.to_owned(), Arc::new(Schema::parse(&document).unwrap()))
    };
    documents.into_iter().map(parse).collect()
}

#[test]
fn built_in_structs_exist_from_the_start() {
    let definitions = built_in();
    let pod = Schema::parse(&json!({"$ref": "#/components/schemas/Pod"})).unwrap();
    let typed = Typed::new(&pod, &definitions);
    let mut object = json!({
        "metadata": {"name": "a", "labels": {"x": "y"}},
        "spec": {"containers": [{"name": "c", "ports": [{"containerPort": 80}]}], "raw": {"a": {}}},
    });
    update(None, &mut object, &typed, &by("u"), TIME);
    assert_eq!(
        owned(&object)["u/Update"],
        [
            ".metadata.labels",
            ".metadata.labels.x",
            ".spec.raw",
            ".spec.containers[name=\"c\"]",
            ".spec.containers[name=\"c\"].name",
            ".spec.containers[name=\"c\"].ports",
            ".spec.containers[name=\"c\"].ports[containerPort=80,protocol=\"TCP\"]",
            ".spec.containers[name=\"c\"].ports[containerPort=80,protocol=\"TCP\"].containerPort",
        ],
    );
}

#[test]
fn what_a_manager_lets_go_is_removed_from_built_in_kinds() {
    fn check(before: Value, after: Value, expected: Value) {
        let definitions = built_in();
        let pod = Schema::parse(&json!({"$ref": "#/components/schemas/Pod"})).unwrap();
        let typed = Typed::new(&pod, &definitions);
        let container = |fields: Value| {
            let mut container = json!({"name": "c"});
            crate::patch::merge_patch(&mut container, &fields);
            json!({"spec": {"containers": [container]}})
        };
        let object = apply(None, &container(before), &typed, &by("a"), false, TIME).unwrap();
        let mut object = apply(
            Some(&object),
            &container(after),
            &typed,
            &by("a"),
            false,
            TIME,
        )
        .unwrap();
        managers::strip(&mut object);
        object.as_object_mut().unwrap().remove("metadata");
        assert_eq!(object, container(expected));
    }
    let ports = json!([{"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}]);
    check(
        json!({"ports": ports}),
        json!({"ports": [{"containerPort": 80, "protocol": "TCP"}]}),
        json!({"ports": [{"containerPort": 80, "protocol": "TCP"}]}),
    );
    check(json!({"ports": ports}), json!({}), json!({}));
    check(json!({"image": "x"}), json!({}), json!({}));
    check(
        json!({"resources": {"limits": {"cpu": 1}}}),
        json!({}),
        json!({}),
    );
}

fn size_schema() -> Schema {
    Schema::parse(&json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {
            "size": {"type": "integer"}, "colour": {"type": "string"},
        }},
        "status": {"type": "object", "properties": {"phase": {"type": "string"}}},
    }}))
    .unwrap()
}

#[test]
fn updates_of_subresources_are_kept_apart() {
    let schema = size_schema();
    let typed = Typed::new(&schema, &NoDefinitions);
    let mut live = json!({"spec": {"size": 1}});
    update(None, &mut live, &typed, &by("u"), TIME);
    let mut new = live.clone();
    new["status"] = json!({"phase": "Up"});
    // A request to a subresource cannot send managed fields.
    new["metadata"]["managedFields"] = json!([]);
    let status = Manager {
        subresource: "status",
        ..by("u")
    };
    update(
        Some(&live),
        &mut new,
        &typed,
        &status,
        "2026-01-02T00:00:00Z",
    );
    let entries = new["metadata"]["managedFields"].as_array().unwrap();
    let brief: Vec<(&str, &Value, &Value)> = entries
        .iter()
        .map(|e| {
            (
                e["time"].as_str().unwrap(),
                &e["subresource"],
                &e["fieldsV1"],
            )
        })
        .collect();
    assert_eq!(
        brief,
        [
            (
                TIME,
                &Value::Null,
                &json!({"f:spec": {".": {}, "f:size": {}}})
            ),
            (
                "2026-01-02T00:00:00Z",
                &json!("status"),
                &json!({"f:status": {".": {}, "f:phase": {}}}),
            ),
        ],
    );
}

#[test]
fn an_update_that_changes_nothing_keeps_its_time() {
    let schema = size_schema();
    let typed = Typed::new(&schema, &NoDefinitions);
    let mut live = json!({"spec": {"size": 1}});
    update(None, &mut live, &typed, &by("u"), TIME);
    let mut new = live.clone();
    update(
        Some(&live),
        &mut new,
        &typed,
        &by("u"),
        "2026-01-02T00:00:00Z",
    );
    assert_eq!(new, live);
}

#[test]
fn old_managers_become_ancient() {
    let schema = Schema::parse(&json!({"type": "object", "properties": {
        "spec": {"type": "object", "additionalProperties": {"type": "string"}},
    }}))
    .unwrap();
    let typed = Typed::new(&schema, &NoDefinitions);
    let mut live = json!({"spec": {}});
    update(None, &mut live, &typed, &by("m0"), TIME);
    for index in 1..=12 {
        let mut new = live.clone();
        new["spec"][format!("k{index}")] = json!("v");
        let name = format!("m{index}");
        update(
            Some(&live),
            &mut new,
            &typed,
            &by(&name),
            &format!("2026-01-02T00:00:{index:02}Z"),
        );
        live = new;
    }
    let owned = owned(&live);
    assert_eq!(owned.len(), 10);
    assert_eq!(
        owned["ancient-changes/Update"],
        [".spec", ".spec.k1", ".spec.k2", ".spec.k3"]
    );
}

#[test]
fn times_are_put_back_when_nothing_else_changed() {
    fn check(change: fn(&mut Value), expected_time: &str) {
        let schema = size_schema();
        let typed = Typed::new(&schema, &NoDefinitions);
        let config = json!({"spec": {"size": 1}});
        let live = apply(None, &config, &typed, &by("a"), false, TIME).unwrap();
        let mut new = live.clone();
        new["metadata"]["managedFields"][0]["time"] = json!("2027-01-01T00:00:00Z");
        change(&mut new);
        keep_times(&live, &mut new);
        assert_eq!(new["metadata"]["managedFields"][0]["time"], expected_time);
    }
    check(|_| {}, TIME);
    check(|new| new["spec"]["size"] = json!(2), "2027-01-01T00:00:00Z");
}

#[test]
fn conflicts_name_their_owners() {
    fn check(managers: &[Manager<'_>], expected: &str) {
        let schema = size_schema();
        let typed = Typed::new(&schema, &NoDefinitions);
        let mut live = json!({"metadata": {"uid": "1"}});
        for manager in managers {
            let mut new = live.clone();
            new["spec"] = json!({"size": 1, "colour": manager.name});
            let before = live.get("spec").map(|_| &live);
            update(before, &mut new, &typed, manager, TIME);
            live = new;
        }
        let config = json!({"spec": {"size": 2, "colour": "x"}});
        let error = apply(Some(&live), &config, &typed, &by("z"), false, TIME).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
    check(
        &[by("a")],
        "Apply failed with 2 conflicts: conflicts with \"a\" using test.io/v1:\n\
         - .spec.colour\n- .spec.size",
    );
    check(
        &[
            by("a"),
            Manager {
                subresource: "status",
                ..by("b")
            },
        ],
        "Apply failed with 2 conflicts: conflicts with \"a\" using test.io/v1:\n- .spec.size\n\
         conflicts with \"b\" with subresource \"status\" using test.io/v1:\n- .spec.colour",
    );
}

#[test]
fn kubectl_takes_over_from_its_client_side_apply() {
    fn check(changed: bool, expected: Result<&str, &str>) {
        let schema = size_schema();
        let typed = Typed::new(&schema, &NoDefinitions);
        let annotation = "kubectl.kubernetes.io/last-applied-configuration";
        let last = json!({"apiVersion": "test.io/v1", "spec": {"size": 1}}).to_string();
        let mut live =
            json!({"metadata": {"annotations": {annotation: last}}, "spec": {"size": 1}});
        update(
            None,
            &mut live,
            &typed,
            &by("kubectl-client-side-apply"),
            TIME,
        );
        if changed {
            let mut new = live.clone();
            new["spec"]["size"] = json!(7);
            update(Some(&live), &mut new, &typed, &by("other"), TIME);
            live = new;
        }
        let config = json!({"apiVersion": "test.io/v1", "spec": {"size": 2}});
        let answer = apply(Some(&live), &config, &typed, &by("kubectl"), false, TIME)
            .map_err(|error| error.to_string())
            .map(|new| {
                new["metadata"]["annotations"][annotation]
                    .as_str()
                    .unwrap()
                    .to_owned()
            });
        assert_eq!(answer.as_deref().map_err(String::as_str), expected);
    }
    check(
        false,
        Ok("{\"apiVersion\":\"test.io/v1\",\"spec\":{\"size\":2}}\n"),
    );
    check(
        true,
        Err("Apply failed with 1 conflict: conflict with \"other\" using test.io/v1: .spec.size"),
    );
}
