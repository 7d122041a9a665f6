//! Informers that read a part of a kind.

use opkit_apimachinery::protobuf;
use opkit_apimachinery::shard::{ShardKey, ShardSelector};

use super::*;
use crate::{Shards, Step};

/// UIDs in the lower and in the upper half of the hashes.
const LOWER: &str = "3-owner";
const UPPER: &str = "1-owner";

fn half(index: u32) -> ShardSelector {
    ShardSelector::part(ShardKey::Uid, index, 2)
}

/// Returns a config map with owners of these UIDs.
fn owned(name: &str, version: u64, owners: &[&str]) -> Value {
    let owner = |uid| json!({"apiVersion": "v1", "kind": "Robot", "name": "one", "uid": uid});
    let owners: Vec<_> = owners.iter().map(owner).collect();
    // Fields as an API server orders those of a custom resource.
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
        "annotations": {"ownerReferences": "[]"}, "name": name, "ownerReferences": owners,
        "resourceVersion": version.to_string(), "uid": name,
    }})
}

impl Fed {
    /// Creates an informer of a part, without a list yet.
    fn of(shards: &Shards) -> Self {
        let options = InformerOptions::default().shards(shards.clone());
        let stop = CancellationToken::new();
        let informer = Informer::new(Codec::of::<ConfigMap>(), options, None, 1, stop);
        let sink = informer.split(shards.parts(&[None]), false).sinks.pop();
        let sink = sink.unwrap();
        Self { informer, sink }
    }

    /// Splits the kind again. Returns the number of the split.
    fn resplit(&mut self, shards: &Shards) -> u64 {
        let mut split = self.informer.split(shards.parts(&[None]), false);
        if let Some(sink) = split.sinks.pop() {
            self.sink = sink;
        }
        split.generation
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = self.informer.select(&Selection::default());
        names.sort_by_key(Stored::version);
        names.iter().map(|it| it.name().into_owned()).collect()
    }
}

/// Returns the pending deltas, such as `Added a`, `Added a, initial` and `left a`.
fn pending(listener: &mut Listener) -> Vec<String> {
    let mut found = Vec::new();
    while let Some(event) = listener.recv().now_or_never() {
        let Event::Delta(delta) = event else { continue };
        let initial = if delta.initial { ", initial" } else { "" };
        found.push(match delta.has_left() {
            true => format!("left {}", delta.key),
            false => format!("{:?} {}{initial}", delta.change, delta.key),
        });
    }
    found
}

#[test]
fn only_dependents_of_owners_in_the_part_are_stored() {
    let mut fed = Fed::of(&Shards::owners(half(0)));
    fed.list(
        &[
            owned("mine", 1, &[LOWER]),
            owned("foreign", 2, &[UPPER]),
            owned("both", 3, &[UPPER, LOWER]),
            owned("none", 4, &[]),
        ],
        "10",
    );
    assert_eq!(fed.names(), ["mine", "both"]);
    fed.changed(&owned("later", 11, &[LOWER]));
    fed.changed(&owned("foreign", 12, &[UPPER]));
    assert_eq!(fed.names(), ["mine", "both", "later"]);
    assert!(!fed.informer.has_all(None));
    // Nothing of foreign objects is kept, not even their strings.
    let bytes = fed.informer.stats().bytes;
    for number in 0..100 {
        fed.changed(&owned(&format!("foreign-{number}"), 20 + number, &[UPPER]));
    }
    assert_eq!(fed.informer.stats().bytes, bytes);
}

#[test]
fn owners_are_read_from_protobuf() {
    let mut fed = Fed::of(&Shards::owners(half(0)));
    fed.sink.begin_list();
    for object in [
        owned("mine", 1, &[UPPER, LOWER]),
        owned("foreign", 2, &[UPPER]),
        owned("none", 3, &[]),
    ] {
        let bytes = protobuf::encode(&object).unwrap();
        let raw = protobuf::envelope(&bytes).unwrap().raw;
        fed.sink.listed(Raw::Protobuf(raw)).unwrap();
    }
    fed.sink.end_list("10");
    assert_eq!(fed.names(), ["mine"]);
}

#[test]
fn a_change_of_owners_adds_and_deletes() {
    let mut fed = Fed::of(&Shards::owners(half(0)));
    fed.list(&[owned("a", 1, &[LOWER]), owned("b", 2, &[UPPER])], "10");
    let mut listener = fed.informer.listen();
    assert_eq!(pending(&mut listener), ["Added a, initial"]);
    fed.changed(&owned("a", 11, &[UPPER]));
    // A handler that maps to the owner still finds the previous one.
    let Some(Event::Delta(delta)) = listener.recv().now_or_never() else {
        panic!("a left the part");
    };
    assert_eq!((delta.change, delta.has_left()), (Change::Deleted, false));
    let last = delta.last.unwrap();
    assert_eq!(last.object.meta().owners()[0].uid, LOWER);
    assert!(!last.is_certain);
    fed.changed(&owned("b", 12, &[LOWER]));
    assert_eq!(pending(&mut listener), ["Added b"]);
    // Deleted in the same request that changed its owners.
    fed.deleted(&owned("b", 13, &[UPPER]));
    assert_eq!(pending(&mut listener), ["Deleted b"]);
    // A relist finds the change, even if the list contains several versions of the object.
    fed.changed(&owned("c", 14, &[LOWER]));
    fed.changed(&owned("d", 15, &[LOWER]));
    let _ = pending(&mut listener);
    fed.list(
        &[
            owned("c", 21, &[UPPER]),
            owned("d", 22, &[LOWER]),
            owned("d", 23, &[UPPER]),
        ],
        "24",
    );
    assert_eq!(fed.names(), Vec::<String>::new());
    assert_eq!(pending(&mut listener), ["Deleted c", "Deleted d"]);
}

#[test]
fn own_writes_that_move_an_object_to_another_part_remove_it() {
    let mut fed = Fed::of(&Shards::owners(half(0)));
    fed.list(&[owned("a", 1, &[LOWER])], "10");
    fed.observe(&owned("foreign", 11, &[UPPER]));
    fed.observe(&owned("a", 12, &[UPPER]));
    assert!(fed.informer.is_empty());
    // The watch reports the state before the write.
    fed.changed(&owned("a", 11, &[LOWER]));
    assert!(fed.informer.is_empty());
    fed.changed(&owned("a", 12, &[UPPER]));
    assert_eq!(fed.overlay_len(), 1, "the other write is not reported yet");
    fed.sink.bookmark("20");
    assert_eq!(fed.overlay_len(), 0);
    fed.observe(&owned("a", 21, &[LOWER]));
    assert_eq!(fed.names(), ["a"]);
}

#[test]
fn objects_that_leave_with_their_part_are_not_deleted() {
    let mut fed = Fed::of(&Shards::owners(half(0)));
    fed.list(
        &[owned("a", 1, &[LOWER]), owned("ab", 2, &[LOWER, UPPER])],
        "10",
    );
    let mut listener = fed.informer.listen();
    let mut coalescing = fed.informer.listen();
    assert_eq!(pending(&mut listener).len(), 2);
    assert_eq!(pending(&mut coalescing).len(), 2);
    let generation = fed.resplit(&Shards::owners(half(1)));
    assert_eq!(pending(&mut listener), ["left a"]);
    assert!(fed.informer.is_synced() && !fed.informer.has_listed(generation));
    fed.list(
        &[
            owned("a", 1, &[LOWER]),
            owned("ab", 2, &[LOWER, UPPER]),
            owned("b", 3, &[UPPER]),
        ],
        "11",
    );
    assert!(fed.informer.has_listed(generation));
    assert_eq!(pending(&mut listener), ["Added b, initial"]);
    // Back before the listener noticed: nothing has changed for it.
    fed.resplit(&Shards::owners(half(0)));
    fed.list(
        &[owned("a", 12, &[LOWER]), owned("ab", 2, &[LOWER, UPPER])],
        "12",
    );
    let mut steps = Vec::new();
    while let Some(Event::Delta(delta)) = coalescing.recv().now_or_never() {
        delta.steps(|step| {
            steps.push(match step {
                Step::Created { object, .. } => format!("created {}", object.name()),
                Step::Updated { new, .. } => format!("updated {}", new.name()),
                Step::Deleted { object, .. } => format!("deleted {}", object.name()),
                Step::Left { object } => format!("left {}", object.name()),
            });
        });
    }
    assert_eq!(steps, ["updated a", "created b", "left b"]);
}

#[test]
fn an_empty_part_is_synced_without_a_list() {
    let nothing = Shards::range(ShardSelector::slots(ShardKey::Uid, [], 4));
    for shards in [
        nothing.clone(),
        Shards::owners(half(0)),
        nothing.clone().watches(3),
    ] {
        let is_empty = shards.range.as_ref().is_some_and(ShardSelector::is_empty);
        assert_eq!(shards.parts(&[None]).is_empty(), is_empty);
    }
    // Before the first list.
    let mut fed = Fed::of(&Shards::range(half(0)));
    let mut listener = fed.informer.listen();
    assert!(!fed.informer.is_synced());
    let generation = fed.resplit(&nothing);
    assert!(fed.informer.is_synced() && fed.informer.has_listed(generation));
    let synced = listener.recv().now_or_never();
    assert!(matches!(synced, Some(Event::Synced)));
    // The reflectors of the previous part are ignored.
    fed.list(&[owned(LOWER, 1, &[])], "10");
    fed.observe(&owned(LOWER, 11, &[]));
    assert!(fed.informer.is_empty());
    // From nothing to something, and back.
    let generation = fed.resplit(&Shards::range(half(0)));
    assert!(fed.informer.is_synced() && !fed.informer.has_listed(generation));
    fed.list(&[owned(LOWER, 1, &[]), owned(UPPER, 2, &[])], "10");
    assert_eq!(fed.names(), [LOWER]);
    assert!(fed.informer.has_listed(generation));
    fed.resplit(&nothing);
    // It came and left before the listener saw it.
    assert_eq!(pending(&mut listener), ["left 3-owner"]);
}

/// The lists of an earlier split do not complete a later one; a later one completes both.
#[test]
fn a_second_split_during_the_first() {
    let mut fed = Fed::of(&Shards::range(half(0)));
    fed.list(&[], "10");
    let first = fed.resplit(&Shards::range(half(1)));
    fed.sink.begin_list();
    let mut before = std::mem::replace(&mut fed.sink, fed.informer.sink(None));
    let second = fed.resplit(&Shards::owners(half(0)));
    before.end_list("11");
    assert!(!fed.informer.has_listed(first) && !fed.informer.has_listed(second));
    fed.list(&[], "12");
    assert!(fed.informer.has_listed(first) && fed.informer.has_listed(second));
    assert!(fed.informer.wait_for_split(second).now_or_never().is_some());
}
