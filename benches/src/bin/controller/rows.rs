//! Figures of the queue and the controller, their peers and their limits.

use opkit_benches::rows::{Figure, Row, Unit, against, at_most};

const KUBE: &str = "kube-runtime 5.0.0";
const GO: &str = "controller-runtime 0.25.2";

/// Returns a row of a rate per second.
const fn per_second(
    name: &'static str,
    ours: &'static str,
    peer: (&'static str, &'static str),
    must: Option<f64>,
) -> Row {
    against(name, Unit::PerSecond, (ours, "per_second"), peer, must)
}

/// Returns a row of the smallest operator.
const fn smallest(name: &'static str, unit: Unit, field: &'static str, must: Option<f64>) -> Row {
    against(
        name,
        unit,
        ("ours smallest", field),
        (GO, "go smallest"),
        must,
    )
}

/// Returns a row of the rate of several replicas beside that of one that is elected.
const fn replicas(name: &'static str, ours: &'static str, must: Option<f64>) -> Row {
    let peer = ("one leader-elected replica", "ours shard elected");
    per_second(name, ours, peer, must)
}

/// Longest time without an owner after a crash: the duration of a Lease (15 s), with a clock that
/// is 10 % slow, and two retry periods (2 s each).
const TAKEOVER_SECONDS: f64 = 15.0 * 1.1 + 2.0 * 2.0;

/// All figures.
pub(crate) const ROWS: &[Row] = &[
    against(
        "queue: add, take, done, 50k keys in order",
        Unit::PerSecond,
        ("ours queue 50k", "per_second"),
        (KUBE, "kube queue 50k"),
        Some(2.0),
    )
    .stretch(4.0),
    against(
        "queue: add, take, done, 500k keys in order",
        Unit::PerSecond,
        ("ours queue 500k", "per_second"),
        (KUBE, "kube queue 500k"),
        Some(1.8),
    )
    .stretch(4.0),
    against(
        "queue: adds of 4 producers, 50k keys",
        Unit::PerSecond,
        ("ours queue 4 producers", "per_second"),
        (KUBE, "kube queue 4 producers"),
        Some(3.0),
    )
    .stretch(8.0),
    per_second(
        "no-op reconciles, by key",
        "ours dispatch",
        (KUBE, "kube dispatch"),
        Some(4.0),
    ),
    per_second(
        "no-op reconciles, by key",
        "ours dispatch",
        (GO, "go dispatch"),
        Some(3.0),
    ),
    against(
        "no-op reconciles, by key, of the first list",
        Unit::PerSecond,
        ("ours dispatch", "initial_per_second"),
        (KUBE, "kube dispatch"),
        None,
    ),
    against(
        "no-op reconciles, by key, of the first list",
        Unit::PerSecond,
        ("ours dispatch", "initial_per_second"),
        (GO, "go dispatch"),
        None,
    ),
    per_second(
        "no-op reconciles, with the object, typed store",
        "ours typed",
        (KUBE, "kube dispatch"),
        None,
    ),
    per_second(
        "no-op reconciles, with the object, compact",
        "ours object",
        (KUBE, "kube dispatch"),
        None,
    ),
    per_second(
        "reconciles that read a hot object",
        "ours read",
        (GO, "go read"),
        Some(8.0),
    ),
    per_second(
        "burst of changes, the object read in each",
        "ours burst",
        (KUBE, "kube burst"),
        Some(1.5),
    )
    .stretch(3.0),
    per_second(
        "burst of changes, the object read in each",
        "ours burst",
        (GO, "go burst"),
        Some(4.0),
    )
    .stretch(8.0),
    against(
        "from change to reconcile at 1k/s, p50",
        Unit::Microseconds,
        ("ours latency", "p50_us"),
        (KUBE, "kube latency"),
        Some(4.0),
    ),
    against(
        "from change to reconcile at 1k/s, p50",
        Unit::Microseconds,
        ("ours latency", "p50_us"),
        (GO, "go latency"),
        Some(2.0),
    ),
    against(
        "from change to reconcile at 1k/s, p99",
        Unit::Microseconds,
        ("ours latency", "p99_us"),
        (KUBE, "kube latency"),
        None,
    ),
    against(
        "from change to reconcile at 1k/s, p99",
        Unit::Microseconds,
        ("ours latency", "p99_us"),
        (GO, "go latency"),
        None,
    ),
    per_second(
        "2,000 reconciles in flight, answered one by one",
        "ours answers",
        (KUBE, "kube answers"),
        Some(4.0),
    ),
    per_second(
        "2,000 reconciles in flight, 5 ms each",
        "ours flight",
        (KUBE, "kube flight"),
        None,
    ),
    per_second(
        "2,000 reconciles in flight, 5 ms each",
        "ours flight",
        (GO, "go flight"),
        None,
    ),
    smallest(
        "smallest operator: first reconcile after",
        Unit::Milliseconds,
        "first_ms",
        Some(10.0),
    ),
    smallest(
        "smallest operator: memory when idle",
        Unit::Bytes,
        "idle_bytes",
        Some(3.0),
    ),
    at_most(
        "smallest operator: memory when idle",
        Unit::Bytes,
        "ours smallest",
        Figure::Field("idle_bytes"),
        10e6,
    ),
    smallest(
        "smallest operator: size, stripped",
        Unit::Bytes,
        "binary_bytes",
        None,
    ),
    at_most(
        "smallest operator: size, stripped",
        Unit::Bytes,
        "ours smallest",
        Figure::Field("binary_bytes"),
        12e6,
    ),
    replicas(
        "burst of 20,000, 5 ms each, two replicas sharded",
        "ours shard two",
        Some(1.8),
    ),
    replicas(
        "burst of 20,000, 5 ms each, three replicas sharded",
        "ours shard three",
        None,
    ),
    at_most(
        "memory per replica of three, of one unsharded",
        Unit::Ratio,
        "ours shard memory",
        Figure::Field("memory_share"),
        0.45,
    ),
    at_most(
        "from the death of a replica to the last object",
        Unit::Seconds,
        "ours shard memory",
        Figure::Field("takeover_seconds"),
        TAKEOVER_SECONDS,
    ),
];
