//! The robot operator: one Deployment per Robot.

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::{Event, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use opkit::prelude::*;
use opkit::testing::Capability;
use robot_operator::{Robot, RobotSpec, operator};
use serde_json::{Value, json};

pub(crate) fn robot(name: &str, replicas: i32) -> Robot {
    Robot::new(
        name,
        RobotSpec {
            image: "nginx:1.27".into(),
            replicas,
            command: None,
        },
    )
}

/// Reports whether the robot is ready, with this number of replicas.
pub(crate) fn has_ready(robot: &Robot, replicas: i32) -> bool {
    robot.is_ready()
        && robot
            .status
            .as_ref()
            .is_some_and(|s| s.ready_replicas == replicas)
}

async fn merge<K>(plane: &ControlPlane, name: &str, patch: Value) -> opkit::Result
where
    K: opkit::client::Object<Scope = k8s_openapi::NamespaceResourceScope> + std::fmt::Debug,
{
    let api: Api<K> = Api::default_namespaced(plane.client());
    api.patch(name, &PatchParams::default(), &Patch::Merge(patch))
        .await?;
    Ok(())
}

/// Returns the operator's part of a Deployment. Its resource version would be too much: real
/// controllers write as well, at any time.
fn by_operator(deployment: &Deployment) -> (Option<i64>, Vec<ManagedFieldsEntry>) {
    let entries = deployment.metadata.managed_fields.iter().flatten();
    let own = entries.filter(|entry| entry.manager.as_deref() == Some("robot-operator.robot"));
    (deployment.metadata.generation, own.cloned().collect())
}

fn replicas(deployment: &Deployment) -> Option<i32> {
    deployment.spec.as_ref()?.replicas
}

#[opkit::test]
async fn a_robot_becomes_ready(plane: ControlPlane) -> opkit::Result {
    plane.require(Capability::ControllerManager)?;
    plane.start(operator()).await?;
    plane.apply(robot("robot-one", 2)).await?;
    let robot = plane
        .eventually("robot-one", |robot: &Robot| has_ready(robot, 2))
        .await?;
    let status = robot.status.as_ref().unwrap();
    assert_eq!(status.observed_generation, robot.metadata.generation);

    let deployment = plane.get::<Deployment>("robot-one").await?.unwrap();
    let owner = &deployment.metadata.owner_references.as_ref().unwrap()[0];
    assert_eq!(
        (owner.kind.as_str(), owner.controller),
        ("Robot", Some(true))
    );
    assert_eq!(Some(&owner.uid), robot.metadata.uid.as_ref());

    plane.delete::<Robot>("robot-one").await?;
    plane.eventually_gone::<Deployment>("robot-one").await
}

#[opkit::test]
async fn changes_of_the_spec_reach_every_pod(plane: ControlPlane) -> opkit::Result {
    plane.require(Capability::ControllerManager)?;
    plane.start(operator()).await?;
    plane.apply(robot("robot-one", 2)).await?;
    plane
        .eventually("robot-one", |robot: &Robot| has_ready(robot, 2))
        .await?;

    merge::<Robot>(
        &plane,
        "robot-one",
        json!({"spec": {"replicas": 4, "image": "nginx:1.28"}}),
    )
    .await?;
    plane
        .eventually("robot-one", |robot: &Robot| has_ready(robot, 4))
        .await?;
    let api: Api<Pod> = Api::default_namespaced(plane.client());
    let image = |pod: &Pod| pod.spec.as_ref().unwrap().containers[0].image.clone();
    // Pods of the old image may still be terminating.
    let mut images = Vec::new();
    for _ in 0..1_000 {
        let pods = api.list(&ListParams::default()).await?;
        images = pods.iter().filter_map(image).collect();
        if images == ["nginx:1.28"; 4] {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Err(Error::msg(format!("the images are {images:?}")))
}

#[opkit::test]
async fn drift_is_corrected_and_a_deleted_child_is_created_again(
    plane: ControlPlane,
) -> opkit::Result {
    plane.require(Capability::ControllerManager)?;
    plane.start(operator()).await?;
    plane.apply(robot("robot-one", 1)).await?;
    plane
        .eventually("robot-one", |robot: &Robot| has_ready(robot, 1))
        .await?;

    let before = plane.get::<Deployment>("robot-one").await?.unwrap();
    merge::<Deployment>(&plane, "robot-one", json!({"spec": {"replicas": 9}})).await?;
    let generation = before.metadata.generation.unwrap();
    plane
        .eventually("robot-one", |deployment: &Deployment| {
            replicas(deployment) == Some(1)
                && deployment.metadata.generation >= Some(generation + 2)
        })
        .await?;

    plane.delete::<Deployment>("robot-one").await?;
    plane
        .eventually("robot-one", |deployment: &Deployment| {
            deployment.metadata.uid != before.metadata.uid && deployment.is_ready()
        })
        .await?;
    Ok(())
}

#[opkit::test]
async fn a_field_no_longer_set_disappears(plane: ControlPlane) -> opkit::Result {
    let command = |deployment: &Deployment| {
        deployment.spec.as_ref()?.template.spec.as_ref()?.containers[0]
            .command
            .clone()
    };
    plane.start(operator()).await?;
    let mut object = robot("robot-one", 1);
    object.spec.command = Some(vec!["walk".into()]);
    plane.apply(object).await?;
    plane
        .eventually("robot-one", |d: &Deployment| {
            command(d) == Some(vec!["walk".into()])
        })
        .await?;

    merge::<Robot>(&plane, "robot-one", json!({"spec": {"command": null}})).await?;
    let deployment = plane
        .eventually("robot-one", |d: &Deployment| command(d).is_none())
        .await?;
    let (_, entries) = by_operator(&deployment);
    let operations: Vec<_> = entries
        .iter()
        .map(|entry| entry.operation.as_deref())
        .collect();
    assert_eq!(
        operations,
        [Some("Apply")],
        "one managed fields entry, of server-side apply"
    );
    Ok(())
}

#[opkit::test]
async fn nothing_is_written_while_nothing_differs(plane: ControlPlane) -> opkit::Result {
    plane.require(Capability::ControllerManager)?;
    plane.start(operator()).await?;
    plane.apply(robot("robot-one", 2)).await?;
    let settled = plane
        .eventually("robot-one", |robot: &Robot| has_ready(robot, 2))
        .await?;
    let child = plane.get::<Deployment>("robot-one").await?.unwrap();

    // A change of the robot that does not affect its Deployment triggers one more reconcile.
    merge::<Robot>(
        &plane,
        "robot-one",
        json!({"metadata": {"labels": {"a": "b"}}}),
    )
    .await?;
    let touched = plane.get::<Robot>("robot-one").await?.unwrap();
    let seen = plane.reconciles().total();
    merge::<Robot>(
        &plane,
        "robot-one",
        json!({"metadata": {"labels": {"a": "c"}}}),
    )
    .await?;
    plane
        .eventually("robot-one", |_: &Robot| plane.reconciles().total() > seen)
        .await?;

    let after = plane.get::<Robot>("robot-one").await?.unwrap();
    assert_eq!(
        after.status.as_ref().map(|s| s.ready_replicas),
        settled.status.as_ref().map(|s| s.ready_replicas)
    );
    assert_eq!(after.metadata.generation, touched.metadata.generation);
    let same = plane.get::<Deployment>("robot-one").await?.unwrap();
    assert_eq!(by_operator(&same), by_operator(&child));
    Ok(())
}

#[opkit::test]
async fn a_deployment_of_another_client_is_never_taken_over(plane: ControlPlane) -> opkit::Result {
    plane.require(Capability::ControllerManager)?;
    plane.install(&operator()).await?;
    let foreign: Deployment = serde_json::from_value(json!({
        "metadata": {"name": "robot-one"},
        "spec": {
            "replicas": 1, "selector": {"matchLabels": {"app": "other"}},
            "template": {
                "metadata": {"labels": {"app": "other"}},
                "spec": {"containers": [{"name": "other", "image": "other"}]},
            },
        },
    }))?;
    plane.apply(foreign).await?;
    let foreign = plane
        .eventually("robot-one", |d: &Deployment| d.is_ready())
        .await?;

    plane.start(operator()).await?;
    plane.apply(robot("robot-one", 3)).await?;
    let expected_error = format!(
        "Deployment {}/robot-one exists and is not controlled by",
        plane.namespace()
    );
    let refused = |plane: &ControlPlane| {
        let records = plane.reconciles().records();
        records
            .iter()
            .any(|record| record.to_string().contains(&expected_error))
    };
    plane
        .eventually("robot-one", |_: &Robot| refused(&plane))
        .await?;
    let same = plane.get::<Deployment>("robot-one").await?.unwrap();
    let (generation, written) = by_operator(&same);
    assert_eq!(generation, foreign.metadata.generation);
    assert_eq!(written, []);
    Ok(())
}

#[opkit::test]
async fn events_report_changes(plane: ControlPlane) -> opkit::Result {
    plane.require(Capability::ControllerManager)?;
    plane.start(operator()).await?;
    plane.apply(robot("robot-one", 1)).await?;
    plane
        .eventually("robot-one", |robot: &Robot| has_ready(robot, 1))
        .await?;
    let sets: Api<ReplicaSet> = Api::default_namespaced(plane.client());
    assert_eq!(sets.list(&ListParams::default()).await?.items.len(), 1);

    let events: Api<Event> = Api::default_namespaced(plane.client());
    let params = ListParams::default().fields("involvedObject.kind=Robot");
    for _ in 0..1_000 {
        let found = events.list(&params).await?;
        let created =
            |event: &Event| event.message.as_deref() == Some("created deployment robot-one");
        if found.iter().any(created) {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Err(Error::msg("there is no event about the deployment"))
}

#[opkit::test]
async fn a_robot_that_breaks_its_schema_is_refused_by_field(plane: ControlPlane) -> opkit::Result {
    plane.install(&operator()).await?;
    let error = plane
        .apply(robot("robot-one", 101))
        .await
        .unwrap_err()
        .to_string();
    let want = "spec.replicas: Invalid value: 101: spec.replicas in body should be less than or equal to 100";
    assert!(error.contains(want), "{error}");
    Ok(())
}
