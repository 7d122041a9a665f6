//! Admission policies that an operator declares, and the manifests of webhooks.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams};
use kube::discovery::ApiResource;
use opkit::operator::RunOptions;
use opkit::webhook::{MutatingPolicy, ValidatingPolicy, WebhookCertificates};

use super::*;
use crate::waiting::until;

/// Returns a client of the kind of a manifest, for its namespace or for cluster-scoped objects.
fn api_of(plane: &ControlPlane, manifest: &Value) -> Api<DynamicObject> {
    let text = |field: &str| manifest[field].as_str().unwrap().to_owned();
    let api_version = text("apiVersion");
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    let gvk = kube::core::GroupVersionKind::gvk(group, version, &text("kind"));
    let mut resource = ApiResource::from_gvk(&gvk);
    if resource.kind.ends_with("Policy") {
        resource.plural = resource.kind.to_lowercase().replace("policy", "policies");
    }
    match manifest["metadata"]["namespace"].as_str() {
        Some(_) => Api::namespaced_with(plane.client(), plane.namespace(), &resource),
        None => Api::all_with(plane.client(), &resource),
    }
}

fn map(entries: usize) -> ConfigMap {
    let mut map = ConfigMap::default();
    map.metadata.name = Some("one".to_owned());
    let entries = (0..entries).map(|entry| (format!("key-{entry}"), String::new()));
    map.data = Some(entries.collect());
    map
}

#[opkit::test]
async fn declared_policies_are_in_force(plane: ControlPlane) -> opkit::Result {
    plane.require(Capability::Admission)?;
    let namespace = plane.namespace();
    let own: LabelSelector = serde_json::from_value(json!({
        "matchLabels": {"kubernetes.io/metadata.name": namespace},
    }))?;
    let operator = Operator::new("map-operator")
        .validating_policy(
            ValidatingPolicy::of::<ConfigMap>(format!("small-{namespace}"))
                .variable("entries", "has(object.data) ? size(object.data) : 0")
                .validation("variables.entries <= 3", "a map may have at most 3 entries")
                .namespace_selector(own.clone()),
        )
        .mutating_policy(
            MutatingPolicy::of::<ConfigMap>(format!("labelled-{namespace}"))
                .apply_configuration(
                    "Object{metadata: Object.metadata{labels: {'checked': 'yes'}}}",
                )
                .namespace_selector(own),
        );
    let params = PatchParams::apply("test").force();
    for policy in operator.policies() {
        let name = policy["metadata"]["name"].as_str().unwrap();
        let api = api_of(&plane, policy);
        api.patch(name, &params, &Patch::Apply(policy)).await?;
    }
    // A real server reads the policies with a delay.
    let is_refused = async || {
        let refused = plane.apply(map(4)).await;
        refused.is_err_and(|error| {
            error
                .to_string()
                .contains("a map may have at most 3 entries")
        })
    };
    let is_labelled = async || {
        let applied = plane.apply(map(1)).await;
        applied.is_ok_and(|map| map.labels().get("checked").is_some())
    };
    until("the policies are in force", async || {
        is_refused().await && is_labelled().await
    })
    .await;
    for policy in operator.policies() {
        let name = policy["metadata"]["name"].as_str().unwrap();
        api_of(&plane, policy)
            .delete(name, &DeleteParams::default())
            .await?;
    }
    Ok(())
}

#[opkit::test]
async fn the_manifests_of_webhooks_are_accepted(plane: ControlPlane) -> opkit::Result {
    plane.require(Capability::Admission)?;
    let certificates = WebhookCertificates::CertManager;
    let operator = operator().webhook_certificates(certificates);
    let manifests = operator.webhook_manifests(&RunOptions::default()).unwrap();
    let mut accepted = 0;
    for mut manifest in manifests.documents() {
        if manifest["apiVersion"] == "cert-manager.io/v1" {
            continue;
        }
        if manifest["metadata"]["namespace"].is_string() {
            manifest["metadata"]["namespace"] = json!(plane.namespace());
        }
        let name = manifest["metadata"]["name"].as_str().unwrap();
        let dry = PatchParams::apply("test").dry_run();
        let api = api_of(&plane, &manifest);
        api.patch(name, &dry, &Patch::Apply(&manifest)).await?;
        accepted += 1;
    }
    assert_eq!(accepted, 3);
    Ok(())
}
