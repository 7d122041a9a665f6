//! Figures of the webhook servers, and their limits.

use opkit_benches::rows::{Row, Unit, against};

const PEER: (&str, &str) = ("controller-runtime 0.25.2", "controller-runtime");

/// Returns a row of the measurement.
const fn row(name: &'static str, unit: Unit, field: &'static str) -> Row {
    against(name, unit, ("ours", field), PEER, Some(3.0))
}

/// All figures.
pub(crate) const ROWS: &[Row] = &[
    row(
        "defaulting and validating a Pod, p50",
        Unit::Microseconds,
        "p50_us",
    ),
    row(
        "defaulting and validating a Pod, p99",
        Unit::Microseconds,
        "p99_us",
    ),
    row(
        "reviews of Pods, 16 connections, one core",
        Unit::PerSecond,
        "requests_per_second",
    ),
    row(
        "conversion of 5k objects",
        Unit::Milliseconds,
        "conversion_ms",
    ),
    row("memory when ready", Unit::Bytes, "idle_bytes"),
    row("memory after the load", Unit::Bytes, "memory_bytes"),
];
