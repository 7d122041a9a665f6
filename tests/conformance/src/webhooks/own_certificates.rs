//! A whole operator that serves its webhooks with its own certificates: the API server calls it
//! over HTTPS and trusts the `caBundle` that the operator writes.

use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::core::DynamicObject;
use kube::{Api, ResourceExt};
use opkit::prelude::*;
use opkit::webhook::CertificatePeriods;
use serde_json::{Value, json};
use tokio::time::interval;

use crate::versions::client;
use crate::versions::rover::Rover;
use crate::waiting::until;

const SECRET: &str = "rover-operator-webhook-certificates";
const CRD: &str = "rovers.fleet.opkit.dev";

/// An operator that defaults, validates and converts rovers.
fn operator() -> Operator {
    let webhook = Webhook::new()
        .defaulting(|rover: &mut Rover| rover.spec.timeout_seconds = Some(60))
        .validating(|rover: &Rover, _| {
            let mut admission = Admission::allowed();
            if rover.spec.replicas == 13 {
                admission.invalid("spec.replicas", 13, "is not a lucky number");
            }
            admission
        });
    Operator::new("rover-operator")
        .crd::<Rover>()
        .webhook(webhook)
}

/// Creates a rover of an old version, as a dry run. It is converted, defaulted and validated.
async fn admit(plane: &ControlPlane, size: i32) -> Result<DynamicObject, kube::Error> {
    let rover = json!({
        "apiVersion": "fleet.opkit.dev/v1alpha1", "kind": "Rover",
        "metadata": {"name": "any"},
        "spec": {
            "image": "a", "size": size, "endpoint": "mars:80", "power": "Diesel",
            "firmware": "f7",
        },
    });
    let rover = serde_json::from_value(rover).unwrap();
    let options = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    client(plane, "v1alpha1", "Rover")
        .create(&options, &rover)
        .await
}

/// Checks that all webhooks are called.
async fn check(plane: &ControlPlane) {
    let admitted = admit(plane, 3).await.unwrap();
    assert_eq!(admitted.data["spec"]["size"], 3);
    assert_eq!(admitted.data["spec"]["timeoutMinutes"], 1, "{admitted:?}");
    let refused = admit(plane, 13).await.unwrap_err().to_string();
    assert!(refused.contains("spec.replicas"), "{refused}");
}

/// Returns the authorities that are in use, from the Secret.
fn authorities(secret: &Secret) -> Option<String> {
    let data = secret.data.as_ref()?;
    String::from_utf8(data.get("ca.crt")?.0.clone()).ok()
}

/// Names of the webhook configurations of this test.
fn configurations(plane: &ControlPlane) -> [String; 2] {
    let prefix = match plane.require(Capability::OwnServer) {
        Ok(()) => "rover-operator".to_owned(),
        Err(_) => format!("rover-operator-{}", plane.namespace()),
    };
    ["mutating", "validating"].map(|sort| format!("{prefix}-{sort}-webhook-configuration"))
}

/// Returns the bundles of an object that calls webhooks.
fn bundles(object: &impl serde::Serialize) -> Vec<String> {
    let object = serde_json::to_value(object).unwrap();
    let webhooks = object["webhooks"].as_array().cloned().unwrap_or_default();
    let mut configs: Vec<Value> = webhooks
        .iter()
        .map(|it| it["clientConfig"].clone())
        .collect();
    configs.extend(
        object
            .pointer("/spec/conversion/webhook/clientConfig")
            .cloned(),
    );
    let bundles = configs.iter().map(|config| {
        let bundle = config["caBundle"].as_str().unwrap_or_default();
        String::from_utf8(STANDARD.decode(bundle).unwrap()).unwrap()
    });
    bundles.collect()
}

/// Waits until every webhook has exactly this bundle.
async fn have_bundle(plane: &ControlPlane, bundle: &str) -> opkit::Result {
    let [mutating, validating] = configurations(plane);
    let is_right = |bundles: Vec<String>| {
        !bundles.is_empty() && bundles.iter().all(|present| present == bundle)
    };
    plane
        .eventually(mutating.as_str(), |it: &MutatingWebhookConfiguration| {
            is_right(bundles(it))
        })
        .await?;
    plane
        .eventually(
            validating.as_str(),
            |it: &ValidatingWebhookConfiguration| is_right(bundles(it)),
        )
        .await?;
    plane
        .eventually(CRD, |it: &CustomResourceDefinition| is_right(bundles(it)))
        .await?;
    Ok(())
}

#[opkit::test]
async fn an_operator_admits_and_heals_with_its_own_certificates(
    plane: ControlPlane,
) -> opkit::Result {
    let plane = plane.own_certificates(CertificatePeriods::default());
    plane.start(operator()).await?;
    check(&plane).await;
    let secret = plane
        .eventually(SECRET, |secret: &Secret| authorities(secret).is_some())
        .await?;
    let authority = authorities(&secret).unwrap();

    // Edits by hand, of one webhook configuration and of the CRD, are undone while requests come.
    let other = rcgen::generate_simple_self_signed(["other".to_owned()])?
        .cert
        .pem();
    let other = STANDARD.encode(other);
    let name = &configurations(&plane)[1];
    let api: Api<ValidatingWebhookConfiguration> = Api::all(plane.client());
    let edit = Patch::Json::<()>(serde_json::from_value(json!([
        {"op": "replace", "path": "/webhooks/0/clientConfig/caBundle", "value": other},
    ]))?);
    api.patch(name, &PatchParams::default(), &edit).await?;
    let api: Api<CustomResourceDefinition> = Api::all(plane.client());
    let edit = json!({"spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": other}}}}});
    let edit = Patch::Merge(edit);
    api.patch(CRD, &PatchParams::default(), &edit).await?;
    // All objects have one authority alone only after the propagation time, but the first one did
    // not see another since the operator has written it.
    let contains = |bundles: Vec<String>| bundles.iter().all(|it| it.contains(&authority));
    plane
        .eventually(name.as_str(), |it: &ValidatingWebhookConfiguration| {
            contains(bundles(it))
        })
        .await?;
    plane
        .eventually(CRD, |it: &CustomResourceDefinition| contains(bundles(it)))
        .await?;
    until_admitted(&plane).await;
    check(&plane).await;

    // A deleted Secret is restored, with the same authority.
    let secrets: Api<Secret> = Api::namespaced(plane.client(), plane.namespace());
    let uid = secret.uid();
    secrets.delete(SECRET, &DeleteParams::default()).await?;
    plane
        .eventually(SECRET, |secret: &Secret| {
            secret.uid() != uid && authorities(secret).as_ref() == Some(&authority)
        })
        .await?;
    check(&plane).await;
    Ok(())
}

/// Waits until the API server has read the healed objects.
async fn until_admitted(plane: &ControlPlane) {
    let admitted = async || admit(plane, 3).await.is_ok();
    until("a request is admitted", admitted).await;
}

/// An authority is replaced three seconds before it expires, while requests flow.
#[opkit::test]
async fn a_rotation_of_the_authority_loses_no_request(plane: ControlPlane) -> opkit::Result {
    let seconds = Duration::from_secs;
    let plane = plane.own_certificates(CertificatePeriods {
        authority: seconds(21),
        serving: seconds(14),
        propagation: seconds(2),
        heartbeat: seconds(1),
        replica_timeout: seconds(4),
    });
    plane.start(operator()).await?;
    let secret = plane
        .eventually(SECRET, |secret: &Secret| authorities(secret).is_some())
        .await?;
    let first = authorities(&secret).unwrap();
    let admitted = AtomicUsize::new(0);
    let requests = async {
        let mut ticks = interval(Duration::from_millis(20));
        loop {
            ticks.tick().await;
            admit(&plane, 3).await.expect("a request is admitted");
            admitted.fetch_add(1, Ordering::Relaxed);
        }
    };
    let patient = plane.with_timeout(seconds(40));
    let rotated = patient.eventually(SECRET, |secret: &Secret| {
        authorities(secret).is_some_and(|now| !now.contains(&first))
    });
    let secret = tokio::select! {
        () = requests => unreachable!("requests flow for ever"),
        secret = rotated => secret?,
    };
    assert!(admitted.load(Ordering::Relaxed) > 100, "{admitted:?}");
    have_bundle(&plane, &authorities(&secret).unwrap()).await?;
    check(&plane).await;
    Ok(())
}
