use k8s_openapi::api::core::v1::ConfigMap;

use super::*;
use crate::AnyObject;

fn object(version: &str) -> Option<AnyObject> {
    let mut map = ConfigMap::default();
    map.metadata.resource_version = Some(version.into());
    Some(Arc::new(map))
}

fn delta(name: &str, old: Option<AnyObject>, new: Option<AnyObject>) -> Delta {
    Delta {
        key: name.into(),
        old,
        new,
        unreadable: None,
        initial: false,
        coalesced: false,
        between: Vec::new(),
    }
}

fn version(object: &Option<AnyObject>) -> Option<String> {
    object
        .as_ref()
        .and_then(|object| object.object_meta().resource_version.clone())
}

/// What arrives of `deltas` about one object when all wait at once.
fn coalesced(deltas: Vec<Delta>) -> (Option<String>, Option<String>) {
    let mut pending = Pending::default();
    for delta in deltas {
        pending.push(delta);
    }
    let Some(Event::Delta(delta)) = pending.pop() else {
        panic!("nothing arrived")
    };
    assert!(pending.pop().is_none());
    (version(&delta.old), version(&delta.new))
}

#[test]
fn changes_of_one_object_become_one() {
    let both = vec![
        delta("a", object("1"), object("2")),
        delta("a", object("2"), object("3")),
    ];
    assert_eq!(coalesced(both), (Some("1".into()), Some("3".into())));
}

#[test]
fn an_object_made_and_deleted_unseen_is_told_as_deleted() {
    let both = vec![delta("a", None, object("1")), delta("a", object("1"), None)];
    assert_eq!(coalesced(both), (Some("1".into()), None));
}

#[test]
fn an_object_remade_shows_both_lives() {
    let both = vec![delta("a", object("1"), None), delta("a", None, object("9"))];
    assert_eq!(coalesced(both), (Some("1".into()), Some("9".into())));
}

#[tokio::test(start_paused = true)]
async fn synced_comes_once_and_after_the_first_list() {
    let mailbox = Arc::new(Mailbox::default());
    let mut listener = Listener::new(mailbox.clone());
    mailbox.push([delta("a", None, object("1")), delta("b", None, object("1"))]);
    mailbox.synced();
    for name in ["a", "b"] {
        let Event::Delta(delta) = listener.recv().await else {
            panic!("too early")
        };
        assert_eq!(delta.key.name, name);
    }
    assert!(matches!(listener.recv().await, Event::Synced));
    let more = tokio::time::timeout(std::time::Duration::from_secs(1), listener.recv()).await;
    assert!(more.is_err());
}

#[test]
fn what_came_and_went_unseen_is_told() {
    let labelled = |label: &str| -> Option<AnyObject> {
        let mut map = ConfigMap::default();
        map.metadata.labels = Some([("l".to_owned(), label.to_owned())].into());
        Some(Arc::new(map))
    };
    let mut pending = Pending::default();
    pending.push(delta("a", labelled("x"), labelled("y")));
    assert!(!pending.deltas[&"a".into()].coalesced);
    for _ in 0..100 {
        pending.push(delta("a", labelled("y"), labelled("x")));
        pending.push(delta("a", labelled("x"), labelled("y")));
    }
    pending.push(delta("a", labelled("y"), labelled("x")));
    let Some(Event::Delta(delta)) = pending.pop() else {
        panic!("nothing arrived")
    };
    assert!(delta.coalesced);
    let label = |object: &AnyObject| object.object_meta().labels.clone().unwrap()["l"].clone();
    let between: Vec<_> = delta.between.iter().map(label).collect();
    assert_eq!(between, ["y", "x"]);
}

#[test]
fn only_a_few_versions_in_between_are_kept() {
    let mut pending = Pending::default();
    for n in 0..100 {
        let mut map = ConfigMap::default();
        map.metadata.labels = Some([("l".to_owned(), n.to_string())].into());
        pending.push(delta("a", None, Some(Arc::new(map))));
    }
    let Some(Event::Delta(delta)) = pending.pop() else {
        panic!("nothing arrived")
    };
    assert_eq!(delta.between.len(), BETWEEN);
}
