//! The cache on the stand-in server: first sync, memory, relist, events per second, reads.

use std::hint::black_box;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::{Client, Config, CustomResource};
use opkit_benches::data::Kind;
use opkit_benches::{process, stand_in};
use opkit_cache::{Index, InformerFactory, InformerOptions, Lister, Meta, Scope, Selection};
use opkit_client::{Object, ObjectKey, RestClient};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::allocations;

const HOT_READS: u32 = 1_000_000;
const COLD_READS: usize = 4_000;

#[derive(clap::Args)]
pub(crate) struct Args {
    kind: Kind,
    port: u16,
    objects: usize,
    events: u64,
}

/// Custom resource, with a Rust type as in an operator.
#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(group = "example.com", version = "v1", kind = "Robot", namespaced)]
#[kube(status = "RobotStatus")]
#[serde(rename_all = "camelCase")]
pub(crate) struct RobotSpec {
    image: String,
    replicas: u32,
    paused: bool,
    config: Map<String, Value>,
    resources: Map<String, Value>,
    node_selector: Map<String, Value>,
}

/// Status of the custom resource.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RobotStatus {
    observed_generation: i64,
    replicas: u32,
    phase: String,
    conditions: Vec<Map<String, Value>>,
}

pub(crate) async fn run(args: &Args) -> Result<()> {
    let url = format!("http://127.0.0.1:{}", args.port).parse()?;
    let client = RestClient::new(Client::try_from(Config::new(url))?);
    match args.kind {
        Kind::Pods => measure::<Pod>(args, client).await,
        Kind::Robots => measure::<Robot>(args, client).await,
    }
}

/// Returns one of five index values, each for about a fifth of the objects.
fn fifth(meta: &Meta<'_>) -> Vec<String> {
    let sum: u64 = meta.name().bytes().map(u64::from).sum();
    vec![(sum % 5).to_string()]
}

async fn measure<K: Object>(args: &Args, client: RestClient) -> Result<()> {
    let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
    let factory = InformerFactory::new(client, Scope::All, tasks.clone(), stop.clone());
    // Versions start again, so that the last one is known.
    stand_in::order(args.port, "/reset").await?;
    let base = process::resident();
    let started = Instant::now();
    let options = InformerOptions::default().index(Index::meta("fifth", fifth));
    let lister = factory.informer_with::<K>(options);
    let listener = lister.informer().listen();
    // A listener, as there always is.
    tasks.spawn(stop.clone().run_until_cancelled_owned(async move {
        let mut listener = listener;
        loop {
            black_box(listener.recv().await);
        }
    }));
    lister.informer().wait_for_sync().await;
    let seconds = started.elapsed().as_secs_f64();
    ensure!(lister.len() == args.objects, "{} objects", lister.len());
    let peak = process::peak();
    settle().await;
    let steady = process::resident();

    process::forget_peak();
    stand_in::order(args.port, "/ready").await?;
    stand_in::order(args.port, "/expire").await?;
    settle().await;
    // After the relist there is a watch again.
    stand_in::order(args.port, "/ready").await?;
    ensure!(
        lister.informer().stats().relists == 1,
        "there was no relist"
    );
    let relist_peak = process::peak();

    let list = list_by_index(&lister);
    let cold = cold_reads(&lister)?;
    let (hot, allocated) = hot_reads(&lister)?;
    let events = events(args, &lister).await?;
    let line = json!({
        "objects": lister.len(),
        "sync_seconds": seconds,
        "peak_bytes": peak,
        "steady_bytes": steady,
        "relist_peak_bytes": relist_peak,
        "bytes_per_object": steady.saturating_sub(base) / args.objects as u64,
        "events_per_second": events,
        "hot_read_ns": hot,
        "hot_read_allocations": allocated,
        "cold_read_us": cold,
        "list_objects": list.0,
        "list_decodes": list.1,
        "list_us": list.2,
    });
    println!("{line}");
    stop.cancel();
    tasks.close();
    tasks.wait().await;
    Ok(())
}

async fn settle() {
    tokio::time::sleep(Duration::from_millis(500)).await;
}

/// Lists keys and metadata of a fifth of all objects; returns their number, the number of decoded
/// objects, and the time.
fn list_by_index<K: Object>(lister: &Lister<K>) -> (usize, u64, f64) {
    let before = lister.informer().stats().decodes;
    let started = Instant::now();
    let selection = Selection::default().by_index("fifth", "3");
    let keys = lister.keys(&selection);
    let stored = lister.stored(&selection);
    let labels = stored
        .iter()
        .filter(|stored| !stored.meta().labels().is_empty());
    black_box(labels.count());
    let micros = started.elapsed().as_secs_f64() * 1e6;
    let decodes = lister.informer().stats().decodes - before;
    (keys.len().min(stored.len()), decodes, micros)
}

/// Returns the time in microseconds to read an object for the first time.
fn cold_reads<K: Object>(lister: &Lister<K>) -> Result<f64> {
    let keys = keys(lister, COLD_READS);
    let started = Instant::now();
    for key in &keys {
        black_box(lister.get(key)?.context("an object is missing")?);
    }
    Ok(started.elapsed().as_secs_f64() * 1e6 / keys.len() as f64)
}

/// Returns the time in nanoseconds to read an object that is read all the time, and the number of
/// allocations of all reads.
fn hot_reads<K: Object>(lister: &Lister<K>) -> Result<(f64, u64)> {
    let keys = keys(lister, 64);
    for key in &keys {
        black_box(lister.get(key)?);
    }
    let allocated = allocations::count();
    let started = Instant::now();
    for key in keys.iter().cycle().take(HOT_READS as usize) {
        black_box(lister.get(key)?.context("an object is missing")?);
    }
    let nanos = started.elapsed().as_secs_f64() * 1e9 / f64::from(HOT_READS);
    Ok((nanos, allocations::count() - allocated))
}

fn keys<K: Object>(lister: &Lister<K>, count: usize) -> Vec<ObjectKey> {
    let mut keys = lister.keys(&Selection::default());
    keys.truncate(count);
    keys
}

/// Returns the changes of objects per second, until the last is in the store.
async fn events<K: Object>(args: &Args, lister: &Lister<K>) -> Result<f64> {
    settle().await;
    let last = (args.events + args.objects as u64 - 1) % args.objects as u64;
    let object = args.kind.objects(last + 1).last().context("no object")?;
    let text = |name: &str| {
        object["metadata"][name]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    let key = ObjectKey::from((text("namespace"), text("name")));
    let version = stand_in::version_after(args.events).to_string();
    let started = Instant::now();
    stand_in::order(args.port, &format!("/go?events={}", args.events)).await?;
    loop {
        let stored = lister.informer().stored(&key);
        let seen = stored.and_then(|stored| Some(stored.meta().resource_version()?.into_owned()));
        if seen.as_deref() == Some(version.as_str()) {
            return Ok(args.events as f64 / started.elapsed().as_secs_f64());
        }
        ensure!(
            started.elapsed().as_secs() < 300,
            "the events did not arrive in 300 s"
        );
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}
