//! Informers, stores, indexes, and reads of a client's own writes.

mod informers;
mod projections;
mod reflector;
mod shards;
mod streams;
mod writes;

use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use opkit::cache::{InformerFactory, Scope};
use opkit::client::{Client, RestClient};
use opkit::prelude::*;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Factory of informers for the namespace of the test, which stops with the test.
struct Cache {
    factory: Arc<InformerFactory>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Cache {
    fn new(plane: &ControlPlane) -> Self {
        let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
        let scope = Scope::Namespaces(vec![plane.namespace().to_owned()]);
        let client = RestClient::new(plane.client());
        let factory = InformerFactory::new(client, scope, tasks.clone(), stop.clone());
        Self {
            factory: Arc::new(factory),
            tasks,
            stop,
        }
    }

    async fn synced(&self) -> opkit::Result {
        Ok(self.factory.wait_for_sync(Duration::from_secs(30)).await?)
    }

    /// Stops all informers and checks that no task is left.
    async fn end(self) -> opkit::Result {
        self.stop.cancel();
        self.tasks.close();
        let ended = tokio::time::timeout(Duration::from_secs(10), self.tasks.wait());
        Ok(ended.await?)
    }
}

fn client(plane: &ControlPlane) -> Client {
    Client::new(plane.client()).field_manager("conformance")
}

/// Returns a config map with a colour.
fn map(name: &str, colour: &str) -> ConfigMap {
    let map = json!({
        "metadata": {"name": name, "labels": {"colour": colour}, "annotations": {"note": "x".repeat(40)}},
        "data": {"colour": colour, "text": "y".repeat(200)},
    });
    serde_json::from_value(map).unwrap()
}

/// Calls `look` at intervals until it returns true.
async fn eventually(what: &str, mut look: impl FnMut() -> bool) {
    for _ in 0..400 {
        if look() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("{what} does not occur in time");
}

fn name_of(map: &ConfigMap) -> &str {
    map.metadata.name.as_deref().unwrap_or_default()
}
