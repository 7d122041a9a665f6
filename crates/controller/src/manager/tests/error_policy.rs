//! Retries after an error according to a policy in kube's shape.

use kube::ResourceExt;

use super::*;
use crate::Request;

/// Error with the requested seconds until the retry; `None` waits for the next change, zero uses
/// the backoff.
#[derive(Debug, thiserror::Error)]
#[error("after {0:?}")]
struct After(Option<u64>);

#[derive(Debug, thiserror::Error)]
#[error("another")]
struct Another;

fn policy(map: Arc<ConfigMap>, error: &After, state: Arc<()>) -> Option<Action> {
    assert_eq!((map.name_any().as_str(), &*state), ("one", &()));
    match error.0 {
        None => Some(Action::await_change()),
        Some(0) => None,
        Some(seconds) => Some(Action::requeue(Duration::from_secs(seconds))),
    }
}

/// Returns the delay of the retry after the first failed reconcile of `controller`.
async fn retry(controller: Controller<ConfigMap>, map: serde_json::Value) -> Option<Duration> {
    let server = Server::new(&["configmaps"]);
    server.put(MAP, map);
    let run = Run::start(&server, controller.error_policy(policy)).await;
    run.settle(Duration::from_millis(1)).await;
    let record = run.log.records().first().cloned().unwrap();
    run.stop().await.unwrap();
    match &record.result {
        Outcome::Error { retry_after, .. } => *retry_after,
        other => panic!("{other}"),
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_is_retried_as_the_policy_decides() {
    let (seconds, backoff) = (Duration::from_secs, Some(Duration::from_millis(5)));
    let failing = |error: fn() -> Error| counting(&Arc::default(), move |_| Err(error()));
    for (error, expected) in [
        (
            (|| After(Some(7)).into()) as fn() -> Error,
            Some(seconds(7)),
        ),
        (|| After(None).into(), None),
        (|| After(Some(0)).into(), backoff),
        // An error of another type, and errors that set the retry themselves.
        (|| Another.into(), backoff),
        (
            || Error::retry_after(Duration::from_secs(3), After(Some(7))),
            Some(seconds(3)),
        ),
        (|| Error::terminal(After(Some(7))), None),
    ] {
        let retried = retry(failing(error), object("one")).await;
        assert_eq!(retried, expected, "{}", error());
    }
}

/// The native shape with its own error type, a function that takes a key, and a finalizer.
#[tokio::test(start_paused = true)]
async fn the_policy_is_called_for_every_function() {
    async fn native(_: Arc<ConfigMap>, _: Context) -> Result<Action, After> {
        Err(After(Some(7)))
    }
    async fn keyed(_: Request, _: Context) -> Result<Action, After> {
        Err(After(Some(7)))
    }
    async fn clean_up(_: Arc<ConfigMap>, _: Context) -> Result<Cleanup, After> {
        Err(After(Some(7)))
    }
    let mut deleted = object("one");
    deleted["metadata"]["finalizers"] = json!(["test/cleanup"]);
    deleted["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    for (controller, map) in [
        (Controller::new(native), object("one")),
        (Controller::keyed(keyed), object("one")),
        (
            Controller::new(native).finalizer("test/cleanup", clean_up),
            deleted,
        ),
    ] {
        let retried = retry(controller, map).await;
        assert_eq!(retried, Some(Duration::from_secs(7)));
    }
}
