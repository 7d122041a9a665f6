//! One watch with several users.

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use opkit::cache::{Event, Index, InformerOptions, Selection};
use opkit::prelude::*;

use super::{Cache, client, eventually, map, name_of};

fn by_colour() -> Index {
    Index::meta("colour", |meta| {
        meta.label("colour").map(String::from).into_iter().collect()
    })
}

#[opkit::test]
async fn an_informer_follows_its_kind(plane: ControlPlane) -> opkit::Result {
    let (cache, client) = (Cache::new(&plane), client(&plane));
    client.create(&map("one", "red")).await?;
    let maps = cache.factory.informer::<ConfigMap>();
    let mut listener = maps.informer().listen();
    cache.synced().await?;
    let here = |name: &str| (plane.namespace(), name).into();
    let one = maps.get(&here("one"))?.expect("the map existed before");
    assert_eq!(
        one.data
            .as_ref()
            .and_then(|data| data.get("colour"))
            .map(String::as_str),
        Some("red")
    );

    client.create(&map("two", "blue")).await?;
    let mut green = map("one", "green");
    green.metadata.resource_version = one.metadata.resource_version.clone();
    client.update(&green).await?;
    eventually("a change", || {
        let one = maps.get(&here("one")).ok().flatten();
        one.is_some_and(|one| one.data == green.data)
    })
    .await;
    client
        .delete(&*maps.get(&here("one"))?.expect("the map exists"))
        .await?;
    eventually("a deletion", || {
        maps.get(&here("one")).is_ok_and(|one| one.is_none())
    })
    .await;

    // Applying all deltas of the listener leads to the current state.
    let mut known = std::collections::BTreeSet::new();
    let mut synced = false;
    while let Ok(event) = tokio::time::timeout(Duration::from_millis(200), listener.recv()).await {
        match event {
            Event::Delta(delta) if delta.new.is_some() => drop(known.insert(delta.key.name)),
            Event::Delta(delta) => drop(known.remove(&delta.key.name)),
            _ => synced = true,
        }
    }
    let keys = maps.keys(&Selection::default());
    assert!(synced);
    assert_eq!(known, keys.into_iter().map(|key| key.name).collect());
    cache.end().await
}

#[opkit::test]
async fn users_share_a_watch_that_stops_with_the_last_user(plane: ControlPlane) -> opkit::Result {
    let cache = Cache::new(&plane);
    let (first, second) = (
        cache.factory.informer::<Secret>(),
        cache.factory.informer::<Secret>(),
    );
    cache.synced().await?;
    assert_eq!(cache.tasks.len(), 1);
    drop(first);
    assert!(cache.factory.started::<Secret>().is_some());
    drop(second);
    assert!(cache.factory.started::<Secret>().is_none());
    eventually("the end of the watch", || cache.tasks.is_empty()).await;
    // The kind can be watched again.
    let third = cache.factory.informer::<Secret>();
    cache.synced().await?;
    assert_eq!(cache.tasks.len(), 1);
    drop(third);
    cache.end().await
}

#[opkit::test]
async fn indexes_and_selectors_read_without_decoding(plane: ControlPlane) -> opkit::Result {
    let (cache, client) = (Cache::new(&plane), client(&plane));
    for number in 0..20 {
        let colour = if number % 4 == 0 { "red" } else { "blue" };
        client
            .create(&map(&format!("map-{number:02}"), colour))
            .await?;
    }
    let options = InformerOptions::default()
        .index(by_colour())
        .index(Index::field("data", "data.colour"));
    let maps = cache.factory.informer_with::<ConfigMap>(options);
    let blue = InformerOptions::default().labels("colour=blue")?;
    let blue = cache.factory.informer_with::<ConfigMap>(blue);
    cache.synced().await?;
    assert_eq!(
        maps.keys(&Selection::default().by_index("colour", "red"))
            .len(),
        5
    );
    assert_eq!(
        maps.keys(&Selection::default().by_index("data", "blue"))
            .len(),
        15
    );
    assert_eq!(
        maps.keys(
            &Selection::default()
                .namespace(plane.namespace())
                .by_index("colour", "red")
        )
        .len(),
        5
    );
    assert_eq!(maps.informer().stats().decodes, 0);
    assert_eq!(blue.len(), 15, "only selected objects are cached");
    let red = maps.list(&Selection::default().by_index("colour", "red"));
    assert!(red.iter().all(|map| name_of(map).starts_with("map-")));
    assert_eq!(maps.informer().stats().decodes, 5);
    cache.end().await
}

#[opkit::test]
async fn objects_beyond_the_budget_are_read_from_the_api(plane: ControlPlane) -> opkit::Result {
    let (cache, client) = (Cache::new(&plane), client(&plane));
    for number in 0..30 {
        let mut map = map(&format!("map-{number:02}"), "red");
        let data = map.data.get_or_insert_default();
        data.insert("own".to_owned(), format!("{number} {}", "z".repeat(400)));
        client.create(&map).await?;
    }
    let options = InformerOptions::default().memory_budget(12_000);
    let maps = cache.factory.informer_with::<ConfigMap>(options);
    cache.synced().await?;
    let keys = maps.keys(&Selection::default());
    assert!(keys.len() >= 30);
    assert!(maps.informer().stats().evictions > 0);
    for key in keys {
        let map = maps.fetch(&key).await?.expect("the API returns it");
        assert_eq!(name_of(&map), key.name);
    }
    cache.end().await
}
