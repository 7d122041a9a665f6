//! Conversion webhooks of CRDs. The webhook of these tests serves HTTPS with a certificate of its
//! own authority.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use parking_lot::Mutex;
use rustls::ServerConfig;
use rustls::pki_types::PrivatePkcs8KeyDer;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::{Api, message};
use crate::authority::Authority;

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const V1: &str = "/apis/shop.opkit.dev/v1/namespaces/default/hosts";
const V2: &str = "/apis/shop.opkit.dev/v2/namespaces/default/hosts";
const APPLY: &str = "application/apply-patch+yaml";

/// Changes the response of the webhook: the ConversionReview with the converted objects.
type Alter = fn(&mut Value);

/// A conversion webhook, which runs until it is dropped.
struct Hook {
    address: SocketAddr,
    /// The certificate authority in the form of a `caBundle`.
    bundle: String,
    /// The certificate of the webhook itself in the form of a `caBundle`.
    own_bundle: String,
    state: Arc<State>,
    _tasks: JoinSet<()>,
}

struct State {
    alter: Mutex<Alter>,
    /// The number of objects in each request so far.
    requests: Mutex<Vec<usize>>,
}

impl Hook {
    async fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let authority = Authority::create(&format!("hooks-{}", address.port())).unwrap();
        let pair = authority
            .issue_for_server(IpAddr::V4(Ipv4Addr::LOCALHOST))
            .unwrap();
        let own_bundle = BASE64_STANDARD.encode(&pair.pem);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![pair.certificate],
                PrivatePkcs8KeyDer::from(pair.key).into(),
            )
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let state = Arc::new(State {
            alter: Mutex::new(|_| {}),
            requests: Mutex::default(),
        });
        let shared = state.clone();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, state) = (acceptor.clone(), shared.clone());
                connections.spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else {
                        return;
                    };
                    let service = service_fn(move |request| respond(request, state.clone()));
                    let builder = Builder::new(TokioExecutor::new());
                    let _ = builder
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                });
            }
        });
        Self {
            address,
            bundle: BASE64_STANDARD.encode(authority.pem()),
            own_bundle,
            state,
            _tasks: tasks,
        }
    }

    fn alter(&self, alter: Alter) {
        *self.state.alter.lock() = alter;
    }

    /// Returns the number of objects in each request since the last call.
    fn take_requests(&self) -> Vec<usize> {
        std::mem::take(&mut self.state.requests.lock())
    }

    /// Returns a CRD whose objects have the field `host` in v1, which is stored, and `address` in
    /// v2.
    fn crd(&self) -> Value {
        let schema = |field: &str| {
            json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": {
                "type": "object",
                "properties": {field: {"type": "string"}, "size": {"type": "integer", "default": 1}},
            }}}})
        };
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "hosts.shop.opkit.dev"},
            "spec": {
                "group": "shop.opkit.dev", "scope": "Namespaced",
                "names": {"plural": "hosts", "kind": "Host"},
                "versions": [
                    {"name": "v1", "served": true, "storage": true, "schema": schema("host")},
                    {"name": "v2", "served": true, "storage": false, "schema": schema("address")},
                ],
                "conversion": {"strategy": "Webhook", "webhook": {
                    "conversionReviewVersions": ["v1"],
                    "clientConfig": {
                        "url": format!("https://{}/convert", self.address),
                        "caBundle": self.bundle,
                    },
                }},
            },
        })
    }
}

async fn respond(
    request: Request<Incoming>,
    state: Arc<State>,
) -> Result<Response<Full<Bytes>>, hyper::Error> {
    assert_eq!(request.method(), Method::POST);
    let target = request.uri().path_and_query().unwrap().as_str().to_owned();
    assert_eq!(target, "/convert?timeout=30s");
    let body = request.into_body().collect().await?.to_bytes();
    let review: Value = serde_json::from_slice(&body).unwrap();
    let mut answer = converted(&review);
    state
        .requests
        .lock()
        .push(review["request"]["objects"].as_array().unwrap().len());
    let alter = *state.alter.lock();
    alter(&mut answer);
    Ok(Response::new(Full::from(answer.to_string())))
}

/// Returns the review with the converted objects.
fn converted(review: &Value) -> Value {
    let request = &review["request"];
    let version = request["desiredAPIVersion"].as_str().unwrap();
    let (from, to) = match version {
        "shop.opkit.dev/v2" => ("host", "address"),
        _ => ("address", "host"),
    };
    let convert = |object: &Value| {
        let mut object = object.clone();
        object["apiVersion"] = json!(version);
        let spec = object["spec"].as_object_mut().unwrap();
        if let Some(value) = spec.remove(from) {
            spec.insert(to.to_owned(), value);
        }
        object
    };
    let objects = request["objects"].as_array().unwrap().iter();
    json!({
        "apiVersion": review["apiVersion"], "kind": "ConversionReview",
        "response": {
            "uid": request["uid"], "result": {"status": "Success"},
            "convertedObjects": objects.map(convert).collect::<Vec<_>>(),
        },
    })
}

fn host(version: &str, name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": format!("shop.opkit.dev/{version}"), "kind": "Host",
        "metadata": {"name": name}, "spec": spec,
    })
}

async fn start() -> (Hook, Api) {
    let hook = Hook::start().await;
    let api = Api::start();
    let (code, crd) = api.post(CRDS, hook.crd()).await;
    assert_eq!(code, 201, "{crd}");
    (hook, api)
}

#[tokio::test]
async fn objects_are_stored_in_one_version_and_served_in_both() {
    let (hook, api) = start().await;
    let (code, created) = api
        .post(V2, host("v2", "two", json!({"address": "b"})))
        .await;
    assert_eq!(code, 201, "{created}");
    assert_eq!(created["apiVersion"], "shop.opkit.dev/v2");
    assert_eq!(created["spec"], json!({"address": "b", "size": 1}));
    // To the storage version, and back for the response.
    assert_eq!(hook.take_requests(), [1, 1]);
    let (code, _) = api.post(V1, host("v1", "one", json!({"host": "a"}))).await;
    assert_eq!(code, 201);
    // An object in the storage version needs no conversion.
    assert!(hook.take_requests().is_empty());
    let (_, two) = api.get(&format!("{V1}/two")).await;
    assert_eq!(two["spec"], json!({"host": "b", "size": 1}));
    assert!(hook.take_requests().is_empty());

    let (_, list) = api.get(V2).await;
    let specs: Vec<&Value> = list["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| &item["spec"])
        .collect();
    assert_eq!(
        specs,
        [
            &json!({"address": "a", "size": 1}),
            &json!({"address": "b", "size": 1})
        ]
    );
    // One request converts all objects of a list.
    assert_eq!(hook.take_requests(), [2]);

    let (code, patched) = api
        .merge(&format!("{V2}/one"), json!({"spec": {"address": "c"}}))
        .await;
    assert_eq!(
        (code, &patched["spec"]["address"]),
        (200, &json!("c")),
        "{patched}"
    );
    let (_, one) = api.get(&format!("{V1}/one")).await;
    assert_eq!(one["spec"]["host"], "c");
    assert_eq!(one["metadata"]["generation"], 2);

    let path = format!("{V2}/three?fieldManager=m");
    let body = host("v2", "three", json!({"address": "d"}));
    let (code, applied) = api.send(Method::PATCH, &path, APPLY, &body).await;
    assert_eq!(code, 201, "{applied}");
    let path = format!("{V1}/three?fieldManager=m");
    let body = host("v1", "three", json!({"host": "e"}));
    let (code, applied) = api.send(Method::PATCH, &path, APPLY, &body).await;
    assert_eq!(code, 200, "{applied}");
    assert_eq!(applied["spec"]["host"], "e");

    let frames = api.frames(&format!("{V2}?watch=true"), 3).await;
    let addresses: Vec<&Value> = frames
        .iter()
        .map(|frame| &frame["object"]["spec"]["address"])
        .collect();
    assert_eq!(addresses, ["c", "e", "b"]);

    let (code, deleted) = api.delete(&format!("{V2}/one"), Value::Null).await;
    assert_eq!(code, 200, "{deleted}");
    let (_, crd) = api.get(&format!("{CRDS}/hosts.shop.opkit.dev")).await;
    assert_eq!(crd["status"]["storedVersions"], json!(["v1"]));
}

#[tokio::test]
async fn fields_are_owned_across_versions() {
    let (_hook, api) = start().await;
    let path = format!("{V1}/one?fieldManager=first");
    let body = host("v1", "one", json!({"host": "a"}));
    let (code, applied) = api.send(Method::PATCH, &path, APPLY, &body).await;
    assert_eq!(code, 201, "{applied}");
    // Another manager applies the same field, which has another name in its version.
    let path = format!("{V2}/one?fieldManager=second");
    let body = host("v2", "one", json!({"address": "b"}));
    let response = api.send(Method::PATCH, &path, APPLY, &body).await;
    assert_eq!(response.0, 409, "{}", response.1);
    assert_eq!(
        message(&response),
        "Apply failed with 1 conflict: conflict with \"first\": .spec.host"
    );
    let path = format!("{path}&force=true");
    let (code, applied) = api.send(Method::PATCH, &path, APPLY, &body).await;
    assert_eq!(code, 200, "{applied}");
    let owners: Vec<(&Value, &Value)> = applied["metadata"]["managedFields"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| (&entry["manager"], &entry["fieldsV1"]))
        .collect();
    assert_eq!(
        owners,
        [(&json!("second"), &json!({"f:spec": {"f:address": {}}}))]
    );
    // An update in the first version takes the field back.
    let (code, updated) = api
        .merge(&format!("{V1}/one"), json!({"spec": {"host": "c"}}))
        .await;
    assert_eq!(code, 200, "{updated}");
    let managers = updated["metadata"]["managedFields"].as_array().unwrap();
    assert_eq!(managers.len(), 1, "{updated}");
    assert_eq!(managers[0]["fieldsV1"], json!({"f:spec": {"f:host": {}}}));
}

#[tokio::test]
async fn a_webhook_can_change_labels_but_no_other_metadata() {
    let (hook, api) = start().await;
    let (code, _) = api.post(V1, host("v1", "one", json!({"host": "a"}))).await;
    assert_eq!(code, 201);
    hook.alter(|review| {
        let object = &mut review["response"]["convertedObjects"][0];
        object["metadata"]["labels"] = json!({"hook": "yes"});
        object["metadata"]["finalizers"] = json!(["a.b/c"]);
    });
    let (code, one) = api.get(&format!("{V2}/one")).await;
    assert_eq!(code, 200, "{one}");
    assert_eq!(one["metadata"]["labels"], json!({"hook": "yes"}));
    assert_eq!(one["metadata"].get("finalizers"), None);
}

#[tokio::test]
async fn errors_of_a_webhook_have_the_texts_of_kubernetes() {
    let (hook, api) = start().await;
    let (code, _) = api.post(V1, host("v1", "one", json!({"host": "a"}))).await;
    assert_eq!(code, 201);
    let cases: [(Alter, &str); 9] = [
        (
            |review| {
                review["response"]["result"] = json!({"status": "Failed", "message": "no way"});
            },
            "failed: no way",
        ),
        (
            |review| review["response"]["result"] = json!({"status": "Failed"}),
            "failed: response.result.status was 'Failed', not 'Success'",
        ),
        (
            |review| review["response"] = Value::Null,
            "failed: no response provided",
        ),
        (
            |review| review["response"]["convertedObjects"] = json!([]),
            "returned 0 objects, expected 1",
        ),
        (
            |review| review["response"]["convertedObjects"][0]["apiVersion"] = json!("a/b"),
            "returned invalid object at index 0: invalid groupVersion (expected shop.opkit.dev/v2, \
             received a/b)",
        ),
        (
            |review| review["response"]["convertedObjects"][0]["kind"] = json!("X"),
            "returned invalid object at index 0: invalid kind (expected Host, received X)",
        ),
        (
            |review| review["response"]["convertedObjects"][0]["metadata"]["name"] = json!("x"),
            "returned invalid object: must have the same name: one != x",
        ),
        (
            |review| {
                review["response"]["convertedObjects"][0]["metadata"]["labels"] = json!({"a": 1});
            },
            "returned invalid metadata: metadata.labels[a] must be a string, but is int64 in \
             converted object",
        ),
        (
            |review| review["apiVersion"] = json!("apiextensions.k8s.io/v1beta1"),
            "failed: expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, \
             got apiextensions.k8s.io/v1beta1, Kind=ConversionReview",
        ),
    ];
    for (alter, expected) in cases {
        hook.alter(alter);
        let response = api.get(&format!("{V2}/one")).await;
        let expected = format!("conversion webhook for shop.opkit.dev/v1, Kind=Host {expected}");
        assert_eq!((response.0, message(&response)), (500, expected.as_str()));
    }
    hook.alter(|review| review["response"]["uid"] = json!("x"));
    let response = api.get(&format!("{V2}/one")).await;
    assert!(message(&response).ends_with(", got \"x\""), "{response:?}");
    // An object in the storage version can be read without the webhook.
    assert_eq!(api.get(&format!("{V1}/one")).await.0, 200);
    let (code, error) = api
        .post(V2, host("v2", "two", json!({"address": "b"})))
        .await;
    assert_eq!(code, 500, "{error}");
    assert_eq!(api.get(&format!("{V1}/two")).await.0, 404);
}

#[tokio::test]
async fn a_webhook_with_another_authority_is_not_trusted() {
    let hook = Hook::start().await;
    let other = Hook::start().await;
    let api = Api::start();
    let mut crd = hook.crd();
    crd["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"] = json!(other.bundle);
    assert_eq!(api.post(CRDS, crd).await.0, 201);
    let response = api
        .post(V2, host("v2", "two", json!({"address": "b"})))
        .await;
    assert_eq!(response.0, 500);
    let text = message(&response);
    let url = format!("https://{}/convert?timeout=30s", hook.address);
    let start = format!(
        "conversion webhook for shop.opkit.dev/v2, Kind=Host failed: Post \"{url}\": tls: failed \
         to verify certificate: x509:"
    );
    assert!(text.starts_with(&start), "{text}");
}

#[tokio::test]
async fn a_bundle_can_have_the_certificate_of_the_webhook() {
    let hook = Hook::start().await;
    let api = Api::start();
    let mut crd = hook.crd();
    crd["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"] = json!(hook.own_bundle);
    assert_eq!(api.post(CRDS, crd).await.0, 201);
    let (code, created) = api
        .post(V2, host("v2", "two", json!({"address": "b"})))
        .await;
    assert_eq!(code, 201, "{created}");
}

#[tokio::test]
async fn a_crd_with_an_invalid_bundle_is_not_established() {
    let hook = Hook::start().await;
    let api = Api::start();
    let mut crd = hook.crd();
    crd["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"] = json!("Zm9v");
    assert_eq!(api.post(CRDS, crd).await.0, 201);
    let (_, crd) = api.get(&format!("{CRDS}/hosts.shop.opkit.dev")).await;
    assert_eq!(
        crd["status"]["conditions"][1]["reason"], "InvalidCABundle",
        "{crd}"
    );
    assert_eq!(api.get(V1).await.0, 404);
    let bundle =
        json!({"spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": hook.bundle}}}}});
    let (code, _) = api
        .merge(&format!("{CRDS}/hosts.shop.opkit.dev"), bundle)
        .await;
    assert_eq!(code, 200);
    assert_eq!(api.get(V1).await.0, 200);
}

/// A policy for one version of a custom resource is evaluated for requests in the other version,
/// with the object that the conversion webhook returns.
#[tokio::test]
async fn a_policy_for_an_equivalent_version_gets_the_converted_object() {
    let (_hook, api) = start().await;
    let group = "/apis/admissionregistration.k8s.io/v1";
    let constraints = json!({
        "resourceRules": [{
            "operations": ["CREATE"], "apiGroups": ["shop.opkit.dev"], "apiVersions": ["v1"],
            "resources": ["hosts"],
        }],
    });
    let mutation = json!({
        "patchType": "ApplyConfiguration",
        "applyConfiguration": {
            "expression": "Object{spec: Object.spec{host: string(object.spec.host) + '.local'}}",
        },
    });
    let policy = json!({
        "metadata": {"name": "hosts"},
        "spec": {
            "matchConstraints": constraints, "mutations": [mutation], "failurePolicy": "Fail",
            "reinvocationPolicy": "Never",
        },
    });
    let binding = json!({"metadata": {"name": "hosts"}, "spec": {"policyName": "hosts"}});
    for (plural, object) in [
        ("mutatingadmissionpolicies", policy),
        ("mutatingadmissionpolicybindings", binding),
    ] {
        let (code, stored) = api.post(&format!("{group}/{plural}"), object).await;
        assert_eq!(code, 201, "{stored}");
    }
    let body = host("v2", "two", json!({"address": "b"}));
    let (code, created) = api.post(V2, body).await;
    assert_eq!(
        (code, &created["spec"]["address"]),
        (201, &json!("b.local"))
    );
}
