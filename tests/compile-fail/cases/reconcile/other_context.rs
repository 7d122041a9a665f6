//! A state instead of a context.
#![allow(unused_variables, dead_code)]
use opkit::k8s_openapi::api::core::v1::ConfigMap;
use opkit::prelude::*;

struct App;

#[opkit::reconcile]
async fn reconcile(map: Arc<ConfigMap>, app: App) -> Result<Action> {
    Ok(Action::await_change())
}
