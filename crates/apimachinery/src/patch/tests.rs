use serde_json::{Value, json};

use super::*;
use crate::schema::{NoDefinitions, Schema, Typed};

#[test]
fn json_patches() {
    fn check(object: Value, patch: Value, expected: Result<Value, &str>) {
        let mut patched = object.clone();
        match (json_patch(&mut patched, &patch), expected) {
            (Ok(()), Ok(expected)) => assert_eq!(patched, expected),
            (Err(error), Err(expected)) => {
                let kind = if matches!(error, PatchError::Malformed(_)) {
                    "malformed"
                } else {
                    "unprocessable"
                };
                assert_eq!(kind, expected, "{error}");
                assert_eq!(patched, object, "a failed patch changes nothing");
            }
            (got, expected) => panic!("{got:?} instead of {expected:?}"),
        }
    }
    check(
        json!({"a": 1}),
        json!([{"op": "add", "path": "/b", "value": 2}]),
        Ok(json!({"a": 1, "b": 2})),
    );
    check(
        json!({"a": {"x/y": 1}}),
        json!([{"op": "remove", "path": "/a/x~1y"}]),
        Ok(json!({"a": {}})),
    );
    check(
        json!({"a": [1]}),
        json!([{"op": "add", "path": "/a/-", "value": 2}]),
        Ok(json!({"a": [1, 2]})),
    );
    let failing_test =
        json!([{"op": "add", "path": "/b", "value": 1}, {"op": "test", "path": "/a", "value": 2}]);
    check(json!({"a": 1}), failing_test, Err("unprocessable"));
    check(
        json!({}),
        json!([{"op": "remove", "path": "/a"}]),
        Err("unprocessable"),
    );
    check(
        json!({}),
        json!([{"op": "explode", "path": "/a"}]),
        Err("unprocessable"),
    );
    check(json!({}), json!({"op": "remove"}), Err("malformed"));
    check(json!({}), json!(["x"]), Err("malformed"));
    check(
        json!({}),
        json!([{"op": 1, "path": "/a"}]),
        Err("malformed"),
    );
    // Where the server is laxer than the RFC.
    check(
        json!({}),
        json!([{"op": "replace", "path": "/a", "value": 1}]),
        Ok(json!({"a": 1})),
    );
    check(
        json!({}),
        json!([{"op": "copy", "from": "/a", "path": "/b"}]),
        Ok(json!({"b": null})),
    );
    check(
        json!({}),
        json!([{"op": "test", "path": "/a", "value": null}]),
        Ok(json!({})),
    );
    check(
        json!({}),
        json!([{"op": "add", "path": "/a"}]),
        Ok(json!({"a": null})),
    );
    check(
        json!([1, 2]),
        json!([{"op": "remove", "path": "/-1"}]),
        Ok(json!([1])),
    );
    check(json!({}), json!([]), Ok(json!({})));
    // Where it is not.
    check(
        json!({}),
        json!([{"op": "move", "from": "/a", "path": "/b"}]),
        Err("unprocessable"),
    );
    check(
        json!({}),
        json!([{"op": "add", "path": "/a/b", "value": 1}]),
        Err("unprocessable"),
    );
    check(
        json!({}),
        json!([{"op": "add", "path": "a", "value": 1}]),
        Err("unprocessable"),
    );
    check(
        json!({"a": []}),
        json!([{"op": "add", "path": "/a/5", "value": 1}]),
        Err("unprocessable"),
    );
    check(
        json!({"a": 1}),
        json!([{"op": "move", "from": "/a", "path": "/a/b"}]),
        Err("unprocessable"),
    );
    check(json!({}), json!([{"op": "remove"}]), Err("unprocessable"));
    check(
        json!({"a": [1, 3]}),
        json!([{"op": "add", "path": "/a/1", "value": 2}]),
        Ok(json!({"a": [1, 2, 3]})),
    );
    check(
        json!({"a": [{"b": 1}]}),
        json!([{"op": "replace", "path": "/a/0/b", "value": 2}]),
        Ok(json!({"a": [{"b": 2}]})),
    );
}

#[test]
fn merge_patches() {
    fn check(object: Value, patch: Value, expected: Value) {
        let mut patched = object;
        merge_patch(&mut patched, &patch);
        assert_eq!(patched, expected);
    }
    // The cases of RFC 7386, appendix A.
    check(json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"}));
    check(
        json!({"a": "b"}),
        json!({"b": "c"}),
        json!({"a": "b", "b": "c"}),
    );
    check(json!({"a": "b"}), json!({"a": null}), json!({}));
    check(json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"}));
    check(json!({"a": "c"}), json!({"a": ["b"]}), json!({"a": ["b"]}));
    check(
        json!({"a": {"b": "c"}}),
        json!({"a": {"b": "d", "c": null}}),
        json!({"a": {"b": "d"}}),
    );
    check(
        json!({"a": [{"b": "c"}]}),
        json!({"a": [1]}),
        json!({"a": [1]}),
    );
    check(json!(["a", "b"]), json!(["c", "d"]), json!(["c", "d"]));
    check(
        json!({"e": null}),
        json!({"a": 1}),
        json!({"e": null, "a": 1}),
    );
    check(
        json!([1, 2]),
        json!({"a": "b", "c": null}),
        json!({"a": "b"}),
    );
    check(
        json!({}),
        json!({"a": {"bb": {"ccc": null}}}),
        json!({"a": {"bb": {}}}),
    );
}

fn pod_like() -> Schema {
    Schema::parse(&json!({
        "type": "object",
        "properties": {
            "args": {"type": "array", "items": {"type": "string"}},
            "containers": {
                "type": "array",
                "x-kubernetes-patch-strategy": "merge",
                "x-kubernetes-patch-merge-key": "name",
                "items": {
                    "type": "object",
                    "properties": {
                        "image": {"type": "string"},
                        "ports": {
                            "type": "array",
                            "x-kubernetes-patch-strategy": "merge",
                            "x-kubernetes-patch-merge-key": "containerPort",
                            "items": {"type": "object"},
                        },
                    },
                },
            },
            "finalizers": {
                "type": "array",
                "items": {"type": "string"},
                "x-kubernetes-patch-strategy": "merge",
            },
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "strategy": {"type": "object", "x-kubernetes-patch-strategy": "retainKeys"},
            "whole": {"type": "object", "x-kubernetes-patch-strategy": "replace"},
        },
    }))
    .unwrap()
}

#[test]
fn strategic_merge_patches() {
    fn check(object: Value, patch: Value, expected: Value) {
        let schema = pod_like();
        let mut patched = object;
        strategic_merge(&mut patched, &patch, &Typed::new(&schema, &NoDefinitions)).unwrap();
        assert_eq!(patched, expected, "patch {patch}");
    }
    check(
        json!({"a": {"b": 1}}),
        json!({"a": {"b": null, "c": null}}),
        json!({"a": {}}),
    );
    check(
        json!({}),
        json!({"a": {"b": null, "c": 1}}),
        json!({"a": {"c": 1}}),
    );
    check(
        json!({"args": ["a"]}),
        json!({"args": ["b"]}),
        json!({"args": ["b"]}),
    );
    check(
        json!({"finalizers": ["a"]}),
        json!({"finalizers": ["b", "a"]}),
        json!({"finalizers": ["b", "a"]}),
    );
    check(
        json!({"containers": [{"name": "a", "image": "x"}, {"name": "b"}]}),
        json!({"containers": [{"name": "c"}, {"name": "a", "image": "y"}]}),
        json!({"containers": [{"name": "c"}, {"name": "a", "image": "y"}, {"name": "b"}]}),
    );
    check(
        json!({"containers": [{"name": "a"}, {"name": "b"}]}),
        json!({"containers": [{"name": "a", "$patch": "delete"}]}),
        json!({"containers": [{"name": "b"}]}),
    );
    check(
        json!({"containers": [{"name": "a"}, {"name": "b"}]}),
        json!({"containers": [{"$patch": "replace"}, {"name": "c"}]}),
        json!({"containers": [{"name": "c"}]}),
    );
    check(
        json!({"containers": [{"name": "a"}, {"name": "b"}]}),
        json!({
            "$setElementOrder/containers": [{"name": "b"}, {"name": "a"}],
            "containers": [{"name": "a", "image": "x"}],
        }),
        json!({"containers": [{"name": "b"}, {"name": "a", "image": "x"}]}),
    );
    check(
        json!({"finalizers": ["a", "b", "c"]}),
        json!({"$deleteFromPrimitiveList/finalizers": ["b"]}),
        json!({"finalizers": ["a", "c"]}),
    );
    check(
        json!({"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}),
        json!({"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}),
        json!({"strategy": {"type": "Recreate"}}),
    );
    check(
        json!({"whole": {"a": 1}}),
        json!({"whole": {"b": 2}}),
        json!({"whole": {"b": 2}}),
    );
    check(
        json!({"labels": {"a": "1"}}),
        json!({"labels": {"$patch": "delete"}}),
        json!({"labels": {}}),
    );
    check(
        json!({"labels": {"a": "1"}}),
        json!({"labels": {"$patch": "replace", "b": "2"}}),
        json!({"labels": {"b": "2"}}),
    );
    check(
        json!({"metadata": {"finalizers": ["x"], "labels": {"a": "1"}}}),
        json!({"metadata": {"finalizers": ["y"], "labels": {"b": "2"}}}),
        json!({"metadata": {"finalizers": ["y", "x"], "labels": {"a": "1", "b": "2"}}}),
    );
}

#[test]
fn strategic_merge_refuses() {
    fn check(patch: Value, expected: &str) {
        let schema = pod_like();
        let mut object = json!({"containers": [{"name": "a"}], "labels": {}, "strategy": {}});
        let error = strategic_merge(&mut object, &patch, &Typed::new(&schema, &NoDefinitions));
        assert_eq!(error.unwrap_err().to_string(), expected);
    }
    check(
        json!({"containers": [{"image": "x"}]}),
        "map: map[image:x] does not contain declared merge key: name",
    );
    check(
        json!({"labels": {"$patch": "explode"}}),
        "unknown patch type: explode in map: map[$patch:explode]",
    );
    check(
        json!({"strategy": {"$retainKeys": [], "type": "Recreate"}}),
        "invalid patch format of retainKeys",
    );
    check(
        json!([1]),
        "json: cannot unmarshal array into Go value of type map[string]interface {}",
    );
    check(
        json!({"containers": ["x"]}),
        "list element types are not identical: [[map[name:a]] [x]]",
    );
    check(
        json!({"$setElementOrder/args": "x"}),
        "expected a []interface {}, but received a string",
    );
    check(
        json!({"$setElementOrder/finalizers": ["a", "b"], "finalizers": ["b", "a"]}),
        "The order in patch list:\n[b a]\n doesn't match $setElementOrder list:\n[a b]\n",
    );
}

#[test]
fn a_patch_cannot_nest_or_grow_without_bound() {
    let copy = json!({"op": "copy", "from": "/a", "path": "/a/b"});
    let mut object = json!({"a": {}});
    let patch = Value::Array(vec![copy; 3_000]);
    assert!(json_patch(&mut object, &patch).is_err());
    assert_eq!(
        object,
        json!({"a": {}}),
        "a patch that fails changes nothing"
    );

    let double = json!({"op": "copy", "from": "/a", "path": "/a/-"});
    let mut object = json!({"a": [1]});
    let patch = Value::Array(vec![double; 40]);
    assert!(json_patch(&mut object, &patch).is_err());
}

#[test]
fn a_patch_copies_at_most_three_mebibytes() {
    // As JSON, a text has its quotes.
    let check = |length: usize, copies: usize, expected: bool| {
        let mut object = json!({"a": "x".repeat(length - 2)});
        let copy = |n| json!({"op": "copy", "from": "/a", "path": format!("/b{n}")});
        let patch = Value::Array((0..copies).map(copy).collect());
        let done = json_patch(&mut object, &patch);
        assert_eq!(done.is_ok(), expected, "{copies} times {length}: {done:?}");
    };
    check(1 << 20, 3, true);
    check((1 << 20) + 1, 3, false);
    check(1 << 20, 300, false);
    check(100, 3 * (1 << 20) / 100, true);
    check(100, 3 * (1 << 20) / 100 + 1, false);
}
