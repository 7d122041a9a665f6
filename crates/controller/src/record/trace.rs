//! What one run of a reconciler has done so far.

use std::collections::HashSet;
use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use opkit_client::{Kind, ObjectKey};
use parking_lot::Mutex;
use serde::Serialize;

/// How many writes are kept.
const WRITES: usize = 32;

/// The memory of one run. It ends with the run, so a run that ends early leaves nothing behind.
#[derive(Default)]
pub(crate) struct Run {
    /// Children that were applied, or should have been: an application that failed is no reason to
    /// delete the child.
    applied: Mutex<HashSet<Child>>,
    cache_reads: AtomicU32,
    live_reads: AtomicU32,
    writes: Mutex<Vec<Write>>,
    /// The client that `Context::client` gives out, which notes what it is used for.
    client: OnceLock<kube::Client>,
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run").finish_non_exhaustive()
    }
}

/// Something that a reconcile wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Write {
    /// `create`, `apply`, `patch`, `update`, `delete`, `prune`.
    pub verb: &'static str,
    /// The kind; of requests of one's own, the resource.
    pub kind: String,
    /// The object.
    #[serde(flatten)]
    pub key: ObjectKey,
    /// `status` and the like; empty for the object itself.
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

/// Group, kind and key of a child. Its version and the Rust type it was applied as do not matter.
type Child = (String, String, ObjectKey);

fn child(kind: &Kind, key: &ObjectKey) -> Child {
    (kind.group.clone(), kind.kind.clone(), key.clone())
}

impl Run {
    /// Notes that the run applies a child.
    pub(crate) fn applied(&self, kind: &Kind, key: &ObjectKey) {
        self.applied.lock().insert(child(kind, key));
    }

    /// Whether the run applied the child.
    pub(crate) fn has_applied(&self, group: &str, kind: &str, key: &ObjectKey) -> bool {
        let child = (group.to_owned(), kind.to_owned(), key.clone());
        self.applied.lock().contains(&child)
    }

    /// Notes a read that the cache answers.
    pub(crate) fn read_cache(&self) {
        self.cache_reads.fetch_add(1, Relaxed);
    }

    /// Notes a read that asks the server.
    pub(crate) fn read_live(&self) {
        self.live_reads.fetch_add(1, Relaxed);
    }

    /// Notes a write that succeeded.
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
        if writes.len() < WRITES && !writes.contains(&write) {
            writes.push(write);
        }
    }

    /// The client of this run, made of `client` when it is asked for first.
    pub(crate) fn client(&self, make: impl FnOnce() -> kube::Client) -> kube::Client {
        self.client.get_or_init(make).clone()
    }

    /// Reads from the cache, from the server, and writes.
    pub(crate) fn trace(&self) -> (u32, u32, Vec<Write>) {
        let writes = std::mem::take(&mut *self.writes.lock());
        (
            self.cache_reads.load(Relaxed),
            self.live_reads.load(Relaxed),
            writes,
        )
    }
}
