use std::sync::Arc;

use serde_json::{Value, json};

use super::{set_ingress_class, set_storage_class};

fn class(name: &str, created: &str, key: &str, value: &str) -> Arc<Value> {
    Arc::new(json!({"metadata": {
        "name": name, "creationTimestamp": created, "annotations": {key: value},
    }}))
}

const KEY: &str = "storageclass.kubernetes.io/is-default-class";

fn check(classes: &[Arc<Value>], mut claim: Value, expected: Value) {
    set_storage_class(&mut claim, || classes.to_vec());
    assert_eq!(claim["spec"]["storageClassName"], expected, "{claim}");
}

#[test]
fn the_newest_default_storage_class_wins() {
    let old = class("old", "2026-01-01T00:00:00Z", KEY, "true");
    let new_b = class("new-b", "2026-02-01T00:00:00Z", KEY, "true");
    let beta = "storageclass.beta.kubernetes.io/is-default-class";
    let new_a = class("new-a", "2026-02-01T00:00:00Z", beta, "true");
    let other = class("other", "2026-03-01T00:00:00Z", KEY, "false");
    let all = [old.clone(), new_b, new_a, other.clone()];
    check(&all, json!({"spec": {}}), json!("new-a"));
    check(&[old], json!({"spec": {}}), json!("old"));
    check(&[other], json!({"spec": {}}), Value::Null);
}

#[test]
fn a_claim_with_a_class_keeps_it() {
    let classes = [class("c", "2026-01-01T00:00:00Z", KEY, "true")];
    check(
        &classes,
        json!({"spec": {"storageClassName": ""}}),
        json!(""),
    );
    check(
        &classes,
        json!({"spec": {"storageClassName": "own"}}),
        json!("own"),
    );
    let annotated = json!({
        "metadata": {"annotations": {"volume.beta.kubernetes.io/storage-class": "x"}}, "spec": {},
    });
    check(&classes, annotated, Value::Null);
}

#[test]
fn an_ingress_gets_the_default_class_unless_it_names_one() {
    let key = "ingressclass.kubernetes.io/is-default-class";
    let classes = || vec![class("nginx", "2026-01-01T00:00:00Z", key, "true")];
    let mut plain = json!({"spec": {}});
    set_ingress_class(&mut plain, classes);
    assert_eq!(plain["spec"]["ingressClassName"], "nginx");
    let mut annotated = json!({
        "metadata": {"annotations": {"kubernetes.io/ingress.class": "x"}}, "spec": {},
    });
    set_ingress_class(&mut annotated, classes);
    assert_eq!(annotated["spec"]["ingressClassName"], Value::Null);
}
