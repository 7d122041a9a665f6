use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::exemplar::CounterWithExemplar;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

use super::*;

fn text(registry: &Registry) -> String {
    let mut text = String::new();
    encode(&mut text, registry).unwrap();
    text
}

#[test]
fn prometheus_text_is_golden() {
    let mut registry = Registry::default();
    let counters = Family::<Vec<(&str, &str)>, Counter>::default();
    registry.register("requests", "Requests", counters.clone());
    counters
        .get_or_create(&vec![("path", "a # \"b\" \\")])
        .inc();
    let seconds: Counter = Counter::default();
    registry.register_with_unit("cpu", "Time", Unit::Seconds, seconds);
    let exemplar = CounterWithExemplar::<Vec<(String, String)>>::default();
    exemplar.inc_by(3, Some(vec![("trace".to_owned(), "t".to_owned())]), None);
    registry.register("traced", "With an exemplar", exemplar);
    let gauge: Gauge = Gauge::default();
    registry.register("depth", "Depth", gauge);
    let histogram = Histogram::new([0.5]);
    histogram.observe(0.25);
    registry.register("took_seconds", "Durations", histogram);
    let info = Info::new(vec![("version", "1")]);
    registry.register("build", "Build", info);
    let expected = "\
# HELP requests_total Requests.
# TYPE requests_total counter
requests_total{path=\"a # \\\"b\\\" \\\\\"} 1
# HELP cpu_seconds_total Time.
# TYPE cpu_seconds_total counter
cpu_seconds_total 0
# HELP traced_total With an exemplar.
# TYPE traced_total counter
traced_total 3
# HELP depth Depth.
# TYPE depth gauge
depth 0
# HELP took_seconds Durations.
# TYPE took_seconds histogram
took_seconds_sum 0.25
took_seconds_count 1
took_seconds_bucket{le=\"0.5\"} 1
took_seconds_bucket{le=\"+Inf\"} 1
# HELP build_info Build.
# TYPE build_info gauge
build_info{version=\"1\"} 1
";
    let openmetrics = text(&registry);
    assert!(
        openmetrics.contains("# UNIT cpu_seconds seconds\n"),
        "{openmetrics}"
    );
    assert!(openmetrics.contains(" # {trace=\"t\"} 3"), "{openmetrics}");
    assert_eq!(to_prometheus(&openmetrics), expected);
    assert_eq!(merge_families(openmetrics.clone()), openmetrics);
}

#[test]
fn an_unknown_type_is_untyped() {
    let openmetrics = "# HELP a A.\n# TYPE a unknown\na 1\n# TYPE b unknown\nb 2\n# EOF\n";
    let expected = "# HELP a A.\n# TYPE a untyped\na 1\n# TYPE b untyped\nb 2\n";
    assert_eq!(to_prometheus(openmetrics), expected);
}

#[test]
fn families_with_the_same_name_are_merged() {
    let mut registry = Registry::default();
    for (cluster, value) in [(None, 1), (Some("west"), 2), (Some("east"), 3)] {
        let registry = match cluster {
            Some(name) => registry.sub_registry_with_label(("cluster".into(), name.into())),
            None => &mut registry,
        };
        let gauge: Gauge = Gauge::default();
        gauge.set(value);
        registry.register("objects", "Objects", gauge);
        let gauge: Gauge = Gauge::default();
        registry.register("bytes", "Bytes", gauge);
    }
    let expected = "\
# HELP objects Objects.
# TYPE objects gauge
objects 1
objects{cluster=\"west\"} 2
objects{cluster=\"east\"} 3
# HELP bytes Bytes.
# TYPE bytes gauge
bytes 0
bytes{cluster=\"west\"} 0
bytes{cluster=\"east\"} 0
# EOF
";
    assert_eq!(merge_families(text(&registry)), expected);
}

/// Checks escapes: a line feed in a help text would make all metrics unreadable.
#[test]
fn a_help_text_is_escaped() {
    let mut registry = Registry::default();
    let orders: Counter = Counter::default();
    let help = "Orders \\d of \"all\"\n# kinds\n\nand colours";
    registry.register("orders", help, orders);
    let depth: Gauge = Gauge::default();
    registry.register("depth", "Depth", depth);
    let expected = "\
# HELP orders Orders \\\\d of \\\"all\\\"\\n# kinds\\n\\nand colours.
# TYPE orders counter
orders_total 0
# HELP depth Depth.
# TYPE depth gauge
depth 0
# EOF
";
    let openmetrics = merge_families(text(&registry));
    assert_eq!(openmetrics, expected);
    let expected = "\
# HELP orders_total Orders \\\\d of \"all\"\\n# kinds\\n\\nand colours.
# TYPE orders_total counter
orders_total 0
# HELP depth Depth.
# TYPE depth gauge
depth 0
";
    assert_eq!(to_prometheus(&openmetrics), expected);
}
