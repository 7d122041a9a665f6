//! Activity of a running operator, read from its debug endpoint.

use anyhow::Result;
use opkit_debug::{Activity, RECONCILES_PATH};

use crate::endpoint;

/// Requests the activity from the endpoint at `address`.
pub(crate) async fn fetch(address: &str) -> Result<Activity> {
    let response = endpoint::get(endpoint::DEBUG, address, RECONCILES_PATH).await?;
    Ok(serde_json::from_slice(&response.body)?)
}
