//! A boxed error, with and without `Send` and `Sync`.
#![allow(unused_variables, dead_code)]
use opkit::k8s_openapi::api::core::v1::ConfigMap;
use opkit::prelude::*;

#[opkit::reconcile]
async fn reconcile(map: Arc<ConfigMap>, cx: Context) -> Result<Action, Box<dyn std::error::Error>> {
    Ok(Action::await_change())
}

#[opkit::reconcile]
async fn reconcile_sync(
    map: Arc<ConfigMap>,
    cx: Context,
) -> Result<Action, Box<dyn std::error::Error + Send + Sync>> {
    Ok(Action::await_change())
}
