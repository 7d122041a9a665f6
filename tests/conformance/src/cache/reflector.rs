//! Reads of a kind: streamed or in pages, in protobuf or JSON, and after a gap in the watch.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::core::Status;
use opkit::cache::{Change, Event, InformerFactory, Scope};
use opkit::client::{Effect, RestClient, Rule, Seam};
use opkit::prelude::*;
use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::{Cache, client, eventually, map};

/// Same as [`Cache::new`], with requests through a seam.
fn through(seam: &Seam, plane: &ControlPlane) -> Cache {
    let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
    let scope = Scope::Namespaces(vec![plane.namespace().to_owned()]);
    let client = RestClient::new(seam.wrap(plane.client()));
    let factory = InformerFactory::new(client, scope, tasks.clone(), stop.clone());
    Cache {
        factory: factory.into(),
        tasks,
        stop,
    }
}

/// Refuses the `n`-th watch.
fn fail(n: u64, code: u16) -> Rule {
    let status = Status::failure("scripted by the test", "Scripted").with_code(code);
    Rule::new(Effect::Fail(Box::new(status)))
        .verb("watch")
        .nth(n)
}

/// Returns the verbs and queries of the sent requests.
fn sent(seam: &Seam) -> Vec<(String, String)> {
    let exchanges = seam.exchanges().into_iter();
    exchanges
        .map(|exchange| (exchange.info.verb.to_string(), exchange.query))
        .collect()
}

#[opkit::test]
async fn a_list_is_streamed_in_protobuf(plane: ControlPlane) -> opkit::Result {
    let seam = Seam::new();
    let (cache, client) = (through(&seam, &plane), client(&plane));
    for name in ["one", "two"] {
        client.create(&map(name, "red")).await?;
    }
    let maps = cache.factory.informer::<ConfigMap>();
    cache.synced().await?;
    client.create(&map("three", "red")).await?;
    let here = |name: &str| (plane.namespace(), name).into();
    eventually("a creation", || {
        maps.get(&here("three")).is_ok_and(|map| map.is_some())
    })
    .await;
    for name in ["one", "two", "three"] {
        let read = maps.get(&here(name))?.expect("the map exists");
        assert_eq!(read.data, map(name, "red").data);
    }
    let exchanges = seam.exchanges();
    assert_eq!(exchanges.len(), 1, "one request does it all: {exchanges:?}");
    assert!(exchanges[0].query.contains("sendInitialEvents=true"));
    let headers = format!("{:?}", exchanges[0].headers);
    assert!(headers.contains("vnd.kubernetes.protobuf"), "{headers}");
    cache.end().await
}

#[opkit::test]
async fn changes_during_a_gap_are_delivered_exactly(plane: ControlPlane) -> opkit::Result {
    let seam = Seam::new();
    let (cache, client) = (through(&seam, &plane), client(&plane));
    for name in ["kept", "changed", "deleted"] {
        client.create(&map(name, "red")).await?;
    }
    // No streaming list; then a pause with many changes; then a version that is too old.
    for (n, code) in [(1, 400), (2, 429), (3, 410)] {
        seam.add(fail(n, code));
    }
    let maps = cache.factory.informer::<ConfigMap>();
    let mut listener = maps.informer().listen();
    cache.synced().await?;
    while !matches!(listener.recv().await, Event::Synced) {}
    client.delete(&map("deleted", "red")).await?;
    let here = |name: &str| (plane.namespace(), name).into();
    let mut changed = (*maps.get(&here("changed"))?.expect("the map exists")).clone();
    changed.data = map("changed", "green").data;
    client.update(&changed).await?;
    client.create(&map("new", "red")).await?;
    eventually("the list after the gap", || {
        maps.get(&here("new")).is_ok_and(|map| map.is_some())
    })
    .await;

    let mut delivered = Vec::new();
    while let Ok(event) = tokio::time::timeout(Duration::from_millis(300), listener.recv()).await {
        if let Event::Delta(delta) = event {
            delivered.push((delta.key.name, delta.change));
        }
    }
    delivered.retain(|(name, _)| name != "kube-root-ca.crt");
    delivered.sort_by(|one, other| one.0.cmp(&other.0));
    let due = [
        ("changed", Change::Replaced),
        ("deleted", Change::Deleted),
        ("new", Change::Added),
    ];
    assert_eq!(
        delivered,
        due.map(|(name, change)| (name.to_owned(), change))
    );
    let verbs: Vec<_> = sent(&seam).into_iter().map(|(verb, _)| verb).collect();
    let due = ["watch", "list", "watch", "watch", "list", "watch"];
    assert_eq!(verbs[..6], due);
    let queries: Vec<_> = sent(&seam).into_iter().map(|(_, query)| query).collect();
    assert!(queries[4].contains("NotOlderThan"), "{queries:?}");
    assert!(
        !queries[5].contains("sendInitialEvents"),
        "the next list is not streamed either"
    );
    cache.end().await
}

#[opkit::test]
async fn metrics_are_exported(plane: ControlPlane) -> opkit::Result {
    let (cache, client) = (Cache::new(&plane), client(&plane));
    client.create(&map("one", "red")).await?;
    let mut registry = Registry::default();
    registry.register_collector(Box::new(cache.factory.metrics()));
    let maps = cache.factory.informer::<ConfigMap>();
    cache.synced().await?;
    let mut shown = String::new();
    text::encode(&mut shown, &registry)?;
    let value = |name: &str| {
        let line = shown.lines().find(|line| line.starts_with(name));
        let value = line.and_then(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
        value.unwrap_or_else(|| panic!("no {name} in {shown}"))
    };
    assert_eq!(value("opkit_cache_objects{"), maps.len() as f64);
    assert!(value("opkit_cache_bytes{") > 100.0);
    assert!(value("opkit_cache_watch_age_seconds{") < 60.0);
    assert!(value("opkit_cache_lag_seconds{") < 60.0);
    assert_eq!(value("opkit_cache_relists_total{"), 0.0);
    cache.end().await
}
