use serde_json::json;

use super::*;

fn check(before: Value, after: Value, expected: &[&str]) {
    let found = differences(&before, &after);
    let lines: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert_eq!(lines, expected, "{before} -> {after}");
    // The same differences in the other direction.
    assert_eq!(differences(&after, &before).len(), expected.len());
}

#[test]
fn fields_are_changed_added_and_removed() {
    check(
        json!({"spec": {"image": "web:1", "old": {"a": 1}, "same": [1, {"x": null}]}}),
        json!({"spec": {"image": "web:2", "new": true, "same": [1, {"x": null}]}}),
        &[
            r#".spec.image "web:1" -> "web:2""#,
            r#".spec.old - {"a":1}"#,
            ".spec.new + true",
        ],
    );
    check(json!({"a": 1}), json!({"a": "1"}), &[r#".a 1 -> "1""#]);
}

#[test]
fn writes_alone_are_no_difference() {
    let object = |version: &str, generation: u64| {
        json!({
            "metadata": {"name": "a", "resourceVersion": version, "generation": generation,
                "managedFields": [{"manager": version}]},
            "status": {"replicas": generation},
        })
    };
    check(object("1", 1), object("2", 2), &[]);
    check(json!({"a": {}}), json!({}), &[]);
}

#[test]
fn items_are_found_by_their_names() {
    let pod = |containers: Value| json!({"spec": {"containers": containers}});
    check(
        pod(json!([{"name": "a", "image": "1"}, {"name": "b"}])),
        pod(json!([{"name": "c"}, {"name": "a", "image": "2"}])),
        &[
            r#".spec.containers[a].image "1" -> "2""#,
            ".spec.containers - b",
            ".spec.containers + c",
        ],
    );
    let order = pod(json!([{"name": "b"}, {"name": "a"}]));
    check(
        pod(json!([{"name": "a"}, {"name": "b"}])),
        order,
        &[r#".spec.containers [{"name":"a"},{"name":"b"}] -> [{"name":"b"},{"name":"a"}]"#],
    );
}

#[test]
fn items_without_names_are_compared_as_a_set() {
    check(
        json!({"verbs": ["get", "list"]}),
        json!({"verbs": ["list", "get", "patch"]}),
        &[r#".verbs + "patch""#],
    );
    check(
        json!({"args": ["a", "b"]}),
        json!({"args": ["b", "a"]}),
        &[r#".args ["a","b"] -> ["b","a"]"#],
    );
    check(
        json!({"rules": [{"verbs": ["get"]}]}),
        json!({"rules": [{"verbs": ["get", "list"]}]}),
        &[r#".rules[0].verbs + "list""#],
    );
    check(
        json!({"rules": [{"verbs": ["get"]}]}),
        json!({"rules": [{"verbs": ["get"]}, {"verbs": ["list"]}]}),
        &[r#".rules + {"verbs":["list"]}"#],
    );
    // Two items have the same name.
    check(
        json!({"ports": [{"name": "a", "port": 1}, {"name": "a", "port": 2}]}),
        json!({"ports": [{"name": "a", "port": 1}, {"name": "a", "port": 3}]}),
        &[".ports[1].port 2 -> 3"],
    );
}

#[test]
fn names_with_dots_are_quoted_and_long_values_cut() {
    check(
        json!({"labels": {}}),
        json!({"labels": {"app.kubernetes.io/name": "web"}}),
        &[r#".labels["app.kubernetes.io/name"] + "web""#],
    );
    let long = differences(&json!({"a": "1"}), &json!({"a": "x".repeat(200)}));
    assert!(long[0].to_string().len() < 120, "{}", long[0]);
    assert_eq!(long[0].after, Some(json!("x".repeat(200))));
}

#[test]
fn values_of_secrets_are_redacted() {
    let secret = |value: &str| json!({"kind": "Secret", "data": {"password": value, "a": "b"}});
    check(
        secret("eA=="),
        secret("eQ=="),
        &[r#".data.password "REDACTED" -> "REDACTED""#],
    );
    let all = json!({"kind": "Secret"});
    let found = differences(&all, &secret("eA=="));
    assert!(!format!("{found:?}").contains("eA=="));
    let applied = |value: &str| json!({"kind": "ConfigMap", "metadata": {"annotations": {LAST_APPLIED_CONFIGURATION: value}}});
    let found = differences(&applied("hush"), &applied("secret"));
    assert_eq!(found.len(), 1);
    assert!(!format!("{found:?}").contains("hush"));
}
