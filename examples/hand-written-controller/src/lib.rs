//! The classical controller of the field, client-go's [sample-controller], from opkit's parts
//! alone: two listers, a rate-limited queue and a recorder. There is no `Operator` and no
//! `Controller`.
//!
//! For each `Foo` it keeps a Deployment with a name and a number of replicas. Most operators are
//! shorter with a `Controller`, which also reads its own writes, prints its manifests and explains
//! itself; this is what a program looks like that needs a loop of its own.
//!
//! ```console
//! $ cargo run -- cluster up --kubeconfig-out /tmp/kubeconfig      # or any other cluster
//! $ export KUBECONFIG=/tmp/kubeconfig                             # in a second terminal
//! $ cargo run -p hand-written-controller crd | kubectl apply -f -
//! $ cargo run -p hand-written-controller
//! $ kubectl apply -f examples/hand-written-controller/config/samples/foo-one.yaml    # in a third
//! ```
//!
//! [sample-controller]: https://github.com/kubernetes/sample-controller

#![allow(
    clippy::disallowed_names,
    reason = "the kind of client-go's sample is Foo"
)]

mod controller;
mod foo;

use std::sync::Arc;

use opkit::cache::{InformerFactory, Scope, SyncError};
use opkit::client::{Client, RestClient};
use opkit::events::{EventApi, EventMetrics, Reporter, event_recorder};
use opkit::workqueue::MetricsProvider;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use controller::FooController;
pub use foo::{Foo, FooSpec, FooStatus};

/// Name of the controller in events and as field manager.
const NAME: &str = "sample-controller";
/// Number of foos that are worked on at the same time.
const WORKERS: usize = 2;

/// Error that ends the controller.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The caches were not filled in time.
    #[error(transparent)]
    Sync(#[from] SyncError),
}

/// Runs the controller until `stop` is cancelled: informers, the poster of events, and workers.
///
/// # Errors
/// If the caches are not filled in time, for instance because the CRD is not installed.
pub async fn run(
    client: opkit::kube::Client,
    scope: Scope,
    stop: CancellationToken,
) -> Result<(), RunError> {
    let (tasks, informers_stop) = (TaskTracker::new(), CancellationToken::new());
    let rest = RestClient::new(client.clone());
    let informers = Arc::new(InformerFactory::new(
        rest.clone(),
        scope,
        tasks.clone(),
        informers_stop.clone(),
    ));
    let reporter = Reporter::new(NAME, EventApi::default());
    let (recorder, poster) = event_recorder(rest, reporter, EventMetrics::default());
    let posting = CancellationToken::new();
    tasks.spawn(poster.run(posting.clone()));

    let client = Client::new(client).field_manager(NAME);
    let metrics = MetricsProvider::default();
    let controller = FooController::new(client, &informers, recorder, &metrics);
    let ran = Arc::new(controller).run(&informers, WORKERS, &stop).await;
    // In this order: the workers have stopped, their events are posted, then the caches stop.
    posting.cancel();
    informers_stop.cancel();
    tasks.close();
    tasks.wait().await;
    ran
}
