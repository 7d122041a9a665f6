//! Behaviour tested by client-go's `queue_test.go` and `delaying_queue_test.go` and by
//! controller-runtime's `priorityqueue_test.go`. The README maps upstream tests to these.

mod model;
mod order;

use super::*;
use crate::Reasons;

type Queue = Engine<&'static str, Reasons<&'static str>>;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

const fn at(priority: i32) -> AddOptions {
    AddOptions {
        priority: Some(priority),
        after: Duration::ZERO,
        rate_limited: false,
    }
}

const fn after(millis: u64) -> AddOptions {
    AddOptions {
        priority: None,
        after: ms(millis),
        rate_limited: false,
    }
}

fn add(queue: &mut Queue, now: u64, key: &'static str) {
    queue.add(ms(now), key, Reasons::from("added"));
}

fn add_with(queue: &mut Queue, now: u64, key: &'static str, options: AddOptions) {
    queue.add_with(ms(now), key, Reasons::from("added"), options);
}

/// Takes a key and keeps it in work.
fn take(queue: &mut Queue, now: u64) -> Option<&'static str> {
    queue.get(ms(now)).map(|work| work.key)
}

/// Takes a key and ends its work.
fn get(queue: &mut Queue, now: u64) -> Option<&'static str> {
    let work = queue.get(ms(now))?;
    queue.done(ms(now), work.ticket);
    Some(work.key)
}

fn drain(queue: &mut Queue, now: u64) -> Vec<&'static str> {
    std::iter::from_fn(|| get(queue, now)).collect()
}

#[test]
fn a_key_added_often_is_handed_out_once() {
    let mut queue = Queue::default();
    for _ in 0..3 {
        add(&mut queue, 0, "a");
    }
    assert_eq!(queue.len(), 1);
    assert_eq!(drain(&mut queue, 0), ["a"]);
}

#[test]
fn keys_leave_in_order_of_arrival() {
    let mut queue = Queue::default();
    for key in ["c", "a", "b", "a"] {
        add(&mut queue, 0, key);
    }
    assert_eq!(drain(&mut queue, 0), ["c", "a", "b"]);
}

#[test]
fn a_key_in_work_is_queued_once_when_done() {
    let mut queue = Queue::default();
    add(&mut queue, 0, "a");
    let work = queue.get(ms(0)).unwrap();
    add(&mut queue, 0, "a");
    add(&mut queue, 0, "a");
    assert_eq!((queue.len(), take(&mut queue, 0)), (0, None));
    queue.done(ms(0), work.ticket);
    assert_eq!(queue.len(), 1);
    assert_eq!(drain(&mut queue, 0), ["a"]);
}

#[test]
fn a_key_added_again_after_its_work_is_handed_out_again() {
    let mut queue = Queue::default();
    for _ in 0..2 {
        add(&mut queue, 0, "a");
        assert_eq!(drain(&mut queue, 0), ["a"]);
    }
}

#[test]
fn only_ready_keys_are_counted() {
    let mut queue = Queue::default();
    add_with(&mut queue, 0, "later", after(10));
    add(&mut queue, 0, "a");
    add(&mut queue, 0, "b");
    assert_eq!(queue.len(), 2);
    take(&mut queue, 0);
    assert_eq!(queue.len(), 1);
    queue.advance(ms(10));
    assert_eq!(queue.len(), 2);
}

#[test]
fn merged_reasons_survive() {
    let mut queue = Queue::default();
    queue.add_after(ms(0), "a", Reasons::from("retry"), ms(50));
    queue.add(ms(0), "a", Reasons::from("changed"));
    queue.add_after(ms(0), "a", Reasons::from("requeue"), ms(9));
    let work = queue.get(ms(0)).unwrap();
    let reasons: Vec<_> = work.payload.iter().copied().collect();
    assert_eq!(reasons, ["retry", "changed", "requeue"]);
}

#[test]
fn after_shut_down_adds_are_ignored_and_the_rest_is_handed_out() {
    let mut queue = Queue::default();
    add(&mut queue, 0, "a");
    add(&mut queue, 0, "b");
    add_with(&mut queue, 0, "later", after(1));
    queue.shut_down();
    add(&mut queue, 0, "c");
    add_with(&mut queue, 0, "c", after(1));
    let (a, b) = (queue.get(ms(9)).unwrap(), queue.get(ms(9)).unwrap());
    assert_eq!((a.key, b.key, take(&mut queue, 9)), ("a", "b", None));
    queue.done(ms(9), a.ticket);
    assert!(!queue.is_drained());
    queue.done(ms(9), b.ticket);
    assert!(queue.is_drained());
}

#[test]
fn a_dirty_key_is_drained_too() {
    let mut queue = Queue::default();
    add(&mut queue, 0, "a");
    let work = queue.get(ms(0)).unwrap();
    add(&mut queue, 0, "a");
    queue.shut_down();
    queue.done(ms(0), work.ticket);
    assert!(!queue.is_drained());
    assert_eq!(drain(&mut queue, 0), ["a"]);
    assert!(queue.is_drained());
}

#[test]
fn a_delayed_key_in_work_does_not_hinder_the_drain() {
    let mut queue = Queue::default();
    add(&mut queue, 0, "a");
    let work = queue.get(ms(0)).unwrap();
    add_with(&mut queue, 0, "a", after(1000));
    queue.shut_down();
    queue.done(ms(0), work.ticket);
    assert!(queue.is_drained());
}

#[test]
fn a_delayed_key_is_invisible_before_its_time() {
    let mut queue = Queue::default();
    add_with(&mut queue, 0, "a", after(50));
    assert_eq!(queue.next_ready_at(), Some(ms(50)));
    assert_eq!((queue.len(), get(&mut queue, 49)), (0, None));
    assert_eq!(get(&mut queue, 50), Some("a"));
    assert_eq!(queue.next_ready_at(), None);
}

#[test]
fn the_earlier_delay_wins_in_either_order() {
    for (delays, out) in [([50, 70], 50), ([50, 30], 30), ([50, 0], 0), ([0, 50], 0)] {
        let mut queue = Queue::default();
        for delay in delays {
            add_with(&mut queue, 0, "a", after(delay));
        }
        if out > 0 {
            assert_eq!(get(&mut queue, out - 1), None);
        }
        assert_eq!(get(&mut queue, out), Some("a"));
        assert_eq!(get(&mut queue, 200), None, "one delivery only");
    }
}

#[test]
fn a_shorter_delay_added_later_ends_first() {
    let mut queue = Queue::default();
    add_with(&mut queue, 0, "slow", after(1000));
    add_with(&mut queue, 0, "fast", after(50));
    assert_eq!(queue.next_ready_at(), Some(ms(50)));
    assert_eq!(get(&mut queue, 60), Some("fast"));
    assert_eq!(get(&mut queue, 2000), Some("slow"));
}

#[test]
fn due_keys_leave_in_order_of_their_times() {
    let mut queue = Queue::default();
    for (key, delay) in [("a", 300), ("b", 100), ("c", 200), ("d", 100)] {
        add_with(&mut queue, 0, key, after(delay));
    }
    assert_eq!(drain(&mut queue, 1000), ["b", "d", "c", "a"]);
}

#[test]
fn a_delay_that_ends_during_work_queues_the_key_again() {
    let mut queue = Queue::default();
    add(&mut queue, 0, "a");
    let work = queue.get(ms(0)).unwrap();
    add_with(&mut queue, 0, "a", after(10));
    assert_eq!(take(&mut queue, 20), None);
    queue.done(ms(20), work.ticket);
    assert_eq!(get(&mut queue, 20), Some("a"));
}

#[test]
fn a_delay_that_outlasts_the_work_is_kept() {
    let mut queue = Queue::default();
    add(&mut queue, 0, "a");
    let work = queue.get(ms(0)).unwrap();
    add_with(&mut queue, 0, "a", after(10));
    queue.done(ms(5), work.ticket);
    assert_eq!((get(&mut queue, 9), get(&mut queue, 10)), (None, Some("a")));
}

#[test]
fn the_smaller_of_limiter_and_delay_is_waited_for() {
    for (delay, expected) in [(0, 5), (3, 3), (9, 5)] {
        let mut queue = Queue::default();
        let options = AddOptions {
            rate_limited: true,
            ..after(delay)
        };
        let waits = queue.add_with(ms(0), "a", Reasons::default(), options);
        assert_eq!((waits, queue.num_requeues(&"a")), (ms(expected), 1));
    }
}

#[test]
fn rate_limited_keys_do_not_affect_each_other() {
    let mut queue = Queue::default();
    for expected in [5, 10, 20] {
        for key in ["a", "b"] {
            let waits = queue.add_rate_limited(ms(0), key, Reasons::default());
            assert_eq!(waits, ms(expected));
        }
    }
    queue.forget(&"a");
    assert_eq!((queue.num_requeues(&"a"), queue.num_requeues(&"b")), (0, 3));
}

#[test]
fn an_unworked_key_is_put_back_with_its_payload() {
    let mut queue = Queue::default();
    queue.add_with(ms(0), "a", Reasons::from("first"), at(7));
    let work = queue.get(ms(10)).unwrap();
    queue.add(ms(10), "a", Reasons::from("second"));
    add_with(&mut queue, 10, "b", at(7));
    queue.requeue_unworked(ms(20), work);
    assert_eq!((queue.len(), get(&mut queue, 20)), (2, Some("b")));
    let work = queue.get(ms(30)).unwrap();
    assert_eq!((work.key, work.priority), ("a", 7));
    assert_eq!(work.waited, ms(20), "ten before and ten after");
    let reasons: Vec<_> = work.payload.iter().copied().collect();
    assert_eq!(reasons, ["first", "second"]);
}

#[test]
fn an_unworked_key_that_is_delayed_does_not_wait() {
    let mut queue = Queue::default();
    add(&mut queue, 0, "a");
    let work = queue.get(ms(0)).unwrap();
    add_with(&mut queue, 0, "a", after(1000));
    queue.requeue_unworked(ms(0), work);
    assert_eq!(queue.next_ready_at(), None);
    assert_eq!(drain(&mut queue, 0), ["a"]);
}

#[test]
fn an_unworked_key_does_not_hinder_the_drain() {
    let mut queue = Queue::default();
    add(&mut queue, 0, "a");
    let work = queue.get(ms(0)).unwrap();
    queue.shut_down();
    queue.requeue_unworked(ms(0), work);
    assert!(queue.is_drained());
}

#[test]
fn popped_keys_are_freed() {
    let held = std::sync::Arc::new(());
    let mut queue = Engine::<_, ()>::default();
    queue.add(ms(0), held.clone(), ());
    let work = queue.get(ms(0)).unwrap();
    queue.done(ms(0), work.ticket);
    drop(work.key);
    assert_eq!(std::sync::Arc::strong_count(&held), 1);
}

#[test]
fn an_empty_queue_gives_memory_back() {
    let mut queue = Engine::<u32, ()>::default();
    let big = |queue: &Engine<u32, ()>| queue.entries.capacity() > 4096;
    for key in 0..10_000 {
        queue.add(ms(0), key, ());
    }
    assert!(big(&queue));
    while let Some(work) = queue.get(ms(0)) {
        queue.done(ms(0), work.ticket);
    }
    assert!(!big(&queue));
    queue.add(ms(0), 7, ());
    assert_eq!(queue.get(ms(0)).unwrap().key, 7);
}

#[test]
fn a_snapshot_has_the_states_of_keys() {
    let mut queue = Queue::default();
    for key in ["worked", "low", "next"] {
        add(&mut queue, 0, key);
    }
    let _held = queue.get(ms(100)).unwrap();
    add_with(&mut queue, 100, "high", at(5));
    queue.add_rate_limited(ms(100), "failed", Reasons::default());
    add_with(&mut queue, 100, "worked", after(50));
    let snapshot = queue.snapshot(ms(102), 4);
    assert_eq!(
        (snapshot.ready, snapshot.delayed, snapshot.in_work),
        (3, 2, 1)
    );
    let line =
        |key: &KeyState<&'static str>| (key.key, key.state, key.priority, key.age, key.due_in);
    let lines: Vec<_> = snapshot.keys.iter().map(line).collect();
    let expected = [
        ("worked", WaitState::InWork, Some(0), ms(2), Some(ms(48))),
        ("high", WaitState::Ready, Some(5), ms(2), Some(ms(0))),
        ("low", WaitState::Ready, Some(0), ms(102), Some(ms(0))),
        ("next", WaitState::Ready, Some(0), ms(102), Some(ms(0))),
    ];
    assert_eq!(lines, expected);
    let all = queue.snapshot(ms(102), 100);
    let last = all.keys.last().unwrap();
    assert_eq!(
        (last.key, last.due_in, last.attempts),
        ("failed", Some(ms(3)), 1)
    );
    assert_eq!(all.keys.len(), 5);
}

#[test]
fn time_does_not_run_backwards() {
    let mut queue = Queue::default();
    add(&mut queue, 50, "a");
    add(&mut queue, 40, "b");
    let work = queue.get(ms(30)).unwrap();
    assert_eq!((work.key, work.waited), ("a", ms(0)));
    assert_eq!(take(&mut queue, 0), Some("b"));
}

/// Reasons that are dropped if another trigger has the key handed out early.
#[derive(Debug, PartialEq)]
struct EarlyDelivery(Vec<&'static str>);

impl Merge for EarlyDelivery {
    fn merge(&mut self, later: Self) {
        self.0.extend(later.0);
    }

    fn is_delivered_early(&self) -> bool {
        self.0 != ["later"]
    }
}

#[test]
fn a_reason_before_its_time_is_delivered_only_on_request() {
    let delivered = |adds: &[(&'static str, u64)], in_work: bool, at: u64| {
        let mut queue = Engine::<&str, EarlyDelivery>::default();
        queue.add(ms(0), "a", EarlyDelivery(vec!["first"]));
        let mut held = queue.get(ms(0));
        if let Some(work) = held.take_if(|_| !in_work) {
            queue.done(ms(0), work.ticket);
        }
        for (reason, delay) in adds {
            queue.add_with(ms(0), "a", EarlyDelivery(vec![reason]), after(*delay));
        }
        if let Some(work) = held {
            queue.done(ms(0), work.ticket);
        }
        queue.get(ms(at)).map(|work| work.payload.0)
    };
    for in_work in [false, true] {
        let delivered = |adds: &[_], at| delivered(adds, in_work, at).unwrap_or_default();
        assert_eq!(delivered(&[("later", 60), ("now", 0)], 0), ["now"]);
        assert_eq!(delivered(&[("now", 0), ("later", 60)], 0), ["now"]);
        assert_eq!(delivered(&[("later", 60), ("sooner", 30)], 30), ["sooner"]);
        assert_eq!(delivered(&[("other", 60), ("now", 0)], 0), ["other", "now"]);
        assert_eq!(
            delivered(&[("later", 60), ("then", 60)], 60),
            ["later", "then"]
        );
        assert_eq!(delivered(&[("later", 60)], 60), ["later"]);
    }
}

#[test]
fn unfinished_work_is_that_of_keys_in_work() {
    let mut queue = Queue::default();
    add(&mut queue, 0, "a");
    add(&mut queue, 0, "b");
    let first = queue.get(ms(1000)).unwrap();
    let _second = queue.get(ms(5000)).unwrap();
    assert_eq!(queue.stats(ms(10_000)).unfinished, ms(9000 + 5000));
    queue.done(ms(11_000), first.ticket);
    assert_eq!(queue.stats(ms(11_000)).unfinished, ms(6000));
}

#[test]
fn a_limiter_sees_the_time_of_each_failure() {
    let mut queue = Engine::<_, Reasons<&str>>::new(crate::QueueOptions {
        rate_limiter: Box::new(crate::TokenBucket::new(1.0, 1)),
        ..Default::default()
    });
    let mut fail = |now, key| queue.add_rate_limited(ms(now), key, Reasons::default());
    assert_eq!(fail(0, "a"), ms(0));
    assert_eq!(fail(0, "b"), ms(1000));
    assert_eq!(fail(60_000, "c"), ms(0), "the bucket is full again");
}

#[test]
fn nothing_becomes_ready_after_shut_down() {
    let mut queue = Queue::default();
    add_with(&mut queue, 0, "a", after(1000));
    queue.shut_down();
    assert_eq!(queue.next_ready_at(), None);
    assert!(queue.is_drained());
}

#[test]
fn failures_in_a_row_are_counted_apart_from_the_rate_limiter() {
    let mut queue = Engine::<&str, ()>::default();
    let now = Duration::ZERO;
    let failures = |queue: &mut Engine<&'static str, ()>| {
        queue.add(now, "a", ());
        let work = queue.get(now).unwrap();
        queue.done(now, work.ticket);
        work.failures
    };
    assert_eq!(failures(&mut queue), 0);
    assert_eq!(
        (queue.fail(&"a"), queue.fail(&"a"), queue.fail(&"b")),
        (1, 2, 1)
    );
    assert_eq!(failures(&mut queue), 2);
    assert_eq!(queue.num_requeues(&"a"), 0);
    queue.forget(&"a");
    assert_eq!(failures(&mut queue), 2);
    let stats = queue.stats(now);
    assert_eq!((stats.failing, stats.most_failures), (2, 2));
    queue.succeed(&"a");
    assert_eq!(failures(&mut queue), 0);
    let stats = queue.stats(now);
    assert_eq!((stats.failing, stats.most_failures), (1, 1));
}
