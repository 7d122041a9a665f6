//! A kind, its status and its client: nothing is reported.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::kind(group = "example.com", version = "v1", namespaced, status = RobotStatus, derive(PartialEq))]
#[derive(TypedClient, PartialEq, Default)]
#[client(verbs(get, list))]
pub struct RobotSpec {
    #[opkit(default = 1, min = 0, max = 100)]
    pub replicas: i32,
}

#[opkit::status]
#[derive(PartialEq)]
pub struct RobotStatus {
    pub observed_generation: Option<i64>,
    pub conditions: Conditions,
}

pub async fn count(client: opkit::client::Client) -> Result<usize> {
    let robots = RobotClient::new(client)
        .list_all(&opkit::client::ListOptions::new())
        .await?;
    Ok(robots.items.len())
}

/// A cluster-scoped kind without fields, whose names are not derived from the struct's name.
#[opkit::kind(
    group = "example.com",
    version = "v1beta1",
    cluster,
    kind = "Yard",
    plural = "gardens",
    singular = "garden"
)]
pub struct Plot {}

fn is_in_no_namespace<
    K: opkit::kube::Resource<Scope = opkit::k8s_openapi::ClusterResourceScope>,
>() {
}

pub fn check() {
    is_in_no_namespace::<Yard>();
    assert!(Robot::new("a", RobotSpec::default()) == Robot::new("a", RobotSpec { replicas: 1 }));
}
