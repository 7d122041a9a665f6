//! The scheduler, with requests as the controller sends them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use futures::{SinkExt, StreamExt, stream};
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::reflector::ObjectRef;
use kube::runtime::scheduler::{ScheduleRequest, scheduler};
use serde_json::json;

type Key = ObjectRef<Pod>;

/// Size of the buffer between the controller's sources and its scheduler.
const BUFFER: usize = 100;

/// Adds all keys, then takes all. The stream of requests is always ready, so that only the
/// scheduler is measured.
pub(crate) fn distinct(count: usize) -> Result<()> {
    let keys = keys(count);
    let elapsed = runtime()?.block_on(async {
        let start = Instant::now();
        let requests = stream::iter(keys.iter().map(request)).chain(stream::pending());
        let mut taken = Box::pin(scheduler(requests));
        for _ in 0..count {
            taken.next().await;
        }
        start.elapsed()
    });
    print(count, elapsed, count);
    Ok(())
}

/// Adds each key often, from several producers, while one worker takes keys.
pub(crate) fn producers(producers: usize, adds: usize, count: usize) -> Result<()> {
    let keys = keys(count);
    let (elapsed, taken) = runtime()?.block_on(async {
        let start = Instant::now();
        let (sender, requests) = futures::channel::mpsc::channel(BUFFER);
        for producer in 0..producers {
            let (mut sender, keys) = (sender.clone(), keys.clone());
            tokio::spawn(async move {
                for n in 0..adds / producers {
                    let key = &keys[(producer * 7919 + n) % keys.len()];
                    if sender.feed(request(key)).await.is_err() {
                        return;
                    }
                }
                let _ = sender.flush().await;
            });
        }
        drop(sender);
        let mut scheduled = Box::pin(scheduler(requests));
        let mut taken = 0;
        // The stream ends with the requests, and keys that are still scheduled are lost.
        while scheduled.next().await.is_some() {
            taken += 1;
        }
        (start.elapsed(), taken)
    });
    ensure!(taken > 0, "no key was taken");
    print(adds, elapsed, taken);
    Ok(())
}

fn runtime() -> Result<tokio::runtime::Runtime> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    Ok(builder.worker_threads(2).enable_all().build()?)
}

fn request(key: &Key) -> ScheduleRequest<Key> {
    ScheduleRequest {
        message: key.clone(),
        run_at: tokio::time::Instant::now(),
    }
}

fn keys(count: usize) -> Arc<[Key]> {
    let key = |n: usize| {
        let name = format!("svc-{:04}-api-0123456789-{n:05}", n % 2500);
        ObjectRef::new(&name).within(&format!("team-{:03}-prod", n % 200))
    };
    (0..count).map(key).collect()
}

fn print(operations: usize, elapsed: Duration, taken: usize) {
    let per_second = operations as f64 / elapsed.as_secs_f64();
    println!("{}", json!({"per_second": per_second, "taken": taken}));
}
