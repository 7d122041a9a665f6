//! The memory for encodings that stored objects keep besides their JSON.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Maximum total length in bytes of the kept encodings of one server. Objects beyond the maximum
/// are encoded for each request.
const KEPT_MAX: usize = 64 * 1024 * 1024;

/// The number of bytes that can still be kept.
#[derive(Debug)]
pub(crate) struct Budget {
    left: AtomicUsize,
}

/// Bytes that were taken from a budget, and are returned to it when they are dropped.
#[derive(Debug)]
pub(super) struct Reserved {
    bytes: Box<[u8]>,
    budget: Arc<Budget>,
}

impl Default for Budget {
    fn default() -> Self {
        Self::new(KEPT_MAX)
    }
}

impl Budget {
    pub(super) fn new(bytes: usize) -> Self {
        Self {
            left: AtomicUsize::new(bytes),
        }
    }

    /// Takes the length of `bytes` from the budget. Returns the bytes unchanged if the budget has
    /// no room for them.
    pub(super) fn reserve(self: &Arc<Self>, bytes: Box<[u8]>) -> Result<Reserved, Box<[u8]>> {
        let take = |left: usize| left.checked_sub(bytes.len());
        let taken = self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        match taken {
            Ok(_) => Ok(Reserved {
                bytes,
                budget: self.clone(),
            }),
            Err(_) => Err(bytes),
        }
    }

    #[cfg(test)]
    pub(super) fn left(&self) -> usize {
        self.left.load(Ordering::Relaxed)
    }
}

impl Reserved {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.budget
            .left
            .fetch_add(self.bytes.len(), Ordering::Relaxed);
    }
}
