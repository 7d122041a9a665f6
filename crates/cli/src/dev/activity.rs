//! Activity of a running operator, read from its debug endpoint.

use std::fs;
use std::path::Path;

use anyhow::Result;
use opkit_debug::{Activity, RECONCILES_PATH};

use crate::endpoint;

/// Returns the activity of an operator that writes the address of its endpoint to a file. It is
/// empty while the operator does not respond.
pub(crate) async fn of_file(address_file: &Path) -> Activity {
    match fs::read_to_string(address_file) {
        Ok(address) => fetch(address.trim()).await.unwrap_or_default(),
        Err(_) => Activity::default(),
    }
}

/// Requests the activity from the endpoint at `address`.
pub(crate) async fn fetch(address: &str) -> Result<Activity> {
    let response = endpoint::get(endpoint::DEBUG, address, RECONCILES_PATH).await?;
    Ok(serde_json::from_slice(&response.body)?)
}
