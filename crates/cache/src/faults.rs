//! Tests that the cache does not have the known faults of kube-runtime. Each fault is tested
//! through the public API, against a scripted server. `benches/peers/kube-runtime` runs the same
//! scripts against kube-runtime and prints the results.

pub(crate) mod script;

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use opkit_client::RestClient;
use serde_json::json;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::script::Server;
use crate::{Change, Delta, Event, InformerFactory, Listener, Lister, Scope};

const MOMENT: Duration = Duration::from_millis(200);

/// Informers of a test server, which run until the end of a test.
struct TestInformers {
    factory: InformerFactory,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl TestInformers {
    fn new(server: &Server) -> Self {
        let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
        let client = RestClient::new(server.client());
        Self {
            factory: InformerFactory::new(client, Scope::All, tasks.clone(), stop.clone()),
            tasks,
            stop,
        }
    }

    fn maps(&self) -> (Lister<ConfigMap>, Listener) {
        let lister = self.factory.informer::<ConfigMap>();
        let listener = lister.informer().listen();
        (lister, listener)
    }

    async fn stop(self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

/// Returns the deltas that arrive until the listener receives none for a moment.
async fn deltas(listener: &mut Listener) -> Vec<Delta> {
    let mut deltas = Vec::new();
    while let Ok(event) = timeout(MOMENT, listener.recv()).await {
        if let Event::Delta(delta) = event {
            deltas.push(delta);
        }
    }
    deltas
}

#[tokio::test(start_paused = true)]
async fn shared_stream_stall() {
    let server = Server::new(500);
    let informers = TestInformers::new(&server);
    let (lister, mut slow) = informers.maps();
    sleep(MOMENT).await;
    server.put("configmaps", "passing", json!({}));
    server.delete("configmaps", "passing");
    sleep(MOMENT).await;
    for number in 0..20 {
        server.put("configmaps", &format!("map-{number}"), json!({}));
        sleep(MOMENT).await;
    }
    assert_eq!(
        lister.len(),
        20,
        "a slow listener does not hold up the store"
    );
    let deltas = deltas(&mut slow).await;
    let added = deltas.iter().filter(|delta| delta.change == Change::Added);
    assert_eq!(added.count(), 20);
    let passed = deltas.iter().find(|delta| delta.key.name == "passing");
    assert_eq!(passed.unwrap().change, Change::Deleted);
    informers.stop().await;
}

#[tokio::test(start_paused = true)]
async fn dropped_deletes() {
    let server = Server::new(500);
    let informers = TestInformers::new(&server);
    let (lister, mut listener) = informers.maps();
    sleep(MOMENT).await;
    server.put("configmaps", "a", json!({}));
    assert_eq!(deltas(&mut listener).await[0].change, Change::Added);
    server.delete("configmaps", "a");
    let deleted = &deltas(&mut listener).await[0];
    assert_eq!(deleted.change, Change::Deleted);
    assert_eq!(deleted.old.as_ref().unwrap().name(), "a");
    assert!(deleted.last.as_ref().unwrap().is_certain);
    assert!(lister.is_empty());
    informers.stop().await;
}

#[tokio::test(start_paused = true)]
async fn stale_relist() {
    let server = Server::new(2);
    for name in ["a", "b", "c"] {
        server.put("configmaps", name, json!({"data": {"state": "old"}}));
    }
    let informers = TestInformers::new(&server);
    let (lister, mut listener) = informers.maps();
    sleep(MOMENT).await;
    deltas(&mut listener).await;
    server.begin_gap();
    server.put("configmaps", "a", json!({"data": {"state": "new"}}));
    server.put("configmaps", "aa", json!({"data": {"state": "new"}}));
    server.hold_pages(true);
    server.expire();
    let mut seen = BTreeMap::new();
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(60) {
        if began.elapsed() > Duration::from_secs(5) {
            server.hold_pages(false);
        }
        // State that a reconcile triggered now would read.
        for delta in deltas(&mut listener).await {
            let read = lister.get(&delta.key).unwrap();
            let state = read.and_then(|map| map.data.as_ref()?.get("state").cloned());
            seen.insert(delta.key.name.clone(), state.unwrap_or_default());
        }
    }
    let due = [("a", "new"), ("aa", "new")].map(|(n, s)| (n.to_owned(), s.to_owned()));
    assert_eq!(seen, BTreeMap::from(due));
    informers.stop().await;
}

#[tokio::test(start_paused = true)]
async fn children_deleted_in_a_gap() {
    let owner = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "uid-of-owner",
        "controller": true,
    });
    let server = Server::new(500);
    server.put(
        "configmaps",
        "child",
        json!({"metadata": {"ownerReferences": [owner]}}),
    );
    let informers = TestInformers::new(&server);
    let (_lister, mut listener) = informers.maps();
    sleep(MOMENT).await;
    deltas(&mut listener).await;
    server.begin_gap();
    server.delete("configmaps", "child");
    server.expire();
    let deltas = deltas(&mut listener).await;
    assert_eq!(deltas.len(), 1, "{deltas:?}");
    assert_eq!(deltas[0].change, Change::Deleted);
    assert!(!deltas[0].last.as_ref().unwrap().is_certain);
    let child = deltas[0].old.as_ref().unwrap();
    let owner = child.meta().controller().unwrap();
    assert_eq!(owner.uid, "uid-of-owner", "the owner is known");
    informers.stop().await;
}

#[tokio::test(start_paused = true)]
async fn one_failing_watch_slows_no_other() {
    let server = Server::new(500);
    server.fail_watches("secrets");
    let informers = TestInformers::new(&server);
    let (_maps, mut listener) = informers.maps();
    let secrets = informers.factory.informer::<Secret>();
    sleep(Duration::from_secs(120)).await;
    assert!(secrets.informer().last_error().is_some());
    deltas(&mut listener).await;
    for number in 0..20 {
        server.put("configmaps", &format!("map-{number}"), json!({}));
        let began = Instant::now();
        assert!(matches!(listener.recv().await, Event::Delta(_)));
        assert!(began.elapsed() < Duration::from_millis(10));
        sleep(Duration::from_secs(7)).await;
    }
    informers.stop().await;
}

#[tokio::test(start_paused = true)]
async fn one_undecodable_object() {
    let server = Server::new(500);
    server.put("configmaps", "a", json!({}));
    server.put("configmaps", "broken", json!({"data": 5}));
    server.put("configmaps", "c", json!({}));
    let informers = TestInformers::new(&server);
    let (lister, _listener) = informers.maps();
    let synced = timeout(MOMENT, lister.informer().wait_for_sync()).await;
    assert!(synced.is_ok());
    assert_eq!(lister.len(), 3);
    assert!(lister.get(&("d", "a").into()).unwrap().is_some());
    assert!(lister.get(&("d", "broken").into()).is_err());
    server.put("configmaps", "broken", json!({"data": {"now": "right"}}));
    sleep(MOMENT).await;
    assert!(lister.get(&("d", "broken").into()).unwrap().is_some());
    informers.stop().await;
}

#[tokio::test(start_paused = true)]
async fn lost_wake_up_of_two_waiters() {
    let server = Server::new(1);
    for name in ["a", "b"] {
        server.put("configmaps", name, json!({}));
    }
    server.hold_pages(true);
    let informers = TestInformers::new(&server);
    let (lister, _listener) = informers.maps();
    let waiters: Vec<_> = (0..5)
        .map(|_| {
            let informer = lister.informer().clone();
            let wait = async move { informer.wait_for_sync().await };
            informers
                .tasks
                .spawn(timeout(Duration::from_secs(60), wait))
        })
        .collect();
    sleep(MOMENT).await;
    server.hold_pages(false);
    for waiter in waiters {
        assert!(waiter.await.unwrap().is_ok());
    }
    informers.stop().await;
}
