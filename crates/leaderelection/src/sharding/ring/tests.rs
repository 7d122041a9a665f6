use std::collections::{BTreeMap, BTreeSet};

use opkit_random::Random;

use super::*;

fn member(name: &str) -> Member {
    Member {
        identity: name.to_owned(),
        incarnation: format!("{name}-1"),
        leaving: false,
    }
}

/// Returns a balanced ring of `members`.
fn ring(members: &[&str]) -> Ring {
    let mut ring = Ring::default();
    for name in members {
        ring.join(member(name));
        ring.resize(0, true);
        ring.assign();
        settle(&mut ring);
    }
    ring
}

/// Lets each member give away what it must, and returns the number of slots that moved.
fn settle(ring: &mut Ring) -> usize {
    let before: Vec<_> = ring.owners().map(|it| it.cloned()).collect();
    let members: Vec<_> = ring.members().to_vec();
    for member in members {
        let surplus = ring.surplus(&member.incarnation, &BTreeSet::new());
        ring.hand_over(&member.incarnation, &surplus);
    }
    let after = ring.owners().map(|it| it.cloned());
    after
        .zip(before)
        .filter(|(after, before)| after != before)
        .count()
}

fn counts(ring: &Ring) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for owner in ring.owners() {
        let name = owner.map_or("-", |owner| &owner.identity);
        *counts.entry(name.to_owned()).or_default() += 1;
    }
    counts
}

#[test]
fn slots_are_divided_evenly() {
    assert_eq!(counts(&ring(&["a"])).into_values().collect::<Vec<_>>(), [8]);
    let three = ring(&["a", "b", "c"]);
    assert_eq!(three.len(), 32);
    let mut counts: Vec<_> = counts(&three).into_values().collect();
    counts.sort_unstable();
    assert_eq!(counts, [10, 11, 11]);
}

#[test]
fn one_join_or_leave_moves_at_most_a_share_and_one() {
    let mut random = Random::new(7);
    let mut ring = ring(&["m0"]);
    for step in 1..400 {
        let before = ring.members().len();
        let moved = match before == 1 || (before < 20 && random.percent(50)) {
            true => {
                ring.join(member(&format!("m{step}")));
                ring.resize(0, true);
                ring.assign();
                settle(&mut ring)
            }
            false => {
                let leaves = random.below(before as u64) as usize;
                let incarnation = ring.members()[leaves].incarnation.clone();
                match random.percent(50) {
                    true => {
                        ring.leave(&incarnation);
                        let moved = settle(&mut ring);
                        assert!(ring.slots_of(&incarnation).is_empty());
                        ring.remove(|it| it.incarnation == incarnation);
                        moved
                    }
                    false => {
                        let moved = ring.slots_of(&incarnation).len();
                        ring.remove(|it| it.incarnation == incarnation);
                        ring.assign();
                        assert_eq!(settle(&mut ring), 0);
                        moved
                    }
                }
            }
        };
        let larger = before.max(ring.members().len());
        let slots = ring.len() as usize;
        assert!(
            moved <= slots / larger + 1,
            "{moved} of {slots}, {larger} members"
        );
        let counts: Vec<_> = counts(&ring).into_values().collect();
        let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
        assert!(most - least <= 1, "{counts:?}");
    }
}

#[test]
fn many_objects_and_members_need_more_slots_and_no_slot_moves() {
    let mut ring = ring(&["a", "b", "c"]);
    let owner_of = |ring: &Ring, hash: u128| {
        let slot = (hash * u128::from(ring.len())) >> 64;
        ring.owners().nth(slot as usize).flatten().cloned()
    };
    let hashes: Vec<u128> = (0..100).map(|at| (at << 64) / 100 + 1).collect();
    let owners = |ring: &Ring| {
        hashes
            .iter()
            .map(|it| owner_of(ring, *it))
            .collect::<Vec<_>>()
    };
    let before = owners(&ring);
    ring.resize(2_000_000, true);
    assert_eq!((ring.len(), owners(&ring)), (256, before.clone()));
    ring.resize(2_000_000_000, true);
    assert_eq!(ring.len(), 256);
    // The ring shrinks only if there are much fewer objects, and only while pairs have one owner.
    ring.resize(400_000, true);
    assert_eq!(ring.len(), 256);
    ring.resize(0, true);
    assert_eq!((ring.len(), owners(&ring)), (64, before));
}

#[test]
fn the_text_of_a_ring_is_short_and_read_back() {
    let mut ring = ring(&["a", "b", "c"]);
    ring.leave("b-1");
    ring.remove(|it| it.identity == "c");
    let text = ring.to_text();
    assert!(text.len() < 300, "{text}");
    assert_eq!(Ring::parse(&text), Ok(ring));
    let refused = |owners: &str| {
        let text = format!(r#"{{"revision":1,"members":[],"owners":"{owners}"}}"#);
        Ring::parse(&text).unwrap_err().to_string()
    };
    assert_eq!(
        refused("0*8"),
        r#"the owners "0*8" are not runs of members, such as 0*4,1*3,-*1"#
    );
    assert_eq!(
        refused("-*7"),
        "the number of slots, 7, is not a power of two up to 1024"
    );
    assert_eq!(
        refused("-*1024,-*1024"),
        "the number of slots, 2048, is not a power of two up to 1024"
    );
    assert_eq!(Ring::parse("{}"), Err(RingError::Field("revision")));
    assert_eq!(Ring::parse("x"), Err(RingError::NotJson));
}

#[test]
fn a_replica_that_joins_again_keeps_its_slots() {
    let mut ring = ring(&["a", "b"]);
    let slots = ring.slots_of("a-1");
    ring.join(Member {
        incarnation: "a-2".to_owned(),
        ..member("a")
    });
    assert_eq!((ring.slots_of("a-2"), ring.members().len()), (slots, 2));
    assert!(!ring.contains("a-1"));
}
