//! A store in this process, which can be told to fail.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{self, mpsc};

use super::{Answer, Deletion, ObjectStore, Put, Settings, StoreError};

/// How many calls of the web hook may wait. More are lost, as with every web hook: the operator
/// looks at each bucket now and then anyway.
const CALLS: usize = 64;

/// A store in memory. Cloning gives another handle on the same one.
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
    /// How many calls there were.
    calls: usize,
}

#[derive(Debug)]
struct Bucket {
    settings: Settings,
    /// What is in it: a deletion takes one call for each.
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
    /// The next call fails like this; of several, one call each.
    pub fn fail_next(&self, error: StoreError) {
        self.lock().failures.push_back(error);
    }

    /// How a bucket is, if there is one.
    pub fn settings(&self, name: &str) -> Option<Settings> {
        let state = self.lock();
        Some(state.buckets.get(name)?.settings.clone())
    }

    /// How many calls there were.
    pub fn calls(&self) -> usize {
        self.lock().calls
    }

    /// Changes a bucket, or makes it, behind the operator's back; `tell` calls the web hook.
    pub fn edit(&self, name: &str, settings: Settings, objects: usize, tell: bool) {
        let owner = settings.owner.clone();
        let bucket = Bucket { settings, objects };
        self.lock().buckets.insert(name.to_owned(), bucket);
        if tell {
            // Too many wait: see above.
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
    fn put<'a>(&'a self, name: &'a str, settings: Settings) -> Answer<'a, Put> {
        Box::pin(async move { self.put_now(name, settings) })
    }

    fn delete<'a>(&'a self, name: &'a str, owner: &'a str) -> Answer<'a, Deletion> {
        Box::pin(async move { self.delete_now(name, owner) })
    }

    fn changed(&self) -> Answer<'_, String> {
        Box::pin(async {
            let mut called = self.called.lock().await;
            called.recv().await.ok_or(StoreError::Unavailable)
        })
    }
}
