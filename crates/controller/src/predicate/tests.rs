use k8s_openapi::api::core::v1::ConfigMap;
use opkit_cache::{InformerFactory, Scope};
use opkit_client::RestClient;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::*;

/// Makes stored objects of JSON.
fn reader() -> impl Fn(Value) -> Stored {
    let service = tower::service_fn(|_: http::Request<kube::client::Body>| {
        std::future::pending::<Result<http::Response<kube::client::Body>, kube::Error>>()
    });
    let client = RestClient::new(kube::Client::new(service, "default"));
    let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
    let factory = InformerFactory::new(client, Scope::All, tasks, stop);
    let lister = factory.informer::<ConfigMap>();
    move |json| lister.informer().read(json.to_string().as_bytes()).unwrap()
}

fn map(generation: i64, label: &str) -> Value {
    json!({
        "metadata": {"name": "one", "uid": "1", "generation": generation, "labels": {"a": label},
            "annotations": {"note": label}, "resourceVersion": format!("{generation}{label}")},
        "data": {"size": label},
    })
}

#[tokio::test]
async fn changes_are_judged_and_the_rest_passes() {
    let read = reader();
    let check = |predicate: Predicate, old: Value, new: Value, expected: bool| {
        let (old, new) = (read(old), read(new));
        assert_eq!(predicate.passes(Some(&old), Some(&new), true), expected);
        let negated = !predicate.clone();
        assert_eq!(negated.passes(Some(&old), Some(&new), true), !expected);
        for predicate in [predicate, negated] {
            assert!(predicate.passes(None, Some(&new), true), "new");
            assert!(predicate.passes(Some(&old), None, true), "gone");
            assert!(predicate.passes(Some(&old), Some(&new), false), "coalesced");
        }
    };
    let size = |map: &ConfigMap| map.data.clone();
    let sizes = || Predicate::typed(move |old, new| size(old) != size(new));
    check(generation_changed(), map(1, "x"), map(1, "y"), false);
    check(generation_changed(), map(1, "x"), map(2, "x"), true);
    check(resource_version_changed(), map(1, "x"), map(1, "x"), false);
    check(resource_version_changed(), map(1, "x"), map(1, "y"), true);
    check(labels_changed(), map(1, "x"), map(2, "x"), false);
    check(annotations_changed(), map(1, "x"), map(1, "y"), true);
    check(sizes(), map(1, "x"), map(1, "y"), true);
    check(sizes(), map(1, "x"), map(2, "x"), false);
    let (generation, labels) = (generation_changed, labels_changed);
    check(generation().or(labels()), map(1, "x"), map(1, "y"), true);
    check(generation().and(labels()), map(1, "x"), map(2, "x"), false);
    check(generation().and(!labels()), map(1, "x"), map(2, "x"), true);
    let without = json!({"metadata": {"name": "one", "uid": "1"}});
    check(generation(), without.clone(), without, true);
}

#[tokio::test]
async fn the_begin_of_a_deletion_and_another_object_of_the_name_pass() {
    let read = reader();
    let old = read(map(1, "x"));
    let mut deleted = map(1, "x");
    deleted["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let mut other = map(1, "x");
    other["metadata"]["uid"] = json!("2");
    for new in [read(deleted), read(other)] {
        assert!(generation_changed().passes(Some(&old), Some(&new), true));
        assert!((!generation_changed()).passes(Some(&old), Some(&new), true));
    }
}

#[tokio::test]
async fn a_selector_judges_the_object_whatever_happens_to_it() {
    let read = reader();
    let selector = || label_selector("a in (x, y)").unwrap();
    // Whether it passes, and whether its negation does.
    let check = |old: Option<&str>, new: Option<&str>, expected: [bool; 2]| {
        let (old, new) = (old.map(|l| read(map(1, l))), new.map(|l| read(map(2, l))));
        for seen_whole in [true, false] {
            let passes = [selector(), !selector()]
                .map(|predicate| predicate.passes(old.as_ref(), new.as_ref(), seen_whole));
            assert_eq!(passes, expected);
        }
    };
    check(None, Some("x"), [true, false]);
    check(None, Some("z"), [false, true]);
    check(Some("y"), None, [true, false]);
    check(Some("z"), None, [false, true]);
    check(Some("x"), Some("y"), [true, false]);
    check(Some("z"), Some("w"), [false, true]);
    check(Some("z"), Some("x"), [true, true]);
    check(Some("x"), Some("z"), [true, true]);
    assert!(label_selector("a in").is_err());
}
