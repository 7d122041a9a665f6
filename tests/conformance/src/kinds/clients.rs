//! Typed clients and apply configurations of declared kinds: their requests to a server.

use k8s_openapi::api::apps::v1::Deployment;
use opkit::apimachinery::scheme::Scheme;
use opkit::client::{
    ApplyConfiguration, Client, Deleted, DynamicClient, Kind, ListOptions, Unstructured,
    WriteOptions, add_kinds,
};
use opkit::prelude::*;

/// A cluster-scoped kind whose client cannot delete.
#[opkit::kind(group = "clients.opkit.dev", version = "v1", cluster, status = ZoneStatus, apply)]
#[derive(TypedClient)]
#[client(skip_verbs(deletecollection))]
pub(crate) struct ZoneSpec {
    pub(crate) name: String,
    pub(crate) size: Option<i32>,
    #[opkit(list_map = "name", apply)]
    pub(crate) racks: Vec<Rack>,
    #[opkit(list_set)]
    pub(crate) tags: Vec<String>,
}

#[opkit::schema(apply)]
pub(crate) struct Rack {
    pub(crate) name: String,
    pub(crate) height: Option<i32>,
}

#[opkit::status(apply)]
pub(crate) struct ZoneStatus {
    pub(crate) racks: i32,
    pub(crate) observed_generation: Option<i64>,
    pub(crate) conditions: Conditions,
}

/// A kind whose client does not write its status.
#[opkit::kind(group = "clients.opkit.dev", version = "v1", namespaced, status = ZoneStatus)]
#[derive(TypedClient)]
#[client(verbs(get, create, list), no_status)]
pub(crate) struct NoteSpec {
    pub(crate) text: String,
}

fn operator() -> Operator {
    Operator::new("clients-operator")
        .crd::<Zone>()
        .crd::<Note>()
}

#[opkit::test]
async fn a_client_of_a_cluster_scoped_kind_uses_no_namespace(plane: ControlPlane) -> opkit::Result {
    plane.install(&operator()).await?;
    let zones = ZoneClient::new(Client::new(plane.client()));
    let name = format!("{}-zone", plane.namespace());
    let spec = ZoneSpec {
        name: "a".into(),
        size: None,
        racks: Vec::new(),
        tags: Vec::new(),
    };
    let mut zone = zones.create(&Zone::new(&name, spec)).await?;
    assert_eq!(zone.metadata.namespace, None);
    zone.spec.size = Some(2);
    let zone = zones.update(&zone).await?;
    assert_eq!(zones.get(name.as_str()).await?.spec.size, Some(2));
    let all = zones.list_all(&ListOptions::new()).await?;
    assert!(all.items.iter().any(|zone| zone.name_any() == name));
    let mut with_status = zone.clone();
    with_status.status = Some(ZoneStatus {
        racks: 3,
        ..ZoneStatus::default()
    });
    let updated = zones.update_status(&with_status).await?;
    assert_eq!(updated.status.map(|status| status.racks), Some(3));
    assert!(matches!(zones.delete(&zone).await?, Deleted::Gone));
    Ok(())
}

#[opkit::test]
async fn a_client_with_few_verbs_sends_them(plane: ControlPlane) -> opkit::Result {
    plane.install(&operator()).await?;
    let notes = NoteClient::new(Client::new(plane.client()));
    notes
        .create(&Note::new("one", NoteSpec { text: "a".into() }))
        .await?;
    assert_eq!(notes.get("one").await?.spec.text, "a");
    assert_eq!(notes.list_all(&ListOptions::new()).await?.items.len(), 1);
    Ok(())
}

#[opkit::test]
async fn an_apply_configuration_owns_only_its_fields(plane: ControlPlane) -> opkit::Result {
    plane.install(&operator()).await?;
    let name = format!("{}-zone", plane.namespace());
    let mine = Client::new(plane.client()).field_manager("mine");
    let theirs = Client::new(plane.client()).field_manager("theirs");
    let rack = RackApply::new().name("one").height(7);
    let spec = ZoneSpecApply::new()
        .name("a")
        .racks([rack])
        .tags(["x".to_owned()]);
    mine.apply_configuration(&ZoneApply::new(&name).label("team", "a").spec(spec))
        .await?;
    // Another manager applies other fields, and another rack.
    let rack = RackApply::new().name("two");
    let spec = ZoneSpecApply::new()
        .size(5)
        .racks([rack])
        .tags(["y".to_owned()]);
    let zone = theirs
        .apply_configuration(&ZoneApply::new(&name).spec(spec))
        .await?;
    assert_eq!((zone.spec.name.as_str(), zone.spec.size), ("a", Some(5)));
    assert_eq!(zone.spec.racks.len(), 2);
    assert_eq!(zone.spec.tags, ["x", "y"]);

    let extracted = ZoneApply::extract(&zone, "mine")?;
    let spec = extracted.spec.clone().unwrap_or_default();
    assert_eq!((spec.name.as_deref(), spec.size), (Some("a"), None));
    let racks = spec.racks.unwrap_or_default();
    assert_eq!(racks.len(), 1);
    assert_eq!(
        (racks[0].name.as_deref(), racks[0].height),
        (Some("one"), Some(7))
    );
    assert_eq!(spec.tags, Some(vec!["x".to_owned()]));
    assert_eq!(extracted.metadata.name.as_deref(), Some(name.as_str()));

    // Applying the extracted fields again changes nothing.
    let again = mine.apply_configuration(&extracted).await?;
    assert_eq!(
        again.metadata.resource_version,
        zone.metadata.resource_version
    );
    // A field that is no longer set is removed.
    let mut fewer = extracted;
    fewer.spec.get_or_insert_default().racks = None;
    let zone = mine.apply_configuration(&fewer).await?;
    assert_eq!(zone.spec.racks.len(), 1);

    // The status has its own fields.
    let status = ZoneApply::new(&name).status(ZoneStatusApply::new().racks(1));
    let zone = mine.status().apply_configuration(&status).await?;
    let status = ZoneApply::extract_subresource(&zone, "mine", "status")?.status;
    assert_eq!(status.and_then(|status| status.racks), Some(1));
    mine.delete(&zone).await?;
    Ok(())
}

/// Built-in kinds have no twins: an unstructured object has only the fields that are set.
#[opkit::test]
async fn the_fields_of_a_manager_are_extracted_from_any_kind(plane: ControlPlane) -> opkit::Result {
    let kind = Kind::of::<Deployment>();
    let mine = DynamicClient::new(plane.client()).with(WriteOptions::for_manager("mine"));
    let theirs = DynamicClient::new(plane.client()).with(WriteOptions::for_manager("theirs"));
    let (mine, theirs) = (mine.resource(kind.clone()), theirs.resource(kind.clone()));
    let mut web = Unstructured::new(&kind, "web");
    let container = serde_json::json!({"name": "web", "image": "nginx"});
    web.set(&["spec", "selector", "matchLabels", "app"], "web")?;
    web.set(&["spec", "template", "metadata", "labels", "app"], "web")?;
    web.set(&["spec", "template", "spec", "containers"], vec![container])?;
    mine.apply(&web).await?;
    // Another manager applies only the replicas: the selector is not among its fields.
    let mut scaled = Unstructured::new(&kind, "web");
    scaled.set(&["spec", "replicas"], 0)?;
    let applied = theirs.apply(&scaled).await?;
    let extracted = applied.extract("theirs", "");
    assert_eq!(
        extracted.get(&["spec"]),
        Some(&serde_json::json!({"replicas": 0}))
    );
    let image = applied.extract("mine", "");
    let image = image.get(&["spec", "template", "spec", "containers"]);
    let container = serde_json::json!([{"name": "web", "image": "nginx"}]);
    assert_eq!(image, Some(&container));
    let again = theirs.apply(&extracted).await?;
    assert_eq!(again.get(&["spec"]), applied.get(&["spec"]));
    Ok(())
}

#[test]
fn the_kinds_of_a_module_are_registered_in_one_call() -> opkit::Result {
    let mut scheme = Scheme::new();
    add_kinds::<(Zone, Note)>(&mut scheme)?;
    let yaml =
        b"{apiVersion: clients.opkit.dev/v1, kind: Note, metadata: {name: a}, spec: {text: b}}";
    let note: Note = scheme.decode_as(yaml)?;
    assert_eq!(note.spec.text, "b");
    Ok(())
}
