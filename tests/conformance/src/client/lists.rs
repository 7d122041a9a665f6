//! Lists, pages, watches, and the deletion of collections.

use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::core::WatchEvent;
use opkit::client::{DeleteOptions, VersionMatch};
use opkit::prelude::*;

use super::{client, here, map};

async fn create_maps(plane: &ControlPlane, count: usize) -> opkit::Result {
    let client = client(plane);
    for number in 0..count {
        let mut map = map(&format!("map-{number:02}"));
        let labels = map.metadata.labels.get_or_insert_default();
        labels.insert("even".to_owned(), (number % 2 == 0).to_string());
        client.create(&map).await?;
    }
    Ok(())
}

#[opkit::test]
async fn lists_select_and_page(plane: ControlPlane) -> opkit::Result {
    create_maps(&plane, 7).await?;
    let client = client(&plane);
    let even = client
        .list::<ConfigMap>(&here(&plane).labels("even=true"))
        .await?;
    assert_eq!(even.items.len(), 4);
    let named = here(&plane).fields("metadata.name=map-03");
    let named = client.list::<ConfigMap>(&named).await?;
    assert_eq!(named.items.len(), 1);

    let page = here(&plane).labels("even").limit(3);
    let first = client.list::<ConfigMap>(&page).await?;
    assert_eq!(first.items.len(), 3);
    let token = first
        .continue_token()
        .expect("there is another page")
        .to_owned();
    let second = client
        .list::<ConfigMap>(&page.clone().continue_from(&token))
        .await?;
    assert_eq!(second.items.len(), 3);
    assert_eq!(first.resource_version(), second.resource_version());
    let all = client.list_all::<ConfigMap>(&page).await?;
    assert_eq!(all.items.len(), 7);
    assert_eq!(all.continue_token(), None);
    let exact = here(&plane)
        .labels("even")
        .limit(10)
        .version(first.resource_version(), VersionMatch::Exact);
    assert_eq!(client.list::<ConfigMap>(&exact).await?.items.len(), 7);
    Ok(())
}

#[opkit::test]
async fn a_collection_is_deleted_by_its_labels(plane: ControlPlane) -> opkit::Result {
    create_maps(&plane, 5).await?;
    let client = client(&plane);
    let odd = here(&plane).labels("even=false");
    client
        .delete_all::<ConfigMap>(&odd, &DeleteOptions::default())
        .await?;
    let left = client
        .list::<ConfigMap>(&here(&plane).labels("even"))
        .await?;
    let names: Vec<String> = left.into_iter().map(|map| map.name_any()).collect();
    assert_eq!(names, ["map-00", "map-02", "map-04"]);
    Ok(())
}

#[opkit::test]
async fn a_watch_continues_from_a_list(plane: ControlPlane) -> opkit::Result {
    let client = client(&plane);
    create_maps(&plane, 1).await?;
    let list = client.list::<ConfigMap>(&here(&plane)).await?;
    let from = here(&plane)
        .labels("even")
        .version(list.resource_version(), VersionMatch::default());
    let mut events = client.watch::<ConfigMap>(&from).await?;
    let mut changed: ConfigMap = client.get("map-00").await?;
    changed.data = None;
    let changed = client.update(&changed).await?;
    client.delete(&changed).await?;
    let mut seen = Vec::new();
    while seen.len() < 2 {
        let event = tokio::time::timeout(Duration::from_secs(20), events.next()).await?;
        match event.expect("the watch continues")? {
            WatchEvent::Modified(map) => {
                seen.push(format!("modified {} {:?}", map.name_any(), map.data))
            }
            WatchEvent::Deleted(map) => seen.push(format!("deleted {}", map.name_any())),
            WatchEvent::Bookmark(_) => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(seen, ["modified map-00 None", "deleted map-00"]);
    Ok(())
}

#[opkit::test]
async fn a_watch_from_an_unknown_version_is_an_error(plane: ControlPlane) -> opkit::Result {
    let client = client(&plane);
    create_maps(&plane, 1).await?;
    let from = here(&plane).version("999999999999", VersionMatch::default());
    let mut from = from;
    from.watch_timeout = Duration::from_secs(2);
    // A future version is refused immediately, or the server waits for it until a timeout.
    match client.watch::<ConfigMap>(&from).await {
        Err(error) => assert!(error.status().is_some(), "{error}"),
        Ok(mut events) => {
            while let Some(event) = events.next().await {
                match event {
                    Err(error) => assert!(error.status().is_some(), "{error}"),
                    Ok(WatchEvent::Bookmark(_)) => {}
                    Ok(other) => panic!("{other:?}"),
                }
            }
        }
    }
    Ok(())
}
