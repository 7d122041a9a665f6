use k8s_openapi::api::core::v1::ConfigMap;
use opkit_cache::{InformerFactory, Scope};
use opkit_client::RestClient;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::*;
use crate::source::event::{CreateEvent, DeleteEvent, GenericEvent, UpdateEvent};

/// Returns a function that decodes JSON into stored objects.
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

fn update<'a>(old: &'a Stored, new: &'a Stored) -> Event<'a> {
    Event::Update(UpdateEvent { old, new })
}

/// Returns the events of an object that are not updates.
fn other_events(object: &Stored) -> [Event<'_>; 3] {
    [
        Event::Create(CreateEvent {
            object,
            is_initial: false,
        }),
        Event::Delete(DeleteEvent {
            object,
            is_certain: true,
        }),
        Event::Generic(GenericEvent { object }),
    ]
}

#[tokio::test]
async fn change_predicates_test_updates_and_pass_other_events() {
    let read = reader();
    let check = |predicate: Predicate, old: Value, new: Value, expected: bool| {
        let (old, new) = (read(old), read(new));
        let negated = !predicate.clone();
        assert_eq!(predicate.passes(&update(&old, &new), true), expected);
        assert_eq!(negated.passes(&update(&old, &new), true), !expected);
        // One of several coalesced changes.
        assert!(predicate.passes(&update(&old, &new), false));
        assert!(negated.passes(&update(&old, &new), false));
    };
    let passes_others = |predicate: Predicate, expected: bool| {
        let object = read(map(1, "x"));
        for event in other_events(&object) {
            assert_eq!(predicate.passes(&event, true), expected, "{event:?}");
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
    passes_others(generation(), true);
    passes_others(sizes(), true);
    passes_others(generation().and(labels()), true);
    passes_others(!generation(), false);
    passes_others(!!generation(), true);
    passes_others(generation().and(!labels()), false);
    passes_others(generation().or(!labels()), true);
}

#[tokio::test]
async fn the_start_of_a_deletion_passes_change_predicates() {
    let read = reader();
    let old = read(map(1, "x"));
    let mut deleted = map(1, "x");
    deleted["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let deleting = read(deleted);
    for predicate in [generation_changed(), !generation_changed()] {
        assert!(predicate.passes(&update(&old, &deleting), true));
    }
    assert!(!generation_changed().passes(&update(&deleting, &deleting), true));
}

#[tokio::test]
async fn a_selector_tests_the_object_after_the_event() {
    let read = reader();
    let selector = || label_selector("a in (x, y)").unwrap();
    let leaves = || leaves_selection("a in (x, y)").unwrap();
    let (inside, also_inside, outside) = (read(map(1, "x")), read(map(2, "y")), read(map(2, "z")));
    // Results of the selector, its negation, and `leaves_selection`.
    let check = |event: &Event<'_>, expected: [bool; 3]| {
        for is_whole in [true, false] {
            let passes = [selector(), !selector(), leaves()]
                .map(|predicate| predicate.passes(event, is_whole));
            assert_eq!(passes, expected, "{event:?}");
        }
    };
    for event in other_events(&inside) {
        check(&event, [true, false, false]);
    }
    for event in other_events(&outside) {
        check(&event, [false, true, false]);
    }
    check(&update(&inside, &also_inside), [true, false, false]);
    check(&update(&outside, &outside), [false, true, false]);
    check(&update(&outside, &inside), [true, false, false]);
    check(&update(&inside, &outside), [false, true, true]);
    assert!(label_selector("a in").is_err());
    assert!(leaves_selection("a in").is_err());
}

#[tokio::test]
async fn event_types_are_selected() {
    let read = reader();
    let object = read(map(1, "x"));
    let [create, delete, generic_event] = other_events(&object);
    let events = [create, update(&object, &object), delete, generic_event];
    let check = |predicate: Predicate, expected: [bool; 4]| {
        for is_whole in [true, false] {
            let passes = events.each_ref().map(|it| predicate.passes(it, is_whole));
            assert_eq!(passes, expected);
        }
    };
    check(created(), [true, false, false, false]);
    check(updated(), [false, true, false, false]);
    check(deleted(), [false, false, true, false]);
    check(generic(), [false, false, false, true]);
    check(created().or(deleted()), [true, false, true, false]);
    check(!updated(), [true, false, true, true]);
}

#[tokio::test]
async fn funcs_test_each_type_of_event() {
    let read = reader();
    let (old, new) = (read(map(1, "x")), read(map(2, "y")));
    let size = |map: &ConfigMap| map.data.clone().unwrap_or_default()["size"].clone();
    let predicate: Predicate = Funcs::<ConfigMap>::new()
        .create(|event| event.is_initial)
        .update(move |event| size(event.old) == "x" && size(event.new) == "y")
        .delete(|event| !event.is_certain)
        .generic(move |event| size(event.object) == "y")
        .into();
    for is_initial in [true, false] {
        let object = &new;
        let event = Event::Create(CreateEvent { object, is_initial });
        assert_eq!(predicate.passes(&event, true), is_initial);
    }
    for is_certain in [true, false] {
        let object = &new;
        let event = Event::Delete(DeleteEvent { object, is_certain });
        assert_eq!(predicate.passes(&event, true), !is_certain);
    }
    for (object, expected) in [(&old, false), (&new, true)] {
        let event = Event::Generic(GenericEvent { object });
        assert_eq!(predicate.passes(&event, true), expected);
    }
    assert!(predicate.passes(&update(&old, &new), true));
    assert!(!predicate.passes(&update(&new, &old), true));
    assert!(!(!predicate.clone()).passes(&update(&old, &new), true));
    // An event without a function passes, and so does an object that cannot be decoded.
    let others = Predicate::from(Funcs::<ConfigMap>::new().update(|_| false));
    assert!(other_events(&new).iter().all(|it| others.passes(it, true)));
    let wrong = read(json!({"metadata": {"name": "one"}, "data": 1}));
    assert!(others.passes(&update(&wrong, &wrong), true));
}
