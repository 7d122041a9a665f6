//! Groups of tasks that start and stop together: the servers, the tasks that need no leadership,
//! and the tasks that need leadership.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::error;

use crate::error::{Error, ManagerError};
use crate::manager::first_slot;
use crate::manager::runnable::{AnyRunnable, RunContext};
use crate::worker::RunningController;
use crate::worker::slots::Slots;

/// Time that a task gets to stop if other tasks have already used up the grace period.
const MOMENT: Duration = Duration::from_secs(1);

/// The time by which all tasks have to stop.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadline {
    /// The instant of the deadline; `None` if there is no limit.
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

    /// Waits for `future` until the deadline. Returns `false` if `future` takes longer. If the
    /// deadline has passed or is close, waits for one second nevertheless, or for the grace period
    /// if that is shorter.
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
pub(super) struct TaskGroup {
    tasks: JoinSet<Result<(), Error>>,
    /// Names of the runnables; a worker has no name.
    names: HashMap<Id, Arc<str>>,
    controllers: Vec<Arc<RunningController>>,
    stop: CancellationToken,
}

impl TaskGroup {
    /// Starts the workers of a controller.
    pub(super) fn work(&mut self, controller: &Arc<RunningController>) {
        for _ in 0..controller.options.max_concurrent_reconciles {
            let work = controller.clone().work(self.stop.clone());
            self.tasks.spawn(async {
                work.await;
                Ok(())
            });
        }
        self.controllers.push(controller.clone());
    }

    /// Starts a runnable with `context`; its token is cancelled when this group stops.
    pub(super) fn run(&mut self, runnable: &AnyRunnable, context: RunContext) {
        let context = RunContext {
            stop: self.stop.clone(),
            ..context
        };
        let task = self.tasks.spawn(runnable.start(context));
        self.names.insert(task.id(), runnable.name.clone());
    }

    /// Same as [`run`](Self::run), but runs the runnable only while this replica of a sharded
    /// operator serves the first slot.
    pub(super) fn run_in_first_slot(
        &mut self,
        runnable: &AnyRunnable,
        context: RunContext,
        slots: &Arc<Slots>,
    ) {
        let context = RunContext {
            stop: self.stop.clone(),
            ..context
        };
        let run = first_slot::run(runnable.clone(), context, slots.clone());
        let task = self.tasks.spawn(run);
        self.names.insert(task.id(), runnable.name.clone());
    }

    /// Waits until a task of the group fails. Never returns if no task fails.
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

    /// Aborts all tasks, for example when leadership is lost and no task may write any more. Waits
    /// until the tasks have stopped, including tasks that block their thread.
    pub(super) async fn abandon(&mut self) {
        self.stop.cancel();
        self.tasks.abort_all();
        while let Some(ended) = self.tasks.join_next_with_id().await {
            let _ = self.failure(ended);
        }
    }

    /// Stops all tasks and aborts those that have not stopped by `deadline`. Adds the names of the
    /// aborted tasks to `late`. Does not wait for aborted tasks, because a task may block its
    /// thread.
    pub(super) async fn stop(&mut self, deadline: Deadline, late: &mut Vec<String>) {
        self.stop.cancel();
        let ended = async {
            while let Some(ended) = self.tasks.join_next_with_id().await {
                // The task was being stopped. The error that caused the stop is reported elsewhere.
                if let Some(error) = self.failure(ended) {
                    let error: &dyn std::error::Error = &error;
                    error!(error, "a task failed while it was stopped");
                }
            }
        };
        if deadline.holds(ended).await {
            return;
        }
        late.extend(self.names.values().map(|name| name.to_string()));
        for controller in &self.controllers {
            let name = &controller.identity().name;
            let in_work = controller.in_work().into_iter();
            late.extend(in_work.map(|(request, _)| format!("{name} {request}")));
        }
        self.tasks.abort_all();
        self.tasks.detach_all();
    }
}

/// Cancels the token of the runnables when the manager is dropped, so that tasks that a runnable
/// has spawned stop too.
impl Drop for TaskGroup {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
