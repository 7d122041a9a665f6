//! The pool: Rust objects that were made twice lately, kept so that they are not made again.
//!
//! A clock over the stored objects: whoever was read since the hand passed last stays for another
//! round. It holds about as much as its budget; an object that somebody else holds is found again
//! even when the pool has let it go.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::record::Origin;
use crate::{AnyObject, Stored};

/// How much larger a Rust object is than its tape, about: 30 KB for a Pod of 1 KB.
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

    /// Keeps an object that was just made of `stored`.
    pub(crate) fn keep(&self, stored: &Stored, object: &AnyObject) {
        let mut passed = Vec::new();
        let mut ring = self.ring.lock();
        ring.bytes += cost(stored);
        ring.entries.push_back((stored.clone(), object.clone()));
        // Each entry is passed at most once: then nobody is hot any more.
        let mut hand = ring.entries.len() * 2;
        while ring.bytes > self.budget && hand > 0 {
            hand -= 1;
            let Some((stored, object)) = ring.entries.pop_front() else {
                break;
            };
            if stored.cool() {
                ring.entries.push_back((stored, object));
            } else {
                ring.bytes -= cost(&stored);
                passed.push((stored, object));
            }
        }
        drop(ring);
        // Large objects are freed outside of the lock.
        drop(passed);
    }

    /// Lets go of what is not of the strings of `origin`, all of which it would hold on to.
    pub(crate) fn keep_only(&self, origin: &Arc<Origin>) {
        let mut ring = self.ring.lock();
        let entries = std::mem::take(&mut ring.entries);
        let (kept, passed): (VecDeque<_>, VecDeque<_>) = entries
            .into_iter()
            .partition(|(stored, _)| stored.is_of(origin));
        ring.bytes = kept.iter().map(|(stored, _)| cost(stored)).sum();
        ring.entries = kept;
        drop(ring);
        drop(passed);
    }

    /// How much it holds, about.
    pub(crate) fn bytes(&self) -> usize {
        self.ring.lock().bytes
    }
}

fn cost(stored: &Stored) -> usize {
    stored.bytes() * GROWTH
}
