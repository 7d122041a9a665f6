//! What is reported at the start: a status that cannot hold what is written.

use std::io::Write;
use std::sync::Mutex;

use opkit::RunOptions;
use opkit::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;
use tracing::instrument::WithSubscriber;

/// A kind whose status has a phase and nothing else.
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

/// The log of one operator.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Log {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }
}

fn operator() -> Operator {
    let reconcile = |_: Arc<Gap>, _: Context| std::future::ready(Ok(Action::await_change()));
    Operator::new("rig")
        .crd::<Gap>()
        .controller(Controller::new(reconcile))
}

/// Starts the operator, waits until it is ready, and stops it: what it said.
async fn start(plane: &ControlPlane) -> opkit::Result<String> {
    let mut options = RunOptions::default();
    options.namespaces = vec![plane.namespace().to_owned()];
    let (mut ready, stop) = (options.ready.subscribe(), CancellationToken::new());
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
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
    // A server publishes the schema a while after the kind is served.
    let mut said = String::new();
    for _ in 0..50 {
        said = start(&plane).await?;
        if said.contains("Gap has no") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    for gap in [
        "Gap has no status.observedGeneration",
        "Gap has no status.conditions",
    ] {
        assert!(said.contains(gap), "{said}");
    }
    assert!(!said.contains("subresource"), "{said}");
    Ok(())
}
