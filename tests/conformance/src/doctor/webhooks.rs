//! Webhooks that the API server cannot call, or that block the operator itself.

use opkit::prelude::*;
use opkit_doctor::Severity::{Fail, Warning};
use serde_json::{Value, json};

use super::patient::{CERTIFICATE, Patient, SECRETS, SERVICES, WEBHOOKS, base64, issue};

/// Changes the webhook.
async fn change(patient: &Patient, change: impl FnOnce(&mut Value)) -> opkit::Result {
    let name = patient.webhooks();
    let live = Value::from(patient.resource(&WEBHOOKS).get(name.as_str()).await?);
    let mut webhooks = live["webhooks"].clone();
    change(&mut webhooks[0]);
    patient
        .patch(&WEBHOOKS, &name, json!({"webhooks": webhooks}))
        .await
}

const REFUSED: &str = "every write of patients is refused (failurePolicy Fail)";

#[opkit::test]
async fn a_missing_webhook_configuration_is_named(plane: ControlPlane) -> opkit::Result {
    let patient = Patient::deployed(&plane).await?;
    patient.delete(&WEBHOOKS, &patient.webhooks()).await?;
    let words = ["does not exist: objects are not validated", "opkit deploy"];
    patient.finds(Fail, "webhook", &words).await?;
    patient.remove().await
}

#[opkit::test]
async fn a_webhook_without_its_service_is_named(plane: ControlPlane) -> opkit::Result {
    let patient = Patient::deployed(&plane).await?;
    patient.delete(&SERVICES, "webhooks").await?;
    let words = ["calls service/webhooks, which does not exist", REFUSED];
    patient.finds(Fail, "webhook", &words).await?;
    patient.remove().await
}

#[opkit::test]
async fn a_webhook_without_its_port_is_named(plane: ControlPlane) -> opkit::Result {
    let patient = Patient::deployed(&plane).await?;
    let port = json!({"spec": {"ports": [{"port": 8443, "targetPort": 9443}]}});
    patient.patch(&SERVICES, "webhooks", port).await?;
    let words = [
        "calls port 443 of service/webhooks, which has no such port",
        REFUSED,
    ];
    patient.finds(Fail, "webhook", &words).await?;
    patient.remove().await
}

#[opkit::test]
async fn a_webhook_without_endpoint_is_named_with_the_reason(plane: ControlPlane) -> opkit::Result {
    let patient = Patient::deployed(&plane).await?;
    let pod = patient.gated_pod().await?;
    let reason = format!("# pod/{pod} SchedulingGated");
    let words = ["has no ready endpoint", REFUSED, &reason];
    patient.finds(Fail, "webhook", &words).await?;
    change(&patient, |webhook| {
        webhook["failurePolicy"] = json!("Ignore")
    })
    .await?;
    let words = [
        "has no ready endpoint",
        "patients are not checked (failurePolicy Ignore)",
    ];
    patient.finds(Warning, "webhook", &words).await?;
    patient.remove().await
}

#[opkit::test]
async fn a_webhook_without_authority_is_named(plane: ControlPlane) -> opkit::Result {
    let patient = Patient::deployed(&plane).await?;
    change(&patient, |webhook| {
        webhook["clientConfig"]["caBundle"] = json!(null)
    })
    .await?;
    patient
        .finds(Fail, "webhook", &["has no caBundle", REFUSED])
        .await?;
    patient.remove().await
}

#[opkit::test]
async fn a_webhook_with_another_authority_is_named(plane: ControlPlane) -> opkit::Result {
    let patient = Patient::deployed(&plane).await?;
    let (_, other) = issue(&patient.host());
    patient.trust(&other).await?;
    let words = ["no authority in the caBundle of", "has signed", CERTIFICATE];
    patient.finds(Fail, "certificate", &words).await?;
    patient.remove().await
}

#[opkit::test]
async fn a_certificate_of_another_name_is_named(plane: ControlPlane) -> opkit::Result {
    let patient = Patient::deployed(&plane).await?;
    patient.certify("webhooks.elsewhere.svc").await?;
    let words = [format!("is not for {}", patient.host())];
    patient.finds(Fail, "certificate", &[&words[0]]).await?;
    let broken = json!({"data": {"tls.crt": base64("no certificate")}});
    patient.patch(&SECRETS, CERTIFICATE, broken).await?;
    patient
        .finds(
            Fail,
            "certificate",
            &["the serving certificate of", "not valid PEM"],
        )
        .await?;
    patient.remove().await
}

#[opkit::test]
async fn a_certificate_that_is_not_renewed_is_named(plane: ControlPlane) -> opkit::Result {
    let patient = Patient::deployed(&plane).await?;
    let words = ["expires in 9 d and was not renewed"];
    patient
        .finds_after(80 * 24 + 1, Warning, "certificate", &words)
        .await?;
    let words = ["expired 10 d ago: the API server refuses every call"];
    patient
        .finds_after(100 * 24 + 1, Fail, "certificate", &words)
        .await?;
    patient.remove().await
}

/// The webhook is called for the Pods of the operator itself.
#[opkit::test]
async fn a_webhook_that_blocks_its_operator_is_named(plane: ControlPlane) -> opkit::Result {
    let patient = Patient::deployed(&plane).await?;
    let namespace = plane.namespace().to_owned();
    let pods = |webhook: &mut Value| {
        webhook["rules"] = json!([{"apiGroups": [""], "apiVersions": ["v1"],
            "operations": ["CREATE"], "resources": ["pods"]}]);
        webhook["objectSelector"] = json!({});
        webhook["namespaceSelector"] =
            json!({"matchLabels": {"kubernetes.io/metadata.name": namespace}});
    };
    change(&patient, pods).await?;
    let words = [
        "intercepts pods in the namespace",
        "failurePolicy Fail",
        "NotIn",
    ];
    patient.finds(Fail, "webhook", &words).await?;
    patient.remove().await
}

#[opkit::test]
async fn a_long_time_limit_is_named(plane: ControlPlane) -> opkit::Result {
    let patient = Patient::deployed(&plane).await?;
    change(&patient, |webhook| webhook["timeoutSeconds"] = json!(30)).await?;
    patient
        .finds(Warning, "webhook", &["may take 30 s", "timeoutSeconds: 10"])
        .await?;
    patient.remove().await
}
