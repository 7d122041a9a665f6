use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use opkit_apimachinery::redact::LAST_APPLIED_CONFIGURATION;
use serde_json::json;

use super::*;

#[test]
fn an_object_is_shown_without_secrets() {
    let object = json!({
        "metadata": {"name": "a", "annotations": {LAST_APPLIED_CONFIGURATION: "copy of hunter2"}},
        "data": {"password": "hunter2"},
        "stringData": {"other": "hunter2"},
    });
    let bytes = serde_json::to_vec(&object).unwrap();
    let secret = readable(&Kind::of::<Secret>(), &bytes);
    assert!(!secret.contains("hunter2"), "{secret}");
    assert!(secret.contains("\"password\""), "names are shown: {secret}");
    let map = readable(&Kind::of::<ConfigMap>(), &bytes);
    assert!(map.contains("hunter2") && !map.contains("copy of"), "{map}");
}
