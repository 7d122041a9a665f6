//! Objects of any registered kind, in whatever form the server gives or takes them.

use http::{Method, header};
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use opkit::apimachinery::identity::{GroupVersionKind, GroupVersionResource};
use opkit::apimachinery::scheme::{Format, Scheme};
use opkit::client::{Client, RestClient};
use opkit::prelude::*;

fn scheme() -> opkit::Result<Scheme> {
    let mut scheme = Scheme::new();
    scheme.register::<ConfigMap>(GroupVersionKind::new("", "v1", "ConfigMap"))?;
    scheme.register::<Service>(GroupVersionKind::new("", "v1", "Service"))?;
    Ok(scheme)
}

#[opkit::test]
async fn every_form_is_the_same_object(plane: ControlPlane) -> opkit::Result {
    let scheme = scheme()?;
    let rest = RestClient::new(plane.client());
    let service: Service = serde_json::from_value(serde_json::json!({
        "metadata": {"name": "web", "labels": {"app": "web"}},
        "spec": {"selector": {"app": "web"}, "ports": [{"name": "http", "port": 80, "targetPort": "http"}]},
    }))?;
    let services = GroupVersionResource::new("", "v1", "services");
    let services = services.path().namespace(plane.namespace());
    // Written in each form; of the three only the first can make it.
    let bodies = [
        (Format::Protobuf, "application/vnd.kubernetes.protobuf"),
        (Format::Yaml, "application/yaml"),
        (Format::Json, "application/json"),
    ];
    for (n, (format, content_type)) in bodies.into_iter().enumerate() {
        let body = scheme.encode(&service, format)?;
        let made = rest
            .resource_request(Method::POST, &services)?
            .body(content_type, body);
        let made = made.bytes().await;
        assert_eq!(made.is_ok(), n == 0, "{format:?}: {made:?}");
        assert!(
            made.err().is_none_or(|error| error.is_already_exists()),
            "{format:?}"
        );
    }
    // And read in each form.
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
async fn what_is_not_registered_is_named(plane: ControlPlane) -> opkit::Result {
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
