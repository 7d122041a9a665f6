//! What leads to a reconcile, and what does not.

use kube::core::PartialObjectMeta;

use super::*;
use crate::{MapContext, ObjectKey, Reference, Request, predicate, trigger};

const OTHER: &str = "/api/v1/namespaces/e/secrets/shared";

/// A map that names a secret, by `namespace/name` or by name.
fn naming(name: &str, secret: &str) -> Value {
    json!({"metadata": {"namespace": "d", "name": name}, "data": {"secret": secret}})
}

fn secrets(map: &ConfigMap) -> Vec<ObjectKey> {
    let named = map
        .data
        .iter()
        .flatten()
        .filter(|(key, _)| *key == "secret");
    let key = |name: &str| match name.split_once('/') {
        Some(key) => ObjectKey::from(key),
        None => ObjectKey::from(name),
    };
    named.map(|(_, name)| key(name)).collect()
}

/// What it read of the secret, per reconcile.
fn referring(seen: &Arc<Mutex<Vec<String>>>) -> Controller<ConfigMap> {
    let seen = seen.clone();
    Controller::new(move |map: Arc<ConfigMap>, cx: Context| {
        for key in secrets(&map) {
            let line = match cx.get::<Secret>(key) {
                Ok(Some(secret)) => format!("{:?}", secret.type_),
                Ok(None) => "none".to_owned(),
                Err(error) => error.to_string(),
            };
            seen.lock().push(line);
        }
        async { Ok(Action::await_change()) }
    })
    .references::<Secret>(secrets)
}

#[tokio::test(start_paused = true)]
async fn a_change_of_what_is_named_leads_to_who_names_it() {
    let server = Server::new(&["configmaps", "secrets"]);
    server.put(MAP, naming("one", "child"));
    server.put(
        "/api/v1/namespaces/d/configmaps/two",
        naming("two", "other"),
    );
    let seen = Arc::default();
    let run = Run::start(&server, referring(&seen)).await;
    run.settle(MOMENT).await;
    seen.lock().clear();
    server.put(
        SECRET,
        json!({"metadata": {"namespace": "d", "name": "child"}, "type": "a"}),
    );
    run.settle(MOMENT).await;
    server.delete(SECRET);
    run.settle(MOMENT).await;
    assert_eq!(*seen.lock(), [r#"Some("a")"#, "none"]);
    // It names another one now.
    server.put(MAP, naming("one", "other"));
    run.settle(MOMENT).await;
    seen.lock().clear();
    server.put(
        SECRET,
        json!({"metadata": {"namespace": "d", "name": "child"}, "type": "b"}),
    );
    run.settle(MOMENT).await;
    assert!(seen.lock().is_empty());
    run.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn another_namespace_is_refused_unless_it_is_declared_and_granted() {
    let server = Server::new(&["configmaps", "secrets"]);
    server.put(MAP, naming("one", "e/shared"));
    let secret = |granted: bool| {
        json!({"metadata": {"namespace": "e", "name": "shared",
            "annotations": {"granted": granted.to_string()}}, "type": "a"})
    };
    server.put(OTHER, secret(true));
    let refused = "ConfigMap d/one may not refer to Secret e/shared in another namespace: the operator must declare .cross_namespace::<Secret>(..), and that must grant it";
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let run = Run::start(&server, referring(&seen)).await;
    run.settle(MOMENT).await;
    server.put(OTHER, secret(true));
    run.settle(MOMENT).await;
    assert_eq!(*seen.lock(), [refused], "not even told of the change");
    run.stop().await.unwrap();

    fn granted(reference: &Reference, cx: &MapContext) -> bool {
        let secret = cx.get::<Secret>(reference.to.clone()).unwrap();
        let annotations = secret.and_then(|secret| secret.metadata.annotations.clone());
        annotations
            .unwrap_or_default()
            .get("granted")
            .map(String::as_str)
            == Some("true")
    }
    seen.lock().clear();
    let run = Run::start_manager(&server, |manager| {
        manager
            .cross_namespace::<Secret>(granted)
            .controller(referring(&seen))
    })
    .await;
    run.settle(MOMENT).await;
    server.put(OTHER, secret(false));
    run.settle(MOMENT).await;
    assert_eq!(*seen.lock(), [r#"Some("a")"#, refused]);
    run.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_comes_from_elsewhere_is_reconciled() {
    let server = Server::new(&["configmaps"]);
    server.put(MAP, object("one"));
    let count: Arc<AtomicU32> = Arc::default();
    let (trigger, calls) = trigger("web server");
    let ticks = futures::stream::once(async {
        tokio::time::sleep(Duration::from_secs(60)).await;
        ("d", "one")
    });
    let controller = counting(&count, |_| Ok(Action::await_change()))
        .triggered_by(calls)
        .watches_stream("timer", ticks);
    let run = Run::start(&server, controller).await;
    run.settle(MOMENT).await;
    trigger.send(("d", "one")).await.unwrap();
    run.settle(MOMENT).await;
    // One that is not there is nothing to reconcile.
    trigger.try_send(("d", "none")).unwrap();
    // Of a cluster that nobody knows there is only an error.
    let unknown = Request::from(("d", "one")).in_cluster("mars");
    trigger.send(unknown).await.unwrap();
    run.settle(Duration::from_secs(61)).await;
    let causes: Vec<_> = run
        .log
        .records()
        .iter()
        .map(|r| r.causes().join(", "))
        .collect();
    assert_eq!(
        causes,
        ["initial list", "web server", "web server", "timer"]
    );
    assert_eq!(count.load(Ordering::SeqCst), 3);
    run.stop().await.unwrap();
    assert!(
        trigger.send(("d", "one")).await.is_err(),
        "nobody listens any more"
    );
}

#[tokio::test(start_paused = true)]
async fn owners_and_maps_of_metadata_lead_to_objects() {
    let server = Server::new(&["configmaps", "secrets", "pods"]);
    server.put(MAP, object("one"));
    let count: Arc<AtomicU32> = Arc::default();
    let to_all = |_: &PartialObjectMeta<Pod>, cx: &MapContext| {
        let maps = cx.list::<ConfigMap>(()).unwrap();
        maps.iter()
            .map(|map| ObjectKey::of(&map.metadata))
            .collect()
    };
    let controller = counting(&count, |_| Ok(Action::await_change()))
        .watches_owners::<Secret>()
        .watches_metadata::<Pod>(to_all)
        .only(predicate::labels_changed());
    let run = Run::start(&server, controller).await;
    run.settle(MOMENT).await;
    let check = |expected: u32, what: &str| {
        assert_eq!(count.swap(0, Ordering::SeqCst), expected, "{what}");
    };
    check(1, "initial list");
    let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "one", "uid": "1"});
    server.put(
        SECRET,
        json!({"metadata": {"namespace": "d", "name": "child", "ownerReferences": [owner]}}),
    );
    run.settle(MOMENT).await;
    check(1, "an owner that is not the controller");
    server.put(POD, object("one"));
    run.settle(MOMENT).await;
    check(1, "a new pod");
    server.put(POD, server.get(POD).unwrap());
    run.settle(MOMENT).await;
    check(0, "a change that the predicate does not pass");
    run.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn live_changes_go_before_the_first_list() {
    let server = Server::new(&["configmaps"]);
    for n in 0..20 {
        let path = format!("/api/v1/namespaces/d/configmaps/map-{n:02}");
        server.put(&path, object(&format!("map-{n:02}")));
    }
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let told = seen.clone();
    let slow = Controller::new(move |map: Arc<ConfigMap>, _: Context| {
        told.lock().push(map.metadata.name.clone().unwrap());
        async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            Ok(Action::await_change())
        }
    });
    let run = Run::start(&server, slow).await;
    run.settle(Duration::from_millis(150)).await;
    server.put("/api/v1/namespaces/d/configmaps/map-19", object("map-19"));
    run.settle(Duration::from_secs(5)).await;
    assert_eq!(seen.lock()[2], "map-19");
    assert_eq!(seen.lock().len(), 20);
    run.stop().await.unwrap();
}
