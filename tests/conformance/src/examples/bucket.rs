//! The bucket operator: a resource outside the cluster, which fails in several ways.

use bucket_operator::{
    Bucket, BucketSpec, MemoryStore, Settings, StoreError, operator, operator_with,
};
use opkit::controller::Outcome;
use opkit::prelude::*;
use serde_json::json;

use super::{RunningOperator, condition, event, golden_rules, merge};

fn bucket(name: &str) -> Bucket {
    let spec = BucketSpec {
        versioning: true,
        quota_gib: 5,
    };
    Bucket::new(name, spec)
}

/// Returns the settings that the store must have.
fn settings(plane: &ControlPlane, name: &str) -> Settings {
    Settings {
        owner: format!("{}/{name}", plane.namespace()),
        versioning: true,
        quota_gib: 5,
    }
}

fn ready(bucket: &Bucket) -> Option<(bool, &str)> {
    let conditions = bucket.status.as_ref().map(|status| &status.conditions);
    condition(bucket.metadata.generation, conditions, "Ready")
}

/// Returns the outcomes of a bucket's reconciles so far, the last first.
fn outcomes(plane: &ControlPlane, name: &str) -> Vec<Outcome> {
    let records = plane.reconciles().records();
    let records = records
        .iter()
        .rev()
        .filter(|record| record.request.name == name);
    records.map(|record| record.result.clone()).collect()
}

#[opkit::test]
async fn a_bucket_is_created_changed_and_deleted(plane: ControlPlane) -> opkit::Result {
    let store = MemoryStore::default();
    plane.start(operator_with(store.clone())).await?;
    plane.apply(bucket("photos")).await?;
    let created = plane
        .eventually("photos", |bucket: &Bucket| bucket.is_ready())
        .await?;
    assert_eq!(store.settings("photos"), Some(settings(&plane, "photos")));
    let url = created
        .status
        .as_ref()
        .and_then(|status| status.url.as_deref());
    assert_eq!(url, Some("memory://photos"));
    event(&plane, "photos", "Created").await?;

    merge::<Bucket>(&plane, "photos", json!({"spec": {"quotaGib": 7}})).await?;
    let has_seven = |_: &Bucket| store.settings("photos").is_some_and(|s| s.quota_gib == 7);
    plane.eventually("photos", has_seven).await?;

    plane.delete::<Bucket>("photos").await?;
    plane.eventually_gone::<Bucket>("photos").await?;
    assert_eq!(store.settings("photos"), None);
    Ok(())
}

#[opkit::test]
async fn a_deletion_waits_for_a_full_bucket_and_keeps_a_bucket_of_another_owner(
    plane: ControlPlane,
) -> opkit::Result {
    let store = MemoryStore::default();
    plane.start(operator_with(store.clone())).await?;
    plane.apply(bucket("photos")).await?;
    plane
        .eventually("photos", |bucket: &Bucket| bucket.is_ready())
        .await?;
    store.edit("photos", settings(&plane, "photos"), 1, false);
    plane.delete::<Bucket>("photos").await?;
    plane.eventually_gone::<Bucket>("photos").await?;
    // The first call emptied the bucket, the second deleted it.
    let outcomes = outcomes(&plane, "photos");
    let pending = Outcome::Requeue {
        after: Duration::from_secs(2),
    };
    assert!(outcomes.contains(&pending), "{outcomes:?}");
    assert_eq!(store.settings("photos"), None);

    let theirs = Settings {
        owner: "elsewhere/films".into(),
        ..settings(&plane, "films")
    };
    store.edit("films", theirs.clone(), 0, false);
    plane.apply(bucket("films")).await?;
    plane
        .eventually("films", |bucket: &Bucket| {
            ready(bucket) == Some((false, "NameTaken"))
        })
        .await?;
    plane.delete::<Bucket>("films").await?;
    plane.eventually_gone::<Bucket>("films").await?;
    assert_eq!(store.settings("films"), Some(theirs));
    Ok(())
}

#[opkit::test]
async fn each_error_has_its_own_retry_policy(plane: ControlPlane) -> opkit::Result {
    let store = MemoryStore::default();
    plane.start(operator_with(store.clone())).await?;

    // After the delay that the store sets.
    let pause = Duration::from_millis(200);
    store.fail_next(StoreError::Throttled(pause));
    plane.apply(bucket("throttled")).await?;
    plane
        .eventually("throttled", |bucket: &Bucket| bucket.is_ready())
        .await?;
    let failed = outcomes(&plane, "throttled").pop();
    assert!(
        matches!(&failed, Some(Outcome::Error { retry_after, .. }) if *retry_after == Some(pause)),
        "{failed:?}"
    );
    event(&plane, "throttled", "Throttled").await?;

    // With the object's backoff, which grows; the event is created once.
    for _ in 0..3 {
        store.fail_next(StoreError::Unavailable);
    }
    plane.apply(bucket("unavailable")).await?;
    plane
        .eventually("unavailable", |bucket: &Bucket| bucket.is_ready())
        .await?;
    let mut waits = Vec::new();
    for outcome in outcomes(&plane, "unavailable").iter().rev() {
        if let Outcome::Error { retry_after, .. } = outcome {
            waits.extend(*retry_after);
        }
    }
    assert_eq!(waits, [5, 10, 20].map(Duration::from_millis));
    assert_eq!(event(&plane, "unavailable", "StoreUnavailable").await?, 1);

    // No retry before the object changes.
    plane.apply(bucket("with.dots")).await?;
    plane
        .eventually("with.dots", |bucket: &Bucket| {
            ready(bucket) == Some((false, "InvalidName"))
        })
        .await?;
    let ended = |_: &Bucket| !outcomes(&plane, "with.dots").is_empty();
    plane.eventually("with.dots", ended).await?;
    let failed = outcomes(&plane, "with.dots").pop();
    assert!(
        matches!(
            &failed,
            Some(Outcome::Error {
                retry_after: None,
                ..
            })
        ),
        "{failed:?}"
    );
    let calls = store.calls();
    merge::<Bucket>(&plane, "with.dots", json!({"spec": {"quotaGib": 7}})).await?;
    plane
        .eventually("with.dots", |_: &Bucket| store.calls() > calls)
        .await?;
    Ok(())
}

#[opkit::test]
async fn the_web_hook_triggers_the_correction_of_drift(plane: ControlPlane) -> opkit::Result {
    let store = MemoryStore::default();
    plane.start(operator_with(store.clone())).await?;
    plane.apply(bucket("photos")).await?;
    plane
        .eventually("photos", |bucket: &Bucket| bucket.is_ready())
        .await?;

    let drifted = Settings {
        versioning: false,
        ..settings(&plane, "photos")
    };
    store.edit("photos", drifted, 0, true);
    let corrected = |_: &Bucket| store.settings("photos") == Some(settings(&plane, "photos"));
    plane.eventually("photos", corrected).await?;
    event(&plane, "photos", "Updated").await?;
    let called = |_: &Bucket| {
        let records = plane.reconciles().records();
        let mut causes = records.iter().flat_map(|record| record.causes());
        causes.any(|cause| cause == "web hook")
    };
    plane.eventually("photos", called).await?;
    Ok(())
}

#[opkit::test]
async fn a_restart_finds_the_bucket_and_writes_nothing(plane: ControlPlane) -> opkit::Result {
    let store = MemoryStore::default();
    let running = RunningOperator::start(&plane, operator_with(store.clone()), &[]).await?;
    plane.apply(bucket("photos")).await?;
    plane
        .eventually("photos", |bucket: &Bucket| bucket.is_ready())
        .await?;
    running.stop().await?;

    let running = RunningOperator::start(&plane, operator_with(store.clone()), &[]).await?;
    plane
        .eventually("photos", |_: &Bucket| {
            running.has_reconciled("bucket", "photos")
        })
        .await?;
    assert_eq!(running.writes(), [""; 0]);
    // The permissions of the manifests are enough for the cleanup too.
    plane.delete::<Bucket>("photos").await?;
    plane.eventually_gone::<Bucket>("photos").await?;
    assert_eq!(store.settings("photos"), None);
    running.stop().await
}

#[test]
fn the_permissions_are_least_privilege() -> opkit::Result {
    golden_rules(&operator())
}
