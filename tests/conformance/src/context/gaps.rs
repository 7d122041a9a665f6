//! Warnings at the start about fields that a status lacks.

use opkit::operator::RunOptions;
use opkit::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;
use tracing::instrument::WithSubscriber;

use crate::log::Log;

/// Kind whose status has only a phase.
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug)]
#[kube(
    group = "gaps.opkit.dev",
    version = "v1",
    kind = "Gap",
    namespaced,
    status = "GapStatus"
)]
pub(crate) struct GapSpec {}

#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default)]
pub(crate) struct GapStatus {
    phase: String,
}

fn operator() -> Operator {
    let reconcile =
        |_: Arc<Gap>, _: Context| std::future::ready(Ok::<_, Error>(Action::await_change()));
    Operator::new("rig")
        .crd::<Gap>()
        .controller(Controller::new(reconcile))
}

/// Starts the operator, waits until it is ready, stops it, and returns its log.
async fn start(plane: &ControlPlane) -> opkit::Result<String> {
    let mut options = RunOptions::default();
    options.namespaces = vec![plane.namespace().to_owned()];
    let (mut ready, stop) = (options.ready.subscribe(), CancellationToken::new());
    let (log, subscriber) = Log::subscriber();
    let run = operator().run_with(plane.client(), options, stop.clone());
    let (ran, ()) = tokio::join!(run.with_subscriber(subscriber), async {
        let _ = ready.wait_for(|ready| *ready).await;
        stop.cancel();
    });
    ran?;
    Ok(log.text())
}

#[opkit::test]
async fn a_status_without_conditions_is_reported_at_the_start(
    plane: ControlPlane,
) -> opkit::Result {
    plane.install(&operator()).await?;
    // A server publishes the schema some time after it serves the kind.
    let mut log = String::new();
    for _ in 0..50 {
        log = start(&plane).await?;
        if log.contains("Gap has no") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    for gap in [
        "Gap has no status.observedGeneration",
        "Gap has no status.conditions",
    ] {
        assert!(log.contains(gap), "{log}");
    }
    assert!(!log.contains("subresource"), "{log}");
    Ok(())
}
