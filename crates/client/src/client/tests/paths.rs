//! Whatever a key holds, a request is about the resource that was meant, or is not sent.

use k8s_openapi::api::autoscaling::v1::Scale;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::rbac::v1::ClusterRole;
use opkit_apimachinery::identity::ResourcePath;
use opkit_random::Random;

use super::*;
use crate::{DynamicClient, MetadataClient, Object, ScaleClient, Unstructured};

/// Panics if `outcome` was a refusal that sent something, or if what was sent is not about `meant`.
/// Returns whether it was sent.
fn check<T>(server: &Server, meant: &ResourcePath<'_>, outcome: Result<T, RequestError>) -> bool {
    let sent = server.sent();
    if let Err(RequestError::Build { .. }) = outcome {
        assert!(sent.is_empty(), "{sent:?} for {meant:?}");
        return false;
    }
    assert_eq!(sent.len(), 1, "for {meant:?}");
    for line in &sent {
        let (_, uri) = line.split_once(' ').unwrap();
        let uri: http::Uri = uri.parse().unwrap();
        assert_eq!(
            ResourcePath::parse(uri.path()).as_ref(),
            Some(meant),
            "{line}"
        );
    }
    true
}

/// Sends what every client can send about `kind`; returns how many requests left.
async fn send_all(server: &Server, kind: &Kind, key: &ObjectKey, part: &str) -> usize {
    let kube = server.client().kube();
    let namespace = key.namespace.as_deref();
    let collection = kind.path(namespace);
    let object = collection.clone().name(&key.name);
    let subresource = object.clone().subresource(part);
    let scale = object.clone().subresource("scale");
    let json = json!({"metadata": {"name": key.name, "namespace": key.namespace}});
    let (patch, delete) = (Patch::Merge(&json), DeleteOptions::default());
    let list = ListOptions {
        namespace: key.namespace.clone(),
        ..Default::default()
    };
    let body = Unstructured::new(kind, key.clone());
    let replicas: Scale = serde_json::from_value(json.clone()).unwrap();

    let dynamic = DynamicClient::new(kube.clone()).resource(kind.clone());
    let of_part = dynamic.subresource(part);
    let metadata = MetadataClient::new(kube.clone());
    let scales = ScaleClient::new(kube.clone(), kind.clone());
    let rest = crate::RestClient::new(kube.clone());
    let (format, write) = (ResponseFormat::default(), WriteOptions::for_manager("me"));
    let mut sent = Vec::new();
    let mut count = |meant: &ResourcePath<'_>, outcome: Result<(), RequestError>| {
        sent.push(check(server, meant, outcome));
    };
    count(&object, dynamic.get(key.clone()).await.map(drop));
    count(&collection, dynamic.list(&list).await.map(drop));
    count(&collection, dynamic.watch(&list).await.map(drop));
    count(&collection, dynamic.create(&body).await.map(drop));
    count(&object, dynamic.update(&body).await.map(drop));
    count(&object, dynamic.patch(key.clone(), patch).await.map(drop));
    count(&object, dynamic.apply(&body).await.map(drop));
    count(
        &object,
        dynamic.delete(key.clone(), &delete).await.map(drop),
    );
    count(&collection, dynamic.delete_all(&list, &delete).await);
    count(&subresource, of_part.get(key.clone()).await.map(drop));
    count(&subresource, of_part.update(&body).await.map(drop));
    count(&object, metadata.get(kind, key.clone()).await.map(drop));
    count(&collection, metadata.list(kind, &list).await.map(drop));
    count(&collection, metadata.watch(kind, &list).await.map(drop));
    count(
        &object,
        metadata.patch(kind, key.clone(), patch).await.map(drop),
    );
    count(
        &object,
        metadata.delete(kind, key.clone(), &delete).await.map(drop),
    );
    count(&scale, scales.get(key.clone()).await.map(drop));
    count(&scale, scales.set(key.clone(), 1).await.map(drop));
    count(&scale, scales.update(&replicas).await.map(drop));
    count(&object, rest.get(kind, key).await.map(drop));
    count(&collection, rest.list(kind, &list, format).await.map(drop));
    count(&collection, rest.watch(kind, &list, format).await.map(drop));
    count(
        &collection,
        rest.create(kind, namespace, &json, &write).await.map(drop),
    );
    count(
        &object,
        rest.patch(kind, key, None, patch, &write).await.map(drop),
    );
    count(&object, rest.delete(kind, key, &delete).await.map(drop));
    let request = rest.resource_request(http::Method::PUT, &subresource);
    let outcome = match request {
        Ok(request) => request.bytes().await.map(drop),
        Err(error) => Err(error),
    };
    count(&subresource, outcome);
    sent.into_iter().filter(|sent| *sent).count()
}

/// As [`send_all`], of the typed client.
async fn send_typed<K: Object>(server: &Server, key: &ObjectKey, part: &str) -> usize {
    let kind = Kind::of::<K>();
    let client = server.client();
    let collection = kind.path(key.namespace.as_deref());
    let object = collection.clone().name(&key.name);
    let subresource = object.clone().subresource(part);
    let status = object.clone().subresource("status");
    let json = json!({"metadata": {"name": key.name, "namespace": key.namespace, "uid": "u"}});
    let typed: K = serde_json::from_value(json.clone()).unwrap();
    let (patch, delete) = (Patch::Merge(&json), DeleteOptions::default());
    let list = ListOptions {
        namespace: key.namespace.clone(),
        ..Default::default()
    };
    let parts = client.subresource(part);
    let mut sent = Vec::new();
    let mut count = |meant: &ResourcePath<'_>, outcome: Result<(), RequestError>| {
        sent.push(check(server, meant, outcome));
    };
    count(&object, client.get::<K>(key.clone()).await.map(drop));
    count(&object, client.get_opt::<K>(key.clone()).await.map(drop));
    count(&collection, client.list::<K>(&list).await.map(drop));
    count(&collection, client.watch::<K>(&list).await.map(drop));
    count(&collection, client.create(&typed).await.map(drop));
    count(&object, client.update(&typed).await.map(drop));
    count(
        &object,
        client.patch::<K>(key.clone(), patch).await.map(drop),
    );
    count(&object, client.apply(&typed).await.map(drop));
    count(&object, client.delete(&typed).await.map(drop));
    count(
        &object,
        client
            .delete_with::<K>(key.clone(), &delete)
            .await
            .map(drop),
    );
    count(&collection, client.delete_all::<K>(&list, &delete).await);
    count(&status, client.status().update(&typed).await.map(drop));
    count(&status, client.status().apply(&typed).await.map(drop));
    count(
        &subresource,
        parts.get::<K, Value>(key.clone()).await.map(drop),
    );
    count(
        &subresource,
        parts.patch::<K>(key.clone(), patch).await.map(drop),
    );
    count(
        &subresource,
        parts.create::<K, Value>(key.clone(), &json).await.map(drop),
    );
    let pod = Kind::of::<Pod>();
    if let Some(namespace) = &key.namespace {
        let eviction = pod.path(Some(namespace)).name(&key.name);
        let eviction = eviction.subresource("eviction");
        count(&eviction, client.evict(key.clone(), &delete).await);
    }
    sent.into_iter().filter(|sent| *sent).count()
}

/// A text that is often a segment, and often an attempt on the path.
fn arbitrary(random: &mut Random) -> String {
    const TEXTS: [&str; 24] = [
        "web",
        "a.b-c",
        "system:controller:x",
        "namespaces",
        "status",
        "finalize",
        "watch",
        "proxy",
        "v1",
        "apps",
        "scale",
        "..",
        ".",
        "",
        "%2e%2e",
        "x?",
        "x#",
        "a b",
        "é",
        "a\u{0}\n",
        "a\\b",
        "kube-system/secrets/root?",
        "../../secrets",
        "a%2Fb",
    ];
    let mut pick = || TEXTS[random.below(TEXTS.len() as u64) as usize];
    let (first, second) = (pick(), pick());
    match random.percent(80) {
        true => first.to_owned(),
        false => format!("{first}{second}"),
    }
}

#[tokio::test]
async fn no_request_leaves_for_another_resource() {
    let mut sent = 0;
    for seed in 0..400 {
        let server = Server::default();
        let mut random = Random::new(seed);
        let mut text = || arbitrary(&mut random);
        let mut kind = Kind {
            group: text(),
            version: text(),
            kind: "Thing".to_owned(),
            plural: text(),
            namespaced: true,
        };
        let (mut namespace, name, part) = (text(), text(), text());
        if namespace.is_empty() {
            // An object without a namespace is one of the client's.
            namespace.push_str("home");
        }
        let key = ObjectKey::from((namespace, name));
        sent += send_typed::<ConfigMap>(&server, &key, &part).await;
        sent += send_all(&server, &kind, &key, &part).await;
        kind.namespaced = false;
        let key = ObjectKey::from(key.name);
        sent += send_typed::<ClusterRole>(&server, &key, &part).await;
        sent += send_all(&server, &kind, &key, &part).await;
    }
    assert!(sent > 5_000, "only {sent} requests were sent");
}

#[tokio::test]
async fn a_namespace_is_refused_by_its_name() {
    let server = Server::default();
    let evil = ("kube-system/secrets/root?", "x");
    let error = server.client().get::<ConfigMap>(evil).await.unwrap_err();
    assert_eq!(
        crate::one_line(&error),
        "cannot get ConfigMap kube-system/secrets/root?/x: the request cannot be built: \
         the namespace \"kube-system/secrets/root?\" cannot be in the path of a resource: \
         it may not contain '/'"
    );
    let delete = DeleteOptions::default();
    let client = server.client();
    let deleted = client.delete_with::<ConfigMap>(("", "x"), &delete).await;
    assert!(matches!(deleted, Err(RequestError::Build { .. })));
    assert!(server.sent().is_empty());
    let role = "system:controller:x";
    server.client().get::<ClusterRole>(role).await.unwrap();
    let expected = "GET /apis/rbac.authorization.k8s.io/v1/clusterroles/system:controller:x";
    assert_eq!(server.sent(), [expected]);
}
