//! Retries after errors of a reconcile.

use std::collections::HashMap;
use std::sync::Mutex;

use k8s_openapi::api::core::v1::ConfigMap;
use opkit::prelude::*;
use serde_json::json;
use tokio::time::Instant;

use super::{merge, object};

type Calls = Arc<Mutex<HashMap<String, Vec<Instant>>>>;

/// Returns a controller that records the times at which each object was reconciled.
fn controller(calls: &Calls) -> Controller<ConfigMap> {
    let calls = calls.clone();
    Controller::new(move |map: Arc<ConfigMap>, _: Context| {
        let name = map.name_any();
        let mut calls = calls.lock().unwrap();
        let times = calls.entry(name.clone()).or_default();
        times.push(Instant::now());
        let first = times.len() == 1;
        let fail = || "x".parse::<i32>();
        let result: Result<Action> = match name.as_str() {
            "backoff" if times.len() < 4 => {
                fail().map(|_| Action::await_change()).map_err(Error::from)
            }
            "later" if first => fail()
                .map(|_| Action::await_change())
                .map_err(|error| Error::retry_after(Duration::from_millis(300), error)),
            "terminal" => fail()
                .map(|_| Action::await_change())
                .map_err(Error::terminal),
            "again" if first => Ok(Action::requeue(Duration::from_millis(300))),
            _ => Ok(Action::await_change()),
        };
        std::future::ready(result)
    })
    .max_concurrent_reconciles(4)
}

#[opkit::test]
async fn an_error_is_retried_by_its_policy(plane: ControlPlane) -> opkit::Result {
    let calls = Calls::default();
    for name in ["backoff", "later", "terminal", "again"] {
        plane
            .apply(object::<ConfigMap>(json!({"metadata": {"name": name}})))
            .await?;
    }
    plane
        .start(Operator::new("rig").controller(controller(&calls)))
        .await?;
    let times = |name: &str| calls.lock().unwrap().get(name).cloned().unwrap_or_default();
    let wait = async |name: &'static str, count: usize| {
        let called = |_: &ConfigMap| times(name).len() >= count;
        plane.eventually(name, called).await
    };
    wait("backoff", 4).await?;
    wait("later", 2).await?;
    wait("again", 2).await?;
    for name in ["later", "again"] {
        let times = times(name);
        let pause = times[1] - times[0];
        assert!(
            pause >= Duration::from_millis(300),
            "{name} after {pause:?}"
        );
    }
    assert_eq!(
        times("terminal").len(),
        1,
        "not retried before the object changes"
    );
    merge::<ConfigMap>(&plane, "terminal", json!({"data": {"a": "b"}})).await?;
    wait("terminal", 2).await?;
    Ok(())
}
