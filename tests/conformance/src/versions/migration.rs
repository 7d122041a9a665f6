//! Migration of stored objects to another storage version.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use opkit::client::{MigrationError, MigrationOptions, StorageMigration};
use opkit::prelude::*;
use opkit::testing::Capability;
use serde_json::json;
use tokio_util::sync::CancellationToken;

/// A kind whose storage version changes from v1alpha1 to v1.
mod probe {
    use opkit::prelude::*;

    #[opkit::kind(
        group = "fleet.opkit.dev",
        version = "v1",
        namespaced,
        versions(v1alpha1::Probe)
    )]
    pub(crate) struct ProbeSpec {
        #[opkit(min = 0)]
        pub replicas: i32,
    }

    pub(crate) mod v1alpha1 {
        #[opkit::version(of = super::Probe, version = "v1alpha1")]
        pub(crate) struct ProbeSpec {
            #[opkit(renamed = replicas)]
            pub size: i32,
            #[opkit(removed)]
            pub legacy: Option<String>,
        }
    }

    pub(super) fn operator() -> Operator {
        Operator::new("probe-operator").crd::<Probe>()
    }
}

const CRD: &str = "probes.fleet.opkit.dev";

async fn store_as(plane: &ControlPlane, version: &str) -> opkit::Result {
    let api: Api<CustomResourceDefinition> = Api::all(plane.client());
    let mut crd = api.get(CRD).await?;
    for listed in &mut crd.spec.versions {
        listed.storage = listed.name == version;
    }
    api.replace(CRD, &PostParams::default(), &crd).await?;
    Ok(())
}

async fn stored_versions(plane: &ControlPlane) -> opkit::Result<Vec<String>> {
    let api: Api<CustomResourceDefinition> = Api::all(plane.client());
    let status = api.get(CRD).await?.status.unwrap_or_default();
    Ok(status.stored_versions.unwrap_or_default())
}

fn is_established(crd: &CustomResourceDefinition) -> bool {
    let conditions = crd.status.iter().flat_map(|status| &status.conditions);
    let mut conditions = conditions.flatten();
    conditions.any(|it| it.type_ == "Established" && it.status == "True")
}

fn probes(plane: &ControlPlane, version: &str) -> Api<DynamicObject> {
    super::client(plane, version, "Probe")
}

fn operator() -> Operator {
    probe::operator()
}

/// Creates objects that are stored as v1alpha1, and makes v1 the storage version.
async fn old_objects(plane: &ControlPlane, count: u32) -> opkit::Result {
    plane.start(operator()).await?;
    store_as(plane, "v1alpha1").await?;
    let (api, post) = (probes(plane, "v1alpha1"), PostParams::default());
    for at in 0..count {
        let object = serde_json::from_value(json!({
            "apiVersion": "fleet.opkit.dev/v1alpha1", "kind": "Probe",
            "metadata": {"name": format!("probe-{at:05}")}, "spec": {"size": 1, "legacy": "x"},
        }))?;
        when_ready(|| api.create(&post, &object)).await?;
    }
    store_as(plane, "v1").await?;
    assert_eq!(stored_versions(plane).await?, ["v1", "v1alpha1"]);
    Ok(())
}

/// Repeats a request while the server has no storage: a real server builds it again after a change
/// of the CRD, and answers 429 or 503 meanwhile. The client does not repeat a POST after a 503.
async fn when_ready<T, F>(request: impl Fn() -> F) -> kube::Result<T>
where
    F: Future<Output = kube::Result<T>>,
{
    loop {
        match request().await {
            Err(kube::Error::Api(status)) if matches!(status.code, 429 | 503) => {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            outcome => return outcome,
        }
    }
}

fn fast() -> MigrationOptions {
    let mut options = MigrationOptions::default();
    options.rate = 1_000_000;
    options
}

/// Returns the resourceVersions of all objects. Each write of an object gives it another one.
async fn versions(plane: &ControlPlane) -> opkit::Result<HashSet<String>> {
    let api = probes(plane, "v1");
    let params = ListParams::default();
    let list = when_ready(|| api.list_metadata(&params)).await?;
    let versions = list.items.into_iter();
    Ok(versions
        .filter_map(|item| item.metadata.resource_version)
        .collect())
}

/// The variable `OPKIT_MIGRATION_OBJECTS` sets the number of objects.
#[opkit::test]
async fn a_migration_that_was_interrupted_is_started_again(plane: ControlPlane) -> opkit::Result {
    let count: usize =
        std::env::var("OPKIT_MIGRATION_OBJECTS").map_or(Ok(1_000), |it| it.parse())?;
    old_objects(&plane, u32::try_from(count)?).await?;
    let before = versions(&plane).await?;

    // The first process is killed in the middle.
    let seen = Arc::new(AtomicU64::new(0));
    let (stop, counter) = (CancellationToken::new(), seen.clone());
    let (client, stopped) = (plane.client(), stop.clone());
    let first = async move {
        let migration = StorageMigration::of(client, CRD).await?;
        assert_eq!(
            (migration.storage_version(), migration.old_versions()),
            ("v1", vec!["v1alpha1"])
        );
        let mut report = |progress: opkit::client::MigrationProgress| {
            counter.store(progress.done, Ordering::Relaxed);
            assert_eq!(progress.total, count as u64);
            if progress.done == count as u64 / 5 * 2 {
                stopped.cancel();
            }
        };
        migration.run(&fast(), &mut report).await
    };
    tokio::select! {
        finished = first => panic!("{finished:?}"),
        () = stop.cancelled() => {}
    }
    let done = usize::try_from(seen.load(Ordering::Relaxed))?;
    let half = versions(&plane).await?;
    let rewritten = half.difference(&before).count();
    assert!((done..count).contains(&rewritten), "{rewritten} of {done}");
    assert_eq!(stored_versions(&plane).await?, ["v1", "v1alpha1"]);

    // Meanwhile other clients change and delete objects.
    let api = probes(&plane, "v1");
    api.delete("probe-00001", &Default::default()).await?;
    let (last, other) = (
        format!("probe-{:05}", count - 1),
        format!("probe-{:05}", count - 2),
    );
    api.delete(&last, &Default::default()).await?;
    let patch = Patch::Merge(json!({"spec": {"replicas": 2}}));
    api.patch(&other, &PatchParams::default(), &patch).await?;
    let half = versions(&plane).await?;

    // The second process finishes, and writes only what the first has not written.
    let migration = StorageMigration::of(plane.client(), CRD).await?;
    let progress = migration.run(&fast(), &mut |_| {}).await?;
    let left = count as u64 - 2;
    assert_eq!((progress.done, progress.total), (left, left));
    let after = versions(&plane).await?;
    // One of the deleted objects and the patched one were not written by the first process.
    assert_eq!(after.difference(&half).count() + rewritten + 2, count);
    assert_eq!(stored_versions(&plane).await?, ["v1"]);

    // Nothing was lost.
    let old = probes(&plane, "v1alpha1").get("probe-00500").await?;
    assert_eq!(old.data["spec"], json!({"size": 1, "legacy": "x"}));
    let migration = StorageMigration::of(plane.client(), CRD).await?;
    assert_eq!(migration.old_versions(), Vec::<&str>::new());
    migration.run(&fast(), &mut |_| {}).await?;
    assert_eq!(versions(&plane).await?.difference(&after).count(), 0);
    Ok(())
}

#[opkit::test]
async fn objects_that_the_server_refuses_are_named(plane: ControlPlane) -> opkit::Result {
    plane.require(Capability::OwnServer)?;
    old_objects(&plane, 7).await?;
    // A policy, because unchanged objects are not validated against a new schema.
    let patch = Patch::Merge(json!({"spec": {"replicas": 2}}));
    let params = PatchParams::default();
    probes(&plane, "v1")
        .patch("probe-00003", &params, &patch)
        .await?;
    let policy: ValidatingAdmissionPolicy = serde_json::from_value(json!({
        "metadata": {"name": "probes"},
        "spec": {
            "matchConstraints": {"resourceRules": [{
                "apiGroups": ["fleet.opkit.dev"], "apiVersions": ["v1"],
                "operations": ["UPDATE"], "resources": ["probes"],
            }]},
            "validations": [{"expression": "object.spec.replicas > 1"}],
        },
    }))?;
    let binding: ValidatingAdmissionPolicyBinding = serde_json::from_value(json!({
        "metadata": {"name": "probes"},
        "spec": {"policyName": "probes", "validationActions": ["Deny"]},
    }))?;
    plane.apply(policy).await?;
    plane.apply(binding).await?;
    let migration = StorageMigration::of(plane.client(), CRD).await?;
    let mut reported = 0;
    let error = migration
        .run(&fast(), &mut |_| reported += 1)
        .await
        .unwrap_err();
    let MigrationError::Refused { count, objects, .. } = &error else {
        panic!("{error}");
    };
    assert_eq!((*count, reported), (6, 7));
    assert!(
        objects.contains("probe-00000") && objects.ends_with("..."),
        "{objects}"
    );
    assert_eq!(stored_versions(&plane).await?, ["v1", "v1alpha1"]);
    Ok(())
}

#[opkit::test]
async fn a_cluster_without_the_controller_is_reported(plane: ControlPlane) -> opkit::Result {
    plane.require(Capability::OwnServer)?;
    old_objects(&plane, 1).await?;
    let migration = StorageMigration::of(plane.client(), CRD).await?;
    let error = migration
        .run_by_cluster(Duration::from_secs(1))
        .await
        .unwrap_err();
    assert!(matches!(error, MigrationError::NoController), "{error}");
    Ok(())
}

#[opkit::test]
async fn the_controller_of_the_cluster_can_rewrite_the_objects(
    plane: ControlPlane,
) -> opkit::Result {
    plane.require(Capability::OwnServer)?;
    old_objects(&plane, 2).await?;
    let plural = "storageversionmigrations";
    let crd: CustomResourceDefinition = serde_json::from_value(json!({
        "metadata": {
            "name": format!("{plural}.storagemigration.k8s.io"),
            "annotations": {"api-approved.kubernetes.io": "unapproved, stands for the built-in kind"},
        },
        "spec": {
            "group": "storagemigration.k8s.io", "scope": "Cluster",
            "names": {"plural": plural, "kind": "StorageVersionMigration"},
            "versions": [{
                "name": "v1beta1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                }},
            }],
        },
    }))?;
    let name = crd.metadata.name.clone().unwrap_or_default();
    plane.apply(crd).await?;
    plane.eventually(name.as_str(), is_established).await?;
    let gvk = GroupVersionKind::gvk(
        "storagemigration.k8s.io",
        "v1beta1",
        "StorageVersionMigration",
    );
    let resource = ApiResource::from_gvk_with_plural(&gvk, plural);
    let api: Api<DynamicObject> = Api::all_with(plane.client(), &resource);

    let migration = StorageMigration::of(plane.client(), CRD).await?;
    for (condition, is_success) in [("Failed", false), ("Succeeded", true)] {
        let controller = async {
            loop {
                let list = api.list(&ListParams::default()).await?;
                let Some(found) = list.items.first() else {
                    tokio::task::yield_now().await;
                    continue;
                };
                let expected =
                    json!({"resource": {"group": "fleet.opkit.dev", "resource": "probes"}});
                assert_eq!(found.data["spec"], expected);
                let status = json!({"status": {"conditions": [
                    {"type": "Running", "status": "False"},
                    {"type": condition, "status": "True", "message": "as the test wants"},
                ]}});
                let name = found.metadata.name.clone().unwrap_or_default();
                let params = PatchParams::default();
                return api
                    .patch_status(&name, &params, &Patch::Merge(status))
                    .await;
            }
        };
        let timeout = Duration::from_secs(20);
        let (migrated, controlled) = tokio::join!(migration.run_by_cluster(timeout), controller);
        controlled?;
        match is_success {
            true => migrated?,
            false => {
                let error = migrated.unwrap_err().to_string();
                assert!(error.ends_with("failed: as the test wants"), "{error}");
                assert_eq!(stored_versions(&plane).await?, ["v1", "v1alpha1"]);
            }
        }
        assert_eq!(api.list(&ListParams::default()).await?.items.len(), 0);
    }
    assert_eq!(stored_versions(&plane).await?, ["v1"]);
    Ok(())
}
