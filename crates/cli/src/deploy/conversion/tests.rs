use serde_json::json;

use super::*;

fn check(strategy: &str, storage: &str, stored: &[&str]) -> Option<String> {
    let version = |name: &str| json!({"name": name, "served": true, "storage": name == storage});
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "robots.opkit.dev"},
        "spec": {
            "group": "opkit.dev", "scope": "Namespaced",
            "names": {"plural": "robots", "kind": "Robot"},
            "versions": [version("v1"), version("v1alpha1")],
            "conversion": {"strategy": strategy},
        },
        "status": {"storedVersions": stored},
    });
    let crd = serde_json::from_value(crd).unwrap();
    let refused = refuse_conversion("v1", &crd).err();
    refused.map(|error| error.to_string())
}

#[test]
fn objects_in_the_version_of_the_operator_need_no_webhook() {
    assert_eq!(check("Webhook", "v1", &["v1"]), None);
    assert_eq!(check("Webhook", "v1", &[]), None);
    assert_eq!(check("None", "v1alpha1", &["v1", "v1alpha1"]), None);
}

#[test]
fn objects_that_are_converted_are_refused() {
    let added = check("Webhook", "v1alpha1", &["v1alpha1"]).unwrap();
    assert!(
        added.contains("stored as v1alpha1, the operator reads them as v1"),
        "{added}"
    );
    let not_installed = check("Webhook", "v1alpha1", &[]);
    assert_eq!(not_installed.as_ref(), Some(&added));
    let old = check("Webhook", "v1", &["v1alpha1"]).unwrap();
    assert!(old.contains("stored as v1 and v1alpha1"), "{old}");
}
