//! The tracker of leader-only work. The elector waits until all work has ended before it releases
//! the Lease or acquires it again.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

/// Tracker of leader-only work. A clone is another handle to the same tracker.
///
/// # Examples
/// ```
/// use opkit_leaderelection::LeaderWork;
/// let work = LeaderWork::default();
/// // This process is not the leader, so no work can start.
/// assert!(work.begin(1).is_none());
/// ```
#[derive(Debug, Clone, Default)]
pub struct LeaderWork {
    tracker: Arc<WorkTracker>,
}

/// State that all handles and guards share.
#[derive(Debug, Default)]
struct WorkTracker {
    state: Mutex<WorkState>,
    /// Notified when the last guard is dropped.
    idle: Notify,
}

/// Term and number of guards.
#[derive(Debug, Default)]
struct WorkState {
    /// Term in which work can start; `None` if no work can start.
    term: Option<u64>,
    /// Number of guards that exist.
    guards: usize,
}

impl LeaderWork {
    /// Registers work of `term`, or returns `None` if `term` is not the current term. Dropping the
    /// guard reports the end of the work, so hold the guard until the last task of the work has
    /// ended.
    pub fn begin(&self, term: u64) -> Option<WorkGuard> {
        let mut state = self.tracker.state.lock();
        if state.term != Some(term) {
            return None;
        }
        state.guards = state.guards.saturating_add(1);
        drop(state);
        let tracker = self.tracker.clone();
        Some(WorkGuard { tracker })
    }

    /// Allows work of `term` to start.
    pub(crate) fn open(&self, term: u64) {
        self.tracker.state.lock().term = Some(term);
    }

    /// Allows no more work to start.
    pub(crate) fn close(&self) {
        self.tracker.state.lock().term = None;
    }

    /// Waits until there is no guard.
    pub(crate) async fn wait_idle(&self) {
        loop {
            let idle = self.tracker.idle.notified();
            if self.tracker.state.lock().guards == 0 {
                return;
            }
            idle.await;
        }
    }
}

/// Guard of leader-only work that has not ended yet; see [`LeaderWork::begin`].
///
/// # Examples
/// ```
/// use opkit_leaderelection::{LeaderWork, WorkGuard};
/// async fn work(work: &LeaderWork, term: u64) {
///     let guard: Option<WorkGuard> = work.begin(term);
///     if guard.is_some() {
///         // Leader-only work.
///     }
/// }
/// ```
#[derive(Debug)]
pub struct WorkGuard {
    tracker: Arc<WorkTracker>,
}

impl Clone for WorkGuard {
    fn clone(&self) -> Self {
        // Running work may start further tasks, also after the end of its term.
        let mut state = self.tracker.state.lock();
        state.guards = state.guards.saturating_add(1);
        drop(state);
        let tracker = self.tracker.clone();
        Self { tracker }
    }
}

impl Drop for WorkGuard {
    fn drop(&mut self) {
        let mut state = self.tracker.state.lock();
        state.guards = state.guards.saturating_sub(1);
        if state.guards == 0 {
            self.tracker.idle.notify_waiters();
        }
    }
}
