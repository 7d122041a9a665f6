//! Caches of parts of objects.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::ObjectMeta;
use opkit::cache::{InformerOptions, Selection, StoreForm};
use opkit::prelude::*;
use serde::{Deserialize, Serialize};

use super::{Cache, client, map};

#[opkit::test]
async fn only_metadata_is_requested(plane: ControlPlane) -> opkit::Result {
    let (cache, client) = (Cache::new(&plane), client(&plane));
    client.create(&map("one", "red")).await?;
    let whole = cache.factory.informer::<ConfigMap>();
    let metadata = cache.factory.metadata::<ConfigMap>();
    cache.synced().await?;
    let key = (plane.namespace(), "one").into();
    let one = metadata.get(&key)?.expect("the map exists");
    let labels = one.metadata.labels.as_ref();
    assert_eq!(
        labels
            .and_then(|labels| labels.get("colour"))
            .map(String::as_str),
        Some("red")
    );
    assert_eq!(metadata.keys(&Selection::default()).len(), whole.len());
    assert!(
        metadata
            .informer()
            .stored(&key)
            .is_some_and(|one| one.field("data.colour").is_none())
    );
    assert!(
        whole
            .informer()
            .stored(&key)
            .is_some_and(|one| one.field("data.colour").is_some())
    );
    cache.end().await
}

/// Config map of which only the colour is decoded.
#[derive(Clone, Debug, Serialize, Deserialize, kube::Resource)]
#[resource(inherit = ConfigMap)]
struct Coloured {
    metadata: ObjectMeta,
    #[serde(default)]
    data: Colour,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Colour {
    #[serde(default)]
    colour: String,
}

#[opkit::test]
async fn a_type_with_fewer_fields_is_smaller(plane: ControlPlane) -> opkit::Result {
    let (cache, client) = (Cache::new(&plane), client(&plane));
    client.create(&map("one", "red")).await?;
    let whole = cache.factory.informer::<ConfigMap>();
    let options = InformerOptions::default().form(StoreForm::Projected);
    let coloured = cache.factory.informer_with::<Coloured>(options);
    let options = InformerOptions::default().form(StoreForm::Typed);
    let typed = cache.factory.informer_with::<ConfigMap>(options);
    cache.synced().await?;
    let key = (plane.namespace(), "one").into();
    assert_eq!(
        coloured.get(&key)?.expect("the map exists").data.colour,
        "red"
    );
    assert_eq!(typed.get(&key)?, whole.get(&key)?);
    let has_text = |one: opkit::cache::Stored| one.field("data.text").is_some();
    assert!(whole.informer().stored(&key).is_some_and(has_text));
    assert!(!coloured.informer().stored(&key).is_some_and(has_text));
    cache.end().await
}
