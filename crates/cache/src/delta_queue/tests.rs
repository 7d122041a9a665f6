use std::collections::BTreeMap;
use std::time::Duration;

use futures::FutureExt;
use opkit_random::Random;

use super::*;

/// Object: a name and a version.
type Item = (&'static str, u32);
type Queue = DeltaQueue<Item, &'static str>;

fn queue() -> (Queue, Indexer<Item, &'static str>) {
    let known = Indexer::new(|item: &Item| item.0);
    (DeltaQueue::new(known.clone()), known)
}

/// Returns the deltas of a key in short: the first letter of the delta and the version of its
/// state. A deletion without its final state is in lower case.
fn show(popped: &PoppedDeltas<Item, &'static str>) -> String {
    let shown = popped.deltas().iter().map(|delta| {
        let letter = match delta {
            ObjectDelta::Added(_) => 'A',
            ObjectDelta::Updated(_) => 'U',
            ObjectDelta::Deleted { is_final: true, .. } => 'D',
            ObjectDelta::Deleted { .. } => 'd',
            ObjectDelta::Replaced(_) => 'R',
            ObjectDelta::Sync(_) => 'S',
        };
        let version = delta.object().map(|item| item.1.to_string());
        format!("{letter}{}", version.unwrap_or_default())
    });
    let shown: Vec<_> = shown.collect();
    format!("{}: {}", popped.key(), shown.join(" "))
}

/// Pops all changes without a store.
fn drain(queue: &Queue) -> Vec<String> {
    std::iter::from_fn(|| Some(show(&queue.try_pop()?))).collect()
}

/// Applies changes to the store, as a consumer does.
fn apply(known: &Indexer<Item, &'static str>, popped: &PoppedDeltas<Item, &'static str>) {
    for delta in popped.deltas() {
        match delta {
            ObjectDelta::Deleted { .. } => drop(known.delete(popped.key())),
            changed => drop(changed.object().map(|object| known.update(object.clone()))),
        }
    }
}

#[test]
fn changes_are_compressed_per_key_in_order_of_arrival() {
    let (queue, _) = queue();
    queue.add(("a", 1));
    queue.add(("b", 1));
    queue.update(("a", 2));
    queue.delete(("a", 3));
    queue.add(("a", 4));
    assert_eq!(queue.len(), 2);
    assert_eq!(drain(&queue), ["a: A1 U2 D3 A4", "b: A1"]);
    assert!(queue.has_synced(), "without a list");
}

#[test]
fn two_deletions_become_the_one_that_knows_more() {
    let (queue, known) = queue();
    known.add(("a", 1));
    queue.delete_key("a", None);
    queue.delete_key("a", None);
    assert_eq!(drain(&queue), ["a: d1"]);
    queue.delete_key("a", None);
    queue.delete(("a", 2));
    queue.replace(Vec::<Item>::new());
    assert_eq!(drain(&queue), ["a: D2"]);
    // Between other changes, each deletion counts.
    queue.delete(("a", 3));
    queue.add(("a", 4));
    queue.delete(("a", 5));
    assert_eq!(drain(&queue), ["a: D3 A4 D5"]);
}

#[test]
fn an_unknown_object_is_not_deleted() {
    let (queue, _) = queue();
    queue.delete(("a", 1));
    assert!(queue.is_empty());
    queue.add(("a", 1));
    drop(queue.try_pop());
    queue.delete(("a", 2));
    assert!(queue.is_empty(), "the consumer did not store it");
}

#[test]
fn a_list_deletes_what_it_does_not_have() {
    let (queue, known) = queue();
    known.replace([("known", 1), ("both", 1), ("listed", 1), ("leaving", 1)]);
    queue.update(("both", 2));
    queue.add(("waiting", 1));
    queue.delete(("leaving", 2));
    queue.replace([("listed", 2), ("new", 1)]);
    let mut shown = drain(&queue);
    shown.sort();
    let expected = [
        "both: U2 d2",
        "known: d1",
        "leaving: D2",
        "listed: R2",
        "new: R1",
        "waiting: A1 d1",
    ];
    assert_eq!(shown, expected);
}

#[test]
fn a_list_counts_what_a_consumer_holds() {
    let (queue, known) = queue();
    queue.add(("added", 1));
    queue.add(("deleted", 1));
    let added = queue.try_pop().unwrap();
    let deleted = queue.try_pop().unwrap();
    apply(&known, &deleted);
    drop(deleted);
    queue.delete(("deleted", 2));
    let deleted = queue.try_pop().unwrap();
    // Neither consumer has changed the store yet.
    queue.replace(Vec::<Item>::new());
    queue.delete(("deleted", 2));
    assert!(queue.try_pop().is_none(), "the key is held");
    apply(&known, &deleted);
    apply(&known, &added);
    drop((added, deleted));
    let popped = queue.try_pop().unwrap();
    assert_eq!(show(&popped), "added: d1");
    apply(&known, &popped);
    drop(popped);
    assert!(queue.is_empty() && known.is_empty());
}

#[test]
fn a_resync_delivers_objects_without_changes() {
    let (queue, known) = queue();
    known.replace([("a", 1), ("b", 1), ("c", 1)]);
    queue.update(("a", 2));
    let held = queue.try_pop().unwrap();
    queue.update(("b", 2));
    queue.resync();
    assert_eq!(drain(&queue), ["b: U2", "c: S1"]);
    drop(held);
}

#[test]
fn the_first_list_is_synced_when_it_is_popped() {
    let (queue, _) = queue();
    assert!(!queue.has_synced());
    queue.replace([("a", 1), ("b", 1)]);
    queue.update(("a", 2));
    assert!(!queue.has_synced());
    assert_eq!(drain(&queue), ["a: R1 U2", "b: R1"]);
    assert!(queue.has_synced());
    queue.replace([("c", 1)]);
    assert!(queue.has_synced(), "only the first list counts");

    let (empty, _) = self::queue();
    empty.replace(Vec::<Item>::new());
    assert!(empty.has_synced());
}

#[test]
fn the_oldest_of_many_changes_is_dropped() {
    let (queue, _) = queue();
    queue.add(("a", 0));
    (1..=150).for_each(|version| queue.update(("a", version)));
    let popped = queue.try_pop().unwrap();
    assert_eq!(popped.deltas().len(), DELTAS_PER_KEY_MAX);
    assert_eq!(popped.deltas().last().unwrap().object().unwrap().1, 150);
}

#[tokio::test(start_paused = true)]
async fn consumers_wait_and_end_with_the_queue() {
    let (queue, _) = queue();
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..3 {
        let queue = queue.clone();
        tasks.spawn(async move {
            let mut seen = Vec::new();
            while let Some(popped) = queue.pop().await {
                tokio::time::sleep(Duration::from_secs(1)).await;
                seen.push(show(&popped));
            }
            seen
        });
    }
    // A dropped wait takes nothing.
    assert!(queue.pop().now_or_never().is_none());
    tokio::time::sleep(Duration::from_secs(1)).await;
    queue.replace([("a", 1), ("b", 1), ("c", 1), ("d", 1)]);
    tokio::time::sleep(Duration::from_millis(1)).await;
    // `a` is held: its next change waits for the consumer.
    queue.update(("a", 2));
    queue.close();
    queue.add(("late", 1));
    let started = tokio::time::Instant::now();
    let seen = tokio::time::timeout(Duration::from_secs(60), tasks.join_all()).await;
    let mut seen = seen.expect("all consumers end").concat();
    seen.sort();
    assert_eq!(seen, ["a: R1", "a: U2", "b: R1", "c: R1", "d: R1"]);
    assert_eq!(started.elapsed().as_secs(), 1, "three at a time");
}

/// A source changes at random, and the watch misses some changes until the next list. After a last
/// list, the store of the consumer is equal to the source.
#[test]
fn stores_follow_their_source_in_a_thousand_runs() {
    const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];
    for seed in 0..1_000 {
        let (mut random, (queue, known)) = (Random::new(seed), queue());
        let pick = |random: &mut Random, n: usize| (random.unit() * n as f64) as usize;
        let mut source: BTreeMap<&'static str, Item> = BTreeMap::new();
        let mut held = Vec::new();
        for version in 0..60 {
            let name = NAMES[pick(&mut random, NAMES.len())];
            let is_seen = pick(&mut random, 4) > 0;
            match pick(&mut random, 10) {
                0..=2 => {
                    let item = (name, version);
                    let is_new = source.insert(name, item).is_none();
                    match (is_seen, is_new) {
                        (true, true) => queue.add(item),
                        (true, false) => queue.update(item),
                        (false, _) => {}
                    }
                }
                3..=4 => {
                    let gone = source.remove(name);
                    if let Some(item) = gone.filter(|_| is_seen) {
                        queue.delete(item);
                    }
                }
                5 => queue.replace(source.values().copied()),
                6 => queue.resync(),
                7 => held.extend(queue.try_pop()),
                8 if !held.is_empty() => {
                    let popped = held.swap_remove(pick(&mut random, held.len()));
                    apply(&known, &popped);
                }
                _ => {
                    if let Some(popped) = queue.try_pop() {
                        apply(&known, &popped);
                    }
                }
            }
        }
        queue.replace(source.values().copied());
        for popped in held.drain(..) {
            apply(&known, &popped);
        }
        while let Some(popped) = queue.try_pop() {
            apply(&known, &popped);
        }
        let stored: BTreeMap<_, _> = known.list().iter().map(|item| (item.0, **item)).collect();
        assert_eq!(stored, source, "seed {seed}");
    }
}
