//! Tolerance of user errors and of rare cluster behaviour.

use super::*;

#[test]
fn an_index_that_panics_is_an_index_without_the_object() {
    let options = InformerOptions::default().index(Index::meta("first", |meta| {
        let name = meta.name();
        assert_ne!(name, "bad", "as functions of users do");
        vec![name.chars().take(1).collect()]
    }));
    let mut fed = Fed::with::<ConfigMap>(options);
    let mut listener = fed.informer.listen();
    fed.list(&[map("a", "1"), map("bad", "2"), map("b", "3")], "5");
    assert_eq!(fed.informer.len(), 3);
    assert_eq!(fed.version("bad").as_deref(), Some("2"));
    assert_eq!(received(&mut listener).len(), 4);
    let lister = fed.lister::<ConfigMap>();
    let first = |letter: &str| lister.keys(&Selection::default().by_index("first", letter));
    assert_eq!(first("b"), ["b".into()]);
    fed.informer
        .add_index(Index::typed("late", |_: &ConfigMap| panic!("again")));
    assert!(fed.informer.index_values("late").is_empty());
    fed.changed(&map("a", "6"));
    assert_eq!(fed.version("a").as_deref(), Some("6"));
}

#[test]
fn a_transform_that_panics_is_an_error_of_the_object() {
    let options = InformerOptions::default().transform(|map| {
        // Like a transform that relies on the presence of a field.
        assert!(map["metadata"]["name"] != "bad", "no such field");
    });
    let mut fed = Fed::with::<ConfigMap>(options);
    fed.list(&[map("a", "1"), map("bad", "2")], "5");
    assert_eq!(fed.informer.len(), 2);
    let error = fed.informer.get(&"bad".into()).unwrap_err();
    let ObjectError::Unreadable { cause, .. } = &*error else {
        panic!("{error}");
    };
    assert_eq!(cause.to_string(), "the transform of the informer panicked");
    fed.changed(&map("a", "6"));
    assert_eq!(fed.version("a").as_deref(), Some("6"));
}

/// A busy kind whose listener never catches up still becomes synced.
#[test]
fn synced_comes_after_the_first_list_and_before_later_changes() {
    let mut fed = Fed::empty();
    let mut listener = fed.informer.listen();
    fed.list(&[map("a", "1"), map("b", "2")], "5");
    fed.changed(&map("a", "6"));
    fed.changed(&map("c", "7"));
    let expected = ["Added! a >6", "Added! b >2", "synced", "Added c >7"];
    assert_eq!(received(&mut listener), expected);
}

#[tokio::test(start_paused = true)]
async fn missed_resyncs_are_skipped() {
    let fed = Fed::synced();
    let mut listener = fed.informer.listen().resync(Duration::from_secs(60));
    received(&mut listener);
    // The listener was busy for ten periods.
    tokio::time::advance(Duration::from_secs(600)).await;
    listener.recv().await;
    let begun = tokio::time::Instant::now();
    listener.recv().await;
    assert_eq!(begun.elapsed(), Duration::from_secs(60));
}

#[test]
fn an_empty_namespace_is_none() {
    let node =
        json!({"metadata": {"name": "n", "namespace": "", "uid": "n", "resourceVersion": "3"}});
    for form in [StoreForm::Compact, StoreForm::Typed] {
        let mut fed = Fed::with::<ConfigMap>(InformerOptions::default().form(form));
        fed.list(std::slice::from_ref(&node), "5");
        assert_eq!(fed.version("n").as_deref(), Some("3"), "{form:?}");
        fed.list(std::slice::from_ref(&node), "7");
        assert_eq!(fed.informer.len(), 1, "{form:?}");
        fed.deleted(&node);
        assert_eq!(fed.informer.len(), 0, "{form:?}");
    }
}

#[test]
fn a_namespace_that_is_named_twice_is_read_once() {
    let scope = crate::Scope::Namespaces(vec!["b".into(), "a".into(), "b".into()]);
    let namespaces = scope.namespaces(true);
    assert_eq!(namespaces, [Some("a".to_owned()), Some("b".to_owned())]);
}

/// If the store does not have a field of a field selector, the watch decides.
#[test]
fn an_own_write_is_not_dropped_for_a_field_that_is_not_seen() {
    let options = || {
        InformerOptions::default()
            .fields("spec.nodeName=n1")
            .unwrap()
    };
    let all = [
        options().form(StoreForm::Typed),
        options().transform(|pod| pod["spec"] = Value::Null),
    ];
    for options in all {
        let mut fed = Fed::with::<Pod>(options);
        fed.list(&[pod("a", "n1", "web", 1)], "5");
        let mut listener = fed.informer.listen();
        received(&mut listener);
        fed.observe(&pod("a", "n1", "db", 20));
        assert!(received(&mut listener).is_empty());
        assert_eq!(fed.informer.len(), 1);
        fed.changed(&pod("a", "n1", "db", 20));
        assert_eq!(received(&mut listener), ["Updated d/a 1>20"]);
    }
    // The server reports some missing fields as `false` or `0`.
    let options = InformerOptions::default().fields("spec.hostNetwork=false");
    let mut fed = Fed::with::<Pod>(options.unwrap());
    fed.list(&[pod("a", "n1", "web", 1)], "5");
    fed.observe(&pod("a", "n1", "db", 20));
    assert_eq!(fed.informer.len(), 1);
    let options = InformerOptions::default().fields("spec.hostNetwork!=false");
    let mut fed = Fed::with::<Pod>(options.unwrap());
    fed.list(&[], "5");
    fed.observe(&pod("a", "n1", "db", 20));
    assert_eq!(fed.informer.len(), 0, "the watch would never report it");
}

#[test]
fn a_write_that_ends_the_selection_is_not_undone_by_older_events() {
    let options = InformerOptions::default().labels("app=web").unwrap();
    let mut fed = Fed::with::<Pod>(options);
    fed.list(&[pod("a", "n1", "web", 1)], "5");
    let mut listener = fed.informer.listen();
    received(&mut listener);
    fed.observe(&pod("a", "n1", "db", 20));
    fed.changed(&pod("a", "n2", "web", 15));
    assert_eq!(fed.informer.len(), 0, "older than the own write");
    // A watch reports an object that no longer matches its selector as deleted.
    fed.deleted(&pod("a", "n1", "db", 20));
    assert_eq!(received(&mut listener), ["Deleted d/a 1>"]);
    // An object that does not match is not reported, so its entry stays until the watch has passed
    // its version.
    fed.observe(&pod("b", "n1", "db", 21));
    fed.observe(&pod("b", "n1", "web", 20));
    assert_eq!((fed.informer.len(), fed.overlay_len()), (0, 1));
    fed.sink.bookmark("21");
    assert_eq!(fed.overlay_len(), 0);
    fed.changed(&pod("a", "n1", "web", 22));
    assert_eq!(fed.informer.len(), 1);
}

/// Go writes `&`, `<` and `>` as escapes.
#[test]
fn a_manager_is_kept_however_it_is_written() {
    let mut fed = Fed::with::<ConfigMap>(InformerOptions::default().manager("a&b"));
    let text = r#"{"metadata":{"managedFields":[{"manager":"a\u0026b","operation":"Apply"}],"name":"x","resourceVersion":"1"}}"#;
    fed.sink.begin_list();
    fed.sink.listed(Raw::Json(text.as_bytes())).unwrap();
    fed.sink.end_list("5");
    let meta = fed.informer.stored(&"x".into()).unwrap();
    let fields = meta
        .meta()
        .to_object_meta()
        .managed_fields
        .unwrap_or_default();
    assert_eq!(fields.len(), 1);
}

fn large_maps(round: u32) -> Vec<Value> {
    let map = |n: u32| {
        let mut map = map(&format!("m{n}"), &(round * 1000 + n).to_string());
        for field in 0..20 {
            map["data"][format!("f{field}")] =
                format!("round {round} {} {field}{}", n / 2, "y".repeat(150)).into();
        }
        map
    };
    (0..200).map(map).collect()
}

/// Neither recently read objects nor Rust objects keep strings of earlier generations alive.
#[test]
fn old_strings_are_freed_whatever_was_read() {
    for form in [StoreForm::Compact, StoreForm::Typed] {
        let mut fed = Fed::with::<ConfigMap>(InformerOptions::default().form(form));
        let mut origins = Vec::new();
        for round in 0..40 {
            // One object is never sent again.
            let mut maps = large_maps(round);
            maps.push(map("still", "1"));
            fed.list(&maps, &(round * 1000 + 999).to_string());
            fed.informer.get(&"m3".into()).unwrap();
            origins.push(Arc::downgrade(fed.informer.core().writer.lock().origin()));
        }
        origins.dedup_by(|a, b| a.ptr_eq(b));
        assert!(origins.len() > 2, "{form:?}: {}", origins.len());
        let alive = origins.iter().filter(|origin| origin.strong_count() > 0);
        assert!(alive.count() <= 2, "{form:?}");
        // The object that is never sent again was moved to newer strings.
        assert_eq!(origins[0].strong_count(), 0, "{form:?}");
        assert!(fed.version("still").is_some());
    }
}

#[test]
fn eviction_takes_only_where_there_is_something_to_gain() {
    let mut options = InformerOptions::default().memory_budget(1);
    options.metadata_only = true;
    let mut fed = Fed::with::<kube::core::PartialObjectMeta<ConfigMap>>(options);
    fed.list(&[map("a", "1"), map("b", "2")], "5");
    assert!(fed.informer.get(&"a".into()).unwrap().is_some());
    assert_eq!(fed.informer.stats().evictions, 0);
}

/// Searching for objects to evict does not take longer the more objects cannot be evicted.
#[test]
fn a_budget_that_cannot_be_met_costs_little() {
    let count = 4_000;
    let mut fed = Fed::with::<ConfigMap>(InformerOptions::default().memory_budget(1));
    let maps: Vec<_> = (1..=count)
        .map(|n| {
            let mut map = map(&format!("m{n}"), &n.to_string());
            map["data"]["a"] = "b".into();
            map
        })
        .collect();
    fed.list(&maps, "5000");
    assert_eq!(fed.informer.stats().evictions, count);
    for n in (0..1_000).map(|n| n * 7 % count + 1) {
        fed.changed(&map(&format!("m{n}"), &(6_000 + n).to_string()));
    }
    let looked = fed.informer.core().state.read().store.checked_slots();
    assert!(looked <= 3 * (count + 1_000), "{looked}");
}

/// Two reflectors, own writes, readers and listeners, concurrently on threads.
#[test]
fn everything_at_once_loses_and_doubles_nothing() {
    const ROUNDS: u32 = 400;
    let options = InformerOptions::default().index(Index::typed("data", |map: &ConfigMap| {
        map.data
            .iter()
            .flat_map(|data| data.values())
            .cloned()
            .collect()
    }));
    let informer = Informer::new(
        Codec::of::<ConfigMap>(),
        options,
        None,
        2,
        CancellationToken::new(),
    );
    let object = |namespace: &str, n: u32, version: u32| {
        let name = format!("m{n}");
        let value = json!({
            "metadata": {"name": name, "namespace": namespace, "uid": name, "resourceVersion": version.to_string()},
            "data": {"round": format!("{namespace} {}", version / 100)},
        });
        value.to_string()
    };
    let write = |namespace: &'static str| {
        let mut sink = informer.sink(Some(namespace.to_owned()));
        let informer = &informer;
        move || {
            let mut version = 0;
            for round in 0..ROUNDS {
                sink.begin_list();
                // Every other round one object is deleted.
                for n in 0..20 - round % 2 {
                    version += 1;
                    sink.listed(Raw::Json(object(namespace, n, version).as_bytes()))
                        .unwrap();
                }
                sink.end_list(&version.to_string());
                for n in 0..10 {
                    // An own write, before or after the watch reports it.
                    version += 1;
                    let received = object(namespace, n, version);
                    if n % 2 == 0 {
                        informer.observe_response(received.as_bytes());
                    }
                    sink.changed(Raw::Json(received.as_bytes())).unwrap();
                    if n % 2 == 1 {
                        informer.observe_response(received.as_bytes());
                    }
                }
                let key = ObjectKey::from((namespace, "m15"));
                informer.observe_deletion(&key, "m15", None);
                version += 1;
                sink.deleted(Raw::Json(object(namespace, 15, version).as_bytes()))
                    .unwrap();
            }
        }
    };
    let (one, two) = (write("a"), write("b"));
    let done = std::sync::atomic::AtomicBool::new(false);
    let listen = || {
        let mut listener = informer.listen();
        let mut seen: std::collections::HashMap<ObjectKey, u64> = Default::default();
        loop {
            let last = done.load(Ordering::Acquire);
            while let Some(event) = listener.recv().now_or_never() {
                let Event::Delta(delta) = event else { continue };
                let old = delta.old.as_ref().map(Stored::version);
                let before = match &delta.new {
                    Some(new) => seen.insert(delta.key.clone(), new.version()),
                    None => seen.remove(&delta.key),
                };
                // An object that was created and deleted unseen is delivered as a deletion.
                if before.is_some() || delta.new.is_some() {
                    assert_eq!(old, before, "{delta:?}");
                }
            }
            if last {
                return seen;
            }
            std::thread::yield_now();
        }
    };
    let read = || {
        let lister = Lister::<ConfigMap>::new(informer.clone());
        while !done.load(Ordering::Acquire) {
            lister.list(&Selection::default().namespace("a"));
            lister.keys(&Selection::default().by_index("data", "b 7"));
            informer.stats();
        }
    };
    let seen = std::thread::scope(|scope| {
        let listeners = [scope.spawn(listen), scope.spawn(listen)];
        scope.spawn(read);
        let writers = [scope.spawn(one), scope.spawn(two)];
        writers
            .into_iter()
            .for_each(|writer| writer.join().unwrap());
        done.store(true, Ordering::Release);
        listeners.map(|listener| listener.join().unwrap())
    });
    let lister = Lister::<ConfigMap>::new(informer.clone());
    let stored = lister.stored(&Selection::default());
    let stored = stored.iter().map(|stored| (stored.key(), stored.version()));
    let stored: std::collections::HashMap<_, _> = stored.collect();
    assert_eq!(stored.len(), 2 * 18);
    assert_eq!(seen, [stored.clone(), stored]);
}

#[test]
fn values_of_secrets_are_in_no_change() {
    use k8s_openapi::api::core::v1::Secret;

    let fed = Fed::with::<Secret>(InformerOptions::default());
    let secret = |version: &str, password: &str| {
        let last = json!({"data": {"password": password}}).to_string();
        let json = json!({
            "metadata": {
                "name": "s", "uid": "s", "resourceVersion": version,
                "annotations": {"kubectl.kubernetes.io/last-applied-configuration": last},
                "labels": {"was": password},
            },
            "data": {"password": password},
        });
        fed.informer.read(json.to_string().as_bytes()).unwrap()
    };
    let (old, new) = (secret("1", "hunter1"), secret("2", "hunter2"));
    for values in [ShownValues::Status, ShownValues::All] {
        let changes = new.changes_since(&old, 8, values);
        let paths: Vec<_> = changes.iter().map(ToString::to_string).collect();
        let expected = [
            ".data.password",
            ".metadata.annotations.kubectl.kubernetes.io/last-applied-configuration",
            ".metadata.labels.was",
        ];
        assert_eq!(paths, expected);
        assert!(!format!("{changes:?}").contains("hunter"));
    }
}
