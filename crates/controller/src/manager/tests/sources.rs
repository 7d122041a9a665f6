//! Events that cause a reconcile, and events that do not.

use futures::StreamExt;
use kube::core::PartialObjectMeta;

use super::*;
use crate::source::predicate;
use crate::{Kind, MapContext, ObjectKey, Reference, Request, trigger};

const OTHER: &str = "/api/v1/namespaces/e/secrets/shared";

/// Returns a ConfigMap that refers to a Secret, by `namespace/name` or by name.
fn map_of(name: &str, secret: &str) -> Value {
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

/// Returns a controller that keeps the content of the Secret at each reconcile.
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
        async { Ok::<_, Error>(Action::await_change()) }
    })
    .references::<Secret>(secrets)
}

#[tokio::test(start_paused = true)]
async fn a_change_of_a_referenced_object_reconciles_the_referring_ones() {
    let server = Server::new(&["configmaps", "secrets"]);
    server.put(MAP, map_of("one", "child"));
    server.put(
        "/api/v1/namespaces/d/configmaps/two",
        map_of("two", "other"),
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
    // The ConfigMap refers to another Secret now.
    server.put(MAP, map_of("one", "other"));
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
    server.put(MAP, map_of("one", "e/shared"));
    let secret = |granted: bool| {
        json!({"metadata": {"namespace": "e", "name": "shared",
            "annotations": {"granted": granted.to_string()}}, "type": "a"})
    };
    server.put(OTHER, secret(true));
    let refused = "ConfigMap d/one may not refer to Secret e/shared in another namespace: declare .cross_namespace::<Secret>(..) with a function that grants it";
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let run = Run::start(&server, referring(&seen)).await;
    run.settle(MOMENT).await;
    server.put(OTHER, secret(true));
    run.settle(MOMENT).await;
    assert_eq!(*seen.lock(), [refused], "the change is not reported");
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
async fn requests_of_a_trigger_are_reconciled() {
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
    // The request for an object that does not exist is ignored.
    trigger.try_send(("d", "none")).unwrap();
    // The request for an unknown cluster leads to an error.
    let unknown = Request::from(("d", "one")).in_cluster("mars");
    trigger.send(unknown).await.unwrap();
    run.settle(Duration::from_secs(61)).await;
    assert_eq!(
        run.causes(),
        ["initial list", "web server", "web server", "timer"]
    );
    assert_eq!(count.load(Ordering::SeqCst), 3);
    run.stop().await.unwrap();
    assert!(
        trigger.send(("d", "one")).await.is_err(),
        "the controller has stopped"
    );
}

#[tokio::test(start_paused = true)]
async fn owners_and_maps_of_metadata_cause_reconciles() {
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
        .watches_metadata_with::<Pod>(|pods| pods.map(to_all).only(predicate::labels_changed()));
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
async fn several_filters_combine() {
    let server = Server::new(&["configmaps", "pods"]);
    server.put(MAP, object("one"));
    let count: Arc<AtomicU32> = Arc::default();
    let named = |name: &'static str| predicate::Predicate::object(move |it| it.name() == name);
    let is_labelled = || predicate::Predicate::object(|it| it.label("app").is_some());
    let controller = counting(&count, |_| Ok(Action::await_change()))
        .primary(|maps| maps.only(named("one")))
        .primary(|maps| maps.only(is_labelled()))
        .watches_with::<Pod>(|pods| {
            let pods = pods.map(|_, _| vec!["one".into()]);
            pods.only(named("one")).only(is_labelled())
        });
    let run = Run::start(&server, controller).await;
    for path in [MAP, POD] {
        for (name, is_labelled, expected) in [("two", true, 0), ("one", false, 0), ("one", true, 1)]
        {
            let mut changed = object(name);
            if is_labelled {
                changed["metadata"]["labels"] = json!({"app": "a"});
            }
            server.put(&path.replace("one", name), changed);
            run.settle(MOMENT).await;
            let found = count.swap(0, Ordering::SeqCst);
            assert_eq!(found, expected, "{path}: {name}, labelled: {is_labelled}");
        }
    }
    run.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_filter_of_every_source_applies_to_all_sources() {
    let server = Server::new(&["configmaps", "pods"]);
    let count: Arc<AtomicU32> = Arc::default();
    let is_labelled = predicate::Predicate::object(|it| it.label("app").is_some());
    let controller = counting(&count, |_| Ok(Action::await_change()))
        .every_source(|all| all.only(is_labelled))
        .watches::<Pod>(|_, _| vec!["one".into()])
        .every_source(|all| all.only(predicate::updated()));
    let run = Run::start(&server, controller).await;
    let check = async |path: &str, labels: Value, expected: u32| {
        let mut changed = object("one");
        changed["metadata"]["uid"] = json!("u");
        changed["metadata"]["labels"] = labels;
        server.put(path, changed);
        run.settle(MOMENT).await;
        assert_eq!(count.swap(0, Ordering::SeqCst), expected, "{path}");
    };
    for path in [MAP, POD] {
        check(path, json!({}), 0).await;
        check(path, json!({"app": "a"}), 1).await;
    }
    run.stop().await.unwrap();
}

/// A map function and the four functions of a source receive the events of Secrets.
#[tokio::test(start_paused = true)]
async fn a_source_distinguishes_its_events() {
    use crate::source::event::Event;
    type Log = Arc<Mutex<Vec<String>>>;
    let server = Server::new(&["configmaps", "secrets"]);
    server.put(MAP, object("one"));
    server.put(SECRET, secret("a"));
    let (mapped, handled): (Log, Log) = Default::default();
    let label = |secret: &Secret| {
        let labels = secret.metadata.labels.clone().unwrap_or_default();
        labels.get("l").cloned().unwrap_or_default()
    };
    let log = mapped.clone();
    let map = move |event: &Event<'_, Secret>, _: &MapContext| {
        log.lock().push(match event {
            Event::Create(it) => format!("create {} {}", label(it.object), it.is_initial),
            Event::Update(it) => format!("update {}>{}", label(it.old), label(it.new)),
            Event::Delete(it) => format!("delete {} {}", label(it.object), it.is_certain),
            Event::Generic(it) => format!("generic {}", label(it.object)),
        });
        vec!["one".into()]
    };
    let (trigger, calls) = trigger("web server");
    let logging = || {
        let handled = handled.clone();
        move |line: String| {
            handled.lock().push(line);
            Vec::new()
        }
    };
    let (create, update, delete, generic) = (logging(), logging(), logging(), logging());
    let count: Arc<AtomicU32> = Arc::default();
    let controller = counting(&count, |_| Ok(Action::await_change()))
        .watches_with::<Secret>(|secrets| secrets.map_events(map).triggered_by(calls))
        .owns_with::<Secret>(|secrets| {
            secrets
                .on_create(move |it, _| create(format!("create {}", label(it.object))))
                .on_update(move |it, _| {
                    update(format!("update {}>{}", label(it.old), label(it.new)))
                })
                .on_delete(move |it, _| delete(format!("delete {}", label(it.object))))
                .on_generic(move |it, _| generic(format!("generic {}", label(it.object))))
        });
    let run = Run::start(&server, controller).await;
    let seen = async || {
        run.settle(MOMENT).await;
        (
            std::mem::take(&mut *mapped.lock()),
            std::mem::take(&mut *handled.lock()),
        )
    };
    let lines = |lines: &[&str]| lines.iter().map(ToString::to_string).collect::<Vec<_>>();
    let (map, funcs) = seen().await;
    assert_eq!(
        (map, funcs),
        (lines(&["create a true"]), lines(&["create a"]))
    );
    server.put(SECRET, secret("b"));
    let (map, funcs) = seen().await;
    assert_eq!(
        (map, funcs),
        (lines(&["update a>b"]), lines(&["update a>b"]))
    );
    count.store(0, Ordering::SeqCst);
    trigger.send(("d", "child")).await.unwrap();
    trigger.send(("d", "none")).await.unwrap();
    let (map, funcs) = seen().await;
    assert_eq!(
        map,
        lines(&["generic b"]),
        "of the source that is triggered"
    );
    assert_eq!(funcs, lines(&[]));
    assert_eq!(count.load(Ordering::SeqCst), 1);
    server.delete(SECRET);
    let (map, funcs) = seen().await;
    assert_eq!(
        (map, funcs),
        (lines(&["delete b true"]), lines(&["delete b"]))
    );
    // These changes are too fast to be reported one by one.
    server.put(SECRET, secret("c"));
    server.put(SECRET, secret("d"));
    server.delete(SECRET);
    let (map, _) = seen().await;
    assert_eq!(
        map,
        lines(&["create c false", "update c>d", "delete d true"])
    );
    run.stop().await.unwrap();
}

fn secret(label: &str) -> Value {
    json!({"metadata": {"namespace": "d", "name": "child", "uid": "s", "labels": {"l": label}}})
}

#[tokio::test(start_paused = true)]
async fn the_start_of_a_deletion_passes_a_change_filter() {
    let server = Server::new(&["configmaps"]);
    let mut map = object("one");
    map["metadata"]["uid"] = json!("u");
    map["metadata"]["finalizers"] = json!(["opkit.dev/test"]);
    server.put(MAP, map.clone());
    let count: Arc<AtomicU32> = Arc::default();
    let cleaned = count.clone();
    let controller = counting(&Arc::default(), |_| Ok(Action::await_change()))
        .primary(|maps| {
            maps.only(predicate::labels_changed().and(!predicate::annotations_changed()))
        })
        .finalizer("opkit.dev/test", move |_, _| {
            cleaned.fetch_add(1, Ordering::SeqCst);
            async { Ok::<_, Error>(crate::Cleanup::Pending(Duration::from_secs(3600))) }
        });
    let run = Run::start(&server, controller).await;
    run.settle(MOMENT).await;
    map["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    server.put(MAP, map);
    run.settle(MOMENT).await;
    assert_eq!(count.load(Ordering::SeqCst), 1);
    run.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn live_changes_are_reconciled_before_the_initial_list() {
    let server = Server::new(&["configmaps"]);
    for n in 0..20 {
        let path = format!("/api/v1/namespaces/d/configmaps/map-{n:02}");
        server.put(&path, object(&format!("map-{n:02}")));
    }
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let log = seen.clone();
    let slow = Controller::new(move |map: Arc<ConfigMap>, _: Context| {
        log.lock().push(map.metadata.name.clone().unwrap());
        async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            Ok::<_, Error>(Action::await_change())
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

#[tokio::test(start_paused = true)]
async fn a_priority_is_kept_over_a_requeue_and_can_be_chosen() {
    let server = Server::new(&["configmaps"]);
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let log = seen.clone();
    // Each object is reconciled twice: those of the initial list after those that changed just now.
    let controller = Controller::new(move |map: Arc<ConfigMap>, _: Context| {
        let name = map.metadata.name.clone().unwrap();
        let again = !log.lock().contains(&name);
        log.lock().push(name.clone());
        async move {
            tokio::time::sleep(Duration::from_millis(10)).await;
            let soon = Action::requeue(Duration::from_millis(15));
            Ok(match (again, name.as_str()) {
                (false, _) => Action::await_change(),
                (true, "chosen") => soon.with_priority(10),
                (true, "failing") => {
                    return Err(Error::retry_after(
                        Duration::from_millis(15),
                        Error::msg("no"),
                    ));
                }
                (true, _) => soon,
            })
        }
    });
    let path = |name: &str| format!("/api/v1/namespaces/d/configmaps/{name}");
    for name in ["failing", "first-1", "chosen"] {
        server.put(&path(name), object(name));
    }
    let run = Run::start(&server, controller).await;
    run.settle(Duration::from_millis(1)).await;
    server.put(&path("live"), object("live"));
    run.settle(Duration::from_secs(1)).await;
    // A requeue with a higher priority goes before objects that have not been reconciled yet.
    let expected = [
        "chosen", "live", "failing", "chosen", "live", "first-1", "failing", "first-1",
    ];
    assert_eq!(*seen.lock(), expected);
    run.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn nothing_is_reconciled_before_all_initial_lists_are_received() {
    let server = Server::new(&["configmaps", "secrets"]);
    server.put(MAP, object("one"));
    for n in 0..200 {
        let name = format!("secret-{n}");
        server.put(
            &format!("/api/v1/namespaces/d/secrets/{name}"),
            object(&name),
        );
    }
    let mapped: Arc<AtomicU32> = Arc::default();
    let (counted, seen) = (mapped.clone(), mapped.clone());
    let first: Arc<Mutex<Option<u32>>> = Arc::default();
    let found = first.clone();
    let controller = Controller::new(move |_: Arc<ConfigMap>, cx: Context| {
        let count = seen.load(Ordering::SeqCst);
        assert_eq!(cx.list::<Secret>(()).unwrap().len(), 200);
        found.lock().get_or_insert(count);
        async { Ok::<_, Error>(Action::await_change()) }
    })
    .watches::<Secret>(move |_, _| {
        counted.fetch_add(1, Ordering::SeqCst);
        vec!["one".into()]
    });
    let run = Run::start(&server, controller).await;
    run.settle(MOMENT).await;
    assert_eq!(
        *first.lock(),
        Some(200),
        "each secret was handled before the first reconcile"
    );
    assert_eq!(run.log.total(), 1, "and caused one reconcile");
    run.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_child_with_a_new_owner_reconciles_both_owners_once() {
    let server = Server::new(&["configmaps", "secrets"]);
    let path = |name: &str| format!("/api/v1/namespaces/d/configmaps/{name}");
    for name in ["one", "two"] {
        server.put(&path(name), object(name));
    }
    let child = |owner: &str| {
        let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": owner, "uid": owner, "controller": true});
        json!({"metadata": {"namespace": "d", "name": "child", "uid": "c", "ownerReferences": [owner]}})
    };
    server.put(SECRET, child("one"));
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let log = seen.clone();
    let controller = Controller::new(move |map: Arc<ConfigMap>, _: Context| {
        log.lock().push(map.metadata.name.clone().unwrap());
        async { Ok::<_, Error>(Action::await_change()) }
    })
    .owns::<Secret>();
    let run = Run::start(&server, controller).await;
    run.settle(MOMENT).await;
    seen.lock().clear();
    server.put(SECRET, child("two"));
    run.settle(MOMENT).await;
    seen.lock().sort();
    assert_eq!(*seen.lock(), ["one", "two"]);
    run.stop().await.unwrap();
}

/// The Secret is the same object in every Rust type.
#[tokio::test(start_paused = true)]
async fn another_namespace_is_refused_in_every_form_of_a_kind() {
    let server = Server::new(&["configmaps", "secrets"]);
    server.put(MAP, map_of("one", "e/shared"));
    server.put(
        OTHER,
        json!({"metadata": {"namespace": "e", "name": "shared"}, "type": "a"}),
    );
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let log = seen.clone();
    let secret = Kind::of::<Secret>();
    let controller = || {
        let (log, of_secret, secret) = (log.clone(), secret.clone(), secret.clone());
        Controller::new(move |_: Arc<ConfigMap>, cx: Context| {
            let (log, of_secret) = (log.clone(), of_secret.clone());
            async move {
                let dynamic = cx.get_dynamic(&of_secret, ("e", "shared"));
                let metadata = cx.get::<PartialObjectMeta<Secret>>(("e", "shared"));
                let live = cx.live();
                let live = live.get::<PartialObjectMeta<Secret>>(("e", "shared")).await;
                let all = opkit_cache::Selection::default().all_namespaces();
                let listed = cx.list::<PartialObjectMeta<Secret>>(all)?;
                log.lock().extend([
                    format!("dynamic {}", dynamic.is_ok()),
                    format!("metadata {}", metadata.is_ok()),
                    format!("live {}", live.is_ok()),
                    format!("listed {}", listed.len()),
                ]);
                Ok::<_, Error>(Action::await_change())
            }
        })
        .references::<Secret>(secrets)
        .watches_metadata::<Secret>(|_, _| Vec::new())
        .watches_dynamic(secret, |_, _| Vec::new())
    };
    let expected = |is_granted: bool| {
        let forms = ["dynamic", "metadata", "live"];
        let mut lines = forms.map(|form| format!("{form} {is_granted}")).to_vec();
        lines.push(format!("listed {}", usize::from(is_granted)));
        lines
    };
    let run = Run::start(&server, controller()).await;
    run.settle(MOMENT).await;
    assert_eq!(*seen.lock(), expected(false));
    run.stop().await.unwrap();

    seen.lock().clear();
    let run = Run::start_manager(&server, |manager| {
        let granted = manager.cross_namespace::<Secret>(|_, _| true);
        granted.controller(controller())
    })
    .await;
    run.settle(MOMENT).await;
    assert_eq!(*seen.lock(), expected(true));
    run.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_requeue_that_was_not_due_is_not_a_cause() {
    let server = Server::new(&["configmaps"]);
    server.put(MAP, object("one"));
    let count: Arc<AtomicU32> = Arc::default();
    let controller = counting(&count, |n| match n {
        2 => Err(Error::retry_after(
            Duration::from_secs(60),
            Error::msg("later"),
        )),
        _ => Ok(Action::requeue(Duration::from_secs(60))),
    });
    let run = Run::start(&server, controller).await;
    for _ in 0..2 {
        run.settle(Duration::from_secs(10)).await;
        server.put(MAP, object("one"));
    }
    run.settle(Duration::from_secs(61)).await;
    let records = run.log.records();
    let causes: Vec<_> = records.iter().map(|it| it.causes().join(", ")).collect();
    assert_eq!(
        causes,
        ["initial list", "one changed", "one changed", "requeued"]
    );
    run.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_never_waits_lets_other_tasks_run() {
    let server = Server::new(&["configmaps"]);
    server.put(MAP, object("one"));
    let given: Arc<AtomicU32> = Arc::default();
    let counted = given.clone();
    let (most, few) = (1_000_000, 100_000);
    let busy = futures::stream::iter(0..most).map(move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        ("d", "none")
    });
    let controller = counting(&Arc::default(), |_| Ok(Action::await_change()));
    let run = Run::start(&server, controller.watches_stream("busy", busy)).await;
    run.stop().await.unwrap();
    let given = given.load(Ordering::SeqCst);
    assert!(given < few, "{given} before another task ran");
}
