//! Who works as the leader: the elector waits for all of it to end before it stands again or
//! releases the lease.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

/// Where work that is for the leader alone signs on. Cloning gives another handle.
///
/// # Examples
/// ```
/// use opkit_leaderelection::LeaderWork;
/// let work = LeaderWork::default();
/// // Nobody leads yet, so no work may begin.
/// assert!(work.begin(1).is_none());
/// ```
#[derive(Debug, Clone, Default)]
pub struct LeaderWork {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    idle: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// The term in which work may begin.
    term: Option<u64>,
    guards: usize,
}

impl LeaderWork {
    /// Signs on for work of `term`; none if that term is over. The work has ended when the guard is
    /// dropped, so it is kept until the last task of the work is gone.
    pub fn begin(&self, term: u64) -> Option<WorkGuard> {
        let mut state = self.shared.state.lock();
        if state.term != Some(term) {
            return None;
        }
        state.guards = state.guards.saturating_add(1);
        drop(state);
        let shared = self.shared.clone();
        Some(WorkGuard { shared })
    }

    pub(crate) fn open(&self, term: u64) {
        self.shared.state.lock().term = Some(term);
    }

    /// No work may begin any more.
    pub(crate) fn close(&self) {
        self.shared.state.lock().term = None;
    }

    /// Waits until no guard is left.
    pub(crate) async fn idle(&self) {
        loop {
            let idle = self.shared.idle.notified();
            if self.shared.state.lock().guards == 0 {
                return;
            }
            idle.await;
        }
    }
}

/// Work of the leader that has not ended yet; see [`LeaderWork::begin`].
///
/// # Examples
/// ```
/// use opkit_leaderelection::{LeaderWork, WorkGuard};
/// async fn work(work: &LeaderWork, term: u64) {
///     let guard: Option<WorkGuard> = work.begin(term);
///     if guard.is_some() {
///         // What only the leader does.
///     }
/// }
/// ```
#[derive(Debug)]
pub struct WorkGuard {
    shared: Arc<Shared>,
}

impl Clone for WorkGuard {
    fn clone(&self) -> Self {
        // Work under way may split up, also after its term.
        let mut state = self.shared.state.lock();
        state.guards = state.guards.saturating_add(1);
        drop(state);
        let shared = self.shared.clone();
        Self { shared }
    }
}

impl Drop for WorkGuard {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        state.guards = state.guards.saturating_sub(1);
        if state.guards == 0 {
            self.shared.idle.notify_waiters();
        }
    }
}
