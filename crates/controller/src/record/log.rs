//! Log of the last reconciles, in memory: the object, causes, reads and writes, duration and
//! outcome of each reconcile.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use foldhash::fast::RandomState;
use jiff::Timestamp;
use opkit_cache::ShownValues;
use opkit_client::ObjectKey;
use opkit_workqueue::{Queue, Reasons};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::causes::Causes;
use super::hot_loop::{ContestedField, Pace, Tracker};
use super::queues::{QueuedRequest, Queues};
use super::{Cause, HotLoop, Outcome};
use crate::object::Request;
use crate::record::trace::Write;

/// Largest number of records of all objects; the oldest record is dropped first.
const MAX_RECORDS: usize = 4096;
/// Largest number of records of one object.
const MAX_RECORDS_PER_OBJECT: usize = 8;
/// Largest number of objects with records of their own and loop detection. Reconciles of further
/// objects are only in the list of all records.
const MAX_OBJECTS: usize = 10_000;

/// Record of one reconcile.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ReconcileRecord {
    /// Name of the controller.
    pub controller: Arc<str>,
    /// Kind of the object.
    pub kind: Arc<str>,
    /// Key of the object, with its cluster.
    pub request: Request,
    /// Sequence number of this reconcile among the reconciles of the object by this process; the
    /// first is 1.
    pub number: u64,
    /// All causes of the reconcile, such as `Deployment robot-one changed: .status.readyReplicas 1
    /// -> 2`.
    pub causes: Reasons<Cause>,
    /// Number of reads from the cache.
    pub cache_reads: u32,
    /// Number of reads from the server.
    pub live_reads: u32,
    /// Writes that succeeded.
    pub writes: Vec<Write>,
    /// Time at which the reconcile started.
    pub started: Timestamp,
    /// Duration of the reconcile.
    pub duration: Duration,
    /// Outcome of the reconcile.
    pub result: Outcome,
    /// The loop that the reconcile is part of, if any.
    pub hot_loop: Option<HotLoop>,
}

impl ReconcileRecord {
    /// Returns the causes of the reconcile as texts.
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

/// The log of the last reconciles. A clone is another handle to the same log.
///
/// If the log is full, the oldest record is dropped.
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
    /// Number of objects with loop detection, which starts at the first write for an object.
    trackers: Arc<AtomicUsize>,
    /// Whether all values of changed fields are kept.
    values: Arc<AtomicBool>,
    queues: Queues,
    origin: Instant,
}

impl Default for ReconcileLog {
    fn default() -> Self {
        Self {
            shared: Arc::default(),
            trackers: Arc::default(),
            values: Arc::default(),
            queues: Queues::default(),
            origin: Instant::now(),
        }
    }
}

#[derive(Debug, Default)]
struct Log {
    all: VecDeque<Arc<ReconcileRecord>>,
    /// Objects by controller and request. Two maps, so that a lookup need not build a key from the
    /// controller and the request.
    objects: HashMap<Arc<str>, HashMap<Request, Reconciled, RandomState>, RandomState>,
    /// Number of entries in `objects`, for all controllers.
    known: usize,
    total: u64,
}

/// Records of the reconciles of one object by one controller.
#[derive(Debug, Default)]
struct Reconciled {
    records: VecDeque<Arc<ReconcileRecord>>,
    count: u64,
    pace: Pace,
    /// Whether the object may have been deleted since it was last known to exist.
    may_be_gone: bool,
    /// State of the loop detection, created at the first write of a reconcile of the object.
    tracker: Option<Box<Tracker>>,
}

/// Result of adding a record.
#[derive(Debug, Default)]
pub(crate) struct Pushed {
    /// The loop that the reconcile is part of, if any.
    pub(crate) hot_loop: Option<HotLoop>,
    /// Whether the log has an entry for an object that may not exist. The caller then checks
    /// whether the object exists, and if not, calls [`ReconcileLog::forget`].
    pub(crate) may_be_gone: bool,
}

impl ReconcileLog {
    /// Sets whether records contain the values of all changed fields from now on. By default, a
    /// record contains only the path of a changed field, and below `.status` also numbers and
    /// booleans, because records are shown by the debug endpoint, by `opkit explain` and by failed
    /// tests. Values of Secrets and of kubectl's last-applied annotation are never kept.
    pub fn record_values(&self, all: bool) {
        self.values.store(all, Ordering::Relaxed);
    }

    /// Returns which values of changed fields are kept.
    pub(crate) fn values(&self) -> ShownValues {
        match self.values.load(Ordering::Relaxed) {
            true => ShownValues::All,
            false => ShownValues::Status,
        }
    }

    /// Returns all records, oldest first.
    pub fn records(&self) -> Vec<Arc<ReconcileRecord>> {
        self.shared.lock().all.iter().cloned().collect()
    }

    /// Returns the records of the reconciles of an object by a controller, oldest first.
    pub fn of(&self, controller: &str, request: &Request) -> Vec<Arc<ReconcileRecord>> {
        let log = self.shared.lock();
        let known = log.known(controller, request);
        known.map_or_else(Vec::new, |known| known.records.iter().cloned().collect())
    }

    /// Returns the record of the last reconcile of an object by a controller.
    pub fn last(&self, controller: &str, key: &ObjectKey) -> Option<Arc<ReconcileRecord>> {
        let request = Request::from(key.clone());
        self.of(controller, &request).pop()
    }

    /// Returns the last record of each object that still exists, in no particular order.
    pub fn last_of_each(&self) -> Vec<Arc<ReconcileRecord>> {
        let log = self.shared.lock();
        let objects = log.objects.values();
        objects
            .flat_map(HashMap::values)
            .filter_map(|known| known.records.back().cloned())
            .collect()
    }

    /// Returns the number of all reconciles, including those whose records were dropped.
    pub fn total(&self) -> u64 {
        self.shared.lock().total
    }

    /// Returns the requests in the queues of the controllers: up to `limit` of each queue, those in
    /// work first, then the ready ones, then the delayed ones.
    pub fn queued(&self, limit: usize) -> Vec<QueuedRequest> {
        self.queues.requests(limit)
    }

    /// Adds the queue of a controller.
    pub(crate) fn add_queue(&self, controller: Arc<str>, queue: Queue<Request, Causes>) {
        self.queues.add(controller, queue);
    }

    /// Adds the record of a reconcile whose writes had the field manager `field_manager`.
    pub(crate) fn push(&self, mut record: ReconcileRecord, field_manager: &str) -> Pushed {
        let mut log = self.shared.lock();
        log.total = log.total.saturating_add(1);
        let Log { objects, known, .. } = &mut *log;
        let is_room = *known < MAX_OBJECTS;
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
            // Records are freed after the lock is released.
            drop(passed);
            return Pushed::default();
        };
        object.count = object.count.saturating_add(1);
        record.number = object.count;
        match existence(&record.causes) {
            Existence::Known => object.may_be_gone = false,
            Existence::Unchanged => {}
            Existence::Unknown => object.may_be_gone = true,
        }
        // The log may have forgotten the object during its reconcile, because it was deleted.
        let may_be_gone = object.may_be_gone || object.count == 1;
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
        let oldest = match object.records.len() > MAX_RECORDS_PER_OBJECT {
            true => object.records.pop_front(),
            false => None,
        };
        let passed = log.keep(record);
        drop(log);
        drop((oldest, passed));
        Pushed {
            hot_loop: found,
            may_be_gone,
        }
    }

    /// Returns the field that another client seems to change back each time the object is
    /// reconciled. Returns `None` if there is no such field, or the other client's field manager is
    /// known already.
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

    /// Stores the field manager of the other client that changes back a field of the object.
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

/// Knowledge about the existence of an object that follows from the causes of its reconcile.
enum Existence {
    /// The object existed when the reconcile was queued.
    Known,
    /// The causes do not concern the existence of the object.
    Unchanged,
    /// The object may have been deleted.
    Unknown,
}

fn existence(causes: &Reasons<Cause>) -> Existence {
    let mut existence = Existence::Unchanged;
    if causes.more() > 0 {
        return Existence::Unknown;
    }
    for cause in causes.iter() {
        match cause {
            Cause::InitialList | Cause::Elected | Cause::Changed { kind: None, .. } => {
                existence = Existence::Known;
            }
            Cause::Changed { .. } | Cause::Resync | Cause::Triggered { .. } => {}
            Cause::Deleted { .. } | Cause::Retry(_) | Cause::Requeued => {
                return Existence::Unknown;
            }
        }
    }
    existence
}

impl Log {
    fn known(&self, controller: &str, request: &Request) -> Option<&Reconciled> {
        self.objects.get(controller)?.get(request)
    }

    fn known_mut(&mut self, controller: &str, request: &Request) -> Option<&mut Reconciled> {
        self.objects.get_mut(controller)?.get_mut(request)
    }

    /// Adds a record to the list of all records. Returns the records that are dropped because the
    /// list is full, so that the caller can free them without the lock.
    fn keep(&mut self, record: Arc<ReconcileRecord>) -> Option<[Option<Arc<ReconcileRecord>>; 2]> {
        self.all.push_back(record);
        if self.all.len() <= MAX_RECORDS {
            return None;
        }
        let oldest = self.all.pop_front()?;
        let mut last = None;
        // The last record of an object is kept, however old it is.
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

#[cfg(test)]
mod tests;
