//! Many producers and workers on several threads: client-go's `TestBasic` and controller-runtime's
//! fuzz test.

use std::collections::HashSet;
use std::sync::atomic::AtomicBool;

use opkit_random::Random;

use super::*;

const KEYS: usize = 32;

/// Keys that were worked on, and keys in work.
#[derive(Default)]
struct Seen {
    working: [AtomicBool; KEYS],
    all: Mutex<HashSet<usize>>,
}

async fn work(queue: Queue<usize, ()>, seen: Arc<Seen>) {
    while let Some(item) = queue.get().await {
        let key = *item.key();
        let twice = seen.working[key].swap(true, Ordering::SeqCst);
        assert!(!twice, "two workers have {key}");
        seen.all.lock().insert(key);
        tokio::task::yield_now().await;
        seen.working[key].store(false, Ordering::SeqCst);
        match key % 7 {
            3 => item.requeue_unworked(),
            _ => drop(item),
        }
    }
}

async fn produce(queue: Queue<usize, ()>, seed: u64) {
    let mut random = Random::new(seed);
    for _ in 0..2000 {
        let options = AddOptions {
            priority: random.percent(50).then(|| random.below(30) as i32 - 15),
            after: match random.percent(20) {
                true => Duration::from_micros(random.below(3000)),
                false => Duration::ZERO,
            },
            rate_limited: false,
        };
        // Keys that are put back by their workers are added only a few times.
        let key = random.below(KEYS as u64) as usize;
        if key % 7 != 3 || random.percent(1) {
            queue.add_with(key, (), options);
        }
        if random.percent(5) {
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_key_is_lost_or_worked_on_twice_at_once() {
    let queue = Queue::<usize, ()>::default();
    let seen = Arc::new(Seen::default());
    let (mut producers, mut workers) = (JoinSet::new(), JoinSet::new());
    for _ in 0..16 {
        workers.spawn(work(queue.clone(), seen.clone()));
    }
    for seed in 0..8 {
        producers.spawn(produce(queue.clone(), seed));
    }
    producers.join_all().await;
    for key in 0..KEYS {
        queue.add(key, ());
    }
    // Keys that are always put back are dropped by the shutdown, so that this ends.
    queue.shut_down_with_drain().await;
    workers.join_all().await;
    assert_eq!(queue.len(), 0);
    assert_eq!(seen.all.lock().len(), KEYS);
}

/// Shutting down while keys are handed out blocks no worker: controller-runtime's issue 3540.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn shutting_down_while_handing_out_does_not_block() {
    for _ in 0..200 {
        let queue = Queue::<usize, ()>::default();
        let mut workers = JoinSet::new();
        for _ in 0..4 {
            let queue = queue.clone();
            workers.spawn(async move { while queue.get().await.is_some() {} });
        }
        for key in 0..KEYS {
            queue.add(key, ());
        }
        queue.shut_down();
        workers.join_all().await;
    }
}
