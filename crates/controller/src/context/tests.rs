use std::convert::Infallible;

use http_body_util::Full;
use k8s_openapi::api::core::v1::ConfigMap;
use opkit_client::Client;
use serde_json::json;

use super::*;

/// Returns a client of a server that creates ConfigMaps with generated names, in the requested
/// form.
fn server() -> kube::Client {
    let service = tower::service_fn(|request: Request<Body>| {
        let map =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "made-7x2"}});
        let accept = request.headers().get("accept").cloned();
        let accept = accept.and_then(|accept| Some(accept.to_str().ok()?.to_owned()));
        let (form, body) = match accept.is_some_and(|accept| accept.contains("protobuf")) {
            true => (protobuf::CONTENT_TYPE, protobuf::encode(&map).unwrap()),
            false => ("application/json", map.to_string().into_bytes()),
        };
        let response = Response::builder().header("content-type", form);
        async move { Ok::<_, Infallible>(response.body(Full::new(body.into())).unwrap()) }
    });
    kube::Client::new(service, "d")
}

/// A create request has no name in its path, and the server may generate one.
#[tokio::test]
async fn a_create_is_recorded_with_the_name_of_the_object() {
    let trace = Arc::new(Trace::default());
    let client = recording(Arc::downgrade(&trace), server());
    let mut map = ConfigMap::default();
    map.metadata.generate_name = Some("made-".to_owned());
    let api = kube::Api::<ConfigMap>::default_namespaced(client.clone());
    let json = api.create(&Default::default(), &map).await.unwrap();
    map.metadata.name = Some("made-7x2".to_owned());
    let protobuf = Client::new(client).create(&map).await.unwrap();
    for made in [json, protobuf] {
        assert_eq!(made.metadata.name.as_deref(), Some("made-7x2"));
    }
    let (_, _, writes) = trace.finish();
    let writes: Vec<_> = writes.iter().map(ToString::to_string).collect();
    assert_eq!(writes, ["create configmaps made-7x2"], "both are one");
}

/// A future that is not `Send` for every lifetime does not compile in a reconcile function.
#[test]
fn a_reconcile_can_list_from_the_server() {
    use crate::{Action, Controller, Result};

    async fn reconcile(_: Arc<ConfigMap>, cx: Context) -> Result<Action> {
        cx.live().get::<ConfigMap>("one").await?;
        cx.live().list::<ConfigMap>(()).await?;
        Ok(Action::await_change())
    }
    let controller = Controller::new(reconcile);
    assert_eq!(controller.spec.name, "configmap");
}
