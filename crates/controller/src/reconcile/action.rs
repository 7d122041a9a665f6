//! What a reconcile asks for next.

use std::time::Duration;

/// What to do after a successful reconcile. Same constructors as kube's `Action`.
///
/// # Examples
/// ```
/// # use opkit_controller as opkit;
/// use std::time::Duration;
/// use opkit::Action;
/// assert_eq!(Action::requeue(Duration::from_secs(9)).requeue_after(), Some(Duration::from_secs(9)));
/// assert_eq!(Action::await_change().requeue_after(), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Action {
    requeue_after: Option<Duration>,
    priority: Option<i32>,
}

impl Action {
    /// Nothing until the object, or something it depends on, changes.
    pub fn await_change() -> Self {
        Self {
            requeue_after: None,
            priority: None,
        }
    }

    /// Reconcile again after `duration`, or earlier when something changes.
    ///
    /// Zero, and anything below 1 ms, means soon: the object waits as after an error, longer each
    /// time in a row, so that a computed `deadline - now` neither loses the reconcile nor spins.
    /// (In controller-runtime zero means never.)
    pub fn requeue(duration: Duration) -> Self {
        Self {
            requeue_after: Some(duration),
            priority: None,
        }
    }

    /// This action, to be queued again with a priority of its own instead of that of this
    /// reconcile. Live changes have 0, the first list -100; higher comes first.
    pub fn with_priority(mut self, priority: i32) -> Self {
        self.priority = Some(priority);
        self
    }

    pub(crate) fn priority(&self) -> Option<i32> {
        self.priority
    }

    /// The delay asked for, if any.
    pub fn requeue_after(&self) -> Option<Duration> {
        self.requeue_after
    }
}

/// What a finalizer's function achieved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cleanup {
    /// Everything is cleaned up: the finalizer is removed and the object goes away.
    Done,
    /// It takes longer: the finalizer stays, and the function is called again after the delay; zero
    /// means soon, as for [`Action::requeue`].
    Pending(Duration),
    /// It takes longer, and ends with a change of the object or of something that it depends on,
    /// such as a Job: the finalizer stays, and the function is called again at the next change.
    AwaitChange,
}
