//! Everything that a manager runs: started in order, watched, stopped in order.

use std::sync::Arc;
use std::time::Duration;

use opkit_cache::InformerFactory;
use opkit_client::RestClient;
use opkit_workqueue::Queue;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::warn;

use super::{Manager, first_failure};
use crate::applied::AppliedChildren;
use crate::context::Shared;
use crate::controller::ControllerSpec;
use crate::events::{EventRecorder, recorder};
use crate::prune::OwnedKind;
use crate::source::{self, MapContext};
use crate::worker::Running;
use crate::{ManagerError, ReconcileLog};

/// How long runnables, informers, sources and the event queue may take to end, each.
const FLUSH: Duration = Duration::from_secs(5);

/// Everything that runs, and how to stop it.
pub(super) struct House {
    operator: String,
    client: RestClient,
    log: ReconcileLog,
    factory: Arc<InformerFactory>,
    events: EventRecorder,
    controllers: Vec<Arc<Running>>,
    sources: JoinSet<()>,
    workers: JoinSet<()>,
    stop_workers: CancellationToken,
    caches: TaskTracker,
    stop_caches: CancellationToken,
    pub(super) runnables: JoinSet<Result<(), ManagerError>>,
    pub(super) stop_runnables: CancellationToken,
    poster: TaskTracker,
    stop_poster: CancellationToken,
    abort_poster: CancellationToken,
}

impl House {
    pub(super) fn new(manager: &Manager) -> Self {
        let (caches, stop_caches) = (TaskTracker::new(), CancellationToken::new());
        let (poster, stop_poster) = (TaskTracker::new(), CancellationToken::new());
        let (events, posting) = recorder(manager.client.clone(), manager.operator.clone());
        let abort_poster = CancellationToken::new();
        let (abort, stop) = (abort_poster.clone(), stop_poster.clone());
        poster.spawn(async move {
            abort.run_until_cancelled(posting.run(stop)).await;
        });
        let specs = manager.controllers.iter();
        let field_managers = specs.map(|spec| field_manager(&manager.operator, spec));
        let factory = InformerFactory::new(
            manager.client.clone(),
            manager.options.scope.clone(),
            caches.clone(),
            stop_caches.clone(),
        )
        .keep_managers(field_managers);
        House {
            operator: manager.operator.clone(),
            client: manager.client.clone(),
            log: manager.options.log.clone(),
            factory: Arc::new(factory),
            events,
            controllers: Vec::new(),
            sources: JoinSet::new(),
            workers: JoinSet::new(),
            stop_workers: CancellationToken::new(),
            caches,
            stop_caches,
            runnables: JoinSet::new(),
            stop_runnables: CancellationToken::new(),
            poster,
            stop_poster,
            abort_poster,
        }
    }

    /// Starts informers, waits until every controller has seen the first lists, starts workers.
    pub(super) async fn start(
        &mut self,
        controllers: Vec<ControllerSpec>,
        timeout: Duration,
    ) -> Result<(), ManagerError> {
        let mut first_lists = Vec::new();
        for spec in controllers {
            let running = Arc::new(self.running(spec));
            for (n, source) in running.spec.sources.iter().enumerate() {
                let listener = (source.start)(&self.factory).listen();
                let (synced, first_list) = oneshot::channel();
                first_lists.push(first_list);
                let run = source::run(running.clone(), n, listener, synced);
                let stop = self.stop_caches.clone();
                self.sources.spawn(async move {
                    stop.run_until_cancelled(run).await;
                });
            }
            self.controllers.push(running);
        }
        self.factory
            .wait_for_sync(timeout)
            .await
            .map_err(ManagerError::Sync)?;
        for first_list in first_lists {
            // An error means that the source's task is gone, which the stop will tell.
            let _ = first_list.await;
        }
        for running in &self.controllers {
            for _ in 0..running.spec.max_concurrent_reconciles {
                self.workers
                    .spawn(running.clone().work(self.stop_workers.clone()));
            }
        }
        Ok(())
    }

    fn running(&self, spec: ControllerSpec) -> Running {
        let reads = MapContext {
            controller: spec.name.as_str().into(),
            declared: Arc::new(spec.declared.clone()),
            factory: self.factory.clone(),
        };
        let shared = Shared {
            client: self.client.clone(),
            field_manager: field_manager(&self.operator, &spec),
            reads,
            applied: AppliedChildren::default(),
            events: self.events.clone(),
            owned: spec
                .sources
                .iter()
                .filter(|source| source.is_owned)
                .map(|source| OwnedKind {
                    type_id: source.type_id,
                    informer: (source.start)(&self.factory),
                })
                .collect(),
        };
        Running {
            queue: Queue::default(),
            shared: Arc::new(shared),
            informer: (spec.start)(&self.factory),
            log: self.log.clone(),
            in_work: Mutex::default(),
            spec,
        }
    }

    /// Waits until `stop`, or until something ends that should not.
    pub(super) async fn wait(&mut self, stop: &CancellationToken) -> Result<(), ManagerError> {
        tokio::select! {
            () = stop.cancelled() => Ok(()),
            error = first_panic(&mut self.workers) => Err(ManagerError::Internal(error)),
            // A map function of the user's that panics: not to be survived silently.
            error = first_panic(&mut self.sources) => Err(ManagerError::Internal(error)),
            error = first_failure(&mut self.runnables) => Err(error),
        }
    }

    /// Stops everything, in order.
    pub(super) async fn stop(mut self, grace: Duration) -> Result<(), ManagerError> {
        self.stop_workers.cancel();
        for running in &self.controllers {
            running.queue.shut_down();
        }
        let result = match end(&mut self.workers, grace).await {
            true => Ok(()),
            false => {
                let late = late(&self.controllers);
                warn!(late = late.join(", "), "reconciles did not end in time");
                Err(ManagerError::Late {
                    seconds: grace.as_secs(),
                    late,
                })
            }
        };
        self.stop_runnables.cancel();
        if !end(&mut self.runnables, FLUSH).await {
            warn!("runnables did not end in time");
        }
        self.stop_caches.cancel();
        self.caches.close();
        let caches = tokio::time::timeout(FLUSH, self.caches.wait()).await;
        if caches.is_err() || !end(&mut self.sources, FLUSH).await {
            warn!("informers did not end in time");
        }
        self.stop_poster.cancel();
        self.poster.close();
        let posted = tokio::time::timeout(FLUSH, self.poster.wait()).await;
        if posted.is_err() {
            self.abort_poster.cancel();
            warn!("events were not posted in time");
        }
        result
    }
}

/// As whom a controller writes.
fn field_manager(operator: &str, spec: &ControllerSpec) -> String {
    format!("{operator}.{}", spec.name)
}

/// Waits until a task panics; for ever if none does.
async fn first_panic(tasks: &mut JoinSet<()>) -> JoinError {
    while let Some(ended) = tasks.join_next().await {
        if let Err(error) = ended {
            return error;
        }
    }
    std::future::pending().await
}

/// Waits until the tasks have ended, or aborts them after `limit` and answers false. An aborted
/// task is not awaited: one that blocks its thread ends when it likes.
async fn end<T: 'static>(tasks: &mut JoinSet<T>, limit: Duration) -> bool {
    let ended = async { while tasks.join_next().await.is_some() {} };
    let in_time = tokio::time::timeout(limit, ended).await.is_ok();
    if !in_time {
        tasks.abort_all();
        tasks.detach_all();
    }
    in_time
}

/// A manager that is dropped stops its tasks as well, though nobody waits for them.
impl Drop for House {
    fn drop(&mut self) {
        for stop in [&self.stop_caches, &self.abort_poster, &self.stop_runnables] {
            stop.cancel();
        }
    }
}

fn late(controllers: &[Arc<Running>]) -> Vec<String> {
    let of = |running: &Arc<Running>| {
        let in_work = running.in_work.lock();
        in_work
            .iter()
            .map(|key| format!("{} {key}", running.spec.name))
            .collect::<Vec<_>>()
    };
    controllers.iter().flat_map(of).collect()
}
