//! The deployment of a robot.

use std::collections::BTreeMap;

use opkit::k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec};
use opkit::k8s_openapi::api::core::v1::{Container, PodSpec, PodTemplateSpec};
use opkit::k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use opkit::prelude::*;

use crate::Robot;

/// Returns the Deployment of a robot.
pub(crate) fn desired_deployment(robot: &Robot) -> Deployment {
    let labels = BTreeMap::from([
        ("app.kubernetes.io/name".to_owned(), "robot".to_owned()),
        ("app.kubernetes.io/instance".to_owned(), robot.name_any()),
    ]);
    let container = Container {
        name: "robot".to_owned(),
        image: Some(robot.spec.image.clone()),
        command: robot.spec.command.clone(),
        ..Default::default()
    };
    let meta = ObjectMeta {
        labels: Some(labels.clone()),
        ..Default::default()
    };
    Deployment {
        metadata: ObjectMeta {
            name: Some(robot.name_any()),
            ..meta.clone()
        },
        spec: Some(DeploymentSpec {
            replicas: Some(robot.spec.replicas),
            selector: LabelSelector {
                match_labels: Some(labels),
                ..Default::default()
            },
            template: PodTemplateSpec {
                metadata: Some(meta),
                spec: Some(PodSpec {
                    containers: vec![container],
                    ..Default::default()
                }),
            },
            ..Default::default()
        }),
        ..Default::default()
    }
}

/// Creates an event for the change of the Deployment.
pub(crate) fn report_change(
    robot: &Robot,
    before: Option<&Deployment>,
    after: &Deployment,
    cx: &Context,
) {
    let replicas = |deployment: &Deployment| deployment.spec.as_ref().and_then(|s| s.replicas);
    let name = robot.name_any();
    match before {
        None => cx.event(
            Normal,
            "DeploymentApplied",
            format!("created deployment {name}"),
        ),
        Some(before) if replicas(before) != replicas(after) => {
            let count = robot.spec.replicas;
            cx.event(
                Normal,
                "DeploymentApplied",
                format!("scaled deployment {name} to {count}"),
            );
        }
        Some(before) if before.metadata.generation != after.metadata.generation => {
            cx.event(
                Normal,
                "DeploymentApplied",
                format!("updated deployment {name}"),
            );
        }
        Some(_) => {}
    }
}
