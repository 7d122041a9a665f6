use tokio::task::JoinSet;

use super::*;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

#[tokio::test(start_paused = true)]
async fn a_waiting_worker_is_woken_by_an_add() {
    let queue = Queue::<u32, ()>::default();
    let mut workers = JoinSet::new();
    for _ in 0..3 {
        let queue = queue.clone();
        workers.spawn(async move { *queue.get().await.unwrap().key() });
    }
    tokio::task::yield_now().await;
    for key in 0..3 {
        queue.add(key, ());
    }
    let mut keys = workers.join_all().await;
    keys.sort_unstable();
    assert_eq!(keys, [0, 1, 2]);
}

#[tokio::test(start_paused = true)]
async fn a_delayed_key_comes_out_at_its_time() {
    let queue = Queue::<&str, ()>::default();
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
    let queue = Queue::<&str, ()>::default();
    queue.add_after("slow", (), ms(1000));
    let waiting = queue.clone();
    let mut workers = JoinSet::new();
    workers.spawn(async move { *waiting.get().await.unwrap().key() });
    tokio::task::yield_now().await;
    queue.add_after("fast", (), ms(5));
    assert_eq!(workers.join_next().await.unwrap().unwrap(), "fast");
}

#[tokio::test(start_paused = true)]
async fn one_key_is_never_in_two_hands() {
    let queue = Queue::<&str, ()>::default();
    queue.add("a", ());
    let held = queue.get().await.unwrap();
    queue.add("a", ());
    let second = tokio::time::timeout(ms(100), queue.get()).await;
    assert!(second.is_err());
    drop(held);
    assert_eq!(*queue.get().await.unwrap().key(), "a");
}

#[tokio::test(start_paused = true)]
async fn drained_returns_when_the_last_item_is_done() {
    let queue = Queue::<&str, ()>::default();
    queue.add("a", ());
    let held = queue.get().await.unwrap();
    queue.shut_down();
    assert!(tokio::time::timeout(ms(10), queue.drained()).await.is_err());
    let waiting = queue.clone();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move { waiting.drained().await });
    let worker = queue.clone();
    tasks.spawn(async move { assert!(worker.get().await.is_none()) });
    tokio::task::yield_now().await;
    drop(held);
    while let Some(result) = tasks.join_next().await {
        result.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_panicking_worker_gives_its_key_back() {
    let queue = Queue::<&str, ()>::default();
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
    let queue = Queue::<&str, ()>::default();
    queue.add_after("never", (), Duration::MAX);
    let got = tokio::time::timeout(ms(1000), queue.get()).await;
    assert!(got.is_err());
}
