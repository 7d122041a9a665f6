//! Replicas of a sharded operator, beside one that is elected: objects reconciled per second in a
//! burst, memory of each replica, and the time until the objects of a replica that dies are
//! reconciled. The server is `opkit cluster up`; it and each replica are processes of their own.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, PostParams};
use kube::{Client, ResourceExt};
use opkit::operator::{RunOptions, ShardKey};
use opkit::{Action, Context, Controller, Operator, Request};
use opkit_apimachinery::shard;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Name of the Lease of the elected replica, and of the ring.
const LEASE: &str = "bench.opkit.dev";
const NAMESPACE: &str = "default";
/// First part of the names of the objects that count.
const PREFIX: &str = "map-";
/// Number of concurrent reconciles of each replica.
const WORKERS: usize = 4;
/// Number of requests that create objects at a time.
const AT_ONCE: usize = 16;
/// Number of slots over which the namespaces are spread; three replicas have that many.
const SLOTS: u32 = 32;
/// Number of namespaces in each slot.
const NAMESPACES_PER_SLOT: usize = 3;
/// Time between two lines of a replica.
const REPORT_INTERVAL: Duration = Duration::from_millis(10);
/// Time in which the Lease must not change before the replicas count as settled, and after which
/// their memory is read.
const SETTLE: Duration = Duration::from_secs(4);
/// Time limit of each part of a measurement.
const LIMIT: Duration = Duration::from_secs(180);

/// How replicas share their work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum How {
    /// One of them is the leader
    Elected,
    /// They divide the namespaces
    Sharded,
}

/// A replica, which prints how many objects it has reconciled.
#[derive(clap::Args)]
pub(crate) struct Args {
    how: How,
    /// Time that each reconcile waits, in milliseconds
    wait: u64,
}

/// What a replica's reconciles share.
struct App {
    wait: Duration,
    reconciled: AtomicU64,
}

async fn reconcile(request: Request, cx: Context<Arc<App>>) -> opkit::Result<Action> {
    let app = cx.state();
    if request.name.starts_with(PREFIX) {
        if !app.wait.is_zero() {
            tokio::time::sleep(app.wait).await;
        }
        app.reconciled.fetch_add(1, Ordering::Relaxed);
    }
    Ok(Action::await_change())
}

/// Runs a replica on the server in the environment variable `KUBECONFIG`.
pub(crate) async fn run(args: &Args) -> Result<()> {
    let client = opkit_client::connect(None).await?;
    let app = Arc::new(App {
        wait: Duration::from_millis(args.wait),
        reconciled: AtomicU64::new(0),
    });
    let controller = Controller::<ConfigMap, _>::keyed(reconcile);
    let mut operator = Operator::new("bench")
        .state_value(app.clone())
        .leader_election(LEASE)
        .controller(controller.max_concurrent_reconciles(WORKERS));
    if args.how == How::Sharded {
        operator = operator.sharded(ShardKey::Namespace);
    }
    let mut options = RunOptions::default();
    options.leader_elect = Some(true);
    options.leader_election_namespace = Some(NAMESPACE.to_owned());
    let report = async {
        let mut last = 0;
        loop {
            let count = app.reconciled.load(Ordering::Relaxed);
            if count != last {
                println!("{count}");
            }
            last = count;
            tokio::time::sleep(REPORT_INTERVAL).await;
        }
    };
    let running = operator.run_with(client, options, CancellationToken::new());
    tokio::select! {
        ended = running => ended.map_err(|error| anyhow::anyhow!("{error:?}")),
        () = report => Ok(()),
    }
}

/// What the measurements run.
#[derive(Clone, Copy)]
pub(crate) struct Setup<'a> {
    /// This program.
    pub(crate) this: &'a Path,
    /// The executable `opkit`, which starts the server.
    pub(crate) opkit: &'a Path,
    pub(crate) objects: u64,
}

/// Measures how many objects `count` replicas reconcile per second if each reconcile waits 5 ms.
pub(crate) fn burst(setup: Setup<'_>, how: How, count: usize) -> Result<Value> {
    block_on(async {
        let server = Server::start(setup).await?;
        let replicas = server.replicas(how, 5, count).await?;
        let started = Instant::now();
        server.create_objects().await?;
        until("all objects are reconciled", async || {
            Ok(total(&replicas) >= setup.objects)
        })
        .await?;
        let per_second = setup.objects as f64 / started.elapsed().as_secs_f64();
        Ok(json!({"per_second": per_second}))
    })
}

/// Measures the memory of one elected replica and of three sharded ones above that of an idle one,
/// and the time from the death of one of the three until the others have reconciled its objects.
pub(crate) fn three(setup: Setup<'_>) -> Result<Value> {
    block_on(async {
        let server = Server::start(setup).await?;
        let alone = server.replicas(How::Elected, 0, 1).await?;
        let idle = memory(&alone)?;
        server.fill(&alone).await?;
        let one = above(memory(&alone)?[0], idle[0]);
        drop((alone, server));

        let server = Server::start(setup).await?;
        let mut replicas = server.replicas(How::Sharded, 0, 3).await?;
        let idle = memory(&replicas)?;
        server.fill(&replicas).await?;
        let of_three = memory(&replicas)?.into_iter().zip(idle);
        let most = of_three.map(|(now, idle)| above(now, idle)).max();
        let most = most.context("there are no replicas")?;

        let mut dead = replicas.pop().context("there are no replicas")?;
        let (lost, before) = (dead.count(), total(&replicas));
        ensure!(lost > 0, "the third replica has no objects");
        let died = Instant::now();
        dead.process.kill().await?;
        until(
            "the objects of the dead replica are reconciled",
            async || Ok(total(&replicas) >= before + lost),
        )
        .await?;
        let takeover = died.elapsed();
        Ok(json!({
            "one_bytes": one,
            "each_bytes": most,
            "memory_share": most as f64 / one as f64,
            "takeover_seconds": takeover.as_secs_f64(),
        }))
    })
}

fn block_on<T>(measured: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(measured)
}

fn above(bytes: u64, idle: u64) -> u64 {
    bytes.saturating_sub(idle).max(1)
}

fn total(replicas: &[Replica]) -> u64 {
    replicas.iter().map(Replica::count).sum()
}

/// Returns the resident memory of each replica, in bytes.
fn memory(replicas: &[Replica]) -> Result<Vec<u64>> {
    let of = |replica: &Replica| {
        let id = replica.process.id().context("a replica has ended")?;
        let status = std::fs::read_to_string(format!("/proc/{id}/status"))?;
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = resident.and_then(|line| line.split_whitespace().next());
        let kilobytes: u64 = kilobytes.context("a replica has ended")?.parse()?;
        Ok(kilobytes * 1024)
    };
    replicas.iter().map(of).collect()
}

/// Waits until a condition holds.
async fn until(what: &str, mut holds: impl AsyncFnMut() -> Result<bool>) -> Result<()> {
    let started = Instant::now();
    while !holds().await? {
        ensure!(started.elapsed() < LIMIT, "waited too long until {what}");
        tokio::time::sleep(REPORT_INTERVAL).await;
    }
    Ok(())
}

/// A process that is killed when this is dropped.
struct Replica {
    process: Child,
    count: Arc<AtomicU64>,
    /// Task that reads the output.
    _reader: JoinSet<()>,
}

impl Replica {
    fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }
}

/// A server that is stopped when this is dropped.
struct Server<'a> {
    setup: Setup<'a>,
    _process: Child,
    kubeconfig: PathBuf,
    client: Client,
    namespaces: Vec<String>,
}

impl<'a> Server<'a> {
    async fn start(setup: Setup<'a>) -> Result<Self> {
        let directory = setup.this.with_file_name("bench-sharding");
        let _ = std::fs::remove_dir_all(&directory);
        std::fs::create_dir_all(&directory)?;
        let kubeconfig = directory.join("kubeconfig");
        let process = Command::new(setup.opkit)
            .args(["cluster", "up", "--kubeconfig-out"])
            .arg(&kubeconfig)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::inherit())
            .kill_on_drop(true)
            .spawn()
            .context("cannot start opkit")?;
        until("the server has started", async || Ok(kubeconfig.exists())).await?;
        let client = opkit_client::connect(Some(&kubeconfig)).await?;
        let namespaces: Api<Namespace> = Api::all(client.clone());
        until("the server responds", async || {
            Ok(namespaces.get(NAMESPACE).await.is_ok())
        })
        .await?;
        let names = spread_namespaces();
        for name in &names {
            let namespace = serde_json::from_value(json!({"metadata": {"name": name}}))?;
            namespaces
                .create(&PostParams::default(), &namespace)
                .await?;
        }
        Ok(Self {
            setup,
            _process: process,
            kubeconfig,
            client,
            namespaces: names,
        })
    }

    /// Starts replicas, and waits until they have divided the namespaces or elected a leader.
    async fn replicas(&self, how: How, wait: u64, count: usize) -> Result<Vec<Replica>> {
        let mut replicas = Vec::new();
        for _ in 0..count {
            let name = clap::ValueEnum::to_possible_value(&how).context("a hidden value")?;
            let mut process = Command::new(self.setup.this)
                .args(["replica", name.get_name(), &wait.to_string()])
                .env("KUBECONFIG", &self.kubeconfig)
                .stdout(Stdio::piped())
                .stderr(Stdio::inherit())
                .kill_on_drop(true)
                .spawn()?;
            let output = process.stdout.take().context("a replica has no output")?;
            let count = Arc::new(AtomicU64::new(0));
            let counted = count.clone();
            let mut reader = JoinSet::new();
            reader.spawn(async move {
                let mut lines = BufReader::new(output).lines();
                while let Ok(Some(line)) = lines.next_line().await {
                    if let Ok(count) = line.parse() {
                        counted.store(count, Ordering::Relaxed);
                    }
                }
            });
            replicas.push(Replica {
                process,
                count,
                _reader: reader,
            });
        }
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), NAMESPACE);
        let mut last = (None, Instant::now());
        until("the replicas have divided their work", async || {
            let lease = leases.get_opt(LEASE).await?;
            let state = lease.and_then(|lease| shares(how, &lease));
            if state != last.0 {
                last = (state, Instant::now());
            }
            let is_complete = last.0.as_ref().is_some_and(|shares| shares.len() == count);
            Ok(is_complete && last.1.elapsed() >= SETTLE)
        })
        .await?;
        Ok(replicas)
    }

    /// Creates the objects, and waits until they are reconciled and the replicas are idle.
    async fn fill(&self, replicas: &[Replica]) -> Result<()> {
        self.create_objects().await?;
        until("all objects are reconciled", async || {
            Ok(total(replicas) >= self.setup.objects)
        })
        .await?;
        tokio::time::sleep(SETTLE).await;
        Ok(())
    }

    async fn create_objects(&self) -> Result<()> {
        let text = "a value of some length, as settings have it; ".repeat(16);
        let numbers = stream::iter(0..self.setup.objects);
        let create = |number: u64| {
            let namespace = &self.namespaces[number as usize % self.namespaces.len()];
            let maps: Api<ConfigMap> = Api::namespaced(self.client.clone(), namespace);
            let text = &text;
            async move {
                let map = json!({
                    "metadata": {"name": format!("{PREFIX}{number:06}")},
                    "data": {"settings": text},
                });
                let map = serde_json::from_value(map)?;
                maps.create(&PostParams::default(), &map).await?;
                Ok::<_, anyhow::Error>(())
            }
        };
        numbers
            .map(create)
            .buffer_unordered(AT_ONCE)
            .try_collect()
            .await
    }
}

/// Returns the number of slots of each replica in a ring, or the leader.
fn shares(how: How, lease: &Lease) -> Option<BTreeMap<String, usize>> {
    if how == How::Elected {
        let holder = lease.spec.as_ref()?.holder_identity.clone()?;
        return Some([(holder, 1)].into());
    }
    let ring = lease.annotations().get("opkit.dev/slots")?;
    let ring: Value = serde_json::from_str(ring).ok()?;
    let members = ring["members"].as_array()?;
    let names = members.iter().map(|member| member["identity"].to_string());
    let revision = ring["revision"].as_u64()? as usize;
    Some(names.map(|name| (name, revision)).collect())
}

/// Returns names of namespaces of which each slot has equally many.
fn spread_namespaces() -> Vec<String> {
    let mut slots: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    for number in 0_u64.. {
        // The hash depends most on the first characters.
        let name = format!(
            "{:04x}-tenant-{number}",
            number.wrapping_mul(40_503) % 65_536
        );
        let slot = slots
            .entry(shard::slot(shard::hash(&name), SLOTS))
            .or_default();
        if slot.len() < NAMESPACES_PER_SLOT {
            slot.push(name);
        }
        if slots.len() == SLOTS as usize
            && slots
                .values()
                .all(|names| names.len() == NAMESPACES_PER_SLOT)
        {
            break;
        }
    }
    slots.into_values().flatten().collect()
}
