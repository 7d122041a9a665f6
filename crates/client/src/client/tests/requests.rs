//! The requests of each verb of each client, byte for byte: method, path, query, headers, body.

use http_body_util::BodyExt;
use k8s_openapi::api::autoscaling::v1::Scale;

use super::*;
use crate::{DynamicClient, MetadataClient, RestClient, ScaleClient, Unstructured};

/// Requests, each written as text under a title.
#[derive(Clone, Default)]
struct Recorder {
    text: Arc<Mutex<String>>,
}

impl Recorder {
    fn kube(&self) -> kube::Client {
        let text = self.text.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let text = text.clone();
            async move {
                let (head, body) = request.into_parts();
                let body = body.collect().await.unwrap().to_bytes();
                let mut written = format!("{} {}\n", head.method, head.uri);
                for (name, value) in &head.headers {
                    written.push_str(&format!("{name}: {}\n", value.to_str().unwrap()));
                }
                if !body.is_empty() {
                    written.push_str(&format!("{}\n", body.escape_ascii()).replace("\\\"", "\""));
                }
                text.lock().push_str(&written);
                let response = Response::new(Body::from(b"{}".to_vec()));
                Ok::<_, Infallible>(response)
            }
        });
        kube::Client::new(service, "home")
    }

    fn title(&self, title: &str) {
        self.text.lock().push_str(&format!("\n# {title}\n"));
    }
}

fn write_options() -> WriteOptions {
    WriteOptions {
        field_manager: Some("me".to_owned()),
        dry_run: true,
        field_validation: Some(FieldValidation::Strict),
        force: true,
    }
}

fn list_options() -> ListOptions {
    let options = ListOptions::new().in_namespace("shops").labels("a=b");
    let options = options.fields("c=d").limit(3);
    options.version("7", VersionMatch::NotOlderThan)
}

fn delete_options() -> DeleteOptions {
    DeleteOptions {
        uid: Some("u".to_owned()),
        resource_version: Some("9".to_owned()),
        propagation: Some(Propagation::Background),
        grace_period_seconds: Some(5),
    }
}

async fn typed<K: Object>(recorder: &Recorder, title: &str, client: Client) {
    let titled = |verb: &str| recorder.title(&format!("{title} {verb}"));
    let json = json!({"metadata": {"name": "one", "namespace": "shops", "uid": "u"}});
    let object: K = serde_json::from_value(json.clone()).unwrap();
    let key = ObjectKey::from(("shops", "one"));
    let mut next = list_options();
    next.continue_token = Some("more".to_owned());
    titled("get");
    let _ = client.get::<K>(key.clone()).await;
    titled("list");
    let _ = client.list::<K>(&ListOptions::new()).await;
    titled("list with options");
    let _ = client.list::<K>(&list_options()).await;
    titled("list the next page");
    let _ = client.list::<K>(&next).await;
    titled("list_all");
    let _ = client.list_all::<K>(&list_options()).await;
    titled("watch");
    let _ = client.watch::<K>(&list_options()).await;
    titled("create");
    let _ = client.create(&object).await;
    titled("update");
    let _ = client.update(&object).await;
    for patch in [
        Patch::Apply(&json),
        Patch::Merge(&json),
        Patch::Json(&json),
        Patch::Strategic(&json),
    ] {
        titled("patch");
        let _ = client.patch::<K>(key.clone(), patch).await;
    }
    titled("apply");
    let _ = client.apply(&object).await;
    titled("delete");
    let _ = client.delete(&object).await;
    titled("delete_with");
    let _ = client
        .delete_with::<K>(key.clone(), &delete_options())
        .await;
    titled("delete_all");
    let _ = client
        .delete_all::<K>(&list_options(), &delete_options())
        .await;
    titled("status update");
    let _ = client.status().update(&object).await;
    titled("status apply");
    let _ = client.status().apply(&object).await;
    let part = client.subresource("token");
    titled("subresource get");
    let _ = part.get::<K, Value>(key.clone()).await;
    titled("subresource patch");
    let _ = part.patch::<K>(key.clone(), Patch::Merge(&json)).await;
    titled("subresource create");
    let _ = part.create::<K, Value>(key.clone(), &json).await;
    titled("evict");
    let _ = client.evict(key, &delete_options()).await;
}

async fn dynamic(recorder: &Recorder, kind: &Kind) {
    let titled = |verb: &str| recorder.title(&format!("dynamic {verb}"));
    let client = DynamicClient::new(recorder.kube()).with(write_options());
    let resource = client.resource(kind.clone());
    let key = ObjectKey::from(("shops", "one"));
    let object = Unstructured::new(kind, key.clone());
    let json = json!({"a": 1});
    titled("get");
    let _ = resource.get(key.clone()).await;
    titled("list");
    let _ = resource.list(&list_options()).await;
    titled("watch");
    let _ = resource.watch(&list_options()).await;
    titled("create");
    let _ = resource.create(&object).await;
    titled("update");
    let _ = resource.update(&object).await;
    titled("patch");
    let _ = resource.patch(key.clone(), Patch::Json(&json)).await;
    titled("apply");
    let _ = resource.apply(&object).await;
    titled("delete");
    let _ = resource.delete(key.clone(), &delete_options()).await;
    titled("delete_all");
    let _ = resource
        .delete_all(&list_options(), &delete_options())
        .await;
    titled("subresource update");
    let _ = resource.subresource("status").update(&object).await;
}

async fn metadata(recorder: &Recorder, kind: &Kind) {
    let titled = |verb: &str| recorder.title(&format!("metadata {verb}"));
    let client = MetadataClient::new(recorder.kube()).with(write_options());
    let key = ObjectKey::from("one");
    let json = json!({"metadata": {"labels": {"a": "b"}}});
    titled("get");
    let _ = client.get(kind, key.clone()).await;
    titled("list");
    let _ = client.list(kind, &list_options()).await;
    titled("watch");
    let _ = client.watch(kind, &list_options()).await;
    titled("patch");
    let _ = client.patch(kind, key.clone(), Patch::Merge(&json)).await;
    titled("delete");
    let _ = client.delete(kind, key, &delete_options()).await;
}

async fn scale(recorder: &Recorder, kind: &Kind) {
    let titled = |verb: &str| recorder.title(&format!("scale {verb}"));
    let client = ScaleClient::new(recorder.kube(), kind.clone()).with(write_options());
    let json = json!({"metadata": {"name": "one", "namespace": "shops"}, "spec": {"replicas": 2}});
    let scale: Scale = serde_json::from_value(json.clone()).unwrap();
    titled("get");
    let _ = client.get("one").await;
    titled("set");
    let _ = client.set("one", 3).await;
    titled("update");
    let _ = client.update(&scale).await;
    titled("patch");
    let _ = client.patch("one", Patch::Apply(&json)).await;
}

async fn rest(recorder: &Recorder, kind: &Kind) {
    let titled = |verb: &str| recorder.title(&format!("rest {verb}"));
    let client = RestClient::new(recorder.kube());
    let key = ObjectKey::from(("shops", "one"));
    let json = json!({"metadata": {"name": "one"}});
    titled("get");
    let _ = client.get(kind, &key).await;
    titled("list");
    let json_format = ResponseFormat::default();
    let _ = client.list(kind, &ListOptions::new(), json_format).await;
    titled("list the next page");
    let next = ListOptions::new().in_namespace("shops").limit(3);
    let next = next.continue_from("more");
    let _ = client.list(kind, &next, json_format).await;
    let mut selected = list_options();
    selected.shard_selector = "e".to_owned();
    let protobuf = ResponseFormat {
        protobuf: true,
        ..Default::default()
    };
    let mut all = ListOptions::new().in_namespace("shops").limit(3);
    all.resource_version = "7".to_owned();
    let metadata = ResponseFormat {
        metadata_only: true,
        ..Default::default()
    };
    for (mut options, format) in [(selected, protobuf), (all, metadata)] {
        titled("list a page");
        let _ = client.list(kind, &options, format).await;
        titled("watch");
        options.watch_timeout = std::time::Duration::from_secs(300);
        let _ = client.watch(kind, &options, format).await;
        titled("watch with initial events");
        options.send_initial_events = true;
        options.resource_version = String::new();
        options.namespace = None;
        let _ = client.watch(kind, &options, format).await;
    }
    let me = WriteOptions::for_manager("me");
    titled("create");
    let _ = client.create(kind, Some("shops"), &json, &me).await;
    titled("patch");
    let patch = Patch::Merge(&json);
    let _ = client.patch(kind, &key, None, patch, &me).await;
    titled("apply");
    let (apply, force) = (Patch::Apply(&json), me.force());
    let _ = client.patch(kind, &key, None, apply, &force).await;
    titled("apply the status");
    let _ = client
        .patch(kind, &key, Some("status"), apply, &force)
        .await;
    titled("delete");
    let options = DeleteOptions::background();
    let _ = client.delete(kind, &key, &options).await;
    titled("delete with preconditions");
    let options = options.uid("u").resource_version("9");
    let _ = client.delete(kind, &key, &options).await;
}

#[tokio::test]
async fn requests_stay_byte_for_byte() {
    let recorder = Recorder::default();
    let kind = Kind::of::<Deployment>();
    let plain = Client::new(recorder.kube());
    typed::<Deployment>(&recorder, "typed", plain.clone()).await;
    typed::<Deployment>(&recorder, "typed with options", plain.with(write_options())).await;
    let custom = Kind {
        group: "shop.example.com".to_owned(),
        version: "v1".to_owned(),
        kind: "Shop".to_owned(),
        plural: "shops".to_owned(),
        namespaced: true,
    };
    dynamic(&recorder, &kind).await;
    dynamic(&recorder, &custom).await;
    metadata(&recorder, &kind).await;
    scale(&recorder, &custom).await;
    rest(&recorder, &kind).await;
    let sent = recorder.text.lock().clone();
    let expected = include_str!("requests.txt");
    assert!(
        sent == expected,
        "the requests differ from requests.txt:\n{sent}"
    );
}
