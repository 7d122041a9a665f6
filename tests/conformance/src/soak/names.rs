//! Many objects that are created and deleted: all state that an operator keeps by name is removed
//! with the object.
//!
//! Each name is a config map with a finalizer that two controllers reconcile: one of opkit's shape
//! with children and events, and one by key. Some reconciles fail first, and some cleanups take two
//! calls. `cargo test` runs it with few names, `cargo xtask soak --names 1000000` with many, and
//! then measures memory.

use std::collections::HashSet;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;

use futures::future::try_join_all;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::api::events::v1::Event;
use opkit::EventType;
use opkit::cache::InformerOptions;
use opkit::client::{Client, DeleteOptions, ListOptions};
use opkit::operator::RunOptions;
use opkit::prelude::*;
use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::resident_kib;

/// Default number of names; `OPKIT_SOAK_NAMES` overrides it.
const NAMES: usize = 300;
/// Number of names from which memory is compared; with fewer, bounded structures have not reached
/// their bound.
const MANY: usize = 1_000_000;
/// Number of objects that exist at the same time.
const AT_A_TIME: usize = 100;

/// Counters of the reconcilers' work, without the names of deleted objects.
#[derive(Debug, Default)]
struct Done {
    count: AtomicUsize,
    /// Names of existing objects that were reconciled.
    reconciled: Mutex<HashSet<String>>,
    cleaned: AtomicUsize,
    deleted: AtomicUsize,
    /// Names that were called once; the second call succeeds.
    seen: Mutex<HashSet<(&'static str, String)>>,
}

impl Done {
    /// Reports whether this is the first of two calls.
    fn is_first(&self, what: &'static str, name: &str) -> bool {
        let seen = (what, name.to_owned());
        let mut all = self.seen.lock();
        let is_first = all.insert(seen.clone());
        if !is_first {
            all.remove(&seen);
        }
        is_first
    }
}

fn number(name: &str) -> usize {
    let digits = name.rsplit('-').next();
    digits.and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

async fn reconcile(map: Arc<ConfigMap>, cx: Context<Arc<Done>>) -> Result<Action> {
    let (done, name) = (cx.state(), map.name_any());
    let number = number(&name);
    if number.is_multiple_of(3) && done.is_first("reconcile", &name) {
        return Err(Error::msg("away"));
    }
    // Only some objects have a child, because a child costs the server more time than everything
    // else.
    if number.is_multiple_of(5) {
        let mut secret = Secret::default();
        secret.metadata.name = Some(name.clone());
        cx.apply(secret).await?;
    }
    if number.is_multiple_of(4) {
        cx.event(EventType::Normal, "Reconciled", format!("{name} is there"));
    }
    if done.reconciled.lock().insert(name) {
        done.count.fetch_add(1, SeqCst);
    }
    Ok(Action::await_change())
}

async fn clean_up(map: Arc<ConfigMap>, cx: Context<Arc<Done>>) -> Result<Cleanup> {
    let (done, name) = (cx.state(), map.name_any());
    if number(&name).is_multiple_of(5) && done.is_first("clean up", &name) {
        return Ok(Cleanup::Pending(Duration::ZERO));
    }
    done.reconciled.lock().remove(&name);
    done.seen.lock().remove(&("reconcile", name));
    done.cleaned.fetch_add(1, SeqCst);
    Ok(Cleanup::Done)
}

async fn by_key(request: Request, cx: Context<Arc<Done>>) -> Result<Action> {
    if cx.get::<ConfigMap>(request.key().clone())?.is_some() {
        return Ok(Action::await_change());
    }
    let done = cx.state();
    if number(&request.name).is_multiple_of(2) && done.is_first("gone", &request.name) {
        return Err(Error::msg("away"));
    }
    done.deleted.fetch_add(1, SeqCst);
    Ok(Action::await_change())
}

fn operator(done: &Arc<Done>) -> Operator {
    let done = done.clone();
    let native = Controller::new(reconcile)
        .finalizer("soak.opkit.dev/cleanup", clean_up)
        .owns::<Secret>()
        .max_concurrent_reconciles(8);
    let keyed = Controller::<ConfigMap, _>::keyed(by_key).named("by-key");
    // The cluster has ConfigMaps of its own: this one in each namespace, others in kube-system.
    let options = InformerOptions::default().fields("metadata.name!=kube-root-ca.crt");
    let options = options.expect("a valid selector");
    Operator::new("names-operator")
        .cache::<ConfigMap>(options)
        .namespaces(["default"])
        .state_value(done)
        .controller(native)
        .controller(keyed)
}

/// Waits until a count is reached.
async fn reached(count: &AtomicUsize, expected: usize, what: &str) -> Result {
    for _ in 0..100_000 {
        if count.load(SeqCst) >= expected {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let found = count.load(SeqCst);
    Err(Error::msg(format!("{what}: {found} of {expected}")))
}

/// Creates some objects, waits until they are reconciled, deletes them, and waits until nothing is
/// left.
async fn create_and_delete(
    client: &Client,
    namespace: &str,
    names: std::ops::Range<usize>,
    done: &Done,
) -> Result {
    let (end, all) = (names.end, ListOptions::new().in_namespace(namespace));
    let maps = names.map(|n| {
        let mut map = ConfigMap::default();
        map.metadata.name = Some(format!("map-{n:07}"));
        map.metadata.namespace = Some(namespace.to_owned());
        map
    });
    let maps: Vec<_> = maps.collect();
    try_join_all(maps.iter().map(|map| client.create(map))).await?;
    reached(&done.count, end, "reconciled").await?;
    let options = DeleteOptions::default();
    try_join_all(maps.iter().map(|map| {
        let key = (namespace.to_owned(), map.name_any());
        client.delete_with::<ConfigMap>(key, &options)
    }))
    .await?;
    reached(&done.cleaned, end, "cleaned up").await?;
    reached(&done.deleted, end, "reported as deleted").await?;
    while !client.list::<Secret>(&all).await?.items.is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // A server deletes events after an hour; in this test that hour does not pass.
    client.delete_all::<Event>(&all, &options).await?;
    Ok(())
}

#[expect(
    clippy::print_stdout,
    reason = "the figures are the purpose of the run"
)]
#[tokio::test(start_paused = true)]
async fn deleted_names_leave_no_state() -> opkit::Result {
    let names = std::env::var("OPKIT_SOAK_NAMES").ok();
    let names = names.map_or(NAMES, |names| names.parse().unwrap());
    let plane = ControlPlane::embedded()?;
    let (client, namespace) = (Client::new(plane.client()), plane.namespace().to_owned());
    let done = Arc::<Done>::default();
    let options = RunOptions::default();
    let (mut ready, log) = (options.ready.subscribe(), options.log.clone());
    let (metrics, stop) = (options.metrics.clone(), CancellationToken::new());
    let mut operators = JoinSet::new();
    operators.spawn(operator(&done).run_with(plane.client(), options, stop.clone()));
    ready.wait_for(|ready| *ready).await?;

    let mut early = 0;
    for (n, first) in (0..names).step_by(AT_A_TIME).enumerate() {
        let some = first..names.min(first + AT_A_TIME);
        create_and_delete(&client, &namespace, some, &done).await?;
        if n.is_multiple_of(100) && names >= 10_000 {
            println!("{first} names: {} KiB", resident_kib());
        }
        if first <= names / 10 {
            early = resident_kib();
        }
    }
    let late = resident_kib();
    println!("{names} names: {late} KiB; after the first tenth {early} KiB");
    if names >= MANY {
        assert!(late <= early + early / 20, "{early} KiB grew to {late} KiB");
    }
    for _ in 0..1_000 {
        if log.last_of_each().is_empty() && done.seen.lock().is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let last: Vec<_> = log.last_of_each().iter().map(ToString::to_string).collect();
    assert_eq!(last, [""; 0], "no state of deleted objects is left");
    assert_eq!(done.reconciled.lock().len() + done.seen.lock().len(), 0);
    let text = metrics.encode();
    for queue in ["configmap", "by-key"] {
        let depth =
            format!(r#"workqueue_depth{{name="{queue}",controller="{queue}",priority="0"}} 0"#);
        assert!(text.contains(&depth), "{text}");
    }
    stop.cancel();
    operators.join_next().await.unwrap()??;
    plane.shutdown().await
}
