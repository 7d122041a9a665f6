//! What is in a queue, for diagnosis.

use std::time::Duration;

/// What is in a queue at one moment; see [`Queue::snapshot`](crate::Queue::snapshot).
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
    /// How many keys can be handed out.
    pub ready: usize,
    /// How many keys become ready later, those in work included.
    pub delayed: usize,
    /// How many keys are in work.
    pub in_work: usize,
    /// Some of them.
    pub keys: Vec<KeyState<K>>,
}

/// One key of a [`Snapshot`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyState<K> {
    /// The key.
    pub key: K,
    /// Where it is.
    pub state: WaitState,
    /// The priority with which it waits; `None` if it is in work and does not.
    pub priority: Option<i32>,
    /// How long it has been in work, or else ready.
    pub age: Duration,
    /// In what time it is ready; `None` if it is in work and does not wait.
    pub due_in: Option<Duration>,
    /// How many failures were counted since it was last forgotten.
    pub attempts: u32,
}

/// Where a key is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum WaitState {
    /// It can be handed out.
    Ready,
    /// It becomes ready later.
    Delayed,
    /// A worker has it.
    InWork,
}
