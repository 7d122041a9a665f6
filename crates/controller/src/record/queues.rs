//! The requests that wait in the queues of an operator, for the debug endpoint.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use opkit_workqueue::{Queue, WaitState};
use parking_lot::Mutex;

use super::causes::Causes;
use crate::object::Request;

/// A request in the queue of a controller.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueuedRequest {
    /// Name of the controller.
    pub controller: Arc<str>,
    /// The object to reconcile.
    pub request: Request,
    /// Whether the object is being reconciled.
    pub is_in_work: bool,
    /// Time for which the object has been reconciled or, if it is not being reconciled, ready.
    pub age: Duration,
    /// Time until the request is ready, if it is delayed.
    pub due_in: Option<Duration>,
    /// Number of failures since the last success.
    pub failures: u32,
}

/// The queues of the running controllers. A clone is another handle to the same queues.
#[derive(Clone, Default)]
pub(super) struct Queues(Arc<Mutex<Vec<NamedQueue>>>);

/// A queue, with the name of its controller.
type NamedQueue = (Arc<str>, Queue<Request, Causes>);

impl fmt::Debug for Queues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queues").finish_non_exhaustive()
    }
}

impl Queues {
    pub(super) fn add(&self, controller: Arc<str>, queue: Queue<Request, Causes>) {
        self.0.lock().push((controller, queue));
    }

    /// Returns up to `limit` requests of each queue: those in work, then the ready ones, then the
    /// delayed ones.
    pub(super) fn requests(&self, limit: usize) -> Vec<QueuedRequest> {
        let queues = self.0.lock().clone();
        let requests = queues.into_iter().flat_map(|(controller, queue)| {
            let keys = queue.snapshot(limit).keys.into_iter();
            keys.map(move |key| QueuedRequest {
                controller: controller.clone(),
                request: key.key,
                is_in_work: key.state == WaitState::InWork,
                age: key.age,
                due_in: key.due_in.filter(|due| !due.is_zero()),
                failures: key.attempts,
            })
        });
        requests.collect()
    }
}
