//! Contents of a queue, for diagnosis.

use std::time::Duration;

/// Contents of a queue at one moment; see [`Queue::snapshot`](crate::Queue::snapshot).
///
/// # Examples
/// ```
/// use std::time::Duration;
/// let mut queue = opkit_workqueue::Engine::<&str, ()>::default();
/// queue.add(Duration::ZERO, "robot-one", ());
/// let snapshot = queue.snapshot(Duration::from_secs(3), 10);
/// assert_eq!(snapshot.ready, 1);
/// assert_eq!(snapshot.keys[0].age, Duration::from_secs(3));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Snapshot<K> {
    /// Number of keys that can be handed out.
    pub ready: usize,
    /// Number of keys that become ready later, including keys that are also in work.
    pub delayed: usize,
    /// Number of keys in work.
    pub in_work: usize,
    /// Keys of the queue, up to the requested limit: the keys in work, then the ready keys, then
    /// the delayed keys.
    pub keys: Vec<KeyState<K>>,
}

/// One key of a [`Snapshot`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyState<K> {
    /// Key.
    pub key: K,
    /// State of the key.
    pub state: WaitState,
    /// Priority with which the key waits; `None` if the key is in work and does not also wait.
    pub priority: Option<i32>,
    /// Time for which the key has been in work or, if it is not in work, ready.
    pub age: Duration,
    /// Time until the key is ready; `None` if the key is in work and does not also wait.
    pub due_in: Option<Duration>,
    /// Number of failures since the failures of the key were last forgotten.
    pub attempts: u32,
}

/// State of a key in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum WaitState {
    /// The key can be handed out.
    Ready,
    /// The key becomes ready later.
    Delayed,
    /// A worker has the key.
    InWork,
}
