//! Pool of decoded Rust objects: keeps objects that were decoded twice recently, so that they are
//! not decoded again.
//!
//! The pool evicts with the clock algorithm: an object that was read since the last round stays for
//! another round. The size of the pool is approximately its budget. An object that is still in use
//! elsewhere is found even after the pool has dropped it.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::record::Origin;
use crate::{AnyObject, Stored};

/// Approximate ratio of the size of a Rust object to the size of its stored form. For example, a
/// Pod with a stored form of 1 KB decodes to 30 KB.
const GROWTH: usize = 28;

#[derive(Debug)]
pub(crate) struct Pool {
    budget: usize,
    ring: Mutex<Ring>,
}

#[derive(Debug, Default)]
struct Ring {
    entries: VecDeque<(Stored, AnyObject)>,
    bytes: usize,
}

impl Pool {
    pub(crate) fn new(budget: usize) -> Self {
        Self {
            budget,
            ring: Mutex::default(),
        }
    }

    /// Keeps `object`, which was just decoded from `stored`.
    pub(crate) fn keep(&self, stored: &Stored, object: &AnyObject) {
        let mut evicted = Vec::new();
        let mut ring = self.ring.lock();
        ring.bytes += cost(stored);
        ring.entries.push_back((stored.clone(), object.clone()));
        // Each entry is spared at most once, so two rounds find enough to evict.
        let mut hand = ring.entries.len() * 2;
        while ring.bytes > self.budget && hand > 0 {
            hand -= 1;
            let Some((stored, object)) = ring.entries.pop_front() else {
                break;
            };
            if stored.take_hot() {
                ring.entries.push_back((stored, object));
            } else {
                ring.bytes -= cost(&stored);
                evicted.push((stored, object));
            }
        }
        drop(ring);
        // Large objects are freed outside of the lock.
        drop(evicted);
    }

    /// Drops the decoded objects whose stored form uses the shared strings of another `Origin`,
    /// since each of them would keep those strings in memory.
    pub(crate) fn keep_only(&self, origin: &Arc<Origin>) {
        let mut ring = self.ring.lock();
        let entries = std::mem::take(&mut ring.entries);
        let (kept, evicted): (VecDeque<_>, VecDeque<_>) = entries
            .into_iter()
            .partition(|(stored, _)| stored.has_origin(origin));
        ring.bytes = kept.iter().map(|(stored, _)| cost(stored)).sum();
        ring.entries = kept;
        drop(ring);
        drop(evicted);
    }

    /// Returns the approximate size of the pooled objects, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.ring.lock().bytes
    }
}

fn cost(stored: &Stored) -> usize {
    stored.bytes() * GROWTH
}
