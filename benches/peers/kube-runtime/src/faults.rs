//! The faults of the cache's tests, on kube-runtime: each runs the script of the test with the same
//! name in `crates/cache/src/faults` and prints the result. All run on a paused clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use std::sync::Mutex;

use anyhow::Result;
use futures::{FutureExt, StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::Api;
use kube::runtime::controller::{Action, Controller};
use kube::runtime::{WatchStreamExt, reflector, watcher};
use serde_json::json;
use tokio::time::{Instant, sleep, timeout};

use crate::script::Server;

const MOMENT: Duration = Duration::from_millis(200);

type Script = fn() -> futures::future::BoxFuture<'static, String>;

pub(crate) fn run() -> Result<()> {
    let scripts: [(&str, Script); 7] = [
        ("shared stream stall", || shared_stream_stall().boxed()),
        ("dropped deletes", || dropped_deletes().boxed()),
        ("stale relist", || stale_relist().boxed()),
        ("children deleted in a gap", || {
            children_deleted_in_a_gap().boxed()
        }),
        ("one failing watch slows others", || {
            one_failing_watch().boxed()
        }),
        ("one undecodable object", || {
            one_undecodable_object().boxed()
        }),
        ("lost wake-up of two waiters", || lost_wake_up().boxed()),
    ];
    for (name, script) in scripts {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()?;
        println!("{name}: {}", runtime.block_on(script()));
    }
    Ok(())
}

fn api(server: &Server) -> Api<ConfigMap> {
    Api::all(server.client())
}

fn configuration() -> watcher::Config {
    watcher::Config::default()
}

/// A shared store with a subscriber that is slow at first: an object is created and deleted unseen,
/// then twenty others are created.
async fn shared_stream_stall() -> String {
    let server = Server::new(500);
    let (reader, writer) = reflector::store_shared::<ConfigMap>(8);
    let subscriber = writer.subscribe().expect("a shared store");
    let stream = watcher(api(&server), configuration()).default_backoff();
    let root = tokio::spawn(stream.reflect_shared(writer).for_each(|_| async {}));
    sleep(MOMENT).await;
    server.put("configmaps", "passing", json!({}));
    server.delete("configmaps", "passing");
    sleep(MOMENT).await;
    let received = Arc::new(AtomicUsize::new(0));
    let count = received.clone();
    // Polled as in a controller: as one of several streams.
    let mut streams = futures::stream::SelectAll::new();
    streams.push(subscriber.boxed());
    let reading = tokio::spawn(streams.for_each(move |_| {
        count.fetch_add(1, Ordering::Relaxed);
        async {}
    }));
    sleep(MOMENT).await;
    for number in 0..20 {
        server.put("configmaps", &format!("map-{number}"), json!({}));
        sleep(MOMENT).await;
    }
    sleep(Duration::from_secs(60)).await;
    root.abort();
    reading.abort();
    let (received, stored) = (received.load(Ordering::Relaxed), reader.len());
    format!("of 20 objects the subscriber received {received} and the store holds {stored}")
}

/// A shared store with a subscriber: an object is created and later deleted.
async fn dropped_deletes() -> String {
    let server = Server::new(500);
    let (reader, writer) = reflector::store_shared::<ConfigMap>(8);
    let subscriber = writer.subscribe().expect("a shared store");
    let stream = watcher(api(&server), configuration()).default_backoff();
    let root = tokio::spawn(stream.reflect_shared(writer).for_each(|_| async {}));
    let received = Arc::new(AtomicUsize::new(0));
    let count = received.clone();
    let reading = tokio::spawn(subscriber.for_each(move |_| {
        count.fetch_add(1, Ordering::Relaxed);
        async {}
    }));
    sleep(MOMENT).await;
    server.put("configmaps", "a", json!({}));
    sleep(MOMENT).await;
    let made = received.swap(0, Ordering::Relaxed);
    server.delete("configmaps", "a");
    sleep(Duration::from_secs(60)).await;
    root.abort();
    reading.abort();
    let deleted = received.load(Ordering::Relaxed);
    let stored = reader.len();
    format!("{made} event for the creation, {deleted} for the deletion; the store holds {stored}")
}

/// A controller, and a gap in which an object changes and another is created. The second page of
/// the list after the gap is slow.
async fn stale_relist() -> String {
    let server = Server::new(2);
    for name in ["a", "b", "c"] {
        server.put("configmaps", name, json!({"data": {"state": "old"}}));
    }
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = seen.clone();
    let failed = Arc::new(AtomicUsize::new(0));
    let failures = failed.clone();
    let reconcile = move |object: Arc<ConfigMap>, _: Arc<()>| {
        let name = object.metadata.name.clone().unwrap_or_default();
        let state = object
            .data
            .as_ref()
            .and_then(|data| data.get("state").cloned());
        let entry = format!("{name}={}", state.unwrap_or_default());
        log.lock().expect("the log").push(entry);
        async { Ok::<_, std::convert::Infallible>(Action::await_change()) }
    };
    let controller = Controller::new(api(&server), configuration())
        .run(reconcile, |_, _, _| Action::await_change(), Arc::new(()))
        .for_each(move |outcome| {
            if outcome.is_err() {
                failures.fetch_add(1, Ordering::Relaxed);
            }
            async {}
        });
    let controller = tokio::spawn(controller);
    sleep(MOMENT).await;
    seen.lock().expect("the log").clear();
    server.begin_gap();
    server.put("configmaps", "a", json!({"data": {"state": "new"}}));
    server.put("configmaps", "aa", json!({"data": {"state": "new"}}));
    server.hold_pages(true);
    server.expire();
    sleep(Duration::from_secs(5)).await;
    server.hold_pages(false);
    sleep(Duration::from_secs(60)).await;
    controller.abort();
    let mut seen = std::mem::take(&mut *seen.lock().expect("the log"));
    seen.sort();
    seen.retain(|entry| entry.starts_with('a'));
    let failed = failed.load(Ordering::Relaxed);
    format!("reconciled {seen:?} and failed {failed} times, where a=new and aa=new are due")
}

/// A watch of children, and a gap in which one is deleted.
async fn children_deleted_in_a_gap() -> String {
    let server = Server::new(500);
    server.put(
        "configmaps",
        "child",
        json!({"metadata": {"ownerReferences": [owner()]}}),
    );
    let events = Arc::new(Mutex::new(Vec::new()));
    let log = events.clone();
    let stream = watcher(api(&server), configuration()).default_backoff();
    let watch = tokio::spawn(stream.for_each(move |event| {
        log.lock().expect("the log").push(match event {
            Ok(watcher::Event::Delete(_)) => "delete",
            Ok(watcher::Event::Init) => "init",
            Ok(watcher::Event::InitDone) => "init done",
            Ok(_) => "apply",
            Err(_) => "error",
        });
        async {}
    }));
    sleep(MOMENT).await;
    events.lock().expect("the log").clear();
    server.begin_gap();
    server.delete("configmaps", "child");
    server.expire();
    sleep(Duration::from_secs(60)).await;
    watch.abort();
    let events = std::mem::take(&mut *events.lock().expect("the log"));
    format!("told {events:?}, where a deletion is due")
}

/// A controller of config maps that owns secrets, which cannot be watched: measures the time until
/// a change of a config map is reconciled.
async fn one_failing_watch() -> String {
    let server = Server::new(500);
    server.fail_watches("secrets");
    let reconciled = Arc::new(AtomicUsize::new(0));
    let count = reconciled.clone();
    let reconcile = move |_: Arc<ConfigMap>, _: Arc<()>| {
        count.fetch_add(1, Ordering::Relaxed);
        async { Ok::<_, std::convert::Infallible>(Action::await_change()) }
    };
    let controller = Controller::new(api(&server), configuration())
        .owns(Api::<Secret>::all(server.client()), configuration())
        .run(reconcile, |_, _, _| Action::await_change(), Arc::new(()))
        .for_each(|_| async {});
    let controller = tokio::spawn(controller);
    sleep(Duration::from_secs(120)).await;
    let mut worst = Duration::ZERO;
    for number in 0..20 {
        let before = reconciled.load(Ordering::Relaxed);
        let began = Instant::now();
        server.put("configmaps", &format!("map-{number}"), json!({}));
        while reconciled.load(Ordering::Relaxed) == before && began.elapsed().as_secs() < 300 {
            sleep(Duration::from_millis(10)).await;
        }
        worst = worst.max(began.elapsed());
        sleep(Duration::from_secs(7)).await;
    }
    controller.abort();
    format!("a change of another kind waits up to {worst:.1?}")
}

/// A list in which one of three objects cannot be decoded.
async fn one_undecodable_object() -> String {
    let server = Server::new(500);
    server.put("configmaps", "a", json!({}));
    server.put("configmaps", "broken", json!({"data": 5}));
    server.put("configmaps", "c", json!({}));
    let (reader, writer) = reflector::store::<ConfigMap>();
    let failed = Arc::new(AtomicUsize::new(0));
    let failures = failed.clone();
    let stream = watcher(api(&server), configuration())
        .default_backoff()
        .reflect(writer);
    let watch = tokio::spawn(stream.for_each(move |event| {
        if event.is_err() {
            failures.fetch_add(1, Ordering::Relaxed);
        }
        async {}
    }));
    let ready = timeout(Duration::from_secs(600), reader.wait_until_ready()).await;
    watch.abort();
    let (stored, failed) = (reader.len(), failed.load(Ordering::Relaxed));
    match ready {
        Ok(_) => format!("the store holds {stored} of 3"),
        Err(_) => {
            format!(
                "not ready after 10 min and {failed} failed lists; the store holds {stored} of 3"
            )
        }
    }
}

/// Five tasks that wait for the first list.
async fn lost_wake_up() -> String {
    let server = Server::new(1);
    for name in ["a", "b"] {
        server.put("configmaps", name, json!({}));
    }
    server.hold_pages(true);
    let (reader, writer) = reflector::store::<ConfigMap>();
    let stream = watcher(api(&server), configuration())
        .default_backoff()
        .reflect(writer);
    let watch = tokio::spawn(stream.try_for_each(|_| async { Ok(()) }));
    let released = Arc::new(AtomicUsize::new(0));
    let waiters: Vec<_> = (0..5)
        .map(|_| {
            let (reader, released) = (reader.clone(), released.clone());
            tokio::spawn(async move {
                if reader.wait_until_ready().await.is_ok() {
                    released.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    sleep(MOMENT).await;
    server.hold_pages(false);
    sleep(Duration::from_secs(60)).await;
    watch.abort();
    waiters.iter().for_each(tokio::task::JoinHandle::abort);
    let released = released.load(Ordering::Relaxed);
    format!("{released} of 5 waiters were released")
}

fn owner() -> serde_json::Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "uid-of-owner",
        "controller": true,
    })
}
