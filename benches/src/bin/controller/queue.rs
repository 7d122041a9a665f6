//! The work queue with all features: priorities with ageing, fairness between namespaces, reasons,
//! metrics, rate limiter.

use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use opkit_workqueue::{Queue, QueueMetrics, QueueOptions, Reasons, group_of};
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Measurement to run.
#[derive(clap::Subcommand)]
pub(crate) enum Task {
    /// Add all keys, then take and finish all, in order
    Distinct { keys: usize },
    /// Add each key often, from several producers, while one worker takes keys
    Producers {
        producers: usize,
        adds: usize,
        keys: usize,
    },
}

/// Key as in controllers: cheap to clone, equal by namespace and name.
#[derive(Clone, PartialEq, Eq)]
struct Key(Arc<Names>);

#[derive(PartialEq, Eq)]
struct Names {
    namespace: Box<str>,
    name: Box<str>,
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.namespace.hash(state);
        self.0.name.hash(state);
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Cause {
    Changed,
}

type Work = Queue<Key, Reasons<Cause>>;

pub(crate) fn run(task: &Task) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let (operations, elapsed, taken) = match *task {
        Task::Distinct { keys } => (keys, runtime.block_on(distinct(keys))?, keys),
        Task::Producers {
            producers,
            adds,
            keys,
        } => {
            let (elapsed, taken) = runtime.block_on(many(producers, adds, keys))?;
            (adds, elapsed, taken)
        }
    };
    let per_second = operations as f64 / elapsed.as_secs_f64();
    println!("{}", json!({"per_second": per_second, "taken": taken}));
    Ok(())
}

fn queue() -> Work {
    Queue::new(QueueOptions {
        fair_by: Some(|key| group_of(&*key.0.namespace)),
        metrics: Some(QueueMetrics::new("bench")),
        ..QueueOptions::default()
    })
}

/// Returns keys with names as long as those of Pods, in 200 namespaces in turn.
fn keys(count: usize) -> Arc<[Key]> {
    let names = |n: usize| Names {
        namespace: format!("team-{:03}-prod", n % 200).into(),
        name: format!("svc-{:04}-api-0123456789-{n:05}", n % 2500).into(),
    };
    (0..count).map(|n| Key(Arc::new(names(n)))).collect()
}

async fn distinct(count: usize) -> Result<Duration> {
    let (keys, queue) = (keys(count), queue());
    let start = Instant::now();
    for key in &*keys {
        queue.add(key.clone(), Reasons::from(Cause::Changed));
    }
    let mut in_order = 0;
    for key in &*keys {
        let item = queue.get().await;
        in_order += usize::from(item.is_some_and(|item| Arc::ptr_eq(&item.key().0, &key.0)));
    }
    let elapsed = start.elapsed();
    ensure!(
        in_order == count,
        "{in_order} of {count} keys were in order"
    );
    Ok(elapsed)
}

async fn many(producers: usize, adds: usize, count: usize) -> Result<(Duration, usize)> {
    let (keys, queue) = (keys(count), queue());
    let (mut producing, mut working) = (JoinSet::new(), JoinSet::new());
    let start = Instant::now();
    for producer in 0..producers {
        let (queue, keys) = (queue.clone(), keys.clone());
        producing.spawn(async move {
            for n in 0..adds / producers {
                let key = &keys[(producer * 7919 + n) % keys.len()];
                queue.add(key.clone(), Reasons::from(Cause::Changed));
                // A real source of events yields now and then, too.
                if n % 256 == 255 {
                    tokio::task::yield_now().await;
                }
            }
        });
    }
    let worker = queue.clone();
    working.spawn(async move {
        let mut taken = 0;
        while let Some(item) = worker.get().await {
            drop(item);
            taken += 1;
            if taken % 256 == 0 {
                tokio::task::yield_now().await;
            }
        }
        taken
    });
    producing.join_all().await;
    queue.shut_down();
    let taken = working.join_all().await.into_iter().sum();
    let elapsed = start.elapsed();
    ensure!(taken >= count, "{taken} of {count} keys were taken");
    Ok((elapsed, taken))
}
