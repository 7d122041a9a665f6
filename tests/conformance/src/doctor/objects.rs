//! Objects of the operator's kind, and namespaces.

use opkit::client::{DeleteOptions, ObjectKey, Patch, Unstructured, WriteOptions};
use opkit::prelude::*;
use opkit_doctor::Doctor;
use opkit_doctor::Severity::{Fail, Warning};
use serde_json::{Value, json};

use super::patient::{NAMESPACES, Patient, has};

#[opkit::test]
async fn a_deletion_that_does_not_end_is_named(plane: ControlPlane) -> opkit::Result {
    let patient = Patient::deployed(&plane).await?;
    let finalizer = format!("patient.{}/cleanup", patient.group());
    let finalizers = |all: Value| json!({"metadata": {"finalizers": all}});
    let instances = patient.instances();
    instances
        .patch("one", Patch::Merge(&finalizers(json!([finalizer]))))
        .await?;
    instances
        .delete("one", &DeleteOptions::background())
        .await?;
    let what = format!(
        "patient/one in {} has been terminating for",
        plane.namespace()
    );
    let logs = format!("--tail=-1 | grep -w {}/one", plane.namespace());
    let words = [&*what, &finalizer, &logs];
    patient.finds_after(3, Warning, "finalizer", &words).await?;
    patient
        .patch_deployment(json!({"spec": {"replicas": 0}}))
        .await?;
    let words = ["the operator that removes it does not run", &finalizer];
    patient.finds_after(3, Fail, "finalizer", &words).await?;
    instances
        .patch("one", Patch::Merge(&finalizers(json!(null))))
        .await?;
    patient.remove().await
}

#[opkit::test]
async fn a_namespace_that_does_not_end_is_named(plane: ControlPlane) -> opkit::Result {
    let patient = Patient::deployed(&plane).await?;
    let name = format!("{}-ends", patient.unique);
    patient
        .create(&NAMESPACES, json!({"metadata": {"name": name}}))
        .await?;
    patient.add_instance("two", &name).await?;
    let finalizers = |all: Value| json!({"metadata": {"finalizers": all}});
    let key = ObjectKey {
        namespace: Some(name.clone()),
        name: "two".to_owned(),
    };
    let stay = finalizers(json!(["test.opkit.dev/stay"]));
    patient
        .instances()
        .patch(key.clone(), Patch::Merge(&stay))
        .await?;
    patient.delete(&NAMESPACES, &name).await?;
    let what = format!("namespace/{name} has been terminating for");
    let words = [&*what, "test.opkit.dev/stay"];
    patient.finds_after(1, Fail, "namespace", &words).await?;
    let go = finalizers(json!(null));
    patient.instances().patch(key, Patch::Merge(&go)).await?;
    patient.remove().await
}

/// Two field managers take a field from each other.
#[opkit::test]
async fn a_field_that_is_set_in_turn_is_named(plane: ControlPlane) -> opkit::Result {
    let patient = Patient::deployed(&plane).await?;
    let doctor = Doctor::new(plane.client());
    let mut facts = patient.facts().await?;
    for (manager, size) in [("one", 2), ("two", 3), ("one", 2), ("two", 3)] {
        let options = WriteOptions::for_manager(manager).force();
        let client = opkit::client::DynamicClient::new(plane.client()).with(options);
        let instance = json!({"metadata": {"name": "one"}, "spec": {"size": size}});
        let instances = client.resource(patient.instances().kind().clone());
        instances.apply(&Unstructured::from(instance)).await?;
        doctor.look(&mut facts).await;
    }
    let place = format!("patient/one in {}:", plane.namespace());
    let words = [&*place, ".spec.size is set in turn by one and two"];
    has(&facts.examine(), Warning, "loop", &words);
    patient.remove().await
}

#[opkit::test]
async fn a_status_that_changes_all_the_time_is_named(plane: ControlPlane) -> opkit::Result {
    let patient = Patient::deployed(&plane).await?;
    let doctor = Doctor::new(plane.client());
    let mut facts = patient.facts().await?;
    for number in 0..4 {
        let ready = if number % 2 == 0 { "False" } else { "True" };
        let status = json!({"status": {"conditions": [{"type": "Ready", "status": ready}]}});
        let instances = patient.instances().subresource("status");
        instances.patch("one", Patch::Merge(&status)).await?;
        doctor.look(&mut facts).await;
    }
    let place = format!("patient/one in {}", plane.namespace());
    let words = [
        &*place,
        "has changed 4 times in 5 looks; the last writer is",
    ];
    has(&facts.examine(), Warning, "loop", &words);
    patient.remove().await
}

#[opkit::test]
async fn a_change_that_is_not_observed_is_named(plane: ControlPlane) -> opkit::Result {
    let patient = Patient::deployed(&plane).await?;
    let size = json!({"spec": {"size": 7}});
    patient
        .instances()
        .patch("one", Patch::Merge(&size))
        .await?;
    let place = format!("patient/one in {}", plane.namespace());
    let words = [&*place, "was changed", "generation 2, observed 1"];
    patient.finds_after(1, Warning, "status", &words).await?;
    patient.remove().await
}

#[opkit::test]
async fn an_object_that_is_not_ready_is_named(plane: ControlPlane) -> opkit::Result {
    let patient = Patient::deployed(&plane).await?;
    let status = json!({"status": {"conditions": [{
        "type": "Ready", "status": "False", "reason": "NoDisk", "message": "the disk is full",
        "lastTransitionTime": jiff::Timestamp::now().to_string(),
    }]}});
    let instances = patient.instances().subresource("status");
    instances.patch("one", Patch::Merge(&status)).await?;
    let words = ["has had Ready=False for", "NoDisk \"the disk is full\""];
    patient.finds_after(5, Warning, "status", &words).await?;
    patient.remove().await
}
