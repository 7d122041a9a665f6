//! Decoding of objects of any registered kind, in every format of the server.

use http::{Method, header};
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use opkit::apimachinery::identity::{GroupVersionKind, GroupVersionResource};
use opkit::apimachinery::scheme::{Format, Scheme};
use opkit::client::{Client, Discovery, RestClient, add_built_in_kinds};
use opkit::prelude::*;
use opkit::testing::Capability;

fn scheme() -> opkit::Result<Scheme> {
    let mut scheme = Scheme::new();
    scheme.register::<ConfigMap>(GroupVersionKind::new("", "v1", "ConfigMap"))?;
    scheme.register::<Service>(GroupVersionKind::new("", "v1", "Service"))?;
    Ok(scheme)
}

#[opkit::test]
async fn every_format_decodes_to_the_same_object(plane: ControlPlane) -> opkit::Result {
    let scheme = scheme()?;
    let rest = RestClient::new(plane.client());
    let service: Service = serde_json::from_value(serde_json::json!({
        "metadata": {"name": "web", "labels": {"app": "web"}},
        "spec": {"selector": {"app": "web"}, "ports": [{"name": "http", "port": 80, "targetPort": "http"}]},
    }))?;
    let services = GroupVersionResource::new("", "v1", "services");
    let services = services.path().namespace(plane.namespace());
    // Written in each format; only the first request creates the object.
    let bodies = [
        (Format::Protobuf, "application/vnd.kubernetes.protobuf"),
        (Format::Yaml, "application/yaml"),
        (Format::Json, "application/json"),
    ];
    for (n, (format, content_type)) in bodies.into_iter().enumerate() {
        let body = scheme.encode(&service, format)?;
        let created = rest
            .resource_request(Method::POST, &services)?
            .body(content_type, body);
        let created = created.bytes().await;
        assert_eq!(created.is_ok(), n == 0, "{format:?}: {created:?}");
        assert!(
            created.err().is_none_or(|error| error.is_already_exists()),
            "{format:?}"
        );
    }
    // Read in each format.
    let mut read = Vec::new();
    for accept in [
        "application/json",
        "application/yaml",
        "application/vnd.kubernetes.protobuf",
    ] {
        let service = services.clone().name("web");
        let bytes = rest
            .resource_request(Method::GET, &service)?
            .header(header::ACCEPT, accept)
            .bytes()
            .await?;
        let decoded = scheme.decode(&bytes)?;
        assert_eq!(decoded.gvk().to_string(), "/v1, Kind=Service");
        read.push(scheme.decode_as::<Service>(&bytes)?);
    }
    let typed = Client::new(plane.client()).get::<Service>("web").await?;
    assert_eq!(read[0].spec, typed.spec);
    assert!(
        read.iter()
            .all(|service| service.spec == read[0].spec && service.metadata == read[0].metadata)
    );
    Ok(())
}

#[opkit::test]
async fn all_built_in_kinds_are_registered_in_one_call(plane: ControlPlane) -> opkit::Result {
    // Other servers may have another version, or kinds of other tests.
    plane.require(Capability::OwnServer)?;
    let mut scheme = Scheme::new();
    add_built_in_kinds(&mut scheme)?;
    let discovered = Discovery::new(plane.client()).get().await?;
    let kinds = discovered.resources.iter();
    let kinds: Vec<_> = kinds.map(|it| it.kind().group_version_kind()).collect();
    assert!(kinds.len() > 50, "{kinds:?}");
    let missing: Vec<_> = kinds.iter().filter(|it| !scheme.recognizes(it)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    Ok(())
}

#[opkit::test]
async fn an_unregistered_kind_is_reported(plane: ControlPlane) -> opkit::Result {
    let rest = RestClient::new(plane.client());
    let namespace = rest
        .request(Method::GET, "/api/v1/namespaces/default")
        .bytes()
        .await?;
    let error = scheme()?
        .decode(&namespace)
        .map(|_| ())
        .unwrap_err()
        .to_string();
    assert!(error.contains("Namespace"), "{error}");
    Ok(())
}
