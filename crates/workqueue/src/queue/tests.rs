//! What the queue adds to the engine: waking, waiting, shutting down.

mod cancelled;
mod contention;

use tokio::task::JoinSet;

use super::*;
use crate::Reasons;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

type Unit = Queue<&'static str, ()>;

/// Starts this many workers that return the key they get, and lets them fall asleep.
async fn workers(queue: &Unit, count: usize) -> JoinSet<Option<&'static str>> {
    let mut workers = JoinSet::new();
    for _ in 0..count {
        let queue = queue.clone();
        workers.spawn(async move { queue.get().await.map(|item| *item.key()) });
    }
    tokio::task::yield_now().await;
    workers
}

async fn next(workers: &mut JoinSet<Option<&'static str>>) -> Option<&'static str> {
    soon(workers.join_next()).await.unwrap().unwrap()
}

/// Fails instead of waiting forever.
async fn soon<T>(future: impl Future<Output = T>) -> T {
    let outcome = tokio::time::timeout(ms(60_000), future).await;
    outcome.expect("no worker was woken")
}

#[tokio::test(start_paused = true)]
async fn waiting_workers_are_woken_by_adds() {
    let queue = Unit::default();
    let workers = workers(&queue, 3).await;
    for key in ["a", "b", "c"] {
        queue.add(key, ());
    }
    let mut keys = soon(workers.join_all()).await;
    keys.sort_unstable();
    assert_eq!(keys, [Some("a"), Some("b"), Some("c")]);
}

#[tokio::test(start_paused = true)]
async fn keys_that_become_ready_together_wake_as_many_workers() {
    let queue = Unit::default();
    let workers = workers(&queue, 3).await;
    for key in ["a", "b", "c"] {
        queue.add_after(key, (), ms(50));
    }
    let start = Instant::now();
    assert_eq!(soon(workers.join_all()).await.len(), 3);
    assert_eq!(start.elapsed().as_millis() / 10, 5);
}

#[tokio::test(start_paused = true)]
async fn a_delayed_key_is_handed_out_at_its_time() {
    let queue = Unit::default();
    let start = Instant::now();
    queue.add_after("later", (), ms(70));
    queue.add_after("sooner", (), ms(30));
    assert_eq!(*queue.get().await.unwrap().key(), "sooner");
    assert_eq!(start.elapsed().as_millis() / 10, 3);
    assert_eq!(*queue.get().await.unwrap().key(), "later");
    assert_eq!(start.elapsed().as_millis() / 10, 7);
}

#[tokio::test(start_paused = true)]
async fn a_shorter_delay_wakes_a_worker_that_waits_for_a_longer_one() {
    let queue = Unit::default();
    queue.add_after("slow", (), ms(1000));
    let mut workers = workers(&queue, 1).await;
    let start = Instant::now();
    queue.add_after("fast", (), ms(5));
    assert_eq!(next(&mut workers).await, Some("fast"));
    assert!(start.elapsed() < ms(10));
}

#[tokio::test(start_paused = true)]
async fn a_delayed_key_that_is_added_at_once_does_not_wait() {
    let queue = Unit::default();
    queue.add_after("a", (), ms(10_000));
    let mut workers = workers(&queue, 1).await;
    let start = Instant::now();
    queue.add("a", ());
    assert_eq!(next(&mut workers).await, Some("a"));
    assert_eq!(start.elapsed(), Duration::ZERO);
    assert!(tokio::time::timeout(ms(20_000), queue.get()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn another_worker_keeps_the_time_while_the_timekeeper_works() {
    let queue = Unit::default();
    let (started, mut log) = tokio::sync::mpsc::channel(2);
    let mut workers = JoinSet::new();
    for _ in 0..2 {
        let (queue, started) = (queue.clone(), started.clone());
        workers.spawn(async move {
            let item = queue.get().await.unwrap();
            started.send(*item.key()).await.unwrap();
            std::future::pending::<()>().await;
        });
    }
    tokio::task::yield_now().await;
    queue.add_after("delayed", (), ms(100));
    tokio::task::yield_now().await;
    // Both sleep, and the worker that is woken for this key becomes the timekeeper.
    let start = Instant::now();
    queue.add("now", ());
    assert_eq!(soon(log.recv()).await, Some("now"));
    assert_eq!(soon(log.recv()).await, Some("delayed"));
    assert!(start.elapsed() <= ms(101));
}

#[tokio::test(start_paused = true)]
async fn another_worker_keeps_the_time_when_the_timekeeper_is_dropped() {
    let queue = Unit::default();
    queue.add_after("delayed", (), ms(100));
    let mut keeper = workers(&queue, 1).await;
    let mut others = workers(&queue, 2).await;
    keeper.abort_all();
    assert!(keeper.join_next().await.unwrap().is_err());
    let start = Instant::now();
    assert_eq!(next(&mut others).await, Some("delayed"));
    assert!(start.elapsed() <= ms(101));
}

#[tokio::test(start_paused = true)]
async fn a_wake_up_of_a_dropped_worker_goes_to_another() {
    let queue = Unit::default();
    let mut first = workers(&queue, 1).await;
    let mut second = workers(&queue, 1).await;
    queue.add("a", ());
    // The worker that fell asleep last was woken; it is dropped before it runs.
    second.abort_all();
    assert!(second.join_next().await.unwrap().is_err());
    assert_eq!(next(&mut first).await, Some("a"));
}

#[tokio::test(start_paused = true)]
async fn a_key_is_never_held_by_two_workers() {
    let queue = Unit::default();
    queue.add("a", ());
    let held = queue.get().await.unwrap();
    queue.add("a", ());
    let mut workers = workers(&queue, 1).await;
    assert!(
        tokio::time::timeout(ms(100), workers.join_next())
            .await
            .is_err()
    );
    drop(held);
    assert_eq!(next(&mut workers).await, Some("a"));
}

#[tokio::test(start_paused = true)]
async fn an_item_has_its_priority_wait_and_reasons() {
    let queue = Queue::<&str, Reasons<&str>>::default();
    let options = AddOptions {
        priority: Some(-100),
        after: ms(10),
        rate_limited: false,
    };
    assert_eq!(
        queue.add_with("a", Reasons::from("listed"), options),
        ms(10)
    );
    tokio::time::advance(ms(15)).await;
    let item = queue.get().await.unwrap();
    assert_eq!((item.priority(), item.waited()), (-100, ms(5)));
    item.requeue_unworked();
    let item = queue.get().await.unwrap();
    assert_eq!((item.priority(), item.waited()), (-100, ms(5)));
    assert_eq!(item.payload().iter().collect::<Vec<_>>(), [&"listed"]);
}

#[tokio::test(start_paused = true)]
async fn shutting_down_does_not_wait_for_work() {
    let queue = Unit::default();
    queue.add("a", ());
    queue.add("b", ());
    let held = queue.get().await.unwrap();
    queue.add_after("never", (), ms(1));
    queue.shut_down();
    queue.add("c", ());
    queue.add_after("c", (), ms(1));
    assert!(queue.is_shutting_down());
    assert_eq!(*queue.get().await.unwrap().key(), "b");
    assert!(queue.get().await.is_none());
    assert!(queue.get().await.is_none());
    drop(held);
    assert!(queue.get().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn shutting_down_ends_waiting_workers() {
    for delay in [None, Some(ms(1000))] {
        let queue = Unit::default();
        if let Some(delay) = delay {
            queue.add_after("later", (), delay);
        }
        let workers = workers(&queue, 3).await;
        queue.shut_down();
        assert_eq!(soon(workers.join_all()).await, [None, None, None]);
    }
}

#[tokio::test(start_paused = true)]
async fn draining_waits_for_all_that_was_handed_out() {
    let queue = Unit::default();
    queue.add("a", ());
    queue.add("b", ());
    let (a, b) = (queue.get().await.unwrap(), queue.get().await.unwrap());
    let mut workers = workers(&queue, 1).await;
    let mut drain = pin!(queue.shut_down_with_drain());
    assert!(tokio::time::timeout(ms(10), &mut drain).await.is_err());
    drop(a);
    assert!(tokio::time::timeout(ms(10), &mut drain).await.is_err());
    drop(b);
    soon(drain).await;
    assert_eq!(next(&mut workers).await, None);
    // There is nothing to wait for any more.
    queue.shut_down_with_drain().await;
}

#[tokio::test(start_paused = true)]
async fn draining_hands_out_keys_added_meanwhile() {
    let queue = Unit::default();
    queue.add("a", ());
    let held = queue.get().await.unwrap();
    queue.add("a", ());
    let mut drain = pin!(queue.shut_down_with_drain());
    assert!(tokio::time::timeout(ms(10), &mut drain).await.is_err());
    drop(held);
    assert!(tokio::time::timeout(ms(10), &mut drain).await.is_err());
    let again = queue.get().await.unwrap();
    assert_eq!(*again.key(), "a");
    assert!(tokio::time::timeout(ms(10), &mut drain).await.is_err());
    drop(again);
    soon(drain).await;
}

#[tokio::test(start_paused = true)]
async fn shutting_down_ends_a_drain() {
    let queue = Unit::default();
    queue.add("a", ());
    let _held = queue.get().await.unwrap();
    let mut drain = pin!(queue.shut_down_with_drain());
    assert!(tokio::time::timeout(ms(10), &mut drain).await.is_err());
    let mut workers = workers(&queue, 1).await;
    queue.shut_down();
    soon(drain).await;
    assert_eq!(next(&mut workers).await, None);
}

#[tokio::test(start_paused = true)]
async fn a_panicking_worker_gives_its_key_back() {
    let queue = Unit::default();
    queue.add("a", ());
    let worker = queue.clone();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let _item = worker.get().await;
        panic!("worker");
    });
    assert!(tasks.join_next().await.unwrap().is_err());
    queue.add("a", ());
    assert_eq!(*queue.get().await.unwrap().key(), "a");
}

#[tokio::test(start_paused = true)]
async fn the_longest_delay_is_waited_for() {
    let queue = Unit::default();
    queue.add_after("never", (), Duration::MAX);
    let got = tokio::time::timeout(ms(1000), queue.get()).await;
    assert!(got.is_err());
    assert_eq!(queue.snapshot(1).keys.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn no_worker_is_woken_while_none_sleeps() {
    let queue = Unit::default();
    queue.add("a", ());
    assert_eq!(queue.core.sleepers.load(Ordering::Relaxed), 0);
    drop(queue.get().await);
    // The add left no permit behind, which would wake a worker without a key.
    let mut stale = pin!(queue.core.changed.notified());
    assert!(!stale.as_mut().enable());
}
