//! Objects of a kind with three versions, written and read in each of them.

use futures::TryStreamExt;
use kube::api::{
    DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams,
};
use kube::core::DynamicObject;
use kube::{Api, ResourceExt};
use opkit::prelude::*;
use serde_json::{Value, json};

use super::rover::{Power, Rover, v1alpha1, v1beta1};
use super::{client, operator};

const ANNOTATION: &str = "opkit.dev/conversion";
const VERSIONS: [&str; 3] = ["v1", "v1beta1", "v1alpha1"];

fn rovers(plane: &ControlPlane, version: &str) -> Api<DynamicObject> {
    client(plane, version, "Rover")
}

/// Returns the spec of a whole object of a version.
fn spec(version: &str) -> Value {
    match version {
        "v1" => json!({
            "image": "a", "replicas": 3, "host": "mars", "port": 80, "paused": true,
            "network": {"dns": "one", "vlan": 7}, "power": "Solar", "timeoutSeconds": 90,
            "tools": [{"name": "arm", "weight": 5, "color": "red"}],
            "route": [{"x": 1, "y": 2}], "labels": {"a": "b"},
        }),
        "v1beta1" => json!({
            "image": "a", "replicas": 3, "host": "mars", "port": 80,
            "network": {"dns": "one"}, "power": "Mains", "nickname": "rosie",
        }),
        _ => json!({
            "image": "a", "size": 3, "endpoint": "mars:80", "legacyMode": true, "firmware": "f7",
            "vlan": 7, "power": "Diesel", "timeoutMinutes": 2,
            "tools": [{"name": "arm", "grams": 5, "vendor": "acme"}],
            "route": [{"x": 1, "y": 2, "note": "here"}],
        }),
    }
}

fn rover(version: &str, name: &str) -> DynamicObject {
    serde_json::from_value(json!({
        "apiVersion": format!("fleet.opkit.dev/{version}"), "kind": "Rover",
        "metadata": {"name": name}, "spec": spec(version),
    }))
    .unwrap()
}

#[opkit::test]
async fn an_object_is_created_in_any_version_and_read_in_any_version(
    plane: ControlPlane,
) -> opkit::Result {
    plane.start(operator()).await?;
    for created in VERSIONS {
        let api = rovers(&plane, created);
        let name = format!("from-{created}");
        let response = api
            .create(&PostParams::default(), &rover(created, &name))
            .await?;
        assert_eq!(response.data["spec"], spec(created));
        for read in VERSIONS {
            let found = rovers(&plane, read).get(&name).await?;
            let api_version = found.types.clone().unwrap_or_default().api_version;
            assert_eq!(api_version, format!("fleet.opkit.dev/{read}"));
            assert_eq!(found.metadata.uid, response.metadata.uid);
            if read == created {
                assert_eq!(found.data["spec"], spec(created), "{name}");
                assert!(!found.annotations().contains_key(ANNOTATION), "{name}");
            }
        }
    }
    let hub = plane
        .get::<Rover>("from-v1alpha1")
        .await?
        .expect("the rover");
    assert_eq!(
        (hub.spec.replicas, hub.spec.host.as_str(), hub.spec.port),
        (3, "mars", 80)
    );
    assert_eq!(hub.spec.network.and_then(|network| network.vlan), Some(7));
    assert_eq!(
        (hub.spec.power, hub.spec.timeout_seconds),
        (Power::Mains, Some(120))
    );
    let beta = plane
        .get::<v1beta1::Rover>("from-v1")
        .await?
        .expect("the rover");
    assert!(beta.labels().contains_key("fleet.opkit.dev/paused"));
    let alpha = plane
        .get::<v1alpha1::Rover>("from-v1")
        .await?
        .expect("the rover");
    assert_eq!(
        (alpha.spec.endpoint.as_str(), alpha.spec.power),
        ("mars:80", v1alpha1::Power::Battery)
    );
    Ok(())
}

#[opkit::test]
async fn a_list_of_objects_of_all_versions_has_one_version(plane: ControlPlane) -> opkit::Result {
    plane.start(operator()).await?;
    for version in VERSIONS {
        let object = rover(version, version);
        rovers(&plane, version)
            .create(&PostParams::default(), &object)
            .await?;
    }
    for version in VERSIONS {
        let list = rovers(&plane, version).list(&ListParams::default()).await?;
        assert_eq!(list.items.len(), 3);
        for item in list.items {
            let types = item.types.clone().unwrap_or_default();
            assert_eq!(types.api_version, format!("fleet.opkit.dev/{version}"));
            if item.name_any() == version {
                assert_eq!(item.data["spec"], spec(version));
            }
        }
    }
    Ok(())
}

#[opkit::test]
async fn a_watch_reports_changes_of_all_versions_in_its_own(plane: ControlPlane) -> opkit::Result {
    plane.start(operator()).await?;
    for watched in VERSIONS {
        let api = rovers(&plane, watched);
        let start = api
            .list(&ListParams::default())
            .await?
            .metadata
            .resource_version;
        let params = WatchParams::default().timeout(30);
        let mut events = Box::pin(api.watch(&params, &start.unwrap_or_default()).await?);
        for version in VERSIONS {
            let other = rovers(&plane, version);
            let name = format!("{watched}-sees-{version}");
            other
                .create(&PostParams::default(), &rover(version, &name))
                .await?;
            other.delete(&name, &DeleteParams::default()).await?;
        }
        let mut seen = Vec::new();
        while seen.len() < 6 {
            let Some(event) = events.try_next().await? else {
                break;
            };
            let (sort, object) = match event {
                WatchEvent::Added(object) => ("added", object),
                WatchEvent::Deleted(object) => ("deleted", object),
                WatchEvent::Bookmark(_) => continue,
                other => panic!("{other:?}"),
            };
            let types = object.types.clone().unwrap_or_default();
            assert_eq!(types.api_version, format!("fleet.opkit.dev/{watched}"));
            if object.name_any().ends_with(&format!("sees-{watched}")) {
                assert_eq!(object.data["spec"], spec(watched));
            }
            seen.push((sort, object.name_any()));
        }
        let expected = VERSIONS.iter().flat_map(|version| {
            let name = format!("{watched}-sees-{version}");
            [("added", name.clone()), ("deleted", name)]
        });
        assert_eq!(seen, expected.collect::<Vec<_>>());
    }
    Ok(())
}

#[opkit::test]
async fn server_side_apply_works_in_each_version(plane: ControlPlane) -> opkit::Result {
    plane.start(operator()).await?;
    let created = rover("v1alpha1", "one");
    rovers(&plane, "v1alpha1")
        .create(&PostParams::default(), &created)
        .await?;
    for (version, field, value) in [
        ("v1", "replicas", json!(7)),
        ("v1beta1", "nickname", json!("rosie")),
        ("v1alpha1", "firmware", json!("f8")),
    ] {
        let manager = format!("manager-of-{version}");
        let patch = json!({
            "apiVersion": format!("fleet.opkit.dev/{version}"), "kind": "Rover",
            "metadata": {"name": "one"}, "spec": {field: value},
        });
        let params = PatchParams::apply(&manager).force();
        let api = rovers(&plane, version);
        let applied = api.patch("one", &params, &Patch::Apply(&patch)).await?;
        assert_eq!(applied.data["spec"][field], value);
        let again = api.patch("one", &params, &Patch::Apply(&patch)).await?;
        assert_eq!(
            again.metadata.resource_version,
            applied.metadata.resource_version
        );
        let managers = applied.metadata.managed_fields.unwrap_or_default();
        let own = managers
            .iter()
            .find(|it| it.manager.as_deref() == Some(&manager));
        let own = own.expect("the field manager");
        assert_eq!(own.api_version, Some(format!("fleet.opkit.dev/{version}")));
    }
    let alpha = rovers(&plane, "v1alpha1").get("one").await?;
    let mut expected = spec("v1alpha1");
    expected["size"] = json!(7);
    expected["firmware"] = json!("f8");
    assert_eq!(alpha.data["spec"], expected);
    let beta = rovers(&plane, "v1beta1").get("one").await?;
    assert_eq!(
        (
            &beta.data["spec"]["nickname"],
            &beta.data["spec"]["replicas"]
        ),
        (&json!("rosie"), &json!(7))
    );
    Ok(())
}

#[opkit::test]
async fn the_status_keeps_what_another_version_cannot_express(
    plane: ControlPlane,
) -> opkit::Result {
    plane.start(operator()).await?;
    let alpha = rovers(&plane, "v1alpha1");
    alpha
        .create(&PostParams::default(), &rover("v1alpha1", "one"))
        .await?;
    let merge = |patch: Value| Patch::Merge(patch);
    let status = json!({"status": {"ready": 1, "phase": "Driving"}});
    alpha
        .patch_status("one", &PatchParams::default(), &merge(status))
        .await?;
    let hub = rovers(&plane, "v1");
    let status = json!({"status": {"readyReplicas": 2, "batteryPercent": 55}});
    hub.patch_status("one", &PatchParams::default(), &merge(status))
        .await?;
    let found = alpha.get("one").await?;
    assert_eq!(
        found.data["status"],
        json!({"ready": 2, "phase": "Driving"})
    );
    assert_eq!(found.data["spec"], spec("v1alpha1"));
    assert_eq!(hub.get("one").await?.data["status"]["batteryPercent"], 55);
    Ok(())
}

#[opkit::test]
async fn an_edit_in_one_version_wins_over_what_was_kept(plane: ControlPlane) -> opkit::Result {
    plane.start(operator()).await?;
    let alpha = rovers(&plane, "v1alpha1");
    alpha
        .create(&PostParams::default(), &rover("v1alpha1", "one"))
        .await?;
    let mut hub = plane.get::<Rover>("one").await?.expect("the rover");
    hub.spec.power = Power::Battery;
    hub.spec.tools.clear();
    hub.spec.port = 81;
    let api: Api<Rover> = Api::default_namespaced(plane.client());
    api.replace("one", &PostParams::default(), &hub).await?;
    let found = alpha.get("one").await?;
    let mut expected = spec("v1alpha1");
    expected["power"] = json!("Battery");
    expected["endpoint"] = json!("mars:81");
    expected.as_object_mut().map(|spec| spec.remove("tools"));
    assert_eq!(found.data["spec"], expected);
    Ok(())
}
