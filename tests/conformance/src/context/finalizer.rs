//! Finalizers: added before the first reconcile, called until they are done.

use std::sync::atomic::{AtomicU32, Ordering};

use k8s_openapi::api::core::v1::ConfigMap;
use opkit::prelude::*;
use serde_json::json;

use super::object;

const CLEANUP: &str = "rig.opkit.dev/cleanup";

#[opkit::test]
async fn a_finalizer_that_is_pending_twice_is_called_three_times(
    plane: ControlPlane,
) -> opkit::Result {
    let (calls, wrong) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let (counted, wrongly) = (calls.clone(), wrong.clone());
    let controller = Controller::new(move |map: Arc<ConfigMap>, _: Context| {
        let has = map.finalizers().iter().any(|name| name == CLEANUP);
        if !has || map.metadata.deletion_timestamp.is_some() {
            wrongly.fetch_add(1, Ordering::SeqCst);
        }
        std::future::ready(Ok::<_, Error>(Action::await_change()))
    })
    .finalizer(CLEANUP, move |map: Arc<ConfigMap>, _: Context| {
        let call = match map.name_any().as_str() {
            "one" => counted.fetch_add(1, Ordering::SeqCst) + 1,
            // Config maps that every namespace has.
            _ => 3,
        };
        std::future::ready(match call {
            1 | 2 => Ok::<_, Error>(Cleanup::Pending(Duration::from_millis(20))),
            _ => Ok(Cleanup::Done),
        })
    });
    plane
        .start(Operator::new("rig").controller(controller))
        .await?;
    plane
        .apply(object::<ConfigMap>(json!({"metadata": {"name": "one"}})))
        .await?;
    plane
        .eventually("one", |map: &ConfigMap| {
            map.finalizers().iter().any(|f| f == CLEANUP)
        })
        .await?;
    plane.delete::<ConfigMap>("one").await?;
    plane.eventually_gone::<ConfigMap>("one").await?;
    assert_eq!(calls.load(Ordering::SeqCst), 3);
    assert_eq!(
        wrong.load(Ordering::SeqCst),
        0,
        "reconcile is not called without the finalizer or during a deletion"
    );
    Ok(())
}
