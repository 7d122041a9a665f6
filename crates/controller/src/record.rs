//! What was reconciled, why, how long it took and how it ended: the last ones, kept in memory.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use opkit_client::ObjectKey;
use parking_lot::Mutex;
use serde::{Serialize, Serializer};

/// How many reconciles are kept, oldest dropped first.
const KEPT: usize = 256;
/// For how many objects the last reconcile is kept; further ones are only in the ring.
const OBJECTS: usize = 10_000;

/// One thing that made an object need a reconcile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cause {
    InitialList,
    /// The kind is none for the object itself.
    Changed {
        kind: Option<Arc<str>>,
        name: String,
    },
    Deleted {
        kind: Option<Arc<str>>,
        name: String,
    },
    Retry(u32),
    Requeued,
    /// The periodic look at everything.
    Resync,
    /// The process has become the leader again.
    Elected,
    /// Something outside the cluster.
    Triggered {
        by: Arc<str>,
    },
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let object = |f: &mut fmt::Formatter<'_>, kind: &Option<Arc<str>>, name, what| match kind {
            Some(kind) => write!(f, "{kind} {name} {what}"),
            None => write!(f, "{name} {what}"),
        };
        match self {
            Cause::InitialList => f.write_str("initial list"),
            Cause::Changed { kind, name } => object(f, kind, name, "changed"),
            Cause::Deleted { kind, name } => object(f, kind, name, "deleted"),
            Cause::Retry(n) => write!(f, "retry {n} after error"),
            Cause::Requeued => f.write_str("requeued"),
            Cause::Resync => f.write_str("resync"),
            Cause::Elected => f.write_str("elected"),
            Cause::Triggered { by } => f.write_str(by),
        }
    }
}

/// How a reconcile ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", rename_all = "camelCase")]
#[non_exhaustive]
pub enum Outcome {
    /// Nothing to do until something changes.
    Ok,
    /// To be reconciled again.
    Requeue {
        /// After how long.
        #[serde(rename = "afterSeconds", serialize_with = "seconds")]
        after: Duration,
    },
    /// It failed.
    Error {
        /// The error chain in one line.
        message: String,
        /// After how long it is tried again; none for at the next change.
        #[serde(rename = "retrySeconds", serialize_with = "optional_seconds")]
        retry_after: Option<Duration>,
    },
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Ok => f.write_str("ok"),
            Outcome::Requeue { after } => write!(f, "ok, again in {after:?}"),
            Outcome::Error {
                message,
                retry_after: Some(retry),
            } => {
                write!(f, "error, again in {retry:?}: {message}")
            }
            Outcome::Error {
                message,
                retry_after: None,
            } => {
                write!(f, "error, again at the next change: {message}")
            }
        }
    }
}

/// One reconcile.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ReconcileRecord {
    /// The name of the controller.
    pub controller: String,
    /// The kind of the object.
    pub kind: String,
    /// The namespace of the object.
    pub namespace: Option<String>,
    /// The name of the object.
    pub name: String,
    /// Why, such as `Deployment robot-one changed`.
    pub causes: Vec<String>,
    /// When it began.
    pub started: Timestamp,
    /// How long it took.
    #[serde(rename = "durationSeconds", serialize_with = "seconds")]
    pub duration: Duration,
    /// How it ended.
    pub result: Outcome,
}

impl fmt::Display for ReconcileRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = ObjectKey {
            namespace: self.namespace.clone(),
            name: self.name.clone(),
        };
        write!(f, "{} {key} because {}", self.kind, self.causes.join(", "))?;
        write!(f, ": {} ({:?})", self.result, self.duration)
    }
}

/// The last reconciles; cloning gives another handle on the same log.
///
/// Full means that the oldest record goes.
///
/// # Examples
/// ```
/// let log = opkit_controller::ReconcileLog::default();
/// for record in log.records() {
///     println!("{record}");
/// }
/// assert_eq!(log.total(), 0);
/// ```
#[derive(Debug, Clone, Default)]
pub struct ReconcileLog {
    shared: Arc<Mutex<Log>>,
}

#[derive(Debug, Default)]
struct Log {
    ring: VecDeque<Arc<ReconcileRecord>>,
    last: HashMap<(String, ObjectKey), Arc<ReconcileRecord>>,
    total: u64,
}

impl ReconcileLog {
    /// The kept reconciles, oldest first.
    pub fn records(&self) -> Vec<Arc<ReconcileRecord>> {
        self.shared.lock().ring.iter().cloned().collect()
    }

    /// The last reconcile of an object by a controller.
    pub fn last(&self, controller: &str, key: &ObjectKey) -> Option<Arc<ReconcileRecord>> {
        self.shared
            .lock()
            .last
            .get(&(controller.to_owned(), key.clone()))
            .cloned()
    }

    /// The last reconcile of each object that still exists, in no particular order.
    pub fn last_of_each(&self) -> Vec<Arc<ReconcileRecord>> {
        self.shared.lock().last.values().cloned().collect()
    }

    /// How many reconciles there were, kept or not.
    pub fn total(&self) -> u64 {
        self.shared.lock().total
    }

    pub(crate) fn push(&self, record: ReconcileRecord) {
        let key = ObjectKey {
            namespace: record.namespace.clone(),
            name: record.name.clone(),
        };
        let entry = (record.controller.clone(), key);
        let record = Arc::new(record);
        let mut log = self.shared.lock();
        log.total = log.total.saturating_add(1);
        if log.ring.len() >= KEPT {
            log.ring.pop_front();
        }
        log.ring.push_back(record.clone());
        if log.last.len() < OBJECTS || log.last.contains_key(&entry) {
            log.last.insert(entry, record);
        }
    }

    pub(crate) fn forget(&self, controller: &str, key: &ObjectKey) {
        self.shared
            .lock()
            .last
            .remove(&(controller.to_owned(), key.clone()));
    }
}

fn seconds<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(duration.as_secs_f64())
}

fn optional_seconds<S: Serializer>(
    duration: &Option<Duration>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match duration {
        Some(duration) => seconds(duration, serializer),
        None => serializer.serialize_none(),
    }
}

#[cfg(test)]
mod tests;
