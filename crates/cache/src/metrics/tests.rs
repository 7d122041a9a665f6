use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use opkit_client::RestClient;
use prometheus_client::registry::Registry;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::*;
use crate::faults::script::Server;
use crate::{InformerFactory, InformerOptions, Scope};

fn counters(watching_since: Option<u64>, last_received: Option<u64>) -> Counters {
    Counters {
        lists: 3,
        watching_since: watching_since.map(Duration::from_secs),
        last_received: last_received.map(Duration::from_secs),
        ..Default::default()
    }
}

#[tokio::test(start_paused = true)]
async fn ages_grow_with_the_clock() {
    let stats = Arc::new(WatchStats::default());
    assert_eq!(stats.age(), None);
    stats.set(Duration::from_secs(10), &counters(Some(4), Some(9)));
    assert_eq!(stats.age(), Some(Duration::from_secs(6)));
    tokio::time::advance(Duration::from_secs(5)).await;
    assert_eq!(stats.age(), Some(Duration::from_secs(11)));
    assert_eq!(stats.silence(), Some(Duration::from_secs(6)));
    stats.set(Duration::from_secs(15), &counters(None, Some(9)));
    assert_eq!(stats.age(), None);
}

#[tokio::test(start_paused = true)]
async fn every_informer_has_its_rows() {
    let server = Server::new(500);
    server.put(
        "configmaps",
        "a",
        json!({"metadata": {"labels": {"app": "web"}}}),
    );
    server.put("configmaps", "b", json!({"data": 5}));
    let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
    let client = RestClient::new(server.client());
    let factory = InformerFactory::new(client, Scope::All, tasks.clone(), stop.clone());
    let mut registry = Registry::default();
    registry.register_collector(Box::new(factory.metrics()));
    let all = factory.informer::<ConfigMap>();
    let some = InformerOptions::default().labels("app=web").unwrap();
    let some = factory.informer_with::<ConfigMap>(some);
    all.informer().wait_for_sync().await;
    some.informer().wait_for_sync().await;
    assert!(all.get(&("d", "b").into()).is_err());
    server.begin_gap();
    server.expire();
    tokio::time::sleep(Duration::from_secs(7)).await;

    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    let labels = r#"group="",version="v1",kind="ConfigMap",selector="""#;
    for line in [
        format!("opkit_cache_objects{{{labels}}} 2"),
        format!("opkit_cache_relists_total{{{labels}}} 1"),
        format!("opkit_cache_decode_errors_total{{{labels}}} 1"),
        format!("opkit_cache_lag_seconds{{{labels}}} 7"),
    ] {
        assert!(text.contains(&line), "{line}\n{text}");
    }
    assert!(text.contains(r#"selector="app=web""#), "{text}");
    stop.cancel();
    tasks.close();
    tasks.wait().await;
}
