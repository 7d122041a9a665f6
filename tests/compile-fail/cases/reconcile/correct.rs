//! Every shape of function, checked and used: nothing is reported.
#![allow(unused_variables, dead_code)]
use opkit::k8s_openapi::api::core::v1::ConfigMap;
use opkit::prelude::*;

#[derive(Debug)]
pub struct StoreError;

impl std::fmt::Display for StoreError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("locked")
    }
}

impl std::error::Error for StoreError {}

pub struct App;

#[opkit::reconcile]
async fn reconcile(map: Arc<ConfigMap>, cx: Context<App>) -> Result<Action> {
    Ok(Action::await_change())
}

#[opkit::reconcile]
async fn own_error(map: Arc<ConfigMap>, cx: Context<App>) -> Result<Action, StoreError> {
    Ok(Action::await_change())
}

#[opkit::reconcile]
async fn of_kube(map: Arc<ConfigMap>, app: Arc<App>) -> Result<Action, StoreError> {
    Ok(Action::await_change())
}

#[opkit::reconcile]
async fn by_key(request: Request, cx: Context<App>) -> Result<Action> {
    Ok(Action::await_change())
}

#[opkit::reconcile]
async fn clean_up(map: Arc<ConfigMap>, cx: Context<App>) -> Result<Cleanup, StoreError> {
    Ok(Cleanup::Done)
}

pub fn operator() -> Operator {
    Operator::new("map-operator")
        .controller(Controller::new(reconcile).finalizer("example.com/store", clean_up))
        .controller(Controller::new(own_error))
        .controller(Controller::new(of_kube))
        .controller(Controller::<ConfigMap, _>::keyed(by_key))
}
