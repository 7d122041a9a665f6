//! Resources that the server serves, and their names.

use opkit::client::{Discovery, RestMapper};
use opkit::prelude::*;

use super::{install_gadgets, remove_gadgets, short_name};

#[opkit::test]
async fn names_are_mapped_to_resources(plane: ControlPlane) -> opkit::Result {
    let mapper = RestMapper::new(plane.client());
    for name in [
        "deploy",
        "deployment",
        "deployments",
        "Deployment",
        "deployments.apps",
        "deployments.v1.apps",
    ] {
        assert_eq!(
            mapper.resource(name).await?.to_string(),
            "deployments.v1.apps",
            "{name}"
        );
    }
    assert_eq!(mapper.resource("po").await?.to_string(), "pods.v1");
    assert_eq!(mapper.resource("events").await?.to_string(), "events.v1");
    let namespaces = mapper.resource("ns").await?;
    assert!(!namespaces.namespaced && namespaces.has_verb("watch"));
    let deployments = mapper.kind("apps", "Deployment", Some("v1")).await?;
    assert!(deployments.has_subresource("scale") && deployments.namespaced);
    let resource = deployments.kind().group_version_resource();
    assert_eq!(mapper.of_resource(&resource).await?.kind, "Deployment");
    let kind = deployments.kind().group_version_kind();
    assert_eq!(mapper.of_kind(&kind).await?, deployments);
    let all: Vec<String> = mapper
        .resources("all")
        .await?
        .iter()
        .map(|it| it.qualified())
        .collect();
    for name in ["pods", "services", "deployments.apps"] {
        assert!(all.iter().any(|it| it == name), "{name} is not in {all:?}");
    }
    let error = mapper.resource("nonsense").await.unwrap_err();
    assert_eq!(
        error.to_string(),
        r#"the API server has no resource "nonsense""#
    );
    Ok(())
}

#[opkit::test]
async fn a_kind_that_is_installed_later_is_found(plane: ControlPlane) -> opkit::Result {
    let mapper = RestMapper::new(plane.client());
    mapper.discovery().get().await?;
    let group = install_gadgets(&plane).await?;
    let short = short_name(&plane);
    // An unknown name leads to a new discovery, but only five times a minute; the server needs time
    // to publish the kind.
    let found = super::eventually(async || match mapper.resource(&short).await {
        Ok(found) => Ok(Some(found)),
        Err(_) => {
            mapper.discovery().invalidate();
            Ok(None)
        }
    })
    .await?;
    assert_eq!(found.group, group);
    assert_eq!(mapper.resource(&format!("gadget.{group}")).await?, found);
    let category = format!("{}-things", plane.namespace());
    assert_eq!(mapper.resources(&category).await?, [found]);
    remove_gadgets(&plane, &group).await
}

#[opkit::test]
async fn aggregated_and_plain_discovery_agree(plane: ControlPlane) -> opkit::Result {
    let aggregated = Discovery::new(plane.client()).get().await?;
    // A server without aggregated discovery ignores the requested format.
    let kube = plane.client();
    let plain = tower::service_fn(move |mut request: http::Request<kube::client::Body>| {
        let accept = http::HeaderValue::from_static("application/json");
        request.headers_mut().insert("accept", accept);
        let kube = kube.clone();
        async move { kube.send(request).await }
    });
    let one_by_one = Discovery::new(kube::Client::new(plain, plane.namespace()))
        .get()
        .await?;
    // Kinds of other tests appear and disappear.
    let stays = |name: &&String| !name.contains("opkit.dev");
    for found in [&aggregated, &one_by_one] {
        let mut failures = found.failures.iter().map(|it| &it.group_version);
        assert_eq!(failures.find(stays), None);
    }
    let names = |all: &opkit::client::Discovered| {
        let names = all
            .resources
            .iter()
            .map(|it| it.to_string())
            .collect::<Vec<_>>();
        let mut names: Vec<String> = names.iter().filter(stays).cloned().collect();
        names.sort();
        names
    };
    assert_eq!(names(&aggregated), names(&one_by_one));
    let deployments = |all: &opkit::client::Discovered| {
        let mut found = all
            .resource("apps", "v1", "deployments")
            .cloned()
            .expect("the resource is listed");
        found.subresources.sort();
        found.verbs.sort();
        found
    };
    assert_eq!(deployments(&aggregated), deployments(&one_by_one));
    Ok(())
}
