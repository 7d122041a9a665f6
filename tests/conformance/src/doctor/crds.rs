//! CRDs that are not served, or not those of the build.

use opkit::client::{DeleteOptions, Patch};
use opkit::prelude::*;
use opkit_doctor::Severity::{Fail, Warning};
use serde_json::json;

use super::patient::{CRDS, Patient, WEBHOOKS};

fn crd(patient: &mut Patient) -> &mut serde_json::Value {
    let mut objects = patient.manifests.objects.iter_mut();
    objects
        .find(|it| it["kind"] == "CustomResourceDefinition")
        .unwrap()
}

#[opkit::test]
async fn a_crd_with_the_name_of_another_one_is_named(plane: ControlPlane) -> opkit::Result {
    let mut patient = Patient::new(&plane)?;
    let mut other = crd(&mut patient).clone();
    other["metadata"]["name"] = json!(format!("others.{}", patient.group()));
    other["spec"]["names"] = json!({
        "plural": "others", "singular": "other", "kind": "Other", "listKind": "OtherList",
        "shortNames": ["pt"],
    });
    patient.create(&CRDS, other).await?;
    let established = |crd: &k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition| {
        let status = crd.status.clone().unwrap_or_default();
        let mut conditions = status.conditions.into_iter().flatten();
        conditions.any(|it| it.type_ == "Established" && it.status == "True")
    };
    let others = format!("others.{}", patient.group());
    plane.eventually(&*others, established).await?;
    let own = crd(&mut patient).clone();
    patient.create(&CRDS, own).await?;
    let words = ["are not accepted", "\"pt\" is already in use"];
    patient.finds(Fail, "crd", &words).await?;
    patient.delete(&CRDS, &others).await?;
    patient.remove().await
}

#[opkit::test]
async fn a_crd_that_is_terminating_is_named(plane: ControlPlane) -> opkit::Result {
    let patient = Patient::deployed(&plane).await?;
    let finalizer = |all: serde_json::Value| json!({"metadata": {"finalizers": all}});
    let (add, remove) = (
        finalizer(json!(["test.opkit.dev/stay"])),
        finalizer(json!(null)),
    );
    patient.instances().patch("one", Patch::Merge(&add)).await?;
    patient.delete(&CRDS, &patient.crd_name()).await?;
    let command = format!("kubectl get {} -A", patient.crd_name());
    patient
        .finds(Fail, "crd", &["is terminating", &command])
        .await?;
    patient
        .instances()
        .patch("one", Patch::Merge(&remove))
        .await?;
    patient.remove().await
}

#[opkit::test]
async fn versions_that_are_still_stored_are_named(plane: ControlPlane) -> opkit::Result {
    let mut patient = Patient::deployed(&plane).await?;
    let stored = json!({"status": {"storedVersions": ["v1alpha1", "v1"]}});
    let crds = patient.resource(&CRDS).subresource("status");
    crds.patch(patient.crd_name(), Patch::Merge(&stored))
        .await?;
    let command = format!("opkit migrate storage {}", patient.crd_name());
    let words = ["objects may be stored as v1alpha1, so", &command];
    patient.finds(Warning, "crd", &words).await?;
    // The next build drops the version.
    crd(&mut patient)["spec"]["versions"]
        .as_array_mut()
        .unwrap()
        .pop();
    let words = ["stored as v1alpha1, which this build drops", &command];
    patient.finds(Fail, "crd", &words).await?;
    patient.remove().await
}

#[opkit::test]
async fn a_crd_that_is_older_than_the_build_is_named(plane: ControlPlane) -> opkit::Result {
    let mut patient = Patient::deployed(&plane).await?;
    let schema = &mut crd(&mut patient)["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    schema["properties"]["spec"]["properties"]["paused"] = json!({"type": "boolean"});
    let words = [
        "is older than this build: it has no .spec.paused",
        "opkit install",
    ];
    patient.finds(Fail, "version", &words).await?;
    crd(&mut patient)["spec"]["versions"]
        .as_array_mut()
        .unwrap()
        .push(json!({
            "name": "v2", "served": true, "storage": false,
            "schema": {"openAPIV3Schema": {"type": "object"}},
        }));
    patient
        .finds(Fail, "version", &["it has no served version v2"])
        .await?;
    patient.remove().await
}

#[opkit::test]
async fn a_crd_that_is_newer_than_the_build_is_named(plane: ControlPlane) -> opkit::Result {
    let mut patient = Patient::deployed(&plane).await?;
    for version in crd(&mut patient)["spec"]["versions"]
        .as_array_mut()
        .unwrap()
    {
        version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"] = json!({});
    }
    let words = ["is newer than this build, which does not know .spec.size"];
    patient.finds(Warning, "version", &words).await?;
    patient.remove().await
}

#[opkit::test]
async fn a_conversion_webhook_without_service_is_named(plane: ControlPlane) -> opkit::Result {
    let patient = Patient::deployed(&plane).await?;
    patient.delete(&WEBHOOKS, &patient.webhooks()).await?;
    let conversion = json!({"spec": {"conversion": {"strategy": "Webhook", "webhook": {
        "conversionReviewVersions": ["v1"],
        "clientConfig": {"service": {"name": "gone", "namespace": plane.namespace(), "port": 443}},
    }}}});
    patient
        .patch(&CRDS, &patient.crd_name(), conversion)
        .await?;
    let words = [
        "the conversion of",
        "calls service/gone, which does not exist",
    ];
    patient.finds(Fail, "conversion", &words).await?;
    let options = DeleteOptions::background();
    patient.instances().delete("one", &options).await?;
    patient.remove().await
}
