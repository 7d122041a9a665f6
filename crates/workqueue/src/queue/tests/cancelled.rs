//! Workers whose future is dropped while they wait, or while they hold a key: no wake-up may be
//! lost with them.

use std::collections::HashSet;

use opkit_random::Random;

use super::*;

const KEYS: u64 = 24;
type Numbered = Queue<u64, ()>;
type Seen = Arc<Mutex<HashSet<u64>>>;

/// Returns the number of seeds to try; more can be set by hand.
fn seeds() -> u64 {
    let asked = std::env::var("OPKIT_SEEDS").ok();
    asked.and_then(|seeds| seeds.parse().ok()).unwrap_or(200)
}

/// Drops its waiting future many times after a short while, and then for good.
async fn cancelling_worker(queue: Numbered, seen: Seen, mut random: Random) {
    for _ in 0..random.below(20) {
        let wait = Duration::from_micros(random.below(3000));
        let item = tokio::select! {
            biased;
            () = tokio::time::sleep(wait), if random.percent(50) => None,
            item = queue.get() => item,
            () = tokio::task::yield_now() => None,
        };
        let Some(item) = item else { continue };
        if random.percent(50) {
            tokio::task::yield_now().await;
        }
        match random.percent(30) {
            true => item.requeue_unworked(),
            false => {
                seen.lock().insert(*item.key());
            }
        }
    }
}

/// Waits as long as it takes.
async fn waiting_worker(queue: Numbered, seen: Seen) {
    while let Some(item) = queue.get().await {
        tokio::task::yield_now().await;
        seen.lock().insert(*item.key());
    }
}

async fn produce(queue: Numbered, keys: std::ops::Range<u64>, mut random: Random) {
    for key in keys {
        let options = AddOptions {
            priority: Some(random.below(3) as i32),
            after: match random.percent(60) {
                true => Duration::from_micros(random.below(5000)),
                false => Duration::ZERO,
            },
            rate_limited: false,
        };
        queue.add_with(key, (), options);
        if random.percent(10) {
            // Reads the length as a scrape of the metrics does.
            let _ = queue.len();
        }
        if random.percent(30) {
            tokio::task::yield_now().await;
        }
        if random.percent(20) {
            tokio::time::sleep(Duration::from_micros(random.below(2000))).await;
        }
    }
}

/// Checks that every added key is handed out soon, whichever workers are dropped meanwhile.
async fn all_keys_are_handed_out(seed: u64) {
    let mut random = Random::new(seed);
    let mut fork = || Random::new(random.below(u64::MAX));
    let (queue, seen) = (Numbered::default(), Seen::default());
    let (mut tasks, mut workers, mut aborted) = (JoinSet::new(), JoinSet::new(), JoinSet::new());
    for _ in 0..1 + fork().below(3) {
        workers.spawn(waiting_worker(queue.clone(), seen.clone()));
    }
    for _ in 0..fork().below(5) {
        tasks.spawn(cancelling_worker(queue.clone(), seen.clone(), fork()));
    }
    // Workers that are aborted while they wait; a key that they hold is put back.
    for _ in 0..fork().below(4) {
        let queue = queue.clone();
        aborted.spawn(async move {
            while let Some(item) = queue.get().await {
                item.requeue_unworked();
                tokio::task::yield_now().await;
            }
        });
    }
    for n in 0..3 {
        let keys = n * KEYS / 3..(n + 1) * KEYS / 3;
        tasks.spawn(produce(queue.clone(), keys, fork()));
    }
    tokio::time::sleep(Duration::from_micros(fork().below(6000))).await;
    aborted.abort_all();
    tasks.join_all().await;
    aborted.shutdown().await;
    let all = async {
        while seen.lock().len() < KEYS as usize {
            tokio::time::sleep(ms(1)).await;
        }
    };
    let out = tokio::time::timeout(ms(20_000), all).await;
    assert!(
        out.is_ok(),
        "seed {seed}: {:?} of {KEYS} came out, {:?}",
        seen.lock().len(),
        queue.snapshot(9)
    );
    let drained = tokio::time::timeout(ms(20_000), queue.shut_down_with_drain()).await;
    assert!(drained.is_ok(), "seed {seed}: not drained");
    let ended = tokio::time::timeout(ms(20_000), workers.join_all()).await;
    assert!(ended.is_ok(), "seed {seed}: a worker sleeps on");
}

#[test]
fn no_wake_up_is_lost_with_a_dropped_worker() {
    for seed in 0..seeds() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(all_keys_are_handed_out(seed));
    }
}

// Real time, because threads race only there.
#[test]
fn no_wake_up_is_lost_with_a_dropped_worker_on_another_thread() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(4)
        .enable_time()
        .build()
        .unwrap();
    for seed in 0..seeds() / 4 {
        let mut on_another = JoinSet::new();
        on_another.spawn_on(all_keys_are_handed_out(seed), runtime.handle());
        runtime.block_on(on_another.join_all());
    }
}
