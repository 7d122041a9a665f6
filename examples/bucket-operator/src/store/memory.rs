//! A store in memory, which tests can make fail.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{self, mpsc};

use super::{Deletion, ObjectStore, Put, Settings, StoreError, StoreFuture};

/// Number of web hook calls that may wait. Further calls are lost, as with every web hook: the
/// operator checks each bucket periodically anyway.
const CALLS: usize = 64;

/// Store in memory. A clone is another handle of the same store.
#[derive(Debug, Clone)]
pub struct MemoryStore {
    state: Arc<Mutex<State>>,
    web_hook: mpsc::Sender<String>,
    called: Arc<sync::Mutex<mpsc::Receiver<String>>>,
}

#[derive(Debug, Default)]
struct State {
    buckets: BTreeMap<String, Bucket>,
    failures: VecDeque<StoreError>,
    /// Number of calls so far.
    calls: usize,
}

#[derive(Debug)]
struct Bucket {
    settings: Settings,
    /// Number of objects in the bucket; a deletion takes one call for each.
    objects: usize,
}

impl Default for MemoryStore {
    fn default() -> Self {
        let (web_hook, called) = mpsc::channel(CALLS);
        Self {
            state: Arc::default(),
            web_hook,
            called: Arc::new(sync::Mutex::new(called)),
        }
    }
}

impl MemoryStore {
    /// Makes the next call fail with this error; several errors apply to one call each.
    pub fn fail_next(&self, error: StoreError) {
        self.lock().failures.push_back(error);
    }

    /// Returns the settings of a bucket, if it exists.
    pub fn settings(&self, name: &str) -> Option<Settings> {
        let state = self.lock();
        Some(state.buckets.get(name)?.settings.clone())
    }

    /// Returns the number of calls so far.
    pub fn calls(&self) -> usize {
        self.lock().calls
    }

    /// Changes or creates a bucket without the operator; `notify` calls the web hook.
    pub fn edit(&self, name: &str, settings: Settings, objects: usize, notify: bool) {
        let owner = settings.owner.clone();
        let bucket = Bucket { settings, objects };
        self.lock().buckets.insert(name.to_owned(), bucket);
        if notify {
            // Dropped if too many calls wait: see `CALLS`.
            let _ = self.web_hook.try_send(owner);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put_now(&self, name: &str, settings: Settings) -> Result<Put, StoreError> {
        let mut state = self.lock();
        state.calls += 1;
        if let Some(error) = state.failures.pop_front() {
            return Err(error);
        }
        let is_valid = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if !(3..=63).contains(&name.len()) || !name.chars().all(is_valid) {
            return Err(StoreError::InvalidName(name.to_owned()));
        }
        let Some(bucket) = state.buckets.get_mut(name) else {
            let objects = 0;
            let bucket = Bucket { settings, objects };
            state.buckets.insert(name.to_owned(), bucket);
            return Ok(Put::Created);
        };
        if bucket.settings.owner != settings.owner {
            return Err(StoreError::Taken {
                name: name.to_owned(),
                owner: bucket.settings.owner.clone(),
            });
        }
        if bucket.settings == settings {
            return Ok(Put::Unchanged);
        }
        bucket.settings = settings;
        Ok(Put::Updated)
    }

    fn delete_now(&self, name: &str, owner: &str) -> Result<Deletion, StoreError> {
        let mut state = self.lock();
        state.calls += 1;
        if let Some(error) = state.failures.pop_front() {
            return Err(error);
        }
        match state.buckets.get_mut(name) {
            Some(bucket) if bucket.settings.owner == owner && bucket.objects > 0 => {
                bucket.objects -= 1;
                return Ok(Deletion::Pending);
            }
            Some(bucket) if bucket.settings.owner == owner => state.buckets.remove(name),
            _ => None,
        };
        Ok(Deletion::Done)
    }
}

impl ObjectStore for MemoryStore {
    fn put<'a>(&'a self, name: &'a str, settings: Settings) -> StoreFuture<'a, Put> {
        Box::pin(async move { self.put_now(name, settings) })
    }

    fn delete<'a>(&'a self, name: &'a str, owner: &'a str) -> StoreFuture<'a, Deletion> {
        Box::pin(async move { self.delete_now(name, owner) })
    }

    fn changed(&self) -> StoreFuture<'_, String> {
        Box::pin(async {
            let mut called = self.called.lock().await;
            called.recv().await.ok_or(StoreError::Unavailable)
        })
    }
}
