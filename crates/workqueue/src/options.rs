//! Options of a queue and of an added key.

use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::time::Duration;

use crate::{ItemExponential, QueueMetrics, RateLimiter};

/// Options of a queue. The default is that of controller-runtime's priority queue, plus ageing:
/// waiting keys gain priority.
///
/// # Examples
/// ```
/// use opkit_workqueue::{Queue, QueueMetrics, QueueOptions, group_of};
/// type Key = (String, String);
/// let options = QueueOptions::<Key> {
///     fair_by: Some(|(namespace, _)| group_of(namespace)),
///     metrics: Some(QueueMetrics::new("robot")),
///     ..QueueOptions::default()
/// };
/// let queue = Queue::<Key, ()>::new(options);
/// # drop(queue);
/// ```
pub struct QueueOptions<K> {
    /// Rate limiter of the keys that are added with `rate_limited`. The default is
    /// [`ItemExponential`], without the token bucket of client-go that all keys of the queue share.
    pub rate_limiter: Box<dyn RateLimiter<K>>,
    /// Time that a ready key waits until the key counts as one priority higher. `None` means strict
    /// priorities, as in controller-runtime. The default is one second. For example, keys of the
    /// initial list have priority -100, so after 100 seconds such a key is handed out before a new
    /// key of priority 0.
    pub ageing: Option<Duration>,
    /// Function that returns the group of a key, for instance [the hash](group_of) of the namespace
    /// of the key. Keys of one priority are then handed out in turns between groups, and in order
    /// of arrival within a group. Groups with the same number count as one group. `None` disables
    /// the turns.
    pub fair_by: Option<fn(&K) -> u64>,
    /// Metrics of this queue; `None` disables them.
    pub metrics: Option<QueueMetrics>,
}

impl<K: Eq + Hash + Clone + Send + 'static> Default for QueueOptions<K> {
    fn default() -> Self {
        Self {
            rate_limiter: Box::new(ItemExponential::default()),
            ageing: Some(Duration::from_secs(1)),
            fair_by: None,
            metrics: None,
        }
    }
}

impl<K> fmt::Debug for QueueOptions<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueueOptions")
            .field("ageing", &self.ageing)
            .field("fair", &self.fair_by.is_some())
            .field("metrics", &self.metrics)
            .finish_non_exhaustive()
    }
}

/// Returns a hash of the property that all keys of a group share, such as the namespace, for use in
/// [`fair_by`](QueueOptions::fair_by).
///
/// # Examples
/// ```
/// use opkit_workqueue::group_of;
/// assert_eq!(group_of("shops"), group_of("shops"));
/// assert_ne!(group_of("shops"), group_of("robots"));
/// ```
pub fn group_of<T: Hash + ?Sized>(common: &T) -> u64 {
    foldhash::fast::FixedState::default().hash_one(common)
}

/// Options with which a key is added.
///
/// # Examples
/// ```
/// use opkit_workqueue::{AddOptions, Engine};
/// use std::time::Duration;
/// let mut queue = Engine::<&str, ()>::default();
/// let low = AddOptions { priority: Some(-100), ..AddOptions::default() };
/// queue.add_with(Duration::ZERO, "initial", (), low);
/// queue.add(Duration::ZERO, "changed", ());
/// assert_eq!(queue.get(Duration::ZERO).unwrap().key, "changed");
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AddOptions {
    /// Priority of the key; keys with a higher priority are handed out first. `None` means 0.
    pub priority: Option<i32>,
    /// Delay before the key is ready.
    pub after: Duration,
    /// Whether this add counts as a failure of the key. The key then waits for the delay of the
    /// rate limiter. If `after` is set too, the shorter of the two delays applies, as in
    /// controller-runtime.
    pub rate_limited: bool,
}
