//! A call of a verb that the client does not have.
#![allow(dead_code, unused_imports)]
use opkit::prelude::*;

#[opkit::kind(group = "example.com", version = "v1", namespaced)]
#[derive(TypedClient)]
#[client(skip_verbs(delete))]
pub struct RobotSpec {}

pub async fn remove(client: opkit::client::Client, robot: Robot) -> Result<()> {
    RobotClient::new(client).delete(&robot).await?;
    Ok(())
}
