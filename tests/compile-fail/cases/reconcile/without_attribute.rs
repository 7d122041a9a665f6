//! The eight mistakes without `#[opkit::reconcile]`: one message for all, with both signatures.
#![allow(unused_variables, dead_code)]
use opkit::k8s_openapi::api::core::v1::ConfigMap;
use opkit::prelude::*;

async fn by_reference(map: Arc<ConfigMap>, cx: &Context) -> Result<Action> {
    Ok(Action::await_change())
}

async fn without_arc(map: ConfigMap, cx: Context) -> Result<Action> {
    Ok(Action::await_change())
}

async fn one_argument(map: Arc<ConfigMap>) -> Result<Action> {
    Ok(Action::await_change())
}

async fn no_action(map: Arc<ConfigMap>, cx: Context) -> Result<()> {
    Ok(())
}

async fn boxed_error(
    map: Arc<ConfigMap>,
    cx: Context,
) -> Result<Action, Box<dyn std::error::Error>> {
    Ok(Action::await_change())
}

pub struct StoreError;

async fn own_error(map: Arc<ConfigMap>, cx: Context) -> Result<Action, StoreError> {
    Ok(Action::await_change())
}

async fn not_send(map: Arc<ConfigMap>, cx: Context) -> Result<Action> {
    let names = std::rc::Rc::new(map.name_any());
    cx.apply(ConfigMap::default()).await?;
    println!("{names}");
    Ok(Action::await_change())
}

fn not_async(map: Arc<ConfigMap>, cx: Context) -> Result<Action> {
    Ok(Action::await_change())
}

pub fn operator() -> Operator {
    Operator::new("map-operator")
        .controller(Controller::new(by_reference))
        .controller(Controller::new(without_arc))
        .controller(Controller::new(one_argument))
        .controller(Controller::new(no_action))
        .controller(Controller::new(boxed_error))
        .controller(Controller::new(own_error))
        .controller(Controller::new(not_send))
        .controller(Controller::new(not_async))
}
