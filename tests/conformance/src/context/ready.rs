//! `is_ready` of any kind.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Secret;
use opkit::prelude::*;
use opkit::testing::Capability;
use robot_operator::{Robot, RobotStatus, operator};
use serde_json::json;

use super::{Rig, object, secret};
use crate::robot::robot;

fn deployment(image: &str) -> Deployment {
    let labels = json!({"app": "robot"});
    object(json!({
        "metadata": {"name": "child"},
        "spec": {"replicas": 2, "selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels},
            "spec": {"containers": [{"name": "robot", "image": image}]},
        }},
    }))
}

#[opkit::test]
async fn a_deployment_with_a_new_image_is_ready_when_its_pods_are(
    plane: ControlPlane,
) -> opkit::Result {
    plane.require(Capability::ControllerManager)?;
    let mut rig = Rig::start(&plane).await?;
    let (_, cx) = rig.run().await?;
    assert!(!cx.apply(deployment("nginx:1.27")).await?.is_ready());
    let first = plane
        .eventually("child", |d: &Deployment| d.is_ready())
        .await?;
    assert_eq!(first.ready_replicas(), 2);

    let second = cx.apply(deployment("nginx:1.28")).await?;
    assert!(!second.is_ready(), "the status belongs to the old image");
    assert!(second.metadata.generation > first.metadata.generation);
    let second = plane
        .eventually("child", |d: &Deployment| d.is_ready())
        .await?;
    let status = second.status.as_ref().unwrap();
    assert_eq!(status.observed_generation, second.metadata.generation);
    assert_eq!(
        (status.updated_replicas, status.available_replicas),
        (Some(2), Some(2))
    );
    rig.stop().await
}

#[opkit::test]
async fn a_custom_kind_is_ready_when_its_status_says_so(plane: ControlPlane) -> opkit::Result {
    plane.install(&operator()).await?;
    let created = plane.apply(robot("owner", 1)).await?;
    assert!(!created.is_ready(), "there is no status yet");
    let mut rig: Rig<Robot> = Rig::start_with(&plane, |controller| controller).await?;
    let (robot, cx) = rig.run().await?;
    let say = async |condition: Option<Condition>| {
        cx.update_status(&robot, |status: &mut RobotStatus| {
            status.ready_replicas += 1;
            if let Some(condition) = &condition {
                status.conditions.set(condition.clone());
            }
        })
        .await
    };
    assert!(
        !say(None).await?.is_ready(),
        "the status has no such condition"
    );
    assert!(
        !say(Some(Condition::new("Ready", ConditionStatus::Unknown)))
            .await?
            .is_ready()
    );
    assert!(!say(Some(Condition::new("Ready", false))).await?.is_ready());
    assert!(say(Some(Condition::new("Ready", true))).await?.is_ready());
    let changed = super::merge::<Robot>(&plane, "owner", json!({"spec": {"replicas": 2}})).await?;
    assert!(
        !changed.is_ready(),
        "the status belongs to the previous generation"
    );
    rig.stop().await
}

#[opkit::test]
async fn a_kind_without_status_is_ready(plane: ControlPlane) -> opkit::Result {
    let created = plane.apply(secret("one", &[])).await?;
    assert!(created.is_ready());
    assert!(Secret::default().is_ready());
    Ok(())
}
