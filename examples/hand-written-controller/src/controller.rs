//! The controller: two listers, a queue, a recorder.

use std::sync::Arc;
use std::time::Duration;

use opkit::ObjectKey;
use opkit::cache::{CachedClient, Delta, Event, InformerFactory, Listener, Lister, ObjectError};
use opkit::client::{Client, RequestError};
use opkit::events::{EventRecorder, EventType};
use opkit::k8s_openapi::api::apps::v1::Deployment;
use opkit::kube::Resource;
use opkit::workqueue::{MetricsProvider, Queue, QueueOptions, default_controller_rate_limiter};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::foo::{is_controlled_by, new_deployment};
use crate::{Foo, FooStatus, RunError};

/// Time in which the caches must be filled.
const SYNC_TIMEOUT: Duration = Duration::from_secs(60);

/// Error of the work on one foo, which is repeated.
#[derive(Debug, thiserror::Error)]
enum SyncError {
    /// The Deployment belongs to another owner.
    #[error("the Deployment {0} exists and is not controlled by the Foo")]
    Taken(String),
    /// A cached object does not match its Rust type.
    #[error("cannot read the cache")]
    Object(#[from] Arc<ObjectError>),
    /// A request has failed.
    #[error("cannot write to the API server")]
    Request(#[from] RequestError),
}

/// Keeps a Deployment for each foo.
pub(crate) struct FooController {
    foos: Lister<Foo>,
    deployments: Lister<Deployment>,
    /// Writes, and shows the writes to the listers at once.
    client: CachedClient,
    queue: Queue<ObjectKey, ()>,
    recorder: EventRecorder,
}

impl FooController {
    pub(crate) fn new(
        client: Client,
        informers: &Arc<InformerFactory>,
        recorder: EventRecorder,
        metrics: &MetricsProvider,
    ) -> Self {
        let queue = QueueOptions {
            rate_limiter: Box::new(default_controller_rate_limiter()),
            metrics: Some(metrics.queue("foos")),
            ..Default::default()
        };
        Self {
            foos: informers.informer(),
            deployments: informers.informer(),
            client: CachedClient::new(client, informers.clone()),
            queue: Queue::new(queue),
            recorder,
        }
    }

    /// Runs until `stop` is cancelled.
    pub(crate) async fn run(
        self: Arc<Self>,
        informers: &InformerFactory,
        workers: usize,
        stop: &CancellationToken,
    ) -> Result<(), RunError> {
        let mut tasks = JoinSet::new();
        tasks.spawn(self.clone().handle_foos(self.foos.informer().listen()));
        let deployments = self.deployments.informer().listen();
        tasks.spawn(self.clone().handle_deployments(deployments));

        info!("waiting for the caches");
        match stop
            .run_until_cancelled(informers.wait_for_sync(SYNC_TIMEOUT))
            .await
        {
            Some(synced) => synced?,
            None => return Ok(()),
        }
        let mut working = JoinSet::new();
        for _ in 0..workers {
            working.spawn(self.clone().work());
        }
        info!(workers, "started");
        stop.cancelled().await;
        // Work in progress ends; keys that wait are handed out no more after a drain.
        self.queue.shut_down_with_drain().await;
        while working.join_next().await.is_some() {}
        tasks.shutdown().await;
        Ok(())
    }

    /// Queues each foo that changes.
    async fn handle_foos(self: Arc<Self>, mut listener: Listener) {
        loop {
            if let Event::Delta(delta) = listener.recv().await {
                self.queue.add(delta.key, ());
            }
        }
    }

    /// Queues the foo that controls a Deployment that changes. The cache delivers both states of a
    /// Deployment whose owner has changed.
    async fn handle_deployments(self: Arc<Self>, mut listener: Listener) {
        loop {
            if let Event::Delta(delta) = listener.recv().await {
                for key in controllers_of(&delta) {
                    self.queue.add(key, ());
                }
            }
        }
    }

    /// Works on one foo after the other, until the queue is shut down.
    async fn work(self: Arc<Self>) {
        while let Some(item) = self.queue.get().await {
            let key = item.key().clone();
            match self.sync(&key).await {
                Ok(()) => item.forget(),
                Err(error) => {
                    let cause = std::error::Error::source(&error).map(ToString::to_string);
                    warn!(%key, %error, cause, "requeued");
                    self.queue.add_rate_limited(key, ());
                    // Dropped afterwards: the key waits until this work is done.
                    drop(item);
                }
            }
        }
    }

    /// Brings the Deployment of one foo to the state in the foo's spec.
    async fn sync(&self, key: &ObjectKey) -> Result<(), SyncError> {
        // The foo is gone: Kubernetes deletes its Deployment.
        let Some(foo) = self.foos.get(key)? else {
            return Ok(());
        };
        let name = &foo.spec.deployment_name;
        let of_foo = ObjectKey {
            name: name.clone(),
            ..key.clone()
        };
        let deployment = match self.deployments.get(&of_foo)? {
            Some(deployment) => deployment,
            None => self.client.create(&new_deployment(&foo)).await?,
        };
        if !is_controlled_by(&deployment, &foo) {
            let error = SyncError::Taken(name.clone());
            let note = error.to_string();
            self.recorder
                .event(&*foo, EventType::Warning, "ErrResourceExists", note);
            return Err(error);
        }
        let replicas = deployment.spec.as_ref().and_then(|spec| spec.replicas);
        let deployment = match replicas == Some(foo.spec.replicas) {
            true => deployment,
            false => {
                let mut desired = (*deployment).clone();
                desired.spec.get_or_insert_default().replicas = Some(foo.spec.replicas);
                self.client.update(&desired).await?
            }
        };
        self.update_status(&foo, &deployment).await
    }

    /// Writes the status of a foo, if it has changed.
    async fn update_status(&self, foo: &Foo, deployment: &Deployment) -> Result<(), SyncError> {
        let available = deployment.status.as_ref();
        let available = available.and_then(|status| status.available_replicas);
        let status = FooStatus {
            available_replicas: available.unwrap_or_default(),
        };
        let before = foo.status.as_ref().map(|status| status.available_replicas);
        if before == Some(status.available_replicas) {
            return Ok(());
        }
        // Listers share their objects: a copy is changed.
        let mut foo = foo.clone();
        foo.status = Some(status);
        let foo = self.client.update_status(&foo).await?;
        let note = "Foo synced successfully";
        self.recorder
            .event(&*foo, EventType::Normal, "Synced", note);
        Ok(())
    }
}

/// Returns the foos that control a Deployment, before or after a change.
fn controllers_of(delta: &Delta) -> Vec<ObjectKey> {
    let states = [&delta.old, &delta.new];
    let last = delta.last.iter().map(|last| &last.object);
    let mut keys = Vec::new();
    for deployment in states.into_iter().flatten().chain(last) {
        for owner in deployment.meta().owners() {
            let is_foo = owner.kind == Foo::kind(&()) && owner.api_version == Foo::api_version(&());
            if owner.controller && is_foo {
                keys.push(ObjectKey {
                    name: owner.name.into_owned(),
                    ..delta.key.clone()
                });
            }
        }
    }
    keys.dedup();
    keys
}
