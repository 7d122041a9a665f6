use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use opkit_webhook::{Admission, AdmissionRequest, Webhook};

use serde_json::json;

use super::*;

fn operator() -> Operator {
    let webhook = Webhook::<ConfigMap>::new()
        .defaulting(|_| {})
        .validating(|_, _| Admission::allowed());
    Operator::new("map-operator").webhook(webhook)
}

async fn read_secret(_: AdmissionRequest<ConfigMap>, _: WebhookContext) -> Result<Admission> {
    Ok(Admission::allowed())
}

fn kinds(manifests: &WebhookManifests) -> Vec<String> {
    let documents = manifests.documents();
    let kinds = documents
        .iter()
        .map(|it| it["kind"].as_str().unwrap().to_owned());
    kinds.collect()
}

#[test]
fn the_manifests_have_a_configuration_of_each_sort() {
    let mut options = RunOptions::default();
    options.webhook_bind_address = Some(([0, 0, 0, 0], 10250).into());
    let manifests = operator().webhook_manifests(&options).unwrap();
    let expected = [
        "Service",
        "MutatingWebhookConfiguration",
        "ValidatingWebhookConfiguration",
    ];
    assert_eq!(kinds(&manifests), expected);
    let documents = manifests.documents();
    assert_eq!(documents[0]["metadata"]["namespace"], "map-operator-system");
    assert_eq!(documents[0]["spec"]["ports"][0]["targetPort"], 10250);
    let webhook = &documents[2]["webhooks"][0];
    let path = &webhook["clientConfig"]["service"]["path"];
    assert_eq!(path, "/validate--v1-configmap");
    assert_eq!(webhook["matchPolicy"], "Equivalent");
    assert!(Operator::new("a").webhook_manifests(&options).is_none());
}

#[test]
fn cert_manager_is_chosen_by_the_operator() {
    let operator = operator().webhook_certificates(WebhookCertificates::CertManager);
    let manifests = operator.webhook_manifests(&RunOptions::default()).unwrap();
    let kinds = kinds(&manifests);
    assert!(kinds.contains(&"Certificate".to_owned()), "{kinds:?}");
}

#[test]
fn a_kind_that_a_webhook_reads_may_be_listed_and_watched() {
    let webhook = Webhook::new()
        .validating_with(read_secret)
        .reads::<Secret>();
    let rules = Operator::new("map-operator").webhook(webhook).rules();
    let mut rules = rules.iter();
    let secrets = rules.find(|rule| rule.resources.contains("secrets"));
    let verbs: Vec<_> = secrets.unwrap().verbs.iter().map(String::as_str).collect();
    assert_eq!(verbs, ["list", "watch"]);
}

#[test]
fn webhooks_with_the_same_path_are_an_error() {
    let another = || Webhook::<ConfigMap>::new().validating(|_, _| Admission::allowed());
    let error = operator().webhook(another()).check(&[]).unwrap_err();
    let text = "two webhooks have the path /validate--v1-configmap: give one of them another name with .named(..)";
    assert_eq!(error.to_string(), text);
    let named = operator().webhook(another().named("other"));
    named.check(&[]).unwrap();
}

/// Returns a client of a server that does not respond.
fn client() -> kube::Client {
    let config = kube::Config::new("http://127.0.0.1:1".parse().unwrap());
    kube::Client::try_from(config).unwrap()
}

#[tokio::test]
async fn a_server_without_a_certificate_is_not_healthy() {
    let mut options = RunOptions::default();
    options.webhook_bind_address = Some(([127, 0, 0, 1], 0).into());
    let own = operator().own_certificates(&options, "shops");
    let started = operator().webhooks.start(&options, own, client()).await;
    let started = started.unwrap().unwrap();
    assert_ne!(started.address.unwrap().port(), 0);
    let reason = started.health.unwrap()().unwrap_err();
    assert_eq!(
        reason,
        "no webhook certificate: the API server has not responded yet"
    );
    options.webhook_certificates = Some(CertificateSource::channel().1);
    assert!(operator().own_certificates(&options, "shops").is_none());
    let started = operator().webhooks.start(&options, None, client()).await;
    assert!(started.unwrap().unwrap().health.unwrap()().is_err());
}

#[test]
fn own_certificates_have_exactly_the_permissions_that_they_need() {
    let mut options = RunOptions::default();
    let is_for_certificates = |document: &Value| {
        let name = document["metadata"]["name"].as_str().unwrap();
        name.contains("webhook-certificates")
    };
    let documents = operator().rbac(&options).documents();
    assert!(!documents.iter().any(is_for_certificates), "no server");
    options.webhook_bind_address = Some(([127, 0, 0, 1], 0).into());
    let documents = operator().rbac(&options).documents();
    let rules: Vec<&Value> = documents
        .iter()
        .filter(|document| is_for_certificates(document) && document.get("rules").is_some())
        .map(|role| &role["rules"])
        .collect();
    let name = operator().name().to_owned();
    let secret = format!("{name}-webhook-certificates");
    assert_eq!(
        *rules[0],
        json!([
            {"apiGroups": [""], "resources": ["secrets"], "verbs": ["create"]},
            {
                "apiGroups": [""], "resources": ["secrets"],
                "verbs": ["get", "list", "update", "watch"], "resourceNames": [secret],
            },
        ])
    );
    let configurations = rules[1].as_array().unwrap();
    assert!(!configurations.is_empty());
    for rule in configurations {
        assert_eq!(rule["verbs"], json!(["get", "list", "patch", "watch"]));
        assert!(
            rule["resourceNames"][0]
                .as_str()
                .unwrap()
                .starts_with(&name)
        );
    }
}

#[tokio::test]
async fn a_shutdown_begins_after_the_operator_was_ready() {
    let (sender, ready) = watch::channel(false);
    let mut tasks = tokio::task::JoinSet::new();
    let task = tasks.spawn(shutdown(ready));
    for is_ready in [false, true] {
        sender.send_replace(is_ready);
        tokio::task::yield_now().await;
        assert!(!task.is_finished());
    }
    sender.send_replace(false);
    tasks.join_next().await.unwrap().unwrap();
}
