//! Tasks that start and stop together: the servers, what needs no leadership, and what does.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::error;

use crate::error::{Error, ManagerError};
use crate::manager::runnable::{AnyRunnable, RunContext};
use crate::worker::Running;

const MOMENT: Duration = Duration::from_secs(1);

/// Until when something may take; none for ever.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadline {
    at: Option<Instant>,
    pub(super) grace: Duration,
}

impl Deadline {
    pub(super) fn after(grace: Duration) -> Self {
        Self {
            at: Instant::now().checked_add(grace),
            grace,
        }
    }

    /// Waits for `future`; false if it takes too long. Who comes last, after somebody who was late,
    /// gets a moment still.
    pub(super) async fn holds(&self, future: impl Future<Output = ()>) -> bool {
        match self.at {
            Some(at) => {
                let at = at.max(Instant::now() + self.grace.min(MOMENT));
                tokio::time::timeout_at(at, future).await.is_ok()
            }
            None => {
                future.await;
                true
            }
        }
    }
}

/// Workers and runnables that start and stop together.
#[derive(Debug, Default)]
pub(super) struct Crew {
    tasks: JoinSet<Result<(), Error>>,
    /// What is what; a worker has no name of its own.
    names: HashMap<Id, Arc<str>>,
    controllers: Vec<Arc<Running>>,
    stop: CancellationToken,
}

impl Crew {
    /// Starts the workers of a controller.
    pub(super) fn work(&mut self, running: &Arc<Running>) {
        for _ in 0..running.spec.options.max_concurrent_reconciles {
            let work = running.clone().work(self.stop.clone());
            self.tasks.spawn(async {
                work.await;
                Ok(())
            });
        }
        self.controllers.push(running.clone());
    }

    /// Starts a runnable; `context` makes what it works with of the token that stops it.
    pub(super) fn run(&mut self, runnable: &AnyRunnable, context: RunContext) {
        let context = RunContext {
            stop: self.stop.clone(),
            ..context
        };
        let task = self.tasks.spawn(runnable.start(context));
        self.names.insert(task.id(), runnable.name.clone());
    }

    /// Waits until a task fails; for ever if none does.
    pub(super) async fn failed(&mut self) -> ManagerError {
        while let Some(ended) = self.tasks.join_next_with_id().await {
            if let Some(error) = self.failure(ended) {
                return error;
            }
        }
        std::future::pending().await
    }

    fn failure(
        &mut self,
        ended: Result<(Id, Result<(), Error>), JoinError>,
    ) -> Option<ManagerError> {
        let (id, result) = match ended {
            Ok((id, result)) => (id, result.map_err(Error::into)),
            Err(error) if error.is_cancelled() => {
                self.names.remove(&error.id());
                return None;
            }
            Err(error) => (error.id(), Err(error.into())),
        };
        let name = self.names.remove(&id);
        let cause = result.err()?;
        Some(match name {
            Some(name) => ManagerError::Runnable {
                name: name.to_string(),
                cause,
            },
            None => ManagerError::Internal(cause),
        })
    }

    /// Drops all work at once, as when leadership is lost: nothing of it may write any more. Waits
    /// until it is gone, also for tasks that block their thread.
    pub(super) async fn abandon(&mut self) {
        self.stop.cancel();
        self.tasks.abort_all();
        while let Some(ended) = self.tasks.join_next_with_id().await {
            let _ = self.failure(ended);
        }
    }

    /// Asks all to end, and aborts those that have not by `deadline`, whose names it adds to
    /// `late`. An aborted task is not awaited: one that blocks its thread ends when it likes.
    pub(super) async fn stop(&mut self, deadline: Deadline, late: &mut Vec<String>) {
        self.stop.cancel();
        let ended = async {
            while let Some(ended) = self.tasks.join_next_with_id().await {
                // It was going to end anyway; the error that stopped all is told by another.
                if let Some(error) = self.failure(ended) {
                    let error: &dyn std::error::Error = &error;
                    error!(error, "something failed while it was stopped");
                }
            }
        };
        if deadline.holds(ended).await {
            return;
        }
        late.extend(self.names.values().map(|name| name.to_string()));
        for running in &self.controllers {
            let name = &running.spec.name;
            let in_work = running.in_work().into_iter();
            late.extend(in_work.map(|(request, _)| format!("{name} {request}")));
        }
        self.tasks.abort_all();
        self.tasks.detach_all();
    }
}

/// What a runnable started on its own hears of the end too, when the manager is dropped.
impl Drop for Crew {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
