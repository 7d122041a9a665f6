//! Permissions of the examples: without any single verb that `manifests` prints, a request of the
//! operator is denied, and the test that runs it fails by name of verb and resource.

use std::fmt;

use bucket_operator::{Bucket, BucketSpec, MemoryStore};
use database_operator::{Backup, Database, DatabaseSpec, Engine};
use demo_operator::{Demo, DemoSpec};
use futures::future::LocalBoxFuture;
use futures::{FutureExt, StreamExt};
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::{
    ConfigMap, LimitRange, Namespace, PersistentVolumeClaim, ResourceQuota, Secret, Service,
    ServiceAccount,
};
use k8s_openapi::api::networking::v1::{Ingress, NetworkPolicy};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::storage::v1::StorageClass;
use kube::core::Status;
use opkit::client::{Effect, Rule};
use opkit::operator::RunOptions;
use opkit::prelude::*;
use robot_operator::Robot;
use secret_operator::{SHARE_WITH, SecretCopy, SecretCopySpec, SecretReference};
use serde_json::{Value, json};
use shop_operator::Shop;

use super::{RunningOperator, event, merge, namespace, object, shop};
use crate::robot;

/// Number of scenarios that run at the same time.
const CONCURRENT: usize = 4;
/// Time limit of a scenario's waits. A scenario without all permissions reaches the limit only if
/// no request is denied.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Interval at which the denied requests of a running scenario are checked.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Function that runs an operator and uses each of its permissions.
type Scenario = for<'a> fn(&'a ControlPlane) -> LocalBoxFuture<'a, opkit::Result>;

/// Verb on a resource of an API group.
#[derive(Clone, Debug, PartialEq)]
struct Granted {
    group: String,
    resource: String,
    verb: String,
}

impl fmt::Display for Granted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}.{}", self.verb, self.resource, self.group)
    }
}

/// Returns the permissions in the roles that `manifests` prints for an operator that watches one
/// namespace.
fn permissions(operator: &Operator) -> Vec<Granted> {
    let mut options = RunOptions::default();
    options.namespaces = vec!["default".to_owned()];
    let mut permissions = Vec::new();
    let texts = |rule: &Value, field: &str| -> Vec<String> {
        let values = rule[field].as_array().into_iter().flatten();
        values
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect()
    };
    for document in operator.rbac(&options).documents() {
        for rule in document["rules"].as_array().into_iter().flatten() {
            for group in texts(rule, "apiGroups") {
                for resource in texts(rule, "resources") {
                    permissions.extend(texts(rule, "verbs").into_iter().map(|verb| Granted {
                        group: group.clone(),
                        resource: resource.clone(),
                        verb,
                    }));
                }
            }
        }
    }
    permissions
}

/// Returns faults after which an operator uses permissions that are rarely needed: the server
/// refuses the first streaming list of each kind, as servers before Kubernetes 1.32 do; the first
/// create of each kind of children finds an object with the same name; the first write of each
/// status finds another version.
fn faults(operator: &Operator) -> Vec<Rule> {
    let fail = |reason: &str, code: u16| {
        let status = Status::failure("injected by the test", reason).with_code(code);
        Rule::new(Effect::Fail(Box::new(status))).times(1)
    };
    let mut faults = Vec::new();
    for Granted {
        group,
        resource,
        verb,
    } in permissions(operator)
    {
        let of = |resource: &str| match group.as_str() {
            "" => resource.to_owned(),
            group => format!("{resource}.{group}"),
        };
        let is_own = ["events", "leases"].contains(&resource.as_str());
        match (resource.strip_suffix("/status"), verb.as_str()) {
            (None, "create") if !is_own => {
                faults.push(
                    fail("AlreadyExists", 409)
                        .verb("create")
                        .resource(&of(&resource)),
                );
            }
            (None, "list") => {
                let fault = fail("BadRequest", 400).verb("watch");
                faults.push(fault.resource(&of(&resource)));
            }
            (Some(resource), "patch") => {
                let fault = fail("Conflict", 409).verb("patch").resource(&of(resource));
                faults.push(fault.subresource("status"));
            }
            _ => {}
        }
    }
    faults
}

/// Starts an operator that does not check its permissions first.
async fn start(
    plane: &ControlPlane,
    operator: Operator,
    more: &[&str],
) -> opkit::Result<RunningOperator> {
    let faults = faults(&operator);
    RunningOperator::start_with(plane, operator, more, faults, false).await
}

/// Waits until an event about an object has occurred at least twice.
async fn repeated_event(plane: &ControlPlane, about: &str, reason: &str) -> opkit::Result {
    for _ in 0..1_000 {
        if event(plane, about, reason).await? > 1 {
            return Ok(());
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    Err(Error::msg(format!(
        "event {reason} about {about} is not repeated"
    )))
}

/// Changes a label of an object, which triggers a reconcile.
async fn touch<K>(plane: &ControlPlane, name: &str, value: &str) -> opkit::Result
where
    K: opkit::client::Object<Scope = k8s_openapi::NamespaceResourceScope> + fmt::Debug,
{
    let patch = json!({"metadata": {"labels": {"touched": value}}});
    merge::<K>(plane, name, patch).await?;
    Ok(())
}

/// Creates a copy of a child under another name, as if an earlier version of the operator had
/// applied it, and waits until the copy is pruned.
async fn copy_is_pruned<K>(plane: &ControlPlane, name: &str) -> opkit::Result
where
    K: opkit::client::Object,
{
    let child = plane.eventually(name, |_: &K| true).await?;
    former_child_is_pruned::<K, K>(plane, name, serde_json::to_value(child)?).await
}

/// Creates `child`, with another name and with the owner and annotations of the child `like`, and
/// waits until it is pruned.
async fn former_child_is_pruned<K, L>(
    plane: &ControlPlane,
    like: &str,
    mut child: Value,
) -> opkit::Result
where
    K: opkit::client::Object,
    L: opkit::client::Object,
{
    let like = plane.eventually(like, |_: &L| true).await?;
    let metadata = serde_json::to_value(like.meta())?;
    child["metadata"] = json!({
        "name": "former",
        "labels": metadata["labels"],
        "annotations": metadata["annotations"],
        "ownerReferences": metadata["ownerReferences"],
    });
    if let Some(fields) = child.as_object_mut() {
        fields.remove("status");
    }
    if let Some(spec) = child.get_mut("spec").and_then(Value::as_object_mut) {
        spec.remove("clusterIP");
        spec.remove("clusterIPs");
    }
    plane.apply(object::<K>(child)).await?;
    plane.eventually_gone::<K>("former").await
}

fn robot_scenario(plane: &ControlPlane) -> LocalBoxFuture<'_, opkit::Result> {
    async move {
        let running = start(plane, robot_operator::operator(), &[]).await?;
        plane.apply(robot::robot("one", 1)).await?;
        let is_ready = |one: &Robot| robot::has_ready(one, 1);
        plane.eventually("one", is_ready).await?;
        event(plane, "one", "DeploymentApplied").await?;
        plane.delete::<Deployment>("one").await?;
        if repeated_event(plane, "one", "DeploymentApplied")
            .await
            .is_err()
        {
            // A reconcile that had read the Deployment before it was deleted applied it again, and
            // so found no change to report.
            plane.delete::<Deployment>("one").await?;
            repeated_event(plane, "one", "DeploymentApplied").await?;
        }
        copy_is_pruned::<Deployment>(plane, "one").await?;
        running.stop().await
    }
    .boxed_local()
}

fn demo_scenario(plane: &ControlPlane) -> LocalBoxFuture<'_, opkit::Result> {
    async move {
        let running = start(plane, demo_operator::operator(), &[]).await?;
        let taken = json!({"metadata": {"name": "taken"}, "data": {"a": "b"}});
        plane.apply(object::<ConfigMap>(taken)).await?;
        let spec = DemoSpec {
            size: 3,
            type_: "small".into(),
            config_map_name: "settings".into(),
        };
        plane.apply(Demo::new("one", spec)).await?;
        plane
            .eventually("one", |demo: &Demo| demo.is_ready())
            .await?;
        let rename = |name: &str| json!({"spec": {"configMapName": name}});
        merge::<Demo>(plane, "one", rename("renamed")).await?;
        plane.eventually_gone::<ConfigMap>("settings").await?;
        merge::<Demo>(plane, "one", rename("taken")).await?;
        event(plane, "one", "NameTaken").await?;
        touch::<Demo>(plane, "one", "again").await?;
        repeated_event(plane, "one", "NameTaken").await?;
        plane.delete::<Demo>("one").await?;
        plane.eventually_gone::<Demo>("one").await?;
        running.stop().await
    }
    .boxed_local()
}

fn bucket_scenario(plane: &ControlPlane) -> LocalBoxFuture<'_, opkit::Result> {
    async move {
        let operator = bucket_operator::operator_with(MemoryStore::default());
        let running = start(plane, operator, &[]).await?;
        let spec = BucketSpec {
            versioning: true,
            quota_gib: 5,
        };
        plane.apply(Bucket::new("one", spec)).await?;
        plane
            .eventually("one", |bucket: &Bucket| bucket.is_ready())
            .await?;
        for quota in [6, 7] {
            merge::<Bucket>(plane, "one", json!({"spec": {"quotaGib": quota}})).await?;
            event(plane, "one", "Updated").await?;
        }
        repeated_event(plane, "one", "Updated").await?;
        plane.delete::<Bucket>("one").await?;
        plane.eventually_gone::<Bucket>("one").await?;
        running.stop().await
    }
    .boxed_local()
}

fn namespace_scenario(plane: &ControlPlane) -> LocalBoxFuture<'_, opkit::Result> {
    async move {
        let running = start(plane, namespace_operator::operator(), &[]).await?;
        let name = namespace_operator::NAME;
        namespace::resize(plane, Some("small")).await?;
        namespace::annotated(plane, Some("small")).await?;
        for size in [Some("smal"), None, Some("smal")] {
            namespace::resize(plane, size).await?;
            match size {
                Some(_) => drop(event(plane, plane.namespace(), "UnknownSize").await?),
                None => namespace::annotated(plane, None).await?,
            }
        }
        plane.eventually_gone::<ResourceQuota>(name).await?;
        plane.eventually_gone::<LimitRange>(name).await?;
        plane.eventually_gone::<NetworkPolicy>(name).await?;
        repeated_event(plane, plane.namespace(), "UnknownSize").await?;
        running.stop().await
    }
    .boxed_local()
}

fn secret_scenario(plane: &ControlPlane) -> LocalBoxFuture<'_, opkit::Result> {
    async move {
        let vault = format!("{}-vault", plane.namespace());
        let namespace = json!({"metadata": {"name": vault}});
        plane.apply(object::<Namespace>(namespace)).await?;
        let running = start(plane, secret_operator::operator(), &[&vault]).await?;
        let secret = |share_with: &str| {
            object::<Secret>(json!({
                "metadata": {
                    "name": "token", "namespace": vault, "annotations": {SHARE_WITH: share_with},
                },
                "stringData": {"token": "one"},
            }))
        };
        plane.apply(secret(plane.namespace())).await?;
        let from = SecretReference {
            namespace: vault.clone(),
            name: "token".into(),
        };
        plane
            .apply(SecretCopy::new("one", SecretCopySpec { from }))
            .await?;
        plane
            .eventually("one", |copy: &SecretCopy| copy.is_ready())
            .await?;
        plane.apply(secret("another")).await?;
        plane.eventually_gone::<Secret>("one").await?;
        event(plane, "one", "NotGranted").await?;
        touch::<SecretCopy>(plane, "one", "again").await?;
        repeated_event(plane, "one", "NotGranted").await?;
        running.stop().await
    }
    .boxed_local()
}

fn shop_scenario(plane: &ControlPlane) -> LocalBoxFuture<'_, opkit::Result> {
    async move {
        let running = start(plane, shop_operator::operator(), &[]).await?;
        plane.apply(shop::settings("EUR")).await?;
        plane.apply(shop::shop()).await?;
        plane
            .eventually("one-database", |_: &StatefulSet| true)
            .await?;
        shop::run_database(plane).await?;
        plane.eventually("one", shop::is_settled).await?;
        event(plane, "one", "Opened").await?;
        copy_is_pruned::<ServiceAccount>(plane, "one").await?;
        copy_is_pruned::<Service>(plane, "one").await?;
        copy_is_pruned::<StatefulSet>(plane, "one-database").await?;
        copy_is_pruned::<Deployment>(plane, "one").await?;
        copy_is_pruned::<PodDisruptionBudget>(plane, "one").await?;
        copy_is_pruned::<Ingress>(plane, "one").await?;
        // The shop closes and opens again.
        plane.delete::<ConfigMap>("settings").await?;
        plane
            .eventually("one", shop::waits_for("ConfigMap"))
            .await?;
        plane.apply(shop::settings("EUR")).await?;
        repeated_event(plane, "one", "Opened").await?;
        merge::<Shop>(plane, "one", json!({"spec": {"sale": true}})).await?;
        plane.eventually("one", shop::is_settled).await?;
        running.stop().await
    }
    .boxed_local()
}

fn database_scenario(plane: &ControlPlane) -> LocalBoxFuture<'_, opkit::Result> {
    async move {
        let running = start(plane, database_operator::operator(), &[]).await?;
        let spec = DatabaseSpec {
            engine: Engine::Postgres,
            version: "17".into(),
            replicas: 2,
            storage: "10Gi".parse()?,
            backup: Some(Backup {
                schedule: "0 3 * * *".into(),
                enabled: true,
            }),
            password_secret_ref: None,
        };
        plane.apply(Database::new("one", spec)).await?;
        plane.eventually("one", |_: &StatefulSet| true).await?;
        event(plane, "one", "PasswordCreated").await?;
        plane.delete::<Secret>("one-password").await?;
        repeated_event(plane, "one", "PasswordCreated").await?;

        copy_is_pruned::<StatefulSet>(plane, "one").await?;
        copy_is_pruned::<Service>(plane, "one").await?;
        copy_is_pruned::<ConfigMap>(plane, "one-config").await?;
        copy_is_pruned::<CronJob>(plane, "one-backup").await?;
        let container = json!({"name": "main", "image": "backup"});
        let template = json!({"spec": {"restartPolicy": "Never", "containers": [container]}});
        let job = json!({"spec": {"template": template}});
        former_child_is_pruned::<Job, Service>(plane, "one", job).await?;

        // A claim can grow if its storage class allows that and the claim is bound.
        let class = json!({
            "metadata": {"name": "growing"}, "provisioner": "example.com/p",
            "allowVolumeExpansion": true,
        });
        plane.apply(object::<StorageClass>(class)).await?;
        let storage = json!({"requests": {"storage": "10Gi"}});
        let claim = json!({
            "metadata": {
                "name": "data-one-0", "labels": {"app.kubernetes.io/instance": "one"},
            },
            "spec": {
                "storageClassName": "growing", "accessModes": ["ReadWriteOnce"],
                "resources": storage,
            },
        });
        plane.apply(object::<PersistentVolumeClaim>(claim)).await?;
        // Only a bound claim can grow.
        let bound = json!({"phase": "Bound"});
        plane
            .set_status::<PersistentVolumeClaim>("data-one-0", bound)
            .await?;
        merge::<Database>(plane, "one", json!({"spec": {"storage": "12Gi"}})).await?;
        event(plane, "one", "Resized").await?;

        plane.delete::<Database>("one").await?;
        plane.eventually("one-final-backup", |_: &Job| true).await?;
        plane.complete_job("one-final-backup").await?;
        plane.eventually_gone::<Database>("one").await?;
        running.stop().await
    }
    .boxed_local()
}

/// Result of a scenario without one permission.
#[derive(Debug, PartialEq)]
enum Outcome {
    /// The request was denied.
    Denied,
    /// The scenario ended, and no such request was denied.
    Ended(String),
}

/// Runs a scenario on its own server, without one permission.
async fn run_without(granted: &Granted, scenario: Scenario) -> opkit::Result<Outcome> {
    let Granted {
        group,
        resource,
        verb,
    } = granted;
    let whole = ControlPlane::embedded()?;
    let plane = whole.withhold(group, resource, verb).expect_denials();
    let plane = plane.with_timeout(TIMEOUT);
    let is_denied = || {
        plane.denied().iter().any(|denied| {
            (&denied.group, &denied.resource, &denied.verb) == (group, resource, verb)
        })
    };
    let denied = async {
        while !is_denied() {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    let ended = tokio::select! {
        () = denied => String::new(),
        ended = scenario(&plane) => format!("{ended:?}"),
    };
    let outcome = match is_denied() {
        true => Outcome::Denied,
        false => Outcome::Ended(ended),
    };
    whole.shutdown().await?;
    Ok(outcome)
}

/// Checks that a scenario passes with all permissions of the operator, and that one of its requests
/// is denied without any single one of them.
async fn check(operator: Operator, scenario: Scenario) -> opkit::Result {
    let plane = ControlPlane::embedded()?;
    scenario(&plane.with_timeout(TIMEOUT)).await?;
    plane.shutdown().await?;

    // The embedded control plane does not have the admission plugin that requires the permission to
    // update finalizers; see `check_finalizers`.
    let granted = permissions(&operator).into_iter();
    let granted = granted.filter(|granted| !granted.resource.ends_with("/finalizers"));
    let runs = granted.map(|granted| async move {
        let outcome = run_without(&granted, scenario).await;
        (granted, outcome)
    });
    let outcomes: Vec<_> = futures::stream::iter(runs)
        .buffer_unordered(CONCURRENT)
        .collect()
        .await;
    let mut passed = Vec::new();
    for (granted, outcome) in outcomes {
        match outcome? {
            Outcome::Denied => {}
            Outcome::Ended(how) if how == "Ok(())" => passed.push(granted.to_string()),
            Outcome::Ended(how) => panic!("without {granted}: {how}"),
        }
    }
    let name = operator.name();
    assert!(
        passed.is_empty(),
        "permissions of {name} that no request needs: {passed:?}"
    );
    Ok(())
}

#[opkit::test]
async fn each_permission_of_the_robot_operator_is_needed(plane: ControlPlane) -> opkit::Result {
    plane.require(Capability::OwnServer)?;
    check(robot_operator::operator(), robot_scenario).await
}

#[opkit::test]
async fn each_permission_of_the_demo_operator_is_needed(plane: ControlPlane) -> opkit::Result {
    plane.require(Capability::OwnServer)?;
    check(demo_operator::operator(), demo_scenario).await
}

#[opkit::test]
async fn each_permission_of_the_bucket_operator_is_needed(plane: ControlPlane) -> opkit::Result {
    plane.require(Capability::OwnServer)?;
    check(bucket_operator::operator(), bucket_scenario).await
}

#[opkit::test]
async fn each_permission_of_the_namespace_operator_is_needed(plane: ControlPlane) -> opkit::Result {
    plane.require(Capability::OwnServer)?;
    check(namespace_operator::operator(), namespace_scenario).await
}

#[opkit::test]
async fn each_permission_of_the_secret_operator_is_needed(plane: ControlPlane) -> opkit::Result {
    plane.require(Capability::OwnServer)?;
    check(secret_operator::operator(), secret_scenario).await
}

#[opkit::test]
async fn each_permission_of_the_shop_operator_is_needed(plane: ControlPlane) -> opkit::Result {
    plane.require(Capability::OwnServer)?;
    check(shop_operator::operator(), shop_scenario).await
}

#[opkit::test]
async fn each_permission_of_the_database_operator_is_needed(plane: ControlPlane) -> opkit::Result {
    plane.require(Capability::OwnServer)?;
    check(database_operator::operator(), database_scenario).await
}

/// Waits until a reconcile fails because the operator may not block the deletion of an owner.
async fn refused_owner_reference(plane: &ControlPlane) {
    let is_refused = || {
        let records = plane.reconciles().records();
        let mut texts = records.iter().map(ToString::to_string);
        texts.any(|text| text.contains("cannot set blockOwnerDeletion"))
    };
    while !is_refused() {
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Checks that the children of an operator are refused if the operator may not update the
/// finalizers of their owners.
async fn check_finalizers(
    plane: &ControlPlane,
    operator: Operator,
    scenario: Scenario,
) -> opkit::Result {
    // The embedded control plane does not have the admission plugin
    // OwnerReferencesPermissionEnforcement, and most clusters have it turned off.
    plane.require(Capability::OwnerReferencesPermissionEnforcement)?;
    let granted = permissions(&operator).into_iter();
    let mut granted = granted.filter(|granted| granted.resource.ends_with("/finalizers"));
    let Granted {
        group,
        resource,
        verb,
    } = granted.next().unwrap();
    let without = plane.withhold(&group, &resource, &verb);
    tokio::select! {
        () = refused_owner_reference(plane) => Ok(()),
        ended = scenario(&without) => Err(Error::msg(format!("nothing was refused: {ended:?}"))),
    }
}

#[opkit::test]
async fn the_robot_operator_needs_finalizers(plane: ControlPlane) -> opkit::Result {
    check_finalizers(&plane, robot_operator::operator(), robot_scenario).await
}

#[opkit::test]
async fn the_database_operator_needs_finalizers(plane: ControlPlane) -> opkit::Result {
    check_finalizers(&plane, database_operator::operator(), database_scenario).await
}

#[opkit::test]
async fn the_demo_operator_needs_finalizers(plane: ControlPlane) -> opkit::Result {
    check_finalizers(&plane, demo_operator::operator(), demo_scenario).await
}

#[opkit::test]
async fn the_namespace_operator_needs_finalizers(plane: ControlPlane) -> opkit::Result {
    check_finalizers(&plane, namespace_operator::operator(), namespace_scenario).await
}

#[opkit::test]
async fn the_secret_operator_needs_finalizers(plane: ControlPlane) -> opkit::Result {
    check_finalizers(&plane, secret_operator::operator(), secret_scenario).await
}

#[opkit::test]
async fn the_shop_operator_needs_finalizers(plane: ControlPlane) -> opkit::Result {
    check_finalizers(&plane, shop_operator::operator(), shop_scenario).await
}
