//! The error type of anyhow.
#![allow(unused_variables, dead_code)]
use opkit::k8s_openapi::api::core::v1::ConfigMap;
use opkit::prelude::*;

/// Module in place of the crate anyhow, which is not a dependency of opkit.
mod anyhow {
    pub struct Error;
    pub type Result<T> = std::result::Result<T, Error>;
}

#[opkit::reconcile]
async fn reconcile(map: Arc<ConfigMap>, cx: Context) -> anyhow::Result<Action> {
    Ok(Action::await_change())
}

#[opkit::reconcile]
async fn reconcile_too(map: Arc<ConfigMap>, cx: Context) -> Result<Action, anyhow::Error> {
    Ok(Action::await_change())
}
