//! How a queue behaves, and how a key is added.

use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::time::Duration;

use crate::{ItemExponential, QueueMetrics, RateLimiter};

/// How a queue behaves. The default is that of controller-runtime's priority queue with ageing.
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
    /// How long a key that is added rate limited waits. The default is [`ItemExponential`], without
    /// the bucket that client-go shares over the whole queue.
    pub rate_limiter: Box<dyn RateLimiter<K>>,
    /// How long a ready key waits until it counts as one priority higher; `None` for priorities
    /// that are strict, as upstream. The default is one second: a key of priority -100, which is
    /// what the initial list has, goes before a new one of priority 0 after 100 seconds.
    pub ageing: Option<Duration>,
    /// What keys of one group have in common, such as [the hash](group_of) of their namespace. Keys
    /// of one priority then leave in turns between groups, and in order of arrival within a group.
    /// Two groups with the same number share their turns.
    pub fair_by: Option<fn(&K) -> u64>,
    /// The metrics of this queue; without them nothing is measured.
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

/// A number for whatever keys of one group have in common, for
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

/// How a key is added.
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
    /// Higher ones leave first; zero if there is none.
    pub priority: Option<i32>,
    /// How long the key waits before it is ready.
    pub after: Duration,
    /// Whether this counts as a failure of the key, which then waits as its limiter says. If
    /// `after` is set too, the smaller of the two is waited for, as in controller-runtime.
    pub rate_limited: bool,
}
