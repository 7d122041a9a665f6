use std::time::Duration;

use futures::FutureExt;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use opkit_client::Object;
use serde_json::{Value, json};

use super::*;
use crate::sink::Sink;
use crate::{Event, Lister, Selection, ShownValues, StoreForm};

mod deletions;
mod hardening;
mod shards;

/// Informer and the sink of its reflector.
struct Fed {
    informer: Informer,
    sink: InformerSink,
}

fn object(name: &str, uid: &str, version: &str) -> Value {
    json!({"metadata": {"name": name, "uid": uid, "resourceVersion": version}})
}

fn map(name: &str, version: &str) -> Value {
    object(name, name, version)
}

impl Fed {
    fn with<K: Object>(options: InformerOptions) -> Self {
        let informer = Informer::new(Codec::of::<K>(), options, None, 1, CancellationToken::new());
        let sink = informer.sink(None);
        Self { informer, sink }
    }

    fn empty() -> Self {
        Self::with::<ConfigMap>(InformerOptions::default())
    }

    /// Creates an informer whose list at version 10 has the map `a` at version 5.
    fn synced() -> Self {
        let mut fed = Self::empty();
        fed.list(&[map("a", "5")], "10");
        fed
    }

    fn list(&mut self, objects: &[Value], version: &str) {
        self.sink.begin_list();
        self.end_list(objects, version);
    }

    /// Completes a list that has begun.
    fn end_list(&mut self, objects: &[Value], version: &str) {
        for object in objects {
            self.sink
                .listed(Raw::Json(object.to_string().as_bytes()))
                .unwrap();
        }
        self.sink.end_list(version);
    }

    fn changed(&mut self, object: &Value) {
        self.sink
            .changed(Raw::Json(object.to_string().as_bytes()))
            .unwrap();
    }

    fn deleted(&mut self, object: &Value) {
        self.sink
            .deleted(Raw::Json(object.to_string().as_bytes()))
            .unwrap();
    }

    /// Takes in an own write of the object.
    fn observe(&self, object: &Value) {
        let stored = self.informer.read(object.to_string().as_bytes()).unwrap();
        self.informer.observe(&stored);
    }

    /// Takes in an own deletion whose response shows that the object is deleted.
    fn observe_deletion(&self, name: &str, uid: &str) {
        self.informer.observe_deletion(&name.into(), uid, None);
    }

    /// Returns the number of own writes and deletions in the overlay.
    fn overlay_len(&self) -> usize {
        self.informer.overlay_len()
    }

    fn version(&self, name: &str) -> Option<String> {
        let object = self.informer.get(&name.into()).unwrap();
        object.and_then(|object| object.object_meta().resource_version.clone())
    }

    fn lister<K: Object>(&self) -> Lister<K> {
        Lister::new(self.informer.clone())
    }
}

/// Returns the received events, as `change name old>new`, with `!` for parts of the first list.
fn received(listener: &mut Listener) -> Vec<String> {
    let mut received = Vec::new();
    while let Some(event) = listener.recv().now_or_never() {
        let Event::Delta(delta) = event else {
            received.push("synced".to_owned());
            continue;
        };
        let version = |stored: &Option<Stored>| {
            let version = stored
                .as_ref()
                .and_then(|stored| stored.meta().resource_version());
            version.map(String::from).unwrap_or_default()
        };
        let initial = if delta.initial { "!" } else { "" };
        let (old, new) = (version(&delta.old), version(&delta.new));
        received.push(format!(
            "{:?}{initial} {} {old}>{new}",
            delta.change, delta.key
        ));
    }
    received
}

#[test]
fn a_late_listener_gets_a_snapshot_and_then_changes() {
    let mut fed = Fed::empty();
    let mut early = fed.informer.listen();
    fed.list(&[map("a", "1")], "1");
    let mut late = fed.informer.listen();
    for listener in [&mut early, &mut late] {
        assert_eq!(received(listener), ["Added! a >1", "synced"]);
    }
    fed.changed(&map("a", "2"));
    for listener in [&mut early, &mut late] {
        assert_eq!(received(listener), ["Updated a 1>2"]);
    }
}

#[test]
fn the_same_version_is_no_change() {
    let mut fed = Fed::synced();
    let mut listener = fed.informer.listen();
    received(&mut listener);
    fed.changed(&map("a", "5"));
    assert!(received(&mut listener).is_empty());
}

#[test]
fn a_relist_delivers_exactly_the_missed_changes() {
    let mut fed = Fed::empty();
    let names = ["same", "changed", "deleted", "remade"];
    fed.list(&names.map(|name| map(name, "1")), "2");
    let mut listener = fed.informer.listen();
    received(&mut listener);
    let relisted = [
        map("same", "1"),
        map("changed", "3"),
        object("remade", "x", "4"),
        map("new", "5"),
    ];
    fed.list(&relisted, "6");
    let expected = [
        "Replaced changed 1>3",
        "Replaced remade 1>4",
        "Added new >5",
        "Deleted deleted 1>",
    ];
    assert_eq!(received(&mut listener), expected);
}

#[test]
fn a_list_that_breaks_off_deletes_nothing() {
    let mut fed = Fed::synced();
    fed.sink.begin_list();
    fed.sink
        .listed(Raw::Json(map("b", "11").to_string().as_bytes()))
        .unwrap();
    assert!(fed.version("a").is_some());
    fed.list(&[map("b", "11")], "12");
    assert!(fed.version("a").is_none());
}

#[test]
fn an_unchanged_object_of_a_relist_is_not_stored_again() {
    let mut fed = Fed::synced();
    let before = fed.informer.stored(&"a".into()).unwrap();
    fed.list(&[map("a", "5")], "20");
    let after = fed.informer.stored(&"a".into()).unwrap();
    assert!(Arc::ptr_eq(&before.any().unwrap(), &after.any().unwrap()));
    assert_eq!(fed.informer.stats().decodes, 1);
}

#[tokio::test(start_paused = true)]
async fn synced_when_every_namespace_is_listed() {
    let stop = CancellationToken::new();
    let options = InformerOptions::default();
    let informer = Informer::new(Codec::of::<ConfigMap>(), options, None, 2, stop);
    let (mut a, mut b) = (
        informer.sink(Some("a".into())),
        informer.sink(Some("b".into())),
    );
    a.begin_list();
    a.listed(Raw::Json(
        br#"{"metadata":{"name":"x","namespace":"a","resourceVersion":"1"}}"#,
    ))
    .unwrap();
    a.end_list("1");
    assert!(!informer.is_synced());
    b.begin_list();
    b.end_list("1");
    // Any number of tasks may wait.
    tokio::join!(informer.wait_for_sync(), informer.wait_for_sync());
    b.begin_list();
    b.end_list("2");
    assert_eq!(
        informer.len(),
        1,
        "the list of one namespace leaves the others"
    );
}

#[test]
fn a_dropped_listener_is_forgotten() {
    let mut fed = Fed::synced();
    drop(fed.informer.listen());
    fed.changed(&map("a", "6"));
    assert!(fed.informer.core().state.read().listeners.is_empty());
}

#[test]
fn the_watch_ends_with_the_last_user() {
    let stop = CancellationToken::new();
    let options = InformerOptions::default();
    let informer = Informer::new(Codec::of::<ConfigMap>(), options, None, 1, stop.clone());
    let sink = informer.sink(None);
    let listener = informer.listen();
    drop(informer);
    assert!(!stop.is_cancelled());
    drop(listener);
    assert!(
        stop.is_cancelled(),
        "a reflector does not keep the informer running"
    );
    drop(sink);
}

#[test]
fn an_own_write_is_visible_at_once_and_not_undone_by_older_events() {
    let mut fed = Fed::synced();
    fed.observe(&map("a", "20"));
    assert_eq!(fed.version("a").unwrap(), "20");
    fed.changed(&map("a", "15"));
    assert_eq!(fed.version("a").unwrap(), "20");
    fed.deleted(&map("a", "16"));
    assert_eq!(
        fed.version("a").unwrap(),
        "20",
        "an earlier life was deleted"
    );
    fed.changed(&map("a", "20"));
    fed.changed(&map("a", "21"));
    assert_eq!(fed.version("a").unwrap(), "21");
}

#[test]
fn a_write_that_the_watch_has_passed_does_not_come_back() {
    let mut fed = Fed::synced();
    fed.deleted(&map("a", "21"));
    fed.observe(&map("a", "20"));
    assert_eq!(fed.version("a"), None);
}

#[test]
fn a_write_that_was_undone_while_disconnected_is_delivered_as_deleted() {
    let mut fed = Fed::synced();
    fed.observe(&map("new", "20"));
    assert!(fed.version("new").is_some());
    let mut listener = fed.informer.listen();
    received(&mut listener);
    fed.list(&[map("a", "5")], "30");
    assert_eq!(fed.version("new"), None);
    assert_eq!(received(&mut listener), ["Deleted new 20>"]);
}

#[test]
fn a_restored_cluster_with_older_versions_is_believed() {
    let mut fed = Fed::synced();
    fed.observe(&map("a", "20"));
    fed.list(&[map("a", "3")], "4");
    assert_eq!(fed.version("a").unwrap(), "3");
    fed.changed(&map("a", "6"));
    assert_eq!(fed.version("a").unwrap(), "6");
}

#[test]
fn a_list_that_was_on_its_way_does_not_undo_our_writes() {
    let mut fed = Fed::synced();
    // Read between the seen version (10) and the own writes.
    fed.sink.begin_list();
    fed.observe(&map("new", "20"));
    fed.observe(&map("a", "21"));
    let mut listener = fed.informer.listen();
    received(&mut listener);
    fed.end_list(&[map("a", "5"), map("b", "14")], "15");
    assert_eq!(fed.version("a").as_deref(), Some("21"));
    assert_eq!(fed.version("new").as_deref(), Some("20"));
    assert_eq!(received(&mut listener), ["Added b >14"]);
    fed.changed(&map("new", "20"));
    fed.deleted(&map("new", "22"));
    assert_eq!(fed.version("new"), None, "the watch has caught up");
}

fn pod(name: &str, node: &str, label: &str, version: u32) -> Value {
    json!({
        "metadata": {
            "name": name, "namespace": "d", "uid": name, "resourceVersion": version.to_string(),
            "labels": {"app": label},
            "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": node, "uid": format!("uid-of-{node}")}],
        },
        "spec": {"nodeName": node, "containers": [{"name": "main", "image": "web"}]},
    })
}

fn pods() -> Fed {
    let options = InformerOptions::default()
        .index(Index::field("node", "spec.nodeName"))
        .index(Index::meta("app", |meta| {
            meta.label("app").map(String::from).into_iter().collect()
        }));
    let mut fed = Fed::with::<Pod>(options);
    fed.list(
        &[
            pod("a", "n1", "web", 1),
            pod("b", "n1", "db", 2),
            pod("c", "n2", "web", 3),
        ],
        "5",
    );
    fed
}

fn names(lister: &Lister<Pod>, selection: Selection) -> Vec<String> {
    let mut names: Vec<_> = lister
        .keys(&selection)
        .into_iter()
        .map(|key| key.name)
        .collect();
    names.sort();
    names
}

#[test]
fn selections_by_index_owner_label_and_namespace_decode_nothing() {
    let mut fed = pods();
    let lister = fed.lister::<Pod>();
    let node = |node: &str| names(&lister, Selection::default().by_index("node", node));
    let app = |app: &str| names(&lister, Selection::default().by_index("app", app));
    let owner = |node: &str| {
        names(
            &lister,
            Selection::default().owned_by(format!("uid-of-{node}")),
        )
    };
    let labels = |text: &str| {
        let selector = kube::core::Selector::from_iter([kube::core::Expression::Equal(
            "app".into(),
            text.into(),
        )]);
        names(&lister, Selection::from(selector))
    };
    assert_eq!(node("n1"), ["a", "b"]);
    assert_eq!(app("web"), ["a", "c"]);
    assert_eq!(owner("n1"), ["a", "b"]);
    assert_eq!(labels("db"), ["b"]);
    assert_eq!(names(&lister, Selection::default().namespace("d")).len(), 3);
    assert!(names(&lister, Selection::default().namespace("other")).is_empty());
    fed.changed(&pod("a", "n2", "db", 7));
    fed.deleted(&pod("c", "n2", "web", 8));
    assert_eq!(
        (node("n1"), node("n2")),
        (vec!["b".to_owned()], vec!["a".to_owned()])
    );
    assert_eq!(
        (app("web").len(), app("db").len(), labels("db").len()),
        (0, 2, 2)
    );
    assert_eq!(
        (owner("n1"), owner("n2")),
        (vec!["b".to_owned()], vec!["a".to_owned()])
    );
    assert_eq!(fed.informer.stats().decodes, 0);
    let reads = [2, 4, 4].map(|_| {
        assert_eq!(lister.list(&Selection::default()).len(), 2);
        fed.informer.stats().decodes
    });
    assert_eq!(reads, [2, 4, 4], "what is read again is kept");
}

#[test]
fn own_writes_are_in_indexes_and_selections() {
    let fed = pods();
    let lister = fed.lister::<Pod>();
    let node = |node: &str| names(&lister, Selection::default().by_index("node", node));
    fed.observe(&pod("a", "n2", "web", 20));
    fed.observe(&pod("new", "n1", "web", 21));
    assert_eq!(
        (node("n1"), node("n2")),
        (
            vec!["b".to_owned(), "new".to_owned()],
            vec!["a".to_owned(), "c".to_owned()]
        )
    );
    fed.informer.observe_deletion(&("d", "b").into(), "b", None);
    assert_eq!(node("n1"), ["new"]);
}

#[test]
fn an_index_can_be_added_later_and_be_typed() {
    let fed = pods();
    let lister = fed.lister::<Pod>();
    fed.informer.add_index(Index::typed("image", |pod: &Pod| {
        let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
        containers
            .filter_map(|container| container.image.clone())
            .collect()
    }));
    assert_eq!(
        names(&lister, Selection::default().by_index("image", "web")).len(),
        3
    );
    assert_eq!(fed.informer.index_values("image"), ["web"]);
    assert!(names(&lister, Selection::default().by_index("none", "web")).is_empty());
    assert!(fed.informer.has_index("image") && !fed.informer.has_index("none"));
    // A second index with the same name changes nothing.
    let other = |_: &Pod| vec!["other".to_owned()];
    fed.informer.add_index(Index::typed("image", other));
    assert_eq!(fed.informer.index_values("image"), ["web"]);
}

#[test]
fn an_object_that_does_not_fit_is_an_error_of_its_own() {
    let mut fed = pods();
    let mut listener = fed.informer.listen();
    received(&mut listener);
    let mut broken = pod("a", "n1", "web", 9);
    broken["spec"]["containers"] = json!("none");
    fed.changed(&broken);
    let lister = fed.lister::<Pod>();
    let error = lister.get(&("d", "a").into()).unwrap_err();
    assert!(
        matches!(&*error, ObjectError::Unreadable { key, .. } if key.name == "a"),
        "{error}"
    );
    assert_eq!(
        error.to_string(),
        "cannot read Pod d/a as the Rust type of its kind"
    );
    assert_eq!(lister.list(&Selection::default()).len(), 2);
    // Its metadata is still readable, so its owner is notified.
    assert_eq!(received(&mut listener), ["Updated d/a 1>9"]);
    assert_eq!(
        names(&lister, Selection::default().owned_by("uid-of-n1")).len(),
        2
    );
    // Bytes that are not valid JSON, except for the name.
    let text = r#"{"metadata":{"name":"x","resourceVersion":"10"},"spec":{"a":tru}}"#;
    fed.sink.changed(Raw::Json(text.as_bytes())).unwrap();
    assert!(lister.get(&"x".into()).is_err());
    assert!(fed.sink.changed(Raw::Json(b"{}")).is_err());
    assert!(fed.sink.changed(Raw::Json(b"\xff")).is_err());
    fed.changed(&pod("a", "n1", "web", 11));
    assert!(lister.get(&("d", "a").into()).unwrap().is_some());
}

#[test]
fn every_form_reads_alike() {
    for form in [StoreForm::Compact, StoreForm::Projected, StoreForm::Typed] {
        let mut fed = Fed::with::<Pod>(InformerOptions::default().form(form));
        fed.list(&[pod("a", "n1", "web", 1)], "5");
        let lister = fed.lister::<Pod>();
        let pod = lister.get(&("d", "a").into()).unwrap().unwrap();
        assert_eq!(
            pod.spec.as_ref().unwrap().node_name.as_deref(),
            Some("n1"),
            "{form:?}"
        );
        assert_eq!(
            names(&lister, Selection::default().owned_by("uid-of-n1")),
            ["a"]
        );
        assert_eq!(
            fed.informer
                .stored(&("d", "a").into())
                .unwrap()
                .meta()
                .generation(),
            None
        );
    }
}

#[derive(Clone, Debug, serde::Serialize, serde::Deserialize, kube::Resource)]
#[resource(inherit = Pod)]
struct SlimPod {
    metadata: kube::api::ObjectMeta,
    spec: SlimSpec,
}

#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct SlimSpec {
    node_name: String,
}

#[test]
fn a_projection_stores_only_what_its_type_has() {
    let sizes = [StoreForm::Compact, StoreForm::Projected].map(|form| {
        let mut fed = Fed::with::<SlimPod>(InformerOptions::default().form(form));
        let mut large = pod("a", "n1", "web", 1);
        large["spec"]["containers"] = vec![json!({"name": "x".repeat(50)}); 20].into();
        fed.list(&[large], "5");
        let stored = fed.informer.stored(&("d", "a").into()).unwrap();
        assert_eq!(stored.get::<SlimPod>().unwrap().spec.node_name, "n1");
        stored.bytes()
    });
    assert!(sizes[1] * 2 < sizes[0], "{sizes:?}");
}

#[test]
fn a_transform_changes_what_is_stored() {
    let options = InformerOptions::default().transform(|pod| {
        pod["metadata"]["labels"]["app"] = "transformed".into();
    });
    let mut fed = Fed::with::<Pod>(options);
    fed.list(&[pod("a", "n1", "web", 1)], "5");
    let stored = fed.informer.stored(&("d", "a").into()).unwrap();
    assert_eq!(stored.meta().label("app").as_deref(), Some("transformed"));
}

#[test]
fn a_budget_takes_bodies_and_keeps_metadata() {
    let mut fed = Fed::with::<Pod>(InformerOptions::default().memory_budget(30_000));
    let list: Vec<_> = (0..100)
        .map(|n| {
            let mut pod = pod(&format!("p{n}"), "n1", "web", n + 1);
            pod["spec"]["schedulerName"] = format!("{n} {}", "x".repeat(300)).into();
            pod
        })
        .collect();
    fed.list(&list, "200");
    let lister = fed.lister::<Pod>();
    let stats = fed.informer.stats();
    assert!(stats.evictions > 0, "{stats:?}");
    assert_eq!(lister.len(), 100);
    let all = Selection::default().owned_by("uid-of-n1");
    assert_eq!(lister.keys(&all).len(), 100);
    let evicted = lister
        .stored(&all)
        .iter()
        .filter(|stored| stored.is_evicted())
        .count();
    assert_eq!(lister.list(&all).len() + evicted, 100);
    let gone = lister
        .stored(&all)
        .into_iter()
        .find(Stored::is_evicted)
        .unwrap();
    assert!(matches!(
        &*gone.any().unwrap_err(),
        ObjectError::Evicted { .. }
    ));
}

#[test]
fn an_evicted_object_leaves_its_index() {
    let options = InformerOptions::default()
        .memory_budget(0)
        .index(Index::field("node", "spec.nodeName"));
    let mut fed = Fed::with::<Pod>(options);
    fed.list(&[pod("a", "n1", "web", 1)], "5");
    let lister = fed.lister::<Pod>();
    let node = |node: &str| names(&lister, Selection::default().by_index("node", node)).len();
    assert!(lister.get(&("d", "a").into()).is_err(), "it is evicted");
    assert_eq!(node("n1"), 1);
    fed.changed(&pod("a", "n2", "web", 6));
    assert_eq!((node("n1"), node("n2")), (0, 1));
}

#[test]
fn a_selector_also_holds_for_our_own_writes() {
    let options = InformerOptions::default()
        .labels("app=web")
        .unwrap()
        .fields("spec.nodeName=n1")
        .unwrap();
    let mut fed = Fed::with::<Pod>(options);
    fed.list(&[pod("a", "n1", "web", 1)], "5");
    fed.observe(&pod("b", "n1", "db", 20));
    fed.observe(&pod("c", "n2", "web", 21));
    fed.observe(&pod("d", "n1", "web", 22));
    let lister = fed.lister::<Pod>();
    assert_eq!(names(&lister, Selection::default()), ["a", "d"]);
    fed.observe(&pod("a", "n1", "db", 23));
    assert_eq!(names(&lister, Selection::default()), ["d"]);
}

#[tokio::test(start_paused = true)]
async fn a_resync_delivers_everything_again_as_sync() {
    let mut fed = Fed::synced();
    let mut listener = fed.informer.listen().resync(Duration::from_secs(60));
    assert_eq!(received(&mut listener), ["Added! a >5", "synced"]);
    let event = listener.recv().await;
    assert!(matches!(event, Event::Delta(delta) if delta.change == Change::Sync));
    fed.changed(&map("a", "11"));
    assert_eq!(received(&mut listener), ["Updated a 5>11"]);
}

/// Unused strings are freed, and no object is lost.
#[test]
fn strings_are_renewed() {
    let mut fed = Fed::with::<ConfigMap>(InformerOptions::default());
    let maps = |round: u32| -> Vec<Value> {
        let map = |n: u32| {
            let mut map = map(&format!("m{n}"), &(round * 1000 + n).to_string());
            for field in 0..20 {
                map["data"][format!("f{field}")] =
                    format!("round {round} {} {field}{}", n / 2, "y".repeat(150)).into();
            }
            map
        };
        (0..200).map(map).collect()
    };
    for round in 0..40 {
        fed.list(&maps(round), &(round * 1000 + 999).to_string());
    }
    let stats = fed.informer.stats();
    // 40 rounds of 2,000 shared strings of 180 bytes would be 15 MB.
    assert!(stats.bytes < 9 << 20, "{stats:?}");
    let map = fed
        .lister::<ConfigMap>()
        .get(&"m7".into())
        .unwrap()
        .unwrap();
    assert!(map.data.as_ref().unwrap()["f3"].starts_with("round 39 3 3"));
    assert_eq!(fed.informer.len(), 200);
}

#[test]
fn an_informer_with_a_selector_or_a_budget_has_not_all_objects() {
    let has_all = |options: InformerOptions, part: Option<&str>, asked: Option<&str>| {
        let (codec, stop) = (Codec::of::<Pod>(), CancellationToken::new());
        let informer = Informer::new(codec, options, None, 1, stop);
        let _sink = informer.sink(part.map(str::to_owned));
        informer.has_all(asked)
    };
    let all = InformerOptions::default;
    assert!(has_all(all(), None, None));
    assert!(has_all(all(), None, Some("a")));
    assert!(has_all(all(), Some("a"), Some("a")));
    assert!(!has_all(all(), Some("a"), Some("b")));
    assert!(!has_all(all(), Some("a"), None));
    assert!(!has_all(all().labels("app=web").unwrap(), None, None));
    assert!(!has_all(
        all().fields("spec.nodeName=n1").unwrap(),
        None,
        None
    ));
    assert!(!has_all(all().memory_budget(1), None, None));
    let shards = crate::Shards::part(crate::ShardKey::Uid, 0, 2);
    assert!(!has_all(all().shards(shards), None, None));
    let watches = crate::Shards::default().watches(2);
    assert!(has_all(all().shards(watches), None, None));
}

#[test]
fn a_field_is_read_as_json_without_decoding() {
    let mut fed = Fed::with::<Pod>(InformerOptions::default());
    let mut one = pod("a", "n1", "web", 1);
    let conditions = json!([{"type": "Ready", "status": "True"}, {"type": "Other", "n": 1.5}]);
    one["status"] = json!({"conditions": conditions});
    fed.list(&[one], "5");
    let stored = fed.informer.stored(&("d", "a").into()).unwrap();
    assert_eq!(stored.value("status.conditions"), Some(conditions));
    assert_eq!(stored.value("spec.nodeName"), Some(json!("n1")));
    assert_eq!(stored.value("status.none"), None);
    assert_eq!(fed.informer.stats().decodes, 0);
}
