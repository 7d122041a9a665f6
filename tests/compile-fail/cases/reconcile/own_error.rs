//! A custom error type that is not `Into<opkit::Error>`.
#![allow(unused_variables, dead_code)]
use opkit::k8s_openapi::api::core::v1::ConfigMap;
use opkit::prelude::*;

#[derive(Debug)]
pub enum StoreError {
    Locked,
}

#[opkit::reconcile]
async fn reconcile(map: Arc<ConfigMap>, cx: Context) -> Result<Action, StoreError> {
    Ok(Action::await_change())
}
