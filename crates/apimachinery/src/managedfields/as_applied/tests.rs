use serde_json::json;

use super::*;

/// Calls the method under test with `fieldsV1` as JSON.
fn is_as_applied(config: &Value, fields: &Value, live: &Value) -> bool {
    FieldSetRef::new(fields)
        .unwrap()
        .is_as_applied(config, live)
}

/// A deployment as a client applies it. The server completes the protocol of a port.
fn content() -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": "a", "namespace": "d", "annotations": {"opkit.dev/applied": "me:1"},
            "finalizers": ["x/y", "x/z"], "ownerReferences": [{"uid": "u", "controller": true}],
        },
        "spec": {
            "paused": false,
            "template": {"spec": {
                "nodeSelector": {"a": "b"},
                "containers": [{
                    "name": "robot",
                    "command": ["walk", "on"],
                    "resources": {"limits": {"cpu": "1000m"}},
                    "ports": [
                        {"containerPort": 80},
                        {"containerPort": 80, "protocol": "UDP", "name": "dns"},
                    ],
                }],
                "volumes": [{"name": "tmp", "emptyDir": {}}],
            }},
        },
    })
}

fn fields() -> Value {
    json!({
        "f:metadata": {
            "f:annotations": {"f:opkit.dev/applied": {}},
            "f:finalizers": {"v:\"x/y\"": {}, "v:\"x/z\"": {}},
            "f:ownerReferences": {"k:{\"uid\":\"u\"}": {}},
        },
        "f:spec": {
            "f:paused": {},
            "f:template": {"f:spec": {
                "f:nodeSelector": {},
                "f:containers": {"k:{\"name\":\"robot\"}": {
                    ".": {}, "f:name": {}, "f:command": {},
                    "f:resources": {"f:limits": {"f:cpu": {}}},
                    "f:ports": {
                        "k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}},
                        "k:{\"containerPort\":80,\"protocol\":\"UDP\"}":
                            {".": {}, "f:containerPort": {}, "f:protocol": {}, "f:name": {}},
                    },
                }},
                "f:volumes": {"k:{\"name\":\"tmp\"}": {".": {}, "f:name": {}, "f:emptyDir": {}}},
            }},
        },
    })
}

fn current() -> Value {
    let mut current = content();
    current["metadata"]["uid"] = json!("1");
    current["metadata"]["labels"] = json!({"of": "others"});
    let spec = &mut current["spec"];
    spec.as_object_mut().unwrap().remove("paused");
    spec["replicas"] = json!(1);
    let pod = &mut spec["template"]["spec"];
    pod["volumes"][0]["emptyDir"] = json!({});
    let robot = &mut pod["containers"][0];
    robot["resources"]["limits"]["cpu"] = json!("1");
    robot["ports"][0]["protocol"] = json!("TCP");
    pod["containers"] = json!([{"name": "sidecar"}, pod["containers"][0].clone()]);
    current
}

fn verdict(change: impl FnOnce(&mut Value, &mut Value, &mut Value)) -> bool {
    let (mut content, mut fields, mut current) = (content(), fields(), current());
    change(&mut content, &mut fields, &mut current);
    is_as_applied(&content, &fields, &current)
}

#[test]
fn values_that_the_server_rewrites_or_adds_are_as_applied() {
    assert!(verdict(|_, _, _| {}));
    assert!(verdict(|_, _, current| current["status"] = json!({"a": 1})));
}

#[test]
fn a_value_that_differs_is_not_as_applied() {
    let at = |path: &'static str, value: Value| {
        verdict(move |_, _, current| *current.pointer_mut(path).unwrap() = value)
    };
    assert!(!at(
        "/metadata/annotations/opkit.dev~1applied",
        json!("me:2")
    ));
    assert!(!at("/metadata/finalizers", json!(["x/z"])));
    let robot = "/spec/template/spec/containers/1";
    assert!(!at(robot, json!({"name": "robot"})));
    let cpu = "/spec/template/spec/containers/1/resources/limits/cpu";
    assert!(at(cpu, json!("1.0")));
    assert!(!at(cpu, json!("2")));
    assert!(!at(
        "/spec/template/spec/containers/1/command",
        json!(["walk"])
    ));
    assert!(!at("/spec/template/spec/containers", json!(null)));
    assert!(!verdict(
        |_, _, current| current["spec"]["paused"] = json!(true)
    ));
}

#[test]
fn a_field_that_the_manager_lost_is_not_as_applied() {
    let without = |path: &'static str, name: &'static str| {
        verdict(move |_, fields, _| {
            let at = fields.pointer_mut(path).unwrap().as_object_mut().unwrap();
            assert!(at.remove(name).is_some());
        })
    };
    assert!(!without("/f:spec", "f:paused"));
    assert!(!without("/f:metadata/f:finalizers", "v:\"x/y\""));
    assert!(!without("/f:metadata", "f:ownerReferences"));
    let ports = "/f:spec/f:template/f:spec/f:containers/k:{\"name\":\"robot\"}/f:ports";
    assert!(!without(
        ports,
        "k:{\"containerPort\":80,\"protocol\":\"TCP\"}"
    ));
    assert!(!without(
        ports,
        "k:{\"containerPort\":80,\"protocol\":\"UDP\"}"
    ));
}

#[test]
fn a_field_that_is_new_in_the_configuration_is_not_as_applied() {
    assert!(!verdict(
        |content, _, _| content["spec"]["replicas"] = json!(1)
    ));
    assert!(!verdict(
        |content, _, _| content["metadata"]["labels"] = json!({"of": "others"})
    ));
}

#[test]
fn an_owned_field_that_is_not_in_the_configuration_is_not_as_applied() {
    let with = |path: &'static str, name: &'static str| {
        verdict(move |_, fields, _| {
            let at = fields.pointer_mut(path).unwrap().as_object_mut().unwrap();
            assert!(at.insert(name.to_owned(), json!({})).is_none());
        })
    };
    assert!(!with("/f:spec", "f:replicas"));
    assert!(!with("/f:metadata/f:finalizers", "v:\"x/w\""));
    assert!(!with("/f:metadata/f:annotations", "f:more"));
    assert!(!with(
        "/f:spec/f:template/f:spec/f:containers",
        "k:{\"name\":\"more\"}"
    ));
    assert!(with("/f:spec/f:template/f:spec/f:containers", "."));
}

#[test]
fn an_empty_list_with_keys_has_no_owner_and_is_as_applied() {
    const ENV: &str = "/spec/template/spec/containers/0";
    let given = |content: &mut Value| {
        content.pointer_mut(ENV).unwrap()["env"] = json!([]);
    };
    assert!(verdict(|content, _, _| given(content)));
    // Items of other managers are ignored, but a list without keys that was lost is set again.
    assert!(!verdict(|content, _, current| {
        given(content);
        current["spec"]["template"]["spec"]["containers"][1]["env"] = json!([{"name": "A"}]);
    }));
    // A custom kind is stored as sent: a list that is missing there was removed.
    let custom = |content: &mut Value| {
        content["apiVersion"] = json!("robot.opkit.dev/v1");
        content.pointer_mut(ENV).unwrap()["resources"]["limits"]["cpu"] = json!("1");
        content["spec"]["parts"] = json!([]);
    };
    assert!(!verdict(|content, _, _| custom(content)));
    assert!(verdict(|content, _, current| {
        custom(content);
        current["spec"]["parts"] = json!([]);
    }));
}

/// Text that happens to parse as a quantity is text: the version 1.10 is not the version 1.1.
#[test]
fn only_quantities_compare_as_quantities() {
    let map = |given: &str, current: &str| {
        let content = |version: &str| {
            json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": "a", "labels": {"version": version}},
                "data": {"version": version, "sizeLimit": version},
            })
        };
        let fields = json!({
            "f:metadata": {"f:labels": {"f:version": {}}},
            "f:data": {"f:version": {}, "f:sizeLimit": {}},
        });
        is_as_applied(&content(given), &fields, &content(current))
    };
    assert!(map("1.1", "1.1"));
    assert!(!map("1.1", "1.10"));
    assert!(!map("1000m", "1"));
    // Also in the pod template of a workload, and in a list without keys.
    let robot = "/spec/template/spec/containers/0";
    assert!(!verdict(|content, _, current| {
        content.pointer_mut(robot).unwrap()["command"] = json!(["walk", "1.1"]);
        current["spec"]["template"]["spec"]["containers"][1]["command"] = json!(["walk", "1.10"]);
    }));
    assert!(!verdict(|content, _, current| {
        content["spec"]["template"]["spec"]["nodeSelector"] = json!({"a": "1000m"});
        current["spec"]["template"]["spec"]["nodeSelector"] = json!({"a": "1"});
    }));
}

/// A custom kind is stored as sent, so equal quantities have the same text.
#[test]
fn a_custom_kind_has_no_quantities_that_are_rewritten() {
    let robot = |cpu: &str| {
        json!({
            "apiVersion": "robot.opkit.dev/v1", "kind": "Robot",
            "spec": {"resources": {"limits": {"cpu": cpu}}},
        })
    };
    let fields = json!({"f:spec": {"f:resources": {"f:limits": {"f:cpu": {}}}}});
    assert!(is_as_applied(&robot("1"), &fields, &robot("1")));
    assert!(!is_as_applied(&robot("1"), &fields, &robot("1000m")));
}

#[test]
fn large_integers_are_compared_digit_by_digit() {
    let map = |number: i64| {
        json!({
            "apiVersion": "robot.opkit.dev/v1", "kind": "Robot",
            "spec": {"serial": number},
        })
    };
    let fields = json!({"f:spec": {"f:serial": {}}});
    let large = 9_007_199_254_740_993;
    assert!(is_as_applied(&map(large), &fields, &map(large)));
    assert!(!is_as_applied(&map(large), &fields, &map(large - 1)));
}

/// Init containers run in their order, and variables refer to those before them.
#[test]
fn another_order_of_a_list_with_keys_is_not_as_applied() {
    let pod = |names: &[&str]| {
        let containers: Vec<_> = names.iter().map(|name| json!({"name": name})).collect();
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "spec": {"template": {"spec": {"initContainers": containers}}},
        })
    };
    let item = json!({".": {}, "f:name": {}});
    let fields = json!({"f:spec": {"f:template": {"f:spec": {"f:initContainers": {
        "k:{\"name\":\"a\"}": item, "k:{\"name\":\"b\"}": item,
    }}}}});
    assert!(is_as_applied(&pod(&["a", "b"]), &fields, &pod(&["a", "b"])));
    assert!(!is_as_applied(
        &pod(&["b", "a"]),
        &fields,
        &pod(&["a", "b"])
    ));
    // Items of other managers may be anywhere.
    let current = pod(&["x", "a", "y", "b"]);
    assert!(is_as_applied(&pod(&["a", "b"]), &fields, &current));
    // The order also counts for an item whose key the server has completed.
    assert!(!verdict(|content, _, _| {
        let ports = &mut content["spec"]["template"]["spec"]["containers"][0]["ports"];
        ports.as_array_mut().unwrap().reverse();
    }));
}
