//! An operator on the stand-in server, with all defaults: reconciles per second, and latency after
//! a change.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use futures::{Stream, StreamExt, stream};
use k8s_openapi::api::core::v1::Pod;
use kube::{Client, Config, ResourceExt};
use opkit::cache::{InformerOptions, StoreForm};
use opkit::controller::AnyController;
use opkit::operator::RunOptions;
use opkit::{Action, Context, Controller, ObjectKey, Operator, Request};
use opkit_benches::stand_in;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::answers::Answers;

/// Work of a reconcile, and measured part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum What {
    /// No work, by key
    Dispatch,
    /// No work, with the object decoded from its compact form
    Object,
    /// No work, with the object stored as a Rust object
    Typed,
    /// Read one object that all reconciles read
    Read,
    /// Wait for a fixed time
    Flight,
    /// Wait for a response from outside; responses come one at a time and in random order
    Answers,
    /// Read the object, after all objects have changed
    Burst,
    /// Read the object, after it has changed; changes come one after the other
    Latency,
}

#[derive(clap::Args)]
pub(crate) struct Args {
    what: What,
    port: u16,
    objects: u64,
    /// Number of concurrent reconciles
    workers: usize,
    /// Number of reconciles or changes of each object; for the latency, number of changes
    count: u64,
}

/// Duration of a reconcile that only waits.
const WAIT: Duration = Duration::from_millis(5);
/// Changes per second while the latency is measured.
const RATE: u64 = 1_000;

/// Results of the reconciles.
#[derive(Default)]
struct App {
    answers: Arc<Answers>,
    objects: u64,
    reconciled: AtomicU64,
    /// Number of reconciles at which `reached` is notified.
    target: AtomicU64,
    reached: Notify,
    first: OnceLock<Instant>,
    keys: Mutex<Vec<Request>>,
    /// Object that all reconciles read.
    hot: OnceLock<ObjectKey>,
    latencies: Mutex<Vec<u64>>,
}

impl App {
    fn reconciled(&self, key: impl FnOnce() -> Request) {
        let number = self.reconciled.fetch_add(1, Ordering::Relaxed) + 1;
        if number <= self.objects {
            self.first.get_or_init(Instant::now);
            self.keys.lock().push(key());
        }
        if number == self.target.load(Ordering::Relaxed) {
            self.reached.notify_one();
        }
    }

    /// Returns the number of outstanding reconciles.
    fn outstanding(&self) -> usize {
        let target = self.target.load(Ordering::Relaxed);
        target.saturating_sub(self.reconciled.load(Ordering::Relaxed)) as usize
    }

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
        let limit = Duration::from_secs(120);
        let reached = tokio::time::timeout(limit, reached).await;
        reached.with_context(|| format!("{:?} of {target}", self.reconciled))
    }
}

async fn by_key(request: Request, cx: Context<Arc<App>>) -> opkit::Result<Action> {
    cx.state().reconciled(|| request);
    Ok(Action::await_change())
}

async fn with_object(pod: Arc<Pod>, cx: Context<Arc<App>>) -> opkit::Result<Action> {
    cx.state().reconciled(|| Request::from(cx.key().clone()));
    drop(pod);
    Ok(Action::await_change())
}

async fn with_read(request: Request, cx: Context<Arc<App>>) -> opkit::Result<Action> {
    let app = cx.state();
    let hot = app.hot.get_or_init(|| request.key().clone());
    if cx.get::<Pod>(hot.clone())?.is_some() {
        app.reconciled(|| request);
    }
    Ok(Action::await_change())
}

async fn with_wait(request: Request, cx: Context<Arc<App>>) -> opkit::Result<Action> {
    tokio::time::sleep(WAIT).await;
    cx.state().reconciled(|| request);
    Ok(Action::await_change())
}

async fn with_answer(request: Request, cx: Context<Arc<App>>) -> opkit::Result<Action> {
    cx.state().answers.ask().await;
    cx.state().reconciled(|| request);
    Ok(Action::await_change())
}

async fn with_version(pod: Arc<Pod>, cx: Context<Arc<App>>) -> opkit::Result<Action> {
    let app = cx.state();
    let version: u64 = pod.resource_version().unwrap_or_default().parse()?;
    if version > FIRST_TIME {
        let latency = stand_in::nanoseconds().saturating_sub(version);
        app.latencies.lock().push(latency);
    }
    app.reconciled(|| Request::from(cx.key().clone()));
    Ok(Action::await_change())
}

/// First resourceVersion that is a time in nanoseconds (after 2001).
const FIRST_TIME: u64 = 1_000_000_000_000_000_000;

fn controller(args: &Args, rounds: impl Stream<Item = Request> + Send + 'static) -> AnyController {
    let controller = match args.what {
        What::Dispatch => Controller::<Pod, _>::keyed(by_key),
        What::Object | What::Typed => Controller::new(with_object),
        What::Read => Controller::keyed(with_read),
        What::Flight => Controller::keyed(with_wait),
        What::Answers => Controller::keyed(with_answer),
        What::Burst | What::Latency => Controller::new(with_version),
    };
    let controller = controller.max_concurrent_reconciles(args.workers);
    controller.watches_stream("round", rounds).into()
}

pub(crate) async fn run(args: &Args) -> Result<()> {
    let url = format!("http://127.0.0.1:{}", args.port).parse()?;
    let client = Client::try_from(Config::new(url))?;
    // Versions start again.
    stand_in::order(args.port, "/reset").await?;
    let app = Arc::new(App {
        objects: args.objects,
        ..App::default()
    });
    let (rounds, receiver) = mpsc::channel::<Vec<Request>>(1);
    let keys = stream::unfold(receiver, |mut receiver| async {
        let keys = receiver.recv().await?;
        Some((stream::iter(keys), receiver))
    });
    let state = app.clone();
    let mut operator = Operator::new("bench")
        .state_value(state)
        .controller(controller(args, keys.flatten()));
    if args.what == What::Typed {
        let options = InformerOptions::default().form(StoreForm::Typed);
        operator = operator.cache::<Pod>(options);
    }
    let stop = CancellationToken::new();
    let running = operator.run_with(client, RunOptions::default(), stop.clone());
    let (workers, shared) = (args.workers, app.clone());
    let mut servers = tokio::task::JoinSet::new();
    if args.what == What::Answers {
        let expected = move || workers.min(shared.outstanding());
        servers.spawn(app.answers.clone().serve(expected));
    }
    let measured = async {
        let line = measure(args, &app, &rounds).await;
        stop.cancel();
        line
    };
    let (ended, line) = futures::join!(running, measured);
    if let Err(error) = ended {
        bail!("{error:?}");
    }
    println!("{}", line?);
    Ok(())
}

async fn measure(args: &Args, app: &App, rounds: &mpsc::Sender<Vec<Request>>) -> Result<Value> {
    app.wait_for(args.objects, async { Ok(()) }).await?;
    let first = app.first.get().context("nothing was reconciled")?;
    let initial = args.objects as f64 / first.elapsed().as_secs_f64();
    stand_in::order(args.port, "/ready").await?;
    if args.what == What::Latency {
        let path = format!("/go?events={}&rate={RATE}", args.count);
        let order = async { Ok(stand_in::order(args.port, &path).await?) };
        app.wait_for(args.count, order).await?;
        let mut latencies = app.latencies.lock();
        latencies.sort_unstable();
        let at = |part: usize| latencies[(latencies.len() - 1) * part / 100] as f64 / 1e3;
        return Ok(json!({"p50_us": at(50), "p99_us": at(99)}));
    }
    let keys = app.keys.lock().clone();
    let mut elapsed = Duration::ZERO;
    for _ in 0..args.count {
        let keys = keys.clone();
        let started = Instant::now();
        let begin = async {
            match args.what {
                What::Burst => {
                    let path = format!("/go?events={}", args.objects);
                    Ok(stand_in::order(args.port, &path).await?)
                }
                _ => Ok(rounds.send(keys).await?),
            }
        };
        app.wait_for(args.objects, begin).await?;
        elapsed += started.elapsed();
    }
    let per_second = (args.objects * args.count) as f64 / elapsed.as_secs_f64();
    Ok(json!({"per_second": per_second, "initial_per_second": initial}))
}
