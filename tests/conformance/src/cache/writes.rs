//! Reads of a client's own writes.

use k8s_openapi::api::core::v1::{ConfigMap, Secret, ServiceAccount};
use opkit::cache::{CacheReadError, CachedClient, Index, InformerOptions, Selection};
use opkit::client::{Deleted, Patch};
use opkit::prelude::*;
use serde_json::json;

use super::{Cache, client, map};

#[opkit::test]
async fn writes_are_read_immediately(plane: ControlPlane) -> opkit::Result {
    let cache = Cache::new(&plane);
    let maps = cache.factory.informer::<ConfigMap>();
    maps.informer()
        .add_index(Index::field("colour", "data.colour"));
    cache.synced().await?;
    let client = CachedClient::new(client(&plane), cache.factory.clone());
    let here = |name: &str| (plane.namespace().to_owned(), name.to_owned());
    for round in 0..20 {
        let (name, colour) = (format!("map-{round}"), format!("colour-{round}"));
        let created = client.create(&map(&name, "grey")).await?;
        let read = client
            .get::<ConfigMap>(here(&name))
            .await?
            .expect("the map was just created");
        assert_eq!(
            read.metadata.resource_version,
            created.metadata.resource_version
        );

        let mut changed = map(&name, &colour);
        changed.metadata.resource_version = created.metadata.resource_version.clone();
        client.update(&changed).await?;
        for selection in [
            Selection::default().by_index("colour", &colour),
            Selection::from(kube::core::Selector::from_iter([
                kube::core::Expression::Equal("colour".into(), colour.clone()),
            ])),
        ] {
            assert_eq!(
                client.list::<ConfigMap>(&selection).await?.len(),
                1,
                "{selection:?}"
            );
        }
        let changed = client
            .get::<ConfigMap>(here(&name))
            .await?
            .expect("the map was just changed");
        client.delete(&*changed).await?;
        assert!(client.get::<ConfigMap>(here(&name)).await?.is_none());
        assert!(
            maps.keys(&Selection::default().by_index("colour", &colour))
                .is_empty()
        );
    }
    cache.end().await
}

/// The server's response decides, not the caller's copy of the object.
#[opkit::test]
async fn a_deletion_returns_the_state_of_the_object(plane: ControlPlane) -> opkit::Result {
    let cache = Cache::new(&plane);
    let _maps = cache.factory.informer::<ConfigMap>();
    let _accounts = cache.factory.informer::<ServiceAccount>();
    cache.synced().await?;
    let live = client(&plane);
    let client = CachedClient::new(live.clone(), cache.factory.clone());
    let here = |name: &str| (plane.namespace().to_owned(), name.to_owned());
    let finalizers = |names: &[&str]| json!({"metadata": {"finalizers": names}});

    // The caller does not know of the finalizer.
    let created = client.create(&map("held", "grey")).await?;
    let held = finalizers(&["example.com/hold"]);
    live.patch::<ConfigMap>(here("held"), Patch::Merge(&held))
        .await?;
    let Deleted::Terminating(held) = client.delete(&*created).await? else {
        panic!("the finalizer keeps the object");
    };
    assert!(held.metadata.deletion_timestamp.is_some());
    let read = client.get::<ConfigMap>(here("held")).await?;
    let read = read.and_then(|read| read.metadata.resource_version.clone());
    assert_eq!(read, held.metadata.resource_version);
    // After a second deletion the object still exists.
    assert!(!client.delete(&*created).await?.is_gone());
    assert!(client.get::<ConfigMap>(here("held")).await?.is_some());
    // The last finalizer is removed, and the object is deleted.
    let none = finalizers(&[]);
    client
        .patch::<ConfigMap>(here("held"), Patch::Merge(&none))
        .await?;
    assert!(client.get::<ConfigMap>(here("held")).await?.is_none());

    // The caller's copy has a finalizer that was removed.
    let mut free = map("free", "grey");
    free.metadata.finalizers = Some(vec!["example.com/hold".to_owned()]);
    let created = client.create(&free).await?;
    live.patch::<ConfigMap>(here("free"), Patch::Merge(&none))
        .await?;
    assert!(client.delete(&*created).await?.is_gone());
    assert!(client.get::<ConfigMap>(here("free")).await?.is_none());

    // A kind whose deletion returns the object in its previous state.
    let mut account = ServiceAccount::default();
    account.metadata.name = Some("account".to_owned());
    let created = client.create(&account).await?;
    assert!(client.delete(&*created).await?.is_gone());
    assert!(
        client
            .get::<ServiceAccount>(here("account"))
            .await?
            .is_none()
    );

    // A dry run deletes nothing.
    let created = client.create(&map("dry", "grey")).await?;
    let dry = CachedClient::new(live.dry_run(), cache.factory.clone());
    assert!(dry.delete(&*created).await?.is_gone());
    assert!(client.get::<ConfigMap>(here("dry")).await?.is_some());
    cache.end().await
}

#[opkit::test]
async fn uncached_kinds_are_refused_or_read_live(plane: ControlPlane) -> opkit::Result {
    let cache = Cache::new(&plane);
    let client = CachedClient::new(client(&plane), cache.factory.clone());
    let refused = client.get::<Secret>((plane.namespace(), "none")).await;
    assert!(
        matches!(refused, Err(CacheReadError::NotCached { .. })),
        "{refused:?}"
    );
    let live = client.live_reads();
    assert!(
        live.get::<Secret>((plane.namespace(), "none"))
            .await?
            .is_none()
    );
    cache.end().await
}

#[opkit::test]
async fn a_selector_holds_for_writes_too(plane: ControlPlane) -> opkit::Result {
    let (cache, client) = (Cache::new(&plane), client(&plane));
    let options = InformerOptions::default().labels("colour=red")?;
    let red = cache.factory.informer_with::<ConfigMap>(options);
    cache.synced().await?;
    for colour in ["red", "blue"] {
        let created = client.create(&map(colour, colour)).await?;
        red.informer()
            .observe_response(&serde_json::to_vec(&created)?);
    }
    let names: Vec<_> = red
        .keys(&Selection::default())
        .into_iter()
        .map(|key| key.name)
        .collect();
    assert_eq!(names, ["red"]);
    cache.end().await
}
