//! Priorities, ageing and turns between groups.

use super::*;
use crate::group_of;

#[test]
fn higher_priorities_leave_first() {
    let mut queue = Queue::default();
    for round in 0..3 {
        for (key, priority) in [("low", -100), ("high", 100), ("middle", 0)] {
            add_with(&mut queue, round, key, at(priority));
        }
        assert_eq!(drain(&mut queue, round), ["high", "middle", "low"]);
    }
}

#[test]
fn the_higher_of_two_priorities_is_kept() {
    for priorities in [[1, 2], [2, 1]] {
        let mut queue = Queue::default();
        for priority in priorities {
            add_with(&mut queue, 0, "a", at(priority));
        }
        assert_eq!(queue.get(ms(0)).unwrap().priority, 2);
    }
}

#[test]
fn a_raised_key_goes_before_lower_ones() {
    let mut queue = Queue::default();
    add(&mut queue, 0, "a");
    add(&mut queue, 0, "b");
    add_with(&mut queue, 0, "b", at(1));
    assert_eq!(drain(&mut queue, 0), ["b", "a"]);
}

#[test]
fn a_raised_key_goes_to_the_end_of_its_new_priority() {
    let mut queue = Queue::default();
    for (key, priority) in [("a", 0), ("b", 1), ("c", 1), ("a", 1), ("d", 1), ("b", 1)] {
        add_with(&mut queue, 0, key, at(priority));
    }
    assert_eq!(drain(&mut queue, 0), ["b", "c", "a", "d"]);
}

#[test]
fn a_delayed_key_is_raised_too() {
    let mut queue = Queue::default();
    add_with(&mut queue, 0, "a", after(10));
    add_with(
        &mut queue,
        0,
        "a",
        AddOptions {
            priority: Some(3),
            ..after(20)
        },
    );
    let work = queue.get(ms(10)).unwrap();
    assert_eq!((work.key, work.priority), ("a", 3));
}

#[test]
fn a_key_in_work_comes_back_with_its_priority() {
    let mut queue = Queue::default();
    add(&mut queue, 0, "a");
    let work = queue.get(ms(0)).unwrap();
    add(&mut queue, 0, "b");
    add_with(&mut queue, 0, "a", at(1));
    queue.done(ms(0), work.ticket);
    let work = queue.get(ms(0)).unwrap();
    assert_eq!((work.key, work.priority), ("a", 1));
}

#[test]
fn a_high_priority_that_became_ready_goes_first() {
    let mut queue = Queue::default();
    add(&mut queue, 0, "low");
    add_with(
        &mut queue,
        0,
        "high",
        AddOptions {
            priority: Some(1),
            ..after(5)
        },
    );
    assert_eq!(drain(&mut queue, 5), ["high", "low"]);
}

#[test]
fn a_delayed_key_queues_behind_those_that_were_ready_before_it() {
    let mut queue = Queue::default();
    add_with(&mut queue, 0, "delayed", after(10));
    add(&mut queue, 5, "before");
    add(&mut queue, 15, "behind");
    assert_eq!(drain(&mut queue, 20), ["before", "delayed", "behind"]);
}

#[test]
fn a_waiting_key_rises_by_one_each_second() {
    // One priority and one second apart: before that the higher priority is first, after it the
    // older key.
    for (second, first) in [(999, "high"), (1000, "high"), (1001, "low")] {
        let mut queue = Queue::default();
        add(&mut queue, 0, "low");
        add_with(&mut queue, second, "high", at(1));
        assert_eq!(take(&mut queue, second), Some(first), "at {second} ms");
    }
}

#[test]
fn the_initial_list_starves_for_a_hundred_seconds_at_most() {
    let mut queue = Engine::<u64, ()>::default();
    queue.add_with(ms(0), u64::MAX, (), at(-100));
    let mut now = 0;
    loop {
        // Always two new keys for one that is taken.
        queue.add(ms(now), 2 * now, ());
        queue.add(ms(now), 2 * now + 1, ());
        let work = queue.get(ms(now)).unwrap();
        if work.key == u64::MAX {
            break;
        }
        queue.done(ms(now), work.ticket);
        now += 10;
    }
    // Keys of priority 0 that were added until then are handed out first, and half of them still
    // wait.
    assert!((100_000..=200_100).contains(&now), "{now}");
}

#[test]
fn without_ageing_priorities_are_strict() {
    let mut queue = Queue::new(QueueOptions {
        ageing: None,
        ..QueueOptions::default()
    });
    add(&mut queue, 0, "low");
    add_with(&mut queue, 1_000_000, "high", at(1));
    assert_eq!(drain(&mut queue, 1_000_000), ["high", "low"]);
}

#[test]
fn raising_never_sets_an_old_key_back() {
    let mut queue = Queue::default();
    add_with(&mut queue, 0, "old", at(-100));
    add(&mut queue, 120_000, "new");
    add_with(&mut queue, 150_000, "old", at(0));
    let work = queue.get(ms(150_000)).unwrap();
    assert_eq!((work.key, work.priority), ("old", 0));
}

#[test]
fn extreme_priorities_do_not_overflow() {
    let mut queue = Queue::new(QueueOptions {
        ageing: Some(Duration::MAX),
        ..QueueOptions::default()
    });
    for (key, priority) in [("least", i32::MIN), ("most", i32::MAX), ("middle", 0)] {
        add_with(&mut queue, 0, key, at(priority));
    }
    assert_eq!(drain(&mut queue, u64::MAX), ["most", "middle", "least"]);
}

#[test]
fn groups_of_one_priority_take_turns() {
    let mut queue = Queue::new(QueueOptions {
        fair_by: Some(|key| group_of(&key.chars().next())),
        ..QueueOptions::default()
    });
    for key in ["a1", "a2", "a3", "b1", "b2", "c1"] {
        add(&mut queue, 0, key);
    }
    assert_eq!(take(&mut queue, 0), Some("a1"));
    // A group that comes back takes the last turn.
    assert_eq!(take(&mut queue, 0), Some("b1"));
    assert_eq!(take(&mut queue, 0), Some("c1"));
    add(&mut queue, 0, "c2");
    add_with(&mut queue, 0, "b9", at(1));
    assert_eq!(drain(&mut queue, 0), ["b9", "a2", "b2", "c2", "a3"]);
}

#[test]
fn a_raised_key_leaves_the_turns_of_its_group_alone() {
    let mut queue = Queue::new(QueueOptions {
        fair_by: Some(|key| group_of(&key.chars().next())),
        ..QueueOptions::default()
    });
    for key in ["a1", "b1", "a2", "b2"] {
        add(&mut queue, 0, key);
    }
    add_with(&mut queue, 0, "a1", at(1));
    assert_eq!(drain(&mut queue, 0), ["a1", "a2", "b1", "b2"]);
}

#[test]
fn a_level_is_as_old_as_its_oldest_key_whichever_turn_it_is() {
    let mut queue = Queue::new(QueueOptions {
        fair_by: Some(|key| group_of(&key.chars().next())),
        ..QueueOptions::default()
    });
    for key in ["b0", "a1", "a2"] {
        add_with(&mut queue, 0, key, at(-10));
    }
    assert_eq!(take(&mut queue, 0), Some("b0"));
    add_with(&mut queue, 11_000, "b1", at(-10));
    add(&mut queue, 11_000, "new");
    assert_eq!(drain(&mut queue, 11_000), ["a1", "b1", "a2", "new"]);
}

#[test]
fn many_priorities_do_not_pile_up() {
    let mut queue = Engine::<i32, ()>::default();
    for priority in 0..10_000 {
        queue.add_with(ms(0), priority, (), at(priority));
        if priority % 2 == 1 {
            for _ in 0..2 {
                let work = queue.get(ms(0)).unwrap();
                queue.done(ms(0), work.ticket);
            }
        }
    }
    assert!(queue.ready.depths().count() <= 40);
    let places = queue.ready.allocated_places();
    assert!(places <= 100, "places for priorities and groups: {places}");
}

#[test]
fn many_groups_do_not_pile_up() {
    let mut queue = Engine::<u32, ()>::new(crate::QueueOptions {
        fair_by: Some(|key| u64::from(*key)),
        ..Default::default()
    });
    for key in 0..10_000 {
        queue.add(ms(0), key, ());
        let work = queue.get(ms(0)).unwrap();
        queue.done(ms(0), work.ticket);
    }
    let places = queue.ready.allocated_places();
    assert!(places <= 10, "places for priorities and groups: {places}");
}
