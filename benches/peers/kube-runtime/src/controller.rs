//! The controller on the stand-in server: reconciles per second, and latency after a change.

use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result};
use futures::{StreamExt, stream};
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::controller::{Action, Config, Controller};
use kube::runtime::reflector::ObjectRef;
use kube::runtime::watcher;
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};

use crate::answers::Answers;
use crate::stand_in::order;

/// Work of a reconcile, and measured part.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum What {
    Dispatch,
    Flight,
    /// Waits for a response from outside; responses come one at a time and in random order.
    Answers,
    Burst,
    Latency,
}

pub(crate) struct Row {
    pub(crate) what: What,
    pub(crate) port: u16,
    pub(crate) objects: u64,
    pub(crate) workers: u16,
    pub(crate) count: u64,
}

/// Duration of a reconcile that only waits.
const WAIT: Duration = Duration::from_millis(5);
/// Changes per second while the latency is measured.
const RATE: u64 = 1_000;
/// First resourceVersion that is a time in nanoseconds (after 2001).
const FIRST_TIME: u64 = 1_000_000_000_000_000_000;

type Key = ObjectRef<Pod>;

/// Results of the reconciles.
struct App {
    what: What,
    objects: u64,
    reconciled: AtomicU64,
    /// Number of reconciles at which `reached` is notified.
    target: AtomicU64,
    reached: Notify,
    first: OnceLock<Instant>,
    keys: Mutex<Vec<Key>>,
    latencies: Mutex<Vec<u64>>,
    answers: Arc<Answers>,
}

impl App {
    /// Runs `begin`, and waits for `more` additional reconciles.
    async fn wait_for<F: Future<Output = Result<()>>>(&self, more: u64, begin: F) -> Result<()> {
        let target = self.reconciled.load(Ordering::Relaxed) + more;
        self.target.store(target, Ordering::Relaxed);
        begin.await?;
        let reached = async {
            while self.reconciled.load(Ordering::Relaxed) < target {
                self.reached.notified().await;
            }
        };
        let reached = tokio::time::timeout(Duration::from_secs(120), reached).await;
        reached.with_context(|| format!("{:?} of {target}", self.reconciled))
    }
}

async fn reconcile(pod: Arc<Pod>, app: Arc<App>) -> Result<Action, Infallible> {
    match app.what {
        What::Dispatch => {}
        What::Flight => tokio::time::sleep(WAIT).await,
        What::Answers => app.answers.ask().await,
        What::Burst | What::Latency => {
            let version = pod
                .resource_version()
                .and_then(|version| version.parse::<u64>().ok());
            if let Some(version) = version.filter(|version| *version > FIRST_TIME) {
                let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
                let latency = now.unwrap_or_default().as_nanos() as u64 - version;
                app.latencies.lock().unwrap().push(latency);
            }
        }
    }
    let number = app.reconciled.fetch_add(1, Ordering::Relaxed) + 1;
    if number <= app.objects {
        app.first.get_or_init(Instant::now);
        app.keys.lock().unwrap().push(ObjectRef::from_obj(&*pod));
    }
    if number == app.target.load(Ordering::Relaxed) {
        app.reached.notify_one();
    }
    Ok(Action::await_change())
}

pub(crate) fn run(row: &Row) -> Result<()> {
    // As many threads as an operator has.
    let line = tokio::runtime::Runtime::new()?.block_on(measure(row))?;
    println!("{line}");
    std::process::exit(0);
}

async fn measure(row: &Row) -> Result<Value> {
    let url = format!("http://127.0.0.1:{}", row.port).parse()?;
    let client = Client::try_from(kube::Config::new(url))?;
    order(row.port, "/reset").await?;
    let app = Arc::new(App {
        what: row.what,
        objects: row.objects,
        reconciled: AtomicU64::new(0),
        target: AtomicU64::new(0),
        reached: Notify::new(),
        first: OnceLock::new(),
        keys: Mutex::default(),
        latencies: Mutex::default(),
        answers: Arc::default(),
    });
    let (workers, shared) = (usize::from(row.workers), app.clone());
    let outstanding = move || {
        let target = shared.target.load(Ordering::Relaxed);
        target.saturating_sub(shared.reconciled.load(Ordering::Relaxed)) as usize
    };
    if row.what == What::Answers {
        tokio::spawn(
            app.answers
                .clone()
                .serve(move || workers.min(outstanding())),
        );
    }
    let (rounds, receiver) = mpsc::channel::<Vec<Key>>(1);
    let keys = stream::unfold(receiver, |mut receiver| async {
        let keys = receiver.recv().await?;
        Some((stream::iter(keys), receiver))
    });
    let controller = Controller::new(Api::<Pod>::all(client), watcher::Config::default())
        .with_config(Config::default().concurrency(row.workers))
        .reconcile_on(keys.flatten())
        .run(reconcile, |_, _, _| Action::await_change(), app.clone());
    let begin = async {
        tokio::spawn(controller.for_each(|_| async {}));
        Ok(())
    };
    app.wait_for(row.objects, begin).await?;
    let first = app.first.get().context("nothing was reconciled")?;
    let initial = row.objects as f64 / first.elapsed().as_secs_f64();
    order(row.port, "/ready").await?;
    if row.what == What::Latency {
        let path = format!("/go?events={}&rate={RATE}", row.count);
        app.wait_for(row.count, order(row.port, &path)).await?;
        let mut latencies = app.latencies.lock().unwrap();
        latencies.sort_unstable();
        let at = |part: usize| latencies[(latencies.len() - 1) * part / 100] as f64 / 1e3;
        return Ok(json!({"p50_us": at(50), "p99_us": at(99)}));
    }
    let keys = app.keys.lock().unwrap().clone();
    let mut elapsed = Duration::ZERO;
    for _ in 0..row.count {
        let keys = keys.clone();
        let began = Instant::now();
        let begin = async {
            match row.what {
                What::Burst => order(row.port, &format!("/go?events={}", row.objects)).await,
                _ => Ok(rounds.send(keys).await?),
            }
        };
        app.wait_for(row.objects, begin).await?;
        elapsed += began.elapsed();
    }
    let per_second = (row.objects * row.count) as f64 / elapsed.as_secs_f64();
    Ok(json!({"per_second": per_second, "initial_per_second": initial}))
}
