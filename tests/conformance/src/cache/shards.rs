//! A kind that is split over several watches or processes.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::ConfigMap;
use opkit::cache::{
    Change, Event, InformerOptions, Listener, Lister, Selection, ShardKey, ShardSelector, Shards,
};
use opkit::client::{Kind, ListOptions, ObjectKey, Patch, ResponseFormat, RestClient};
use opkit::prelude::*;
use opkit::testing::Capability;
use serde_json::Value;

use super::{Cache, client, eventually, map};

fn sharded(shards: Shards) -> InformerOptions {
    InformerOptions::default().shards(shards)
}

fn names(maps: &Lister<ConfigMap>) -> BTreeSet<String> {
    let keys = maps.keys(&Selection::default()).into_iter();
    keys.map(|key| key.name)
        .filter(|name| name.starts_with("map-"))
        .collect()
}

fn all(count: usize) -> BTreeSet<String> {
    (0..count).map(|number| format!("map-{number}")).collect()
}

/// Counts the added, changed and deleted deltas of each object, until no more arrive.
async fn deltas(listener: &mut Listener) -> BTreeMap<String, [u32; 3]> {
    let mut delivered = BTreeMap::<String, [u32; 3]>::new();
    while let Ok(event) = tokio::time::timeout(Duration::from_millis(300), listener.recv()).await {
        let Event::Delta(delta) = event else { continue };
        let counts = delivered.entry(delta.key.name).or_default();
        match delta.change {
            Change::Added => counts[0] += 1,
            Change::Deleted => counts[2] += 1,
            _ => counts[1] += 1,
        }
    }
    delivered.retain(|name, _| name.starts_with("map-"));
    delivered
}

#[opkit::test]
async fn several_watches_fill_one_store(plane: ControlPlane) -> opkit::Result {
    let (cache, client) = (Cache::new(&plane), client(&plane));
    for number in 0..6 {
        client.create(&map(&format!("map-{number}"), "red")).await?;
    }
    let options = sharded(Shards::default().watches(3));
    let maps = cache.factory.informer_with::<ConfigMap>(options);
    let mut listener = maps.informer().listen();
    cache.synced().await?;
    assert_eq!(cache.tasks.len(), 3);
    assert_eq!(names(&maps), all(6));
    let before = deltas(&mut listener).await;
    for number in 6..12 {
        client.create(&map(&format!("map-{number}"), "red")).await?;
    }
    client
        .delete(
            &*maps
                .get(&(plane.namespace(), "map-0").into())?
                .expect("the map exists"),
        )
        .await?;
    eventually("all objects", || names(&maps).len() == 11).await;
    let expected = all(12).into_iter().skip(1).map(|name| (name, [1, 0, 0]));
    let mut expected: BTreeMap<_, _> = expected.collect();
    expected.insert("map-0".to_owned(), [1, 0, 1]);
    let mut delivered = deltas(&mut listener).await;
    for (name, counts) in before {
        delivered.entry(name).or_default()[0] += counts[0];
    }
    assert_eq!(delivered, expected);
    cache.end().await
}

#[opkit::test]
async fn processes_share_a_kind(plane: ControlPlane) -> opkit::Result {
    let client = client(&plane);
    let caches = [0, 1, 2].map(|_| Cache::new(&plane));
    let parts = [0, 1, 2].map(|index| {
        let options = sharded(Shards::part(ShardKey::Uid, index, 3).watches(2));
        caches[index as usize]
            .factory
            .informer_with::<ConfigMap>(options)
    });
    for cache in &caches {
        cache.synced().await?;
    }
    for number in 0..12 {
        client.create(&map(&format!("map-{number}"), "red")).await?;
    }
    let total = || parts.iter().map(|part| names(part).len()).sum::<usize>();
    eventually("all objects", || total() == 12).await;
    let union: BTreeSet<_> = parts.iter().flat_map(names).collect();
    assert_eq!(union, all(12), "the shards do not overlap");
    for cache in caches {
        cache.end().await?;
    }
    Ok(())
}

#[opkit::test]
async fn a_new_split_loses_and_duplicates_no_object(plane: ControlPlane) -> opkit::Result {
    let (cache, client) = (Cache::new(&plane), client(&plane));
    let maps = cache
        .factory
        .informer_with::<ConfigMap>(sharded(Shards::default()));
    let mut listener = maps.informer().listen();
    cache.synced().await?;
    for (round, watches) in [3, 2, 5, 1].into_iter().enumerate() {
        for number in round * 5..round * 5 + 3 {
            client.create(&map(&format!("map-{number}"), "red")).await?;
        }
        cache
            .factory
            .resplit(&maps, Shards::default().watches(watches));
        for number in round * 5 + 3..round * 5 + 5 {
            client.create(&map(&format!("map-{number}"), "red")).await?;
        }
        eventually("all objects", || names(&maps) == all(round * 5 + 5)).await;
    }
    let expected = all(20).into_iter().map(|name| (name, [1, 0, 0])).collect();
    assert_eq!(deltas(&mut listener).await, expected);
    // Another process takes over half of the objects.
    let half = ShardSelector::part(ShardKey::Uid, 0, 2);
    cache.factory.resplit(&maps, Shards::range(half));
    let kept = names(&maps);
    let delivered = deltas(&mut listener).await;
    let deleted: BTreeSet<_> = delivered.keys().cloned().collect();
    assert!(
        delivered.values().all(|counts| *counts == [0, 0, 1]),
        "{delivered:?}"
    );
    assert!(deleted.is_disjoint(&kept) && &deleted | &kept == all(20));
    cache.end().await
}

/// Changes the owner of a config map, and returns the config map.
async fn owned_by(plane: &ControlPlane, name: &str, owner: &ConfigMap) -> opkit::Result<ConfigMap> {
    let client = client(plane);
    let reference = serde_json::json!([{
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": owner.name_any(),
        "uid": owner.metadata.uid,
    }]);
    let patch = serde_json::json!({"metadata": {"ownerReferences": reference}});
    let key = ObjectKey::from((plane.namespace(), name));
    Ok(client.patch::<ConfigMap>(key, Patch::Merge(&patch)).await?)
}

#[opkit::test]
async fn dependents_are_cached_where_their_owner_is(plane: ControlPlane) -> opkit::Result {
    let (cache, client) = (Cache::new(&plane), client(&plane));
    let slots = |slots: &[u32]| ShardSelector::slots(ShardKey::Uid, slots.iter().copied(), 4);
    let (lower, upper) = (slots(&[0, 1]), slots(&[2, 3]));
    // Owners with random UIDs, until there is one in each half.
    let mut owners = Vec::new();
    while [&lower, &upper].iter().any(|half| {
        let uid = |owner: &ConfigMap| owner.metadata.uid.clone().unwrap_or_default();
        !owners.iter().any(|owner| half.matches(&uid(owner), ""))
    }) {
        let name = format!("owner-{}", owners.len());
        owners.push(client.create(&map(&name, "red")).await?);
    }
    let owner_in = |half: &ShardSelector| {
        let uid = |owner: &&ConfigMap| owner.metadata.uid.clone().unwrap_or_default();
        let mut owners = owners.iter();
        owners
            .find(|owner| half.matches(&uid(owner), ""))
            .expect("it was created")
    };
    for number in 0..4 {
        let name = format!("map-{number}");
        client.create(&map(&name, "red")).await?;
        let half = if number < 2 { &lower } else { &upper };
        owned_by(&plane, &name, owner_in(half)).await?;
    }
    let nothing = Shards::owners(slots(&[]));
    let maps = cache.factory.informer_with::<ConfigMap>(sharded(nothing));
    cache.synced().await?;
    assert!(maps.is_empty());
    let mine = cache.factory.resplit(&maps, Shards::owners(lower.clone()));
    mine.wait(Duration::from_secs(60)).await?;
    let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let expected: BTreeSet<String> = set(&["map-0", "map-1"]);
    assert_eq!(names(&maps), expected);
    assert_eq!(maps.len(), 2, "owners have no owner");
    let mut listener = maps.informer().listen();
    deltas(&mut listener).await;
    owned_by(&plane, "map-0", owner_in(&upper)).await?;
    owned_by(&plane, "map-3", owner_in(&lower)).await?;
    let expected = set(&["map-1", "map-3"]);
    eventually("the new owners", || names(&maps) == expected).await;
    let theirs = cache.factory.resplit(&maps, Shards::owners(upper));
    theirs.wait(Duration::from_secs(60)).await?;
    assert_eq!(names(&maps), set(&["map-0", "map-2"]));
    cache.end().await
}

#[opkit::test]
async fn the_server_sends_only_the_requested_shard(plane: ControlPlane) -> opkit::Result {
    plane.require(Capability::Shards)?;
    let (rest, client) = (RestClient::new(plane.client()), client(&plane));
    for number in 0..12 {
        client.create(&map(&format!("map-{number}"), "red")).await?;
    }
    let mut seen = Vec::new();
    for part in [0, 1].map(|index| ShardSelector::part(ShardKey::Uid, index, 2)) {
        let mut options = ListOptions::new().in_namespace(plane.namespace());
        options.shard_selector = part.to_string();
        let (kind, format) = (Kind::of::<ConfigMap>(), ResponseFormat::default());
        let list: Value = rest.list(&kind, &options, format).await?.decode()?;
        for item in list["items"].as_array().expect("items") {
            let text = |name: &str| item["metadata"][name].as_str().unwrap_or_default();
            assert!(
                part.matches(text("uid"), text("namespace")),
                "the same hash"
            );
            seen.push(text("name").to_owned());
        }
    }
    seen.retain(|name| name.starts_with("map-"));
    seen.sort();
    assert_eq!(
        seen,
        all(12).into_iter().collect::<Vec<_>>(),
        "each object is in one shard"
    );
    Ok(())
}
