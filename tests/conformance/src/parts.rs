//! The parts for a loop of one's own: reflectors into stores of the user, the delta queue,
//! informers of other sources.

use std::collections::{BTreeMap, HashSet};

use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use opkit::cache::{
    DeltaQueue, Indexer, InformerFactory, ListWatch, ListWatchError, ObjectDelta, ObjectList,
    Reflector, ReflectorStore, Scope, SourceEvent,
};
use opkit::client::{ListOptions, RestClient};
use opkit::operator::CancellationToken;
use opkit::prelude::*;
use parking_lot::Mutex;
use serde_json::json;
use tokio_util::task::TaskTracker;

use crate::context::object;

fn map(name: &str, value: &str) -> ConfigMap {
    object(json!({"metadata": {"name": name, "labels": {"of": "parts"}}, "data": {"a": value}}))
}

/// Returns the source of the config maps of the test.
fn maps(plane: &ControlPlane) -> ListWatch<ConfigMap> {
    let list = ListOptions::new()
        .in_namespace(plane.namespace())
        .labels("of=parts");
    ListWatch::of_api(RestClient::new(plane.client()), list)
}

/// Tasks of a test, which are stopped at its end.
#[derive(Default)]
struct Tasks {
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Tasks {
    async fn stop(self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

/// Store of the user: the values of the maps, and the names of its calls.
#[derive(Clone, Default)]
struct Values {
    values: Arc<Mutex<BTreeMap<String, String>>>,
    calls: Arc<Mutex<Vec<&'static str>>>,
}

fn value(map: &ConfigMap) -> String {
    let data = map.data.as_ref().and_then(|data| data.get("a"));
    data.cloned().unwrap_or_default()
}

impl Values {
    fn set(&self, map: &ConfigMap) {
        self.values.lock().insert(map.name_any(), value(map));
    }

    fn are(&self, expected: &[(&str, &str)]) -> bool {
        let expected = expected
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_string()));
        *self.values.lock() == expected.collect()
    }
}

impl ReflectorStore<ConfigMap> for Values {
    fn add(&mut self, map: Arc<ConfigMap>) {
        self.calls.lock().push("add");
        self.set(&map);
    }

    fn update(&mut self, map: Arc<ConfigMap>) {
        self.calls.lock().push("update");
        self.set(&map);
    }

    fn delete(&mut self, key: &ObjectKey, last: Option<Arc<ConfigMap>>) {
        assert!(last.is_some(), "the last state of {key}");
        self.calls.lock().push("delete");
        self.values.lock().remove(&key.name);
    }

    fn replace(&mut self, maps: Vec<Arc<ConfigMap>>, _: &str) {
        self.calls.lock().push("replace");
        self.values.lock().clear();
        maps.iter().for_each(|map| self.set(map));
    }
}

/// Waits until a condition holds.
async fn until(what: &str, holds: impl Fn() -> bool) -> opkit::Result {
    for _ in 0..6_000 {
        if holds() {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Err(Error::msg(format!("not reached: {what}")))
}

#[opkit::test]
async fn a_store_of_the_user_follows_the_api(plane: ControlPlane) -> opkit::Result {
    plane.apply(map("one", "1")).await?;
    let (tasks, values) = (Tasks::default(), Values::default());
    let reflector = Reflector::new(maps(&plane), values.clone());
    let mut synced = reflector.synced();
    tasks.tasks.spawn(reflector.run(tasks.stop.clone()));
    synced.wait_for(|synced| *synced).await?;
    assert!(values.are(&[("one", "1")]), "other maps are not selected");

    plane.apply(map("two", "2")).await?;
    until("add", || values.are(&[("one", "1"), ("two", "2")])).await?;
    plane.apply(map("one", "3")).await?;
    until("update", || values.are(&[("one", "3"), ("two", "2")])).await?;
    plane.delete::<ConfigMap>("two").await?;
    until("delete", || values.are(&[("one", "3")])).await?;
    tasks.stop().await;
    let calls = values.calls.lock().clone();
    assert_eq!(calls, ["replace", "add", "update", "delete"]);
    Ok(())
}

#[opkit::test]
async fn a_delta_queue_finds_deletions_that_the_watch_missed(plane: ControlPlane) -> opkit::Result {
    for (name, value) in [("one", "1"), ("two", "2")] {
        plane.apply(map(name, value)).await?;
    }
    let tasks = Tasks::default();
    let store = Indexer::<ConfigMap>::of_objects();
    store.add_index("value", |map| vec![value(map)])?;
    let queue = DeltaQueue::new(store.clone());
    let first = CancellationToken::new();
    let reflector = Reflector::new(maps(&plane), queue.clone());
    let watching = tasks.tasks.spawn(reflector.run(first.clone()));
    let seen = Arc::new(Mutex::new(HashSet::new()));
    for _ in 0..2 {
        let (queue, store, seen) = (queue.clone(), store.clone(), seen.clone());
        tasks.tasks.spawn(async move {
            while let Some(popped) = queue.pop().await {
                for delta in popped.deltas() {
                    let name = &popped.key().name;
                    match delta {
                        ObjectDelta::Deleted { is_final, .. } => {
                            seen.lock().insert(format!("{name} deleted {is_final}"));
                            store.delete(popped.key());
                        }
                        ObjectDelta::Sync(_) => drop(seen.lock().insert(format!("{name} sync"))),
                        changed => drop(changed.object().map(|map| store.update(map.clone()))),
                    }
                }
            }
        });
    }
    until("the list", || queue.has_synced() && store.len() == 2).await?;
    assert_eq!(store.index_keys("value", "2")?.len(), 1);
    plane.apply(map("one", "3")).await?;
    until("the change", || {
        store
            .index_keys("value", "3")
            .is_ok_and(|keys| keys.len() == 1)
    })
    .await?;

    // Nobody watches while a map is deleted; the list of the next reflector does not have it.
    first.cancel();
    watching.await?;
    plane.delete::<ConfigMap>("two").await?;
    plane.eventually_gone::<ConfigMap>("two").await?;
    let reflector = Reflector::new(maps(&plane), queue.clone());
    tasks.tasks.spawn(reflector.run(tasks.stop.clone()));
    until("the deletion", || store.len() == 1).await?;

    // An object with a change that waits is left out of a resync.
    until("the resync", || {
        queue.resync();
        seen.lock().contains("one sync")
    })
    .await?;
    queue.close();
    tasks.stop().await;
    assert!(queue.pop().await.is_none(), "closed and empty");
    assert!(
        seen.lock().contains("two deleted false"),
        "not the final state"
    );
    Ok(())
}

/// A kind that no server has.
#[opkit::kind(group = "flags.opkit.dev", version = "v1", cluster)]
pub(crate) struct FlagSpec {
    on: bool,
}

#[opkit::test]
async fn functions_and_the_api_have_the_same_informers(plane: ControlPlane) -> opkit::Result {
    let flag = |name: &str, version: &str| {
        let mut flag = Flag::new(name, FlagSpec { on: true });
        flag.metadata.resource_version = Some(version.to_owned());
        flag
    };
    let list = move || async move {
        Ok(ObjectList {
            objects: vec![flag("dark-mode", "1")],
            version: "1".to_owned(),
        })
    };
    let watch = move |since: String| async move {
        let event = SourceEvent::Added(flag("beta", "2"));
        let events = (since == "1").then(|| Ok::<_, ListWatchError>(event));
        Ok(futures::stream::iter(events).chain(futures::stream::pending()))
    };
    plane.apply(map("one", "1")).await?;
    let tasks = Tasks::default();
    let rest = RestClient::new(plane.client());
    let (tracker, stop) = (tasks.tasks.clone(), tasks.stop.clone());
    let factory = InformerFactory::new(rest, Scope::All, tracker, stop);
    let flags = factory.informer_from(ListWatch::new(list, watch));
    let maps = factory.informer_from(maps(&plane));
    factory.wait_for_sync(Duration::from_secs(60)).await?;
    until("the change", || flags.len() == 2).await?;
    assert!(flags.get(&"beta".into())?.is_some_and(|flag| flag.spec.on));
    assert_eq!(maps.len(), 1);
    plane.apply(map("two", "2")).await?;
    until("the map", || maps.len() == 2).await?;
    tasks.stop().await;
    Ok(())
}
