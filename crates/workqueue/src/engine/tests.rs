//! client-go's behaviour list: `queue_test.go`, `delaying_queue_test.go`,
//! `default_rate_limiters_test.go`, and `priorityqueue_test.go` where that one differs.

use super::*;
use crate::Reasons;

type Queue = Engine<&'static str, Reasons<&'static str>>;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn add(queue: &mut Queue, at: u64, key: &'static str) {
    queue.add(ms(at), key, Reasons::from("added"));
}

fn get(queue: &mut Queue, at: u64) -> Option<&'static str> {
    queue.get(ms(at)).map(|(key, _)| key)
}

#[test]
fn a_key_added_often_is_handed_out_once() {
    let mut queue = Queue::default();
    for _ in 0..3 {
        add(&mut queue, 0, "a");
    }
    assert_eq!(
        (queue.len(), get(&mut queue, 0), get(&mut queue, 0)),
        (1, Some("a"), None)
    );
}

#[test]
fn keys_leave_in_order_of_arrival() {
    let mut queue = Queue::default();
    for key in ["c", "a", "b", "a"] {
        add(&mut queue, 0, key);
    }
    let order: Vec<_> = std::iter::from_fn(|| get(&mut queue, 0)).collect();
    assert_eq!(order, ["c", "a", "b"]);
}

#[test]
fn a_key_in_work_is_queued_once_when_done() {
    let mut queue = Queue::default();
    add(&mut queue, 0, "a");
    assert_eq!(get(&mut queue, 0), Some("a"));
    add(&mut queue, 0, "a");
    add(&mut queue, 0, "a");
    assert_eq!((queue.len(), get(&mut queue, 0)), (0, None));
    queue.done(ms(0), &"a");
    assert_eq!((queue.len(), get(&mut queue, 0)), (1, Some("a")));
    queue.done(ms(0), &"a");
    assert_eq!(get(&mut queue, 0), None);
}

#[test]
fn merged_reasons_survive() {
    let mut queue = Queue::default();
    queue.add_after(ms(0), "a", Reasons::from("retry"), ms(50));
    queue.add(ms(0), "a", Reasons::from("changed"));
    queue.add_after(ms(0), "a", Reasons::from("requeue"), ms(9));
    let (_, reasons) = queue.get(ms(0)).unwrap();
    assert_eq!(
        reasons.iter().copied().collect::<Vec<_>>(),
        ["retry", "changed", "requeue"]
    );
}

#[test]
fn after_shut_down_adds_are_ignored_and_the_rest_comes_out() {
    let mut queue = Queue::default();
    add(&mut queue, 0, "a");
    add(&mut queue, 0, "b");
    queue.add_after(ms(0), "later", Reasons::default(), ms(1));
    queue.shut_down();
    add(&mut queue, 0, "c");
    queue.add_after(ms(0), "c", Reasons::default(), ms(1));
    assert_eq!(get(&mut queue, 9), Some("a"));
    assert_eq!(get(&mut queue, 9), Some("b"));
    assert_eq!(get(&mut queue, 9), None);
    assert!(!queue.is_drained());
    queue.done(ms(9), &"a");
    queue.done(ms(9), &"b");
    assert!(queue.is_drained());
}

#[test]
fn a_dirty_key_is_drained_too() {
    let mut queue = Queue::default();
    add(&mut queue, 0, "a");
    get(&mut queue, 0);
    add(&mut queue, 0, "a");
    queue.shut_down();
    queue.done(ms(0), &"a");
    assert!(!queue.is_drained());
    assert_eq!(get(&mut queue, 0), Some("a"));
    queue.done(ms(0), &"a");
    assert!(queue.is_drained());
}

#[test]
fn a_delayed_key_is_invisible_before_its_time() {
    let mut queue = Queue::default();
    queue.add_after(ms(0), "a", Reasons::default(), ms(50));
    assert_eq!(queue.next_ready_at(), Some(ms(50)));
    assert_eq!(
        (queue.len(), get(&mut queue, 49), get(&mut queue, 50)),
        (0, None, Some("a"))
    );
    assert_eq!(queue.next_ready_at(), None);
}

#[test]
fn the_earlier_delay_wins_in_either_order() {
    for (delays, out) in [([50, 70], 50), ([50, 30], 30)] {
        let mut queue = Queue::default();
        for delay in delays {
            queue.add_after(ms(0), "a", Reasons::default(), ms(delay));
        }
        assert_eq!(get(&mut queue, out - 1), None);
        assert_eq!(get(&mut queue, out), Some("a"));
        queue.done(ms(out), &"a");
        assert_eq!(get(&mut queue, 200), None, "one delivery only");
    }
}

#[test]
fn due_keys_leave_in_order_of_their_times() {
    let mut queue = Queue::default();
    for (key, delay) in [("a", 300), ("b", 100), ("c", 200), ("d", 100)] {
        queue.add_after(ms(0), key, Reasons::default(), ms(delay));
    }
    let order: Vec<_> = std::iter::from_fn(|| get(&mut queue, 1000)).collect();
    assert_eq!(order, ["b", "d", "c", "a"]);
}

#[test]
fn a_delay_that_ends_during_work_queues_the_key_again() {
    let mut queue = Queue::default();
    add(&mut queue, 0, "a");
    get(&mut queue, 0);
    queue.add_after(ms(0), "a", Reasons::default(), ms(10));
    assert_eq!(get(&mut queue, 20), None);
    queue.done(ms(20), &"a");
    assert_eq!(get(&mut queue, 20), Some("a"));
}

#[test]
fn a_zero_delay_adds_at_once() {
    let mut queue = Queue::default();
    queue.add_after(ms(0), "a", Reasons::default(), Duration::ZERO);
    assert_eq!(queue.len(), 1);
}

#[test]
fn failures_double_per_key_and_forget_resets() {
    let mut queue = Queue::new(Backoff {
        base: ms(1),
        max: ms(1000),
    });
    for expected in [1, 2, 4, 8, 16] {
        assert_eq!(
            queue.add_rate_limited(ms(0), "a", Reasons::default()),
            ms(expected)
        );
    }
    assert_eq!(queue.num_requeues(&"a"), 5);
    assert_eq!(
        queue.add_rate_limited(ms(0), "b", Reasons::default()),
        ms(1)
    );
    queue.forget(&"a");
    assert_eq!(queue.num_requeues(&"a"), 0);
    assert_eq!(
        queue.add_rate_limited(ms(0), "a", Reasons::default()),
        ms(1)
    );
}

#[test]
fn the_backoff_does_not_overflow() {
    let short = Backoff {
        base: ms(1),
        max: Duration::from_secs(1000),
    };
    assert_eq!(short.delay(5), ms(32));
    assert_eq!(short.delay(u32::MAX), Duration::from_secs(1000));
    let long = Backoff {
        base: Duration::from_secs(60),
        max: Duration::from_secs(1000 * 3600),
    };
    assert_eq!(long.delay(2), Duration::from_secs(240));
    assert_eq!(long.delay(500), Duration::from_secs(1000 * 3600));
}

#[test]
fn the_default_backoff_is_controller_runtimes() {
    let backoff = Backoff::default();
    for (failure, expected) in [(0, 5), (14, 81_920), (17, 655_360), (18, 1_000_000)] {
        assert_eq!(backoff.delay(failure), ms(expected));
    }
}

#[test]
fn popped_keys_are_not_kept() {
    let mut queue = Queue::default();
    add(&mut queue, 0, "a");
    get(&mut queue, 0);
    queue.done(ms(0), &"a");
    assert!(queue.waiting.is_empty() && queue.in_work.is_empty() && queue.ready.is_empty());
}
