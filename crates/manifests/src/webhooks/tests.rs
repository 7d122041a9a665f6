use super::*;
use crate::yaml;

fn entry(path: &str) -> Value {
    json!({
        "name": "one.example.com", "clientConfig": {"service": {"path": path}},
        "admissionReviewVersions": ["v1"], "sideEffects": "None",
    })
}

fn manifests() -> WebhookManifests {
    let manifests = WebhookManifests::new("shop-operator", "shops").port(10250);
    manifests
        .mutating(entry("/mutate"))
        .validating(entry("/validate"))
}

fn kinds(documents: &[Value]) -> Vec<&str> {
    documents
        .iter()
        .map(|it| it["kind"].as_str().unwrap())
        .collect()
}

#[test]
fn the_configurations_name_the_service() {
    let documents = manifests().documents();
    let expected = [
        "Service",
        "MutatingWebhookConfiguration",
        "ValidatingWebhookConfiguration",
    ];
    assert_eq!(kinds(&documents), expected);
    let spec = &documents[0]["spec"];
    assert_eq!(spec["ports"][0]["targetPort"], 10250);
    assert_eq!(spec["ports"][0]["port"], 443);
    let expected = json!({"service": {
        "name": "shop-operator-webhook-service", "namespace": "shops", "path": "/mutate",
        "port": 443,
    }});
    assert_eq!(documents[1]["webhooks"][0]["clientConfig"], expected);
    let name = &documents[2]["metadata"]["name"];
    assert_eq!(name, "shop-operator-validating-webhook-configuration");
    assert!(!yaml(&documents).unwrap().contains("caBundle"));
    assert!(!yaml(&documents).unwrap().contains("cert-manager"));
}

#[test]
fn cert_manager_issues_a_certificate_for_the_service() {
    let documents = manifests().cert_manager(true).documents();
    let expected = [
        "Service",
        "Issuer",
        "Certificate",
        "MutatingWebhookConfiguration",
        "ValidatingWebhookConfiguration",
    ];
    assert_eq!(kinds(&documents), expected);
    let names = &documents[2]["spec"]["dnsNames"];
    assert_eq!(names[0], "shop-operator-webhook-service.shops.svc");
    let issuer = &documents[2]["spec"]["issuerRef"]["name"];
    assert_eq!(*issuer, documents[1]["metadata"]["name"]);
    for configuration in &documents[3..] {
        let annotation =
            &configuration["metadata"]["annotations"]["cert-manager.io/inject-ca-from"];
        assert_eq!(annotation, "shops/shop-operator-serving-cert");
        assert_eq!(
            documents[2]["metadata"]["name"],
            "shop-operator-serving-cert"
        );
    }
}

#[test]
fn a_configuration_without_webhooks_is_left_out() {
    let manifests = WebhookManifests::new("a", "b").validating(entry("/validate"));
    assert_eq!(
        kinds(&manifests.documents()),
        ["Service", "ValidatingWebhookConfiguration"]
    );
}
