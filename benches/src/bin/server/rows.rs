//! Figures of the server, of the real one, and their limits.

use opkit_benches::rows::{Figure, Row, Unit, against, at_most};

const REAL: &str = "kube-apiserver 1.36.3 + etcd";

/// Returns a row of the measurement with ConfigMaps.
const fn config_maps(
    name: &'static str,
    unit: Unit,
    field: &'static str,
    must: Option<f64>,
) -> Row {
    against(
        name,
        unit,
        ("ours config maps", field),
        (REAL, "real config maps"),
        must,
    )
}

/// Returns a row of the measurement with Pods.
const fn pods(name: &'static str, unit: Unit, field: &'static str, must: Option<f64>) -> Row {
    against(name, unit, ("ours pods", field), (REAL, "real pods"), must)
}

/// All figures.
pub(crate) const ROWS: &[Row] = &[
    config_maps(
        "creates, ConfigMaps, 16 connections",
        Unit::PerSecond,
        "creates_per_second",
        Some(4.0),
    )
    .stretch(10.0),
    pods(
        "creates, Pods, 16 connections",
        Unit::PerSecond,
        "creates_per_second",
        Some(4.0),
    )
    .stretch(10.0),
    config_maps(
        "gets, ConfigMaps, 16 connections",
        Unit::PerSecond,
        "gets_per_second",
        Some(4.0),
    )
    .stretch(10.0),
    config_maps(
        "list of 20k ConfigMaps, JSON",
        Unit::Milliseconds,
        "json_ms",
        Some(1.5),
    )
    .stretch(5.0),
    config_maps(
        "list of 20k ConfigMaps, protobuf",
        Unit::Milliseconds,
        "protobuf_ms",
        Some(1.5),
    )
    .stretch(5.0),
    config_maps(
        "list of 20k ConfigMaps, protobuf, first",
        Unit::Milliseconds,
        "protobuf_first_ms",
        None,
    ),
    config_maps(
        "list of 20k ConfigMaps, JSON, gzip",
        Unit::Milliseconds,
        "gzip_ms",
        None,
    ),
    config_maps(
        "list of 20k ConfigMaps, JSON, gzip, length",
        Unit::Bytes,
        "gzip_bytes",
        None,
    ),
    config_maps(
        "list of 20k ConfigMaps, JSON, pages of 500",
        Unit::Milliseconds,
        "pages_ms",
        None,
    ),
    pods(
        "list of 5k Pods, JSON",
        Unit::Milliseconds,
        "json_ms",
        Some(1.5),
    )
    .stretch(5.0),
    pods(
        "list of 5k Pods, protobuf",
        Unit::Milliseconds,
        "protobuf_ms",
        Some(1.5),
    )
    .stretch(5.0),
    pods(
        "list of 5k Pods, protobuf, first",
        Unit::Milliseconds,
        "protobuf_first_ms",
        None,
    ),
    pods(
        "list of 5k Pods, JSON, gzip",
        Unit::Milliseconds,
        "gzip_ms",
        None,
    ),
    // Pods run on the embedded server: its list is longer than that of the real one.
    pods(
        "list of 5k Pods, JSON, length",
        Unit::Bytes,
        "json_bytes",
        None,
    ),
    config_maps(
        "memory after 20k ConfigMaps of 1 KB",
        Unit::Bytes,
        "memory_bytes",
        Some(4.0),
    )
    .stretch(10.0),
    config_maps(
        "memory after the lists of them",
        Unit::Bytes,
        "memory_after_reads_bytes",
        None,
    ),
    pods(
        "memory after 5k Pods",
        Unit::Bytes,
        "memory_bytes",
        Some(4.0),
    )
    .stretch(10.0),
    at_most(
        "memory when idle",
        Unit::Bytes,
        "ours idle",
        Figure::Field("idle_bytes"),
        20e6,
    ),
    against(
        "memory when idle",
        Unit::Bytes,
        ("ours idle", "idle_bytes"),
        (REAL, "real idle"),
        None,
    ),
    at_most(
        "ready as a process after",
        Unit::Milliseconds,
        "ours idle",
        Figure::Field("ready_ms"),
        100.0,
    ),
];
