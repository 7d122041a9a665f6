use super::*;

/// Returns the sorted lines of the metrics that start with `name`.
fn lines(registry: &MetricsRegistry, name: &str) -> Vec<String> {
    let text = registry.encode();
    let lines = text.lines().filter(|line| line.starts_with(name));
    let mut lines: Vec<_> = lines.map(str::to_owned).collect();
    lines.sort();
    lines
}

#[test]
fn each_combination_of_label_values_has_its_own_number() {
    let registry = MetricsRegistry::default();
    let backups = Counter::new("backups", "Backups", ["engine", "result"]);
    registry.register(&backups);
    let elsewhere = backups.clone();
    elsewhere.with(["postgres", "ok"]).inc();
    backups.with(["postgres", "ok"]).inc_by(2);
    backups.with(["mysql", "failed"]).inc();
    assert_eq!(
        lines(&registry, "backups"),
        [
            r#"backups_total{engine="mysql",result="failed"} 1"#,
            r#"backups_total{engine="postgres",result="ok"} 3"#,
        ]
    );
}

#[test]
fn metrics_without_labels_work() {
    let registry = MetricsRegistry::default();
    let (counter, gauge) = (Counter::new("c", "C", []), Gauge::new("g", "G", []));
    registry.register(&counter);
    registry.register(&gauge);
    counter.with([]).inc();
    gauge.with([]).set(0.5);
    assert_eq!(lines(&registry, "c"), ["c_total{} 1"]);
    assert_eq!(lines(&registry, "g"), ["g{} 0.5"]);
}

#[test]
fn a_histogram_has_the_given_buckets() {
    let registry = MetricsRegistry::default();
    let sizes = Histogram::with_buckets("size_bytes", "Sizes", ["kind"], [10.0, 100.0]);
    registry.register(&sizes);
    sizes.with(["small"]).observe(5.0);
    sizes.with(["small"]).observe(50.0);
    assert_eq!(
        lines(&registry, "size_bytes_bucket"),
        [
            r#"size_bytes_bucket{le="+Inf",kind="small"} 2"#,
            r#"size_bytes_bucket{le="10.0",kind="small"} 1"#,
            r#"size_bytes_bucket{le="100.0",kind="small"} 2"#,
        ]
    );
}

#[test]
fn names_and_label_values_are_valid_for_prometheus() {
    let registry = MetricsRegistry::default();
    let counter = Counter::new("2 database-backups", "With a \"quote\"", ["final engine"]);
    registry.register(&counter);
    counter.with(["a \"b\"\n\\c"]).inc();
    assert_eq!(
        lines(&registry, "__database"),
        [r#"__database_backups_total{final_engine="a \"b\"\n\\c"} 1"#]
    );
}
