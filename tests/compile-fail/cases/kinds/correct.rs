//! A kind, its status and its client: nothing is reported.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::kind(group = "example.com", version = "v1", namespaced, status = RobotStatus)]
#[derive(TypedClient, PartialEq, Default)]
#[client(verbs(get, list))]
pub struct RobotSpec {
    #[opkit(default = 1, min = 0, max = 100)]
    pub replicas: i32,
}

#[opkit::status]
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
