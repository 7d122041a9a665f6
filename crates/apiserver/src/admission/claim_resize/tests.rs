use std::sync::Arc;

use serde_json::{Value, json};

use super::check as check_resize;

fn claim(size: &str, class: &str, phase: &str) -> Value {
    json!({
        "spec": {"storageClassName": class, "resources": {"requests": {"storage": size}}},
        "status": {"phase": phase},
    })
}

fn check(old: &Value, new: &Value, class: Value, expected: Result<(), &str>) {
    let found = check_resize(old, new, |_| (!class.is_null()).then(|| Arc::new(class)));
    match expected {
        Ok(()) => assert_eq!(found, Ok(())),
        Err(part) => assert!(found.unwrap_err().contains(part), "{found:?}"),
    }
}

#[test]
fn a_claim_grows_if_its_class_allows_it() {
    let grows = json!({"allowVolumeExpansion": true});
    let bound = claim("1Gi", "c", "Bound");
    check(&bound, &claim("2Gi", "c", "Bound"), grows.clone(), Ok(()));
    check(&bound, &claim("1Gi", "c", "Bound"), Value::Null, Ok(()));
    check(&bound, &claim("1", "c", "Bound"), Value::Null, Ok(()));
    let pending = claim("1Gi", "c", "Pending");
    check(
        &pending,
        &claim("2Gi", "c", "Pending"),
        grows.clone(),
        Err("Only bound"),
    );
    let refused = Err("only dynamically provisioned");
    check(&bound, &claim("2Gi", "d", "Bound"), grows.clone(), refused);
    check(&bound, &claim("2Gi", "c", "Bound"), Value::Null, refused);
    check(
        &bound,
        &claim("2Gi", "c", "Bound"),
        json!({"allowVolumeExpansion": false}),
        refused,
    );
    let without = claim("1Gi", "", "Bound");
    check(&without, &claim("2Gi", "", "Bound"), grows, refused);
}
