//! A value that is not `Send`, held over an `await`.
#![allow(unused_variables, dead_code)]
use opkit::k8s_openapi::api::core::v1::ConfigMap;
use opkit::prelude::*;

#[opkit::reconcile]
async fn reconcile(map: Arc<ConfigMap>, cx: Context) -> Result<Action> {
    let names = std::rc::Rc::new(map.name_any());
    cx.apply(ConfigMap::default()).await?;
    println!("{names}");
    Ok(Action::await_change())
}
