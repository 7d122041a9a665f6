//! Behaviour tested by client-go's `metrics_test.go` and by the metric tests of
//! controller-runtime's queue.

use std::time::Duration;

use super::*;
use crate::{AddOptions, Queue, QueueOptions};

fn named(provider: &MetricsProvider, name: &str) -> Queue<u32, ()> {
    Queue::new(QueueOptions {
        metrics: Some(provider.queue(name)),
        ..QueueOptions::default()
    })
}

fn setup() -> (Registry, MetricsProvider, Queue<u32, ()>) {
    let (mut registry, provider) = (Registry::default(), MetricsProvider::default());
    provider.register(&mut registry);
    let queue = named(&provider, "robot");
    (registry, provider, queue)
}

fn text(registry: &Registry) -> String {
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, registry).unwrap();
    text
}

/// Returns the value of the line that starts with `metric`.
fn value(registry: &Registry, metric: &str) -> Option<f64> {
    let text = text(registry);
    let line = text.lines().find_map(|line| line.strip_prefix(metric))?;
    Some(line.trim().parse().unwrap())
}

const LABELS: &str = r#"{name="robot",controller="robot"}"#;

#[track_caller]
fn check(registry: &Registry, expected: &[(&str, f64)]) {
    for (metric, expected) in expected {
        let found = value(registry, &format!("{metric}{LABELS}"));
        assert_eq!(found, Some(*expected), "{metric}\n{}", text(registry));
    }
}

fn depth(registry: &Registry, priority: &str) -> Option<f64> {
    let labels = format!(r#"{{name="robot",controller="robot",priority="{priority}"}}"#);
    value(registry, &format!("workqueue_depth{labels}"))
}

fn at(priority: i32, millis: u64) -> AddOptions {
    AddOptions {
        priority: Some(priority),
        after: Duration::from_millis(millis),
        rate_limited: false,
    }
}

async fn advance(millis: u64) {
    tokio::time::advance(Duration::from_millis(millis)).await;
}

#[tokio::test(start_paused = true)]
async fn one_key_is_followed_through_the_queue() {
    let (registry, _provider, queue) = setup();
    check(&registry, &[("workqueue_adds_total", 0.0)]);
    queue.add(1, ());
    queue.add(1, ());
    check(&registry, &[("workqueue_adds_total", 1.0)]);
    assert_eq!(depth(&registry, "0"), Some(1.0));
    advance(2000).await;
    check(
        &registry,
        &[("opkit_workqueue_oldest_key_age_seconds", 2.0)],
    );
    let item = queue.get().await.unwrap();
    assert_eq!(depth(&registry, "0"), Some(0.0));
    check(
        &registry,
        &[
            ("workqueue_queue_duration_seconds_count", 1.0),
            ("workqueue_queue_duration_seconds_sum", 2.0),
            ("opkit_workqueue_oldest_key_age_seconds", 0.0),
        ],
    );
    // Added while in work: counted once, and its waiting time starts now.
    queue.add(1, ());
    queue.add(1, ());
    check(&registry, &[("workqueue_adds_total", 2.0)]);
    advance(3000).await;
    check(
        &registry,
        &[
            ("workqueue_unfinished_work_seconds", 3.0),
            ("workqueue_longest_running_processor_seconds", 3.0),
            ("workqueue_work_duration_seconds_count", 0.0),
        ],
    );
    drop(item);
    assert_eq!(depth(&registry, "0"), Some(1.0));
    advance(1000).await;
    drop(queue.get().await);
    check(
        &registry,
        &[
            ("workqueue_queue_duration_seconds_count", 2.0),
            ("workqueue_queue_duration_seconds_sum", 6.0),
            ("workqueue_work_duration_seconds_count", 2.0),
            ("workqueue_work_duration_seconds_sum", 3.0),
            ("workqueue_unfinished_work_seconds", 0.0),
            ("workqueue_longest_running_processor_seconds", 0.0),
            ("workqueue_retries_total", 0.0),
        ],
    );
}

#[tokio::test(start_paused = true)]
async fn unfinished_work_is_that_of_all_workers() {
    let (registry, _provider, queue) = setup();
    queue.add(1, ());
    queue.add(2, ());
    let first = queue.get().await;
    advance(2000).await;
    let _second = queue.get().await;
    advance(1000).await;
    check(
        &registry,
        &[
            ("workqueue_unfinished_work_seconds", 4.0),
            ("workqueue_longest_running_processor_seconds", 3.0),
        ],
    );
    drop(first);
    check(
        &registry,
        &[
            ("workqueue_unfinished_work_seconds", 1.0),
            ("workqueue_longest_running_processor_seconds", 1.0),
        ],
    );
}

#[tokio::test(start_paused = true)]
async fn delayed_keys_are_retries_and_count_once_they_are_ready() {
    let (registry, _provider, queue) = setup();
    queue.add_with(1, (), at(0, 10));
    queue.add_rate_limited(2, ());
    assert_eq!(depth(&registry, "0"), None);
    check(
        &registry,
        &[
            ("workqueue_retries_total", 2.0),
            ("workqueue_adds_total", 0.0),
        ],
    );
    advance(10).await;
    assert_eq!((queue.len(), depth(&registry, "0")), (2, Some(2.0)));
    check(&registry, &[("workqueue_adds_total", 2.0)]);
    // Added again without a delay after it became ready: nothing changes.
    queue.add(1, ());
    check(&registry, &[("workqueue_adds_total", 2.0)]);
}

#[tokio::test(start_paused = true)]
async fn a_delayed_key_that_is_added_at_once_counts_at_once() {
    for (priority, label) in [(0, "0"), (9, "9")] {
        let (registry, _provider, queue) = setup();
        queue.add_with(1, (), at(0, 3_600_000));
        assert_eq!((queue.len(), depth(&registry, label)), (0, None));
        queue.add_with(1, (), at(priority, 0));
        assert_eq!((queue.len(), depth(&registry, label)), (1, Some(1.0)));
        drop(queue.get().await);
        assert_eq!((queue.len(), depth(&registry, label)), (0, Some(0.0)));
    }
}

#[tokio::test(start_paused = true)]
async fn the_depth_moves_with_the_priority() {
    let (registry, _provider, queue) = setup();
    queue.add_with(1, (), at(-100, 0));
    assert_eq!(depth(&registry, "-100"), Some(1.0));
    queue.add(1, ());
    assert_eq!(depth(&registry, "-100"), Some(0.0));
    assert_eq!(depth(&registry, "0"), Some(1.0));
}

#[tokio::test(start_paused = true)]
async fn the_label_for_priorities_has_a_bound() {
    let (registry, _provider, queue) = setup();
    for key in 0..30 {
        queue.add_with(key, (), at(key as i32, 0));
    }
    assert_eq!(depth(&registry, "0"), Some(1.0));
    assert_eq!(depth(&registry, "24"), Some(1.0));
    assert_eq!(depth(&registry, "25"), None);
    assert_eq!(depth(&registry, "exceeded_cardinality_limit"), Some(5.0));
    for _ in 0..30 {
        drop(queue.get().await);
    }
    assert_eq!(depth(&registry, "24"), Some(0.0));
    let lines = text(&registry);
    let lines = lines
        .lines()
        .filter(|line| line.starts_with("workqueue_depth{"));
    assert!(lines.count() <= 26);
}

#[tokio::test(start_paused = true)]
async fn queues_share_their_families() {
    let (registry, provider, queue) = setup();
    let other = named(&provider, "other");
    queue.add(1, ());
    other.add(1, ());
    other.add(2, ());
    let all = text(&registry);
    assert_eq!(all.matches("# TYPE workqueue_adds counter").count(), 1);
    assert!(all.contains(r#"workqueue_adds_total{name="other",controller="other"} 2"#));
    drop(other);
    assert!(!text(&registry).contains("other"));
    // A queue with the name of an earlier one replaces it.
    let again = named(&provider, "robot");
    check(&registry, &[("workqueue_adds_total", 0.0)]);
    drop(again);
}

#[tokio::test(start_paused = true)]
async fn a_shut_down_queue_is_still_reported() {
    let (registry, _provider, queue) = setup();
    queue.add(1, ());
    let _held = queue.get().await.unwrap();
    queue.shut_down();
    advance(1000).await;
    check(&registry, &[("workqueue_unfinished_work_seconds", 1.0)]);
}

#[test]
fn buckets_are_client_gos() {
    let buckets = Histogram::default().buckets();
    let bounds: Vec<_> = buckets.iter().map(|(bound, _)| *bound).collect();
    assert_eq!((bounds.len(), bounds[0], bounds[11]), (13, 1e-8, 1e3));
}

/// Without that bucket Prometheus computes no quantiles, and strict parsers reject the whole
/// scrape.
#[tokio::test(start_paused = true)]
async fn the_last_bucket_is_the_infinite_one() {
    let (registry, _provider, queue) = setup();
    queue.add(1, ());
    drop(queue.get().await.unwrap());
    for metric in ["queue_duration", "work_duration"] {
        let bucket = format!("workqueue_{metric}_seconds_bucket{{le=\"+Inf\"");
        let labels = r#",name="robot",controller="robot"}"#;
        let found = value(&registry, &format!("{bucket}{labels}"));
        assert_eq!(found, Some(1.0), "{}", text(&registry));
    }
}

#[tokio::test(start_paused = true)]
async fn failures_in_a_row_are_shown_until_a_success() {
    let (registry, _provider, queue) = setup();
    let failing = |keys: f64, most: f64| {
        check(
            &registry,
            &[
                ("opkit_workqueue_failing_keys", keys),
                ("opkit_workqueue_failures_max", most),
            ],
        );
    };
    failing(0.0, 0.0);
    for key in [1, 1, 1, 2] {
        queue.fail(&key);
    }
    failing(2.0, 3.0);
    queue.add(1, ());
    queue.get().await.unwrap().forget();
    failing(1.0, 1.0);
}
