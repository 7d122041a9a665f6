//! The charges of requests that are not finished.
//!
//! The use of a quota is raised before the object is stored, and both happen under a lock of the
//! namespace. So a recalculation, which takes the same lock, never misses an object that was
//! charged and is about to be stored. If the object is not stored in the end, the quota is
//! recalculated.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{Mutex as AsyncMutex, Notify, OwnedMutexGuard};

use crate::store::Key;

/// Number of locks. Namespaces share them by a hash of their names.
const LOCKS: usize = 16;

/// The locks of namespaces, and the quotas that must be recalculated.
#[derive(Debug, Default)]
pub(crate) struct QuotaState {
    locks: [Arc<AsyncMutex<()>>; LOCKS],
    uncertain: Mutex<BTreeSet<Key>>,
    changed: Notify,
}

impl QuotaState {
    /// Waits until no other task charges or recalculates the quotas of a namespace.
    ///
    /// # Cancel safety
    /// A dropped future has not taken the lock.
    pub(crate) async fn lock(&self, namespace: &str) -> OwnedMutexGuard<()> {
        let mut hasher = DefaultHasher::new();
        namespace.hash(&mut hasher);
        let index = usize::try_from(hasher.finish() % 16).unwrap_or_default();
        let lock = self.locks.get(index).cloned().unwrap_or_default();
        lock.lock_owned().await
    }

    /// Returns the quotas that must be recalculated, and forgets them.
    pub(crate) fn take_uncertain(&self) -> BTreeSet<Key> {
        std::mem::take(&mut *self.uncertain.lock())
    }

    /// Waits until a quota must be recalculated.
    ///
    /// # Cancel safety
    /// A dropped future has changed nothing.
    pub(crate) async fn uncertain(&self) {
        self.changed.notified().await;
    }
}

/// The quotas that were charged for a request, and the lock of their namespace. The quotas are
/// recalculated if the value is dropped before [`Charges::settle`] is called.
#[derive(Debug, Default)]
pub(crate) struct Charges(Mutex<Option<Charge>>);

#[derive(Debug)]
struct Charge {
    state: Arc<QuotaState>,
    quotas: Vec<Key>,
    _lock: OwnedMutexGuard<()>,
}

impl Charges {
    /// Keeps the lock of a namespace until the request is finished.
    pub(super) fn start(&self, state: &Arc<QuotaState>, lock: OwnedMutexGuard<()>) {
        let charge = Charge {
            state: state.clone(),
            quotas: Vec::new(),
            _lock: lock,
        };
        *self.0.lock() = Some(charge);
    }

    /// Records that a quota was charged.
    pub(super) fn add(&self, quota: Key) {
        if let Some(charge) = self.0.lock().as_mut() {
            charge.quotas.push(quota);
        }
    }

    /// Ends the charges because the object is not stored.
    pub(crate) fn release(&self) {
        drop(self.0.lock().take());
    }

    /// Ends the charges because the object is stored.
    pub(crate) fn settle(&self) {
        if let Some(mut charge) = self.0.lock().take() {
            charge.quotas.clear();
        }
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        if !self.quotas.is_empty() {
            self.state.uncertain.lock().extend(self.quotas.drain(..));
            self.state.changed.notify_one();
        }
    }
}
