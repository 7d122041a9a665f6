//! The figures of the queue, what they are compared with, and what they must be.

use opkit_benches::rows::{Row, Unit, against};

const KUBE: &str = "kube-runtime 5.0.0";

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
];
