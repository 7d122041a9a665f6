//! The kind `Foo`, and the Deployment of a foo.

use opkit::k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec};
use opkit::k8s_openapi::api::core::v1::{Container, PodSpec, PodTemplateSpec};
use opkit::k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use opkit::kube::Resource;
use opkit::prelude::*;

/// A deployment of web servers.
#[opkit::kind(group = "samplecontroller.opkit.dev", version = "v1", namespaced, status = FooStatus)]
pub struct FooSpec {
    /// Name of the Deployment.
    #[opkit(min_length = 1)]
    pub deployment_name: String,
    /// Number of web servers.
    #[opkit(default = 1, min = 0, max = 10)]
    pub replicas: i32,
}

/// Observed state of a foo.
#[opkit::status]
#[allow(deprecated, reason = "client-go's sample has no conditions")]
pub struct FooStatus {
    /// Number of web servers that are available.
    pub available_replicas: i32,
}

/// Returns the Deployment of a foo, which the foo controls.
pub(crate) fn new_deployment(foo: &Foo) -> Deployment {
    let labels = BTreeMap::from([
        ("app".to_owned(), "nginx".to_owned()),
        ("controller".to_owned(), foo.name_any()),
    ]);
    let container = Container {
        name: "nginx".to_owned(),
        image: Some("nginx:latest".to_owned()),
        ..Default::default()
    };
    Deployment {
        metadata: ObjectMeta {
            name: Some(foo.spec.deployment_name.clone()),
            namespace: foo.namespace(),
            owner_references: foo.controller_owner_ref(&()).map(|owner| vec![owner]),
            ..Default::default()
        },
        spec: Some(DeploymentSpec {
            replicas: Some(foo.spec.replicas),
            selector: LabelSelector {
                match_labels: Some(labels.clone()),
                ..Default::default()
            },
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta {
                    labels: Some(labels),
                    ..Default::default()
                }),
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

/// Reports whether a foo is the controller of a Deployment.
pub(crate) fn is_controlled_by(deployment: &Deployment, foo: &Foo) -> bool {
    let owners = deployment.owner_references().iter();
    let mut controllers = owners.filter(|owner| owner.controller == Some(true));
    controllers.any(|owner| Some(&owner.uid) == foo.meta().uid.as_ref())
}
