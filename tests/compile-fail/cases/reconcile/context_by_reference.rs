//! `&Context` instead of `Context`.
#![allow(unused_variables, dead_code)]
use opkit::k8s_openapi::api::core::v1::ConfigMap;
use opkit::prelude::*;

#[opkit::reconcile]
async fn reconcile(map: Arc<ConfigMap>, cx: &Context) -> Result<Action> {
    Ok(Action::await_change())
}
