use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use opkit_webhook::{Admission, AdmissionRequest, Webhook};

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

#[tokio::test]
async fn a_server_without_a_certificate_is_an_error() {
    let mut options = RunOptions::default();
    options.webhook_bind_address = Some(([127, 0, 0, 1], 0).into());
    let error = operator().webhooks.start(&options).await.err().unwrap();
    assert!(
        matches!(error, OperatorError::NoWebhookCertificate),
        "{error}"
    );
    options.webhook_certificates = Some(CertificateSource::channel().1);
    let started = operator().webhooks.start(&options).await.unwrap().unwrap();
    assert_ne!(started.address.unwrap().port(), 0);
    assert!(started.health.unwrap().check().is_err());
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
