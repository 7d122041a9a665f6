//! What was reconciled, why, what it read and wrote, how long it took and how it ended: the last
//! ones, kept in memory.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use foldhash::fast::RandomState;
use jiff::Timestamp;
use opkit_cache::ShownValues;
use opkit_client::ObjectKey;
use opkit_workqueue::Reasons;
use parking_lot::Mutex;
use serde::{Serialize, Serializer};
use tokio::time::Instant;

use super::hot_loop::{ContestedField, Pace, Tracker};
use super::outcome::seconds;
use super::{Cause, HotLoop, Outcome};
use crate::object::Request;
use crate::record::trace::Write;

/// How many reconciles are kept, oldest dropped first.
const KEPT: usize = 4096;
/// How many of them of one object.
const KEPT_OF_ONE: usize = 8;
/// For how many objects the last reconcile is kept; further ones are only among all.
const OBJECTS: usize = 10_000;

/// One reconcile.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ReconcileRecord {
    /// The name of the controller.
    pub controller: Arc<str>,
    /// The kind of the object.
    pub kind: Arc<str>,
    /// The object.
    #[serde(flatten, serialize_with = "request_fields")]
    pub request: Request,
    /// The how many-th reconcile of the object by this process it is.
    pub number: u64,
    /// All causes, such as `Deployment robot-one changed: .status.readyReplicas 1 -> 2`.
    #[serde(serialize_with = "causes")]
    pub causes: Reasons<Cause>,
    /// How many reads the cache answered.
    pub cache_reads: u32,
    /// How many reads asked the server.
    pub live_reads: u32,
    /// What was written.
    pub writes: Vec<Write>,
    /// When it began.
    pub started: Timestamp,
    /// How long it took.
    #[serde(rename = "durationSeconds", serialize_with = "seconds")]
    pub duration: Duration,
    /// How it ended.
    pub result: Outcome,
    /// The loop that it is part of, if it is part of one.
    pub hot_loop: Option<HotLoop>,
}

impl ReconcileRecord {
    /// The causes, one sentence each.
    pub fn causes(&self) -> Vec<String> {
        let mut causes: Vec<_> = self.causes.iter().map(ToString::to_string).collect();
        if self.causes.more() > 0 {
            causes.push(format!("{} more", self.causes.more()));
        }
        causes
    }
}

impl fmt::Display for ReconcileRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let causes = self.causes().join(", ");
        write!(
            f,
            "{}: {} {} because {causes}",
            self.controller, self.kind, self.request
        )?;
        for (n, write) in self.writes.iter().enumerate() {
            write!(f, "{} {write}", if n == 0 { "; wrote" } else { "," })?;
        }
        write!(f, ": {} ({:?})", self.result, self.duration)
    }
}

/// The last reconciles; cloning gives another handle on the same log.
///
/// Full means that the oldest record goes.
///
/// # Examples
/// ```
/// # mod opkit { pub use opkit_controller as controller; }
/// let log = opkit::controller::ReconcileLog::default();
/// for record in log.records() {
///     println!("{record}");
/// }
/// assert_eq!(log.total(), 0);
/// ```
#[derive(Debug, Clone)]
pub struct ReconcileLog {
    shared: Arc<Mutex<Log>>,
    /// How many objects are looked at for loops: until something is written, none.
    trackers: Arc<AtomicUsize>,
    /// Whether values of changed fields are kept.
    values: Arc<AtomicBool>,
    origin: Instant,
}

impl Default for ReconcileLog {
    fn default() -> Self {
        Self {
            shared: Arc::default(),
            trackers: Arc::default(),
            values: Arc::default(),
            origin: Instant::now(),
        }
    }
}

#[derive(Debug, Default)]
struct Log {
    all: VecDeque<Arc<ReconcileRecord>>,
    /// By controller, so that finding one needs no key of both.
    objects: HashMap<Arc<str>, HashMap<Request, Reconciled, RandomState>, RandomState>,
    /// How many these are.
    known: usize,
    total: u64,
}

/// One object, as one controller has reconciled it.
#[derive(Debug, Default)]
struct Reconciled {
    records: VecDeque<Arc<ReconcileRecord>>,
    count: u64,
    pace: Pace,
    /// Made when something is written for the first time.
    tracker: Option<Box<Tracker>>,
}

impl ReconcileLog {
    /// Keeps the values of changed fields from now on, or no longer. By default the path of a field
    /// is kept alone, and below `.status` numbers and booleans with their values: records are shown
    /// by the debug endpoint, `opkit explain` and failed tests. Values of Secrets are never kept,
    /// nor is kubectl's copy of what was applied.
    pub fn record_values(&self, all: bool) {
        self.values.store(all, Ordering::Relaxed);
    }

    /// Which values of changed fields are kept.
    pub(crate) fn values(&self) -> ShownValues {
        match self.values.load(Ordering::Relaxed) {
            true => ShownValues::All,
            false => ShownValues::Status,
        }
    }

    /// The kept reconciles, oldest first.
    pub fn records(&self) -> Vec<Arc<ReconcileRecord>> {
        self.shared.lock().all.iter().cloned().collect()
    }

    /// The last reconciles of an object by a controller, oldest first.
    pub fn of(&self, controller: &str, request: &Request) -> Vec<Arc<ReconcileRecord>> {
        let log = self.shared.lock();
        let known = log.known(controller, request);
        known.map_or_else(Vec::new, |known| known.records.iter().cloned().collect())
    }

    /// The last reconcile of an object by a controller.
    pub fn last(&self, controller: &str, key: &ObjectKey) -> Option<Arc<ReconcileRecord>> {
        let request = Request::from(key.clone());
        self.of(controller, &request).pop()
    }

    /// The last reconcile of each object that still exists, in no particular order.
    pub fn last_of_each(&self) -> Vec<Arc<ReconcileRecord>> {
        let log = self.shared.lock();
        let objects = log.objects.values();
        objects
            .flat_map(HashMap::values)
            .filter_map(|known| known.records.back().cloned())
            .collect()
    }

    /// How many reconciles there were, kept or not.
    pub fn total(&self) -> u64 {
        self.shared.lock().total
    }

    /// Keeps a reconcile of `field_manager`'s; answers the loop that it is part of, if there is
    /// one.
    pub(crate) fn push(&self, mut record: ReconcileRecord, field_manager: &str) -> Option<HotLoop> {
        let mut log = self.shared.lock();
        log.total = log.total.saturating_add(1);
        let Log { objects, known, .. } = &mut *log;
        let is_room = *known < OBJECTS;
        if is_room && !objects.contains_key(&record.controller) {
            objects.insert(record.controller.clone(), HashMap::default());
        }
        let objects = objects.get_mut(&record.controller);
        let object = objects.and_then(|objects| match is_room {
            true => {
                let object = objects.entry(record.request.clone()).or_default();
                *known += usize::from(object.count == 0);
                Some(object)
            }
            false => objects.get_mut(&record.request),
        });
        let Some(object) = object else {
            let passed = log.keep(Arc::new(record));
            drop(log);
            // Records are freed without the lock.
            drop(passed);
            return None;
        };
        object.count = object.count.saturating_add(1);
        record.number = object.count;
        let now = || self.origin.elapsed();
        let without_pause = object.pace.observe(now, &record, object.records.iter());
        if object.tracker.is_some() || !record.writes.is_empty() {
            let tracker = object.tracker.get_or_insert_with(|| {
                self.trackers.fetch_add(1, Ordering::Relaxed);
                Box::default()
            });
            record.hot_loop = tracker.observe(now(), &record, field_manager);
        }
        record.hot_loop = record.hot_loop.or(without_pause);
        let found = record.hot_loop.clone();
        let record = Arc::new(record);
        object.records.push_back(record.clone());
        let oldest = match object.records.len() > KEPT_OF_ONE {
            true => object.records.pop_front(),
            false => None,
        };
        let passed = log.keep(record);
        drop(log);
        drop((oldest, passed));
        found
    }

    /// Returns the field that another client seems to change back each time the object is
    /// reconciled, unless the manager of that field is known already.
    pub(crate) fn contested(
        &self,
        controller: &Arc<str>,
        request: &Request,
    ) -> Option<ContestedField> {
        if self.trackers.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let log = self.shared.lock();
        log.known(controller, request)?
            .tracker
            .as_ref()?
            .contested()
    }

    /// Sets the other manager of the contested field.
    pub(crate) fn set_other_manager(
        &self,
        controller: &Arc<str>,
        request: &Request,
        manager: String,
    ) {
        let mut log = self.shared.lock();
        let known = log.known_mut(controller, request);
        if let Some(tracker) = known.and_then(|known| known.tracker.as_mut()) {
            tracker.other_manager = Some(manager);
        }
    }

    pub(crate) fn forget(&self, controller: &Arc<str>, request: &Request) {
        let mut log = self.shared.lock();
        let objects = log.objects.get_mut(controller);
        let Some(gone) = objects.and_then(|objects| objects.remove(request)) else {
            return;
        };
        log.known = log.known.saturating_sub(1);
        drop(log);
        if gone.tracker.is_some() {
            self.trackers.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Log {
    fn known(&self, controller: &str, request: &Request) -> Option<&Reconciled> {
        self.objects.get(controller)?.get(request)
    }

    fn known_mut(&mut self, controller: &str, request: &Request) -> Option<&mut Reconciled> {
        self.objects.get_mut(controller)?.get_mut(request)
    }

    /// Keeps a record among all; answers what goes for it.
    fn keep(&mut self, record: Arc<ReconcileRecord>) -> Option<[Option<Arc<ReconcileRecord>>; 2]> {
        self.all.push_back(record);
        if self.all.len() <= KEPT {
            return None;
        }
        let oldest = self.all.pop_front()?;
        let mut last = None;
        // Of its object the last one stays, however old it is.
        if Arc::strong_count(&oldest) > 1
            && let Some(known) = self.known_mut(&oldest.controller, &oldest.request)
            && known.records.len() > 1
            && let Some(first) = known.records.front()
            && Arc::ptr_eq(first, &oldest)
        {
            last = known.records.pop_front();
        }
        Some([Some(oldest), last])
    }
}

/// As three fields: the cluster where there are several, the namespace and the name.
fn request_fields<S: Serializer>(request: &Request, serializer: S) -> Result<S::Ok, S::Error> {
    use serde::ser::SerializeMap;
    let mut map = serializer.serialize_map(None)?;
    if let Some(cluster) = request.cluster() {
        map.serialize_entry("cluster", cluster)?;
    }
    map.serialize_entry("namespace", &request.namespace)?;
    map.serialize_entry("name", &request.name)?;
    map.end()
}

fn causes<S: Serializer>(reasons: &Reasons<Cause>, serializer: S) -> Result<S::Ok, S::Error> {
    let more = (reasons.more() > 0).then(|| format!("{} more", reasons.more()));
    serializer.collect_seq(reasons.iter().map(ToString::to_string).chain(more))
}

#[cfg(test)]
mod tests;
