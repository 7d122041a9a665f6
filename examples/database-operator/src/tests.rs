//! Tests of the operator, on any control plane.

use opkit::k8s_openapi::api::apps::v1::StatefulSet;
use opkit::k8s_openapi::api::batch::v1::{CronJob, Job};
use opkit::k8s_openapi::api::core::v1::{PersistentVolumeClaim, Secret, Service};
use opkit::k8s_openapi::api::storage::v1::StorageClass;
use opkit::prelude::*;
use opkit::serde_json::{from_value, json};

use super::*;

fn database(name: &str) -> Database {
    let spec = DatabaseSpec {
        engine: Engine::Postgres,
        version: "17".into(),
        replicas: 2,
        storage: "10Gi".parse().unwrap(),
        backup: None,
        password_secret_ref: None,
    };
    Database::new(name, spec)
}

fn secret(name: &str, password: &str) -> Secret {
    let secret = json!({"metadata": {"name": name}, "stringData": {"password": password}});
    from_value(secret).unwrap()
}

/// Reports whether a condition of a database has this status and reason.
fn is(db: &Database, condition: &str, status: ConditionStatus, reason: &str) -> bool {
    let conditions = db.status.as_ref().map(|status| &status.conditions);
    let condition = conditions.and_then(|conditions| conditions.get(condition));
    condition.is_some_and(|it| it.status == status && it.reason == reason)
}

fn is_degraded(db: &Database, reason: &str) -> bool {
    is(db, "Degraded", ConditionStatus::True, reason)
}

/// Sets the servers to ready: the embedded control plane has no StatefulSet controller.
async fn servers_are_ready(plane: &ControlPlane, name: &str, count: i32) -> opkit::Result {
    plane.eventually(name, |_: &StatefulSet| true).await?;
    let generation = plane
        .get::<StatefulSet>(name)
        .await?
        .unwrap()
        .metadata
        .generation;
    let status = json!({
        "replicas": count, "readyReplicas": count, "availableReplicas": count,
        "updatedReplicas": count, "observedGeneration": generation,
    });
    plane.set_status::<StatefulSet>(name, status).await?;
    Ok(())
}

async fn password_of(plane: &ControlPlane, name: &str) -> opkit::Result<Vec<u8>> {
    let secret = plane.get::<Secret>(name).await?.unwrap();
    Ok(secret.data.unwrap()["password"].0.clone())
}

#[opkit::test]
async fn a_database_becomes_available(plane: ControlPlane) -> opkit::Result {
    plane
        .start_with(operator(), ["--registry", "registry.example.com"])
        .await?;
    plane.apply(database("one")).await?;
    servers_are_ready(&plane, "one", 2).await?;
    let is_available = |db: &Database| is(db, "Available", ConditionStatus::True, "Servers");
    plane.eventually("one", is_available).await?;
    let servers = plane
        .get::<StatefulSet>("one")
        .await?
        .unwrap()
        .spec
        .unwrap();
    let image = servers.template.spec.unwrap().containers[0].image.clone();
    assert_eq!(image.as_deref(), Some("registry.example.com/postgres:17"));
    let service = plane.get::<Service>("one").await?.unwrap().spec.unwrap();
    assert_eq!(service.cluster_ip.as_deref(), Some("None"));
    assert_eq!(
        plane.metric("database_passwords_total", &[("engine", "postgres")]),
        Some(1.0)
    );
    Ok(())
}

#[opkit::test]
async fn a_password_is_created_once(plane: ControlPlane) -> opkit::Result {
    plane.start(operator()).await?;
    plane.apply(database("one")).await?;
    plane.eventually("one", |_: &StatefulSet| true).await?;
    let before = password_of(&plane, "one-password").await?;
    assert_eq!(before.len(), 24);
    let mut more = database("one");
    more.spec.replicas = 3;
    plane.apply(more).await?;
    let has_three = |it: &StatefulSet| it.spec.as_ref().unwrap().replicas == Some(3);
    plane.eventually("one", has_three).await?;
    assert_eq!(password_of(&plane, "one-password").await?, before);
    Ok(())
}

#[opkit::test]
async fn too_many_replicas_are_refused(plane: ControlPlane) -> opkit::Result {
    plane.start(operator()).await?;
    let mut many = database("one");
    many.spec.replicas = 10;
    let refusal = plane.apply(many).await.unwrap_err().to_string();
    assert!(refusal.contains("spec.replicas"), "{refusal}");
    Ok(())
}

#[opkit::test]
async fn backups_stop_when_they_are_disabled(plane: ControlPlane) -> opkit::Result {
    plane.start(operator()).await?;
    let mut db = database("one");
    let backup = |enabled| {
        Some(Backup {
            schedule: "0 3 * * *".into(),
            enabled,
        })
    };
    db.spec.backup = backup(true);
    plane.apply(db.clone()).await?;
    plane.eventually("one-backup", |_: &CronJob| true).await?;
    db.spec.backup = backup(false);
    plane.apply(db).await?;
    plane.eventually_gone::<CronJob>("one-backup").await?;
    assert!(
        plane.get::<Secret>("one-password").await?.is_some(),
        "the password is not pruned"
    );
    Ok(())
}

#[opkit::test]
async fn a_new_password_replaces_the_servers(plane: ControlPlane) -> opkit::Result {
    plane.start(operator()).await?;
    let mut db = database("one");
    db.spec.password_secret_ref = Some(SecretRef { name: "own".into() });
    plane.apply(db).await?;
    plane
        .eventually("one", |db: &Database| is_degraded(db, "SecretNotFound"))
        .await?;
    plane
        .eventually_event::<Database>("one", "SecretNotFound")
        .await?;

    plane.apply(secret("own", "first")).await?;
    let hash = |it: &StatefulSet| {
        let template = it.spec.as_ref().unwrap().template.metadata.clone();
        template.unwrap().annotations.unwrap()["db.example.com/secret-hash"].clone()
    };
    plane.eventually("one", |_: &StatefulSet| true).await?;
    let first = hash(&plane.get::<StatefulSet>("one").await?.unwrap());
    plane.apply(secret("own", "second")).await?;
    plane
        .eventually("one", move |it: &StatefulSet| hash(it) != first)
        .await?;
    Ok(())
}

#[opkit::test]
async fn storage_does_not_shrink(plane: ControlPlane) -> opkit::Result {
    plane.start(operator()).await?;
    plane.apply(database("one")).await?;
    plane.eventually("one", |_: &StatefulSet| true).await?;
    let mut smaller = database("one");
    smaller.spec.storage = "9Gi".parse()?;
    plane.apply(smaller).await?;
    plane
        .eventually("one", |db: &Database| is_degraded(db, "StorageShrinks"))
        .await?;
    plane.apply(database("one")).await?;
    let is_well = |db: &Database| is(db, "Degraded", ConditionStatus::False, "AsExpected");
    plane.eventually("one", is_well).await?;
    Ok(())
}

#[opkit::test]
async fn storage_grows(plane: ControlPlane) -> opkit::Result {
    // The storage class is an object of the whole cluster.
    plane.require(Capability::OwnServer)?;
    plane.start(operator()).await?;
    plane.apply(database("one")).await?;
    plane.eventually("one", |_: &StatefulSet| true).await?;
    // A claim can grow if its storage class allows that and the claim is bound.
    let class = json!({
        "metadata": {"name": "growing"}, "provisioner": "example.com/p", "allowVolumeExpansion": true,
    });
    plane.apply(from_value::<StorageClass>(class)?).await?;
    // Created by the test: the embedded control plane has no StatefulSet controller.
    let claim = json!({
        "metadata": {"name": "data-one-0", "labels": {children::INSTANCE: "one"}},
        "spec": {
            "storageClassName": "growing", "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "10Gi"}},
        },
    });
    plane
        .apply(from_value::<PersistentVolumeClaim>(claim)?)
        .await?;
    // Only a bound claim can grow.
    let bound = json!({"phase": "Bound"});
    plane
        .set_status::<PersistentVolumeClaim>("data-one-0", bound)
        .await?;
    let mut larger = database("one");
    larger.spec.storage = "12Gi".parse()?;
    plane.apply(larger).await?;
    let expected: Quantity = "12Gi".parse()?;
    let has_grown = move |it: &PersistentVolumeClaim| children::claimed(it) == Some(expected);
    plane.eventually("data-one-0", has_grown).await?;
    Ok(())
}

#[opkit::test]
async fn a_deletion_waits_for_the_final_backup(plane: ControlPlane) -> opkit::Result {
    plane.start(operator()).await?;
    plane.apply(database("one")).await?;
    plane.eventually("one", |_: &StatefulSet| true).await?;
    plane.delete::<Database>("one").await?;
    plane.eventually("one-final-backup", |_: &Job| true).await?;
    plane
        .stays(Duration::from_millis(200), "one", |_: &Database| true)
        .await?;
    // Completed by the test: the embedded control plane has no Job controller.
    plane.complete_job("one-final-backup").await?;
    plane.eventually_gone::<Database>("one").await?;
    let labels = [("engine", "postgres")];
    assert_eq!(
        plane.metric("database_final_backups_total", &labels),
        Some(1.0)
    );
    Ok(())
}
