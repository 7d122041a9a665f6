//! Informers as streams of opkit's events and of kube's.

use std::pin::pin;

use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_runtime::WatchStreamExt;
use kube_runtime::watcher::Event;
use opkit::prelude::*;
use opkit_kube_streams::watcher_events;

use super::{Cache, client, map, name_of};

#[opkit::test]
async fn kubes_helpers_compose_with_an_informer(plane: ControlPlane) -> opkit::Result {
    let (cache, client) = (Cache::new(&plane), client(&plane));
    let created = client.create(&map("one", "red")).await?;
    let maps = cache.factory.informer::<ConfigMap>();
    let mut events = pin!(watcher_events::<ConfigMap>(maps.informer().listen()));
    let mut touched = pin!(watcher_events::<ConfigMap>(maps.informer().listen()).touched_objects());
    let mut seen = Vec::new();
    while seen.last().is_none_or(|last| last != "delete one") {
        let event = tokio::time::timeout(Duration::from_secs(20), events.next()).await?;
        let one = |map: &ConfigMap| name_of(map) == "one";
        match event.expect("the stream does not end")? {
            Event::Init => seen.push("init".to_owned()),
            Event::InitApply(map) if one(&map) => seen.push("list one".to_owned()),
            Event::InitDone => {
                seen.push("done".to_owned());
                client.delete(&created).await?;
            }
            Event::Delete(map) if one(&map) => seen.push("delete one".to_owned()),
            _ => {}
        }
    }
    assert_eq!(seen, ["init", "list one", "done", "delete one"]);
    // A slow listener gets one delta, with the final state.
    let map = tokio::time::timeout(Duration::from_secs(20), async {
        loop {
            let map = touched.next().await.expect("the stream does not end")?;
            if name_of(&map) == "one" {
                return Ok::<_, kube_runtime::watcher::Error>(map);
            }
        }
    });
    map.await??;
    cache.end().await
}
