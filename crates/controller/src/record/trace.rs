//! The trace of one reconcile: the children that it applied, its reads and its writes.

use std::collections::HashSet;
use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use opkit_client::{Kind, ObjectKey};
use parking_lot::Mutex;

/// Largest number of writes in the record of a reconcile: enough to explain the reconcile, and a
/// bound for the memory.
const MAX_WRITES: usize = 32;

/// Reads, writes and applied children of one reconcile so far. The trace is dropped when the
/// reconcile ends, even if the reconcile is cancelled.
#[derive(Default)]
pub(crate) struct Trace {
    /// Children that the reconcile applied or failed to apply. A failed apply is not a reason to
    /// prune the child.
    applied: Mutex<HashSet<Child>>,
    /// Number of times in a row that the reconcile of the object has failed before this one.
    attempt: u32,
    cache_reads: AtomicU32,
    live_reads: AtomicU32,
    writes: Mutex<Vec<Write>>,
    /// Client that `Context::client` returns. It records its requests in this trace.
    client: OnceLock<kube::Client>,
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trace").finish_non_exhaustive()
    }
}

/// One write request of a reconcile.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Write {
    /// The verb: `create`, `apply`, `patch`, `update`, `delete` or `prune`.
    pub verb: &'static str,
    /// Kind of the object; for a request through `Context::client`, the resource, such as
    /// `deployments`.
    pub kind: String,
    /// Key of the object.
    pub key: ObjectKey,
    /// Name of the subresource, such as `status`; empty for the object itself.
    pub subresource: String,
}

impl fmt::Display for Write {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            verb,
            kind,
            key,
            subresource,
        } = self;
        match subresource.is_empty() {
            true if key.name.is_empty() => write!(f, "{verb} {kind}"),
            true => write!(f, "{verb} {kind} {}", key.name),
            false => write!(f, "{subresource} of {kind} {}", key.name),
        }
    }
}

/// Group, kind and key of a child. The API version and the Rust type of the child do not matter.
type Child = (String, String, ObjectKey);

fn child(kind: &Kind, key: &ObjectKey) -> Child {
    (kind.group.clone(), kind.kind.clone(), key.clone())
}

impl Trace {
    /// Creates the trace of a reconcile of an object that has failed `attempt` times in a row.
    pub(crate) fn of_attempt(attempt: u32) -> Self {
        Self {
            attempt,
            ..Default::default()
        }
    }

    pub(crate) fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Records that the reconcile applied a child, or tried to.
    pub(crate) fn applied(&self, kind: &Kind, key: &ObjectKey) {
        self.applied.lock().insert(child(kind, key));
    }

    /// Reports whether the reconcile applied the child, or tried to.
    pub(crate) fn has_applied(&self, group: &str, kind: &str, key: &ObjectKey) -> bool {
        let child = (group.to_owned(), kind.to_owned(), key.clone());
        self.applied.lock().contains(&child)
    }

    /// Records a read from the cache.
    pub(crate) fn read_cache(&self) {
        self.cache_reads.fetch_add(1, Relaxed);
    }

    /// Records a read from the server.
    pub(crate) fn read_live(&self) {
        self.live_reads.fetch_add(1, Relaxed);
    }

    /// Records a write that succeeded.
    pub(crate) fn wrote(
        &self,
        verb: &'static str,
        kind: &Kind,
        key: &ObjectKey,
        subresource: &str,
    ) {
        let write = Write {
            verb,
            kind: kind.noun().to_owned(),
            key: key.clone(),
            subresource: subresource.to_owned(),
        };
        let mut writes = self.writes.lock();
        if writes.len() < MAX_WRITES && !writes.contains(&write) {
            writes.push(write);
        }
    }

    /// Returns the client of this reconcile. `create` is called only if there is no client yet.
    pub(crate) fn client(&self, create: impl FnOnce() -> kube::Client) -> kube::Client {
        self.client.get_or_init(create).clone()
    }

    /// Returns the number of reads from the cache, the number of reads from the server, and the
    /// writes, which are removed from the trace.
    pub(crate) fn finish(&self) -> (u32, u32, Vec<Write>) {
        let writes = std::mem::take(&mut *self.writes.lock());
        (
            self.cache_reads.load(Relaxed),
            self.live_reads.load(Relaxed),
            writes,
        )
    }
}
