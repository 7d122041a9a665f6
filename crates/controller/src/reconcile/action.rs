//! Results of successful reconciles and cleanups.

use std::time::Duration;

/// Result of a successful reconcile: when to reconcile the object again. Has the same constructors
/// as kube's `Action`.
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
    /// Returns an action that waits until the object, or an object that it depends on, changes.
    pub fn await_change() -> Self {
        Self {
            requeue_after: None,
            priority: None,
        }
    }

    /// Returns an action that reconciles the object again after `duration`, or earlier if something
    /// changes.
    ///
    /// A duration below 1 ms is replaced by the object's retry backoff, which grows with each such
    /// requeue in a row. So a computed `deadline - now` that is zero neither loses the reconcile
    /// nor causes a tight loop. (In controller-runtime, zero means never.)
    pub fn requeue(duration: Duration) -> Self {
        Self {
            requeue_after: Some(duration),
            priority: None,
        }
    }

    /// Sets the priority of the requeue; the default is the priority of the current reconcile.
    /// Objects with higher priority are reconciled first. A change of an object has priority 0, an
    /// object of the initial list has priority -100.
    pub fn with_priority(mut self, priority: i32) -> Self {
        self.priority = Some(priority);
        self
    }

    pub(crate) fn priority(&self) -> Option<i32> {
        self.priority
    }

    /// Returns the requested delay until the next reconcile, if any.
    pub fn requeue_after(&self) -> Option<Duration> {
        self.requeue_after
    }
}

/// Result of a finalizer's cleanup function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cleanup {
    /// The cleanup is complete: the finalizer is removed, and the server deletes the object.
    Done,
    /// The cleanup is not complete: the finalizer stays, and the function is called again after the
    /// delay. A delay below 1 ms uses the retry backoff, as in [`Action::requeue`].
    Pending(Duration),
    /// The cleanup waits for a change of the object or of an object that it depends on, such as a
    /// Job: the finalizer stays, and the function is called again at the next change.
    AwaitChange,
}
