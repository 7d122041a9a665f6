use super::*;

#[test]
fn samples_are_parsed() {
    let check = |line: &str, name: &str, labels: &[(&str, &str)], value: f64| {
        let labels = labels
            .iter()
            .map(|(name, value)| (*name, (*value).to_owned()));
        let labels = labels.collect();
        let expected = Sample {
            name,
            labels,
            value,
        };
        assert_eq!(Sample::parse(line), Some(expected));
    };
    check("orders_total 7", "orders_total", &[], 7.0);
    check("orders_total{} 7", "orders_total", &[], 7.0);
    check("a{b=\"c\"} 1.5", "a", &[("b", "c")], 1.5);
    check(
        "a{b=\"c\",d=\"e\"} 1e3 1700",
        "a",
        &[("b", "c"), ("d", "e")],
        1000.0,
    );
    let odd = r#"a{b="} \"x\",\\\n",le="+Inf"} +Inf"#;
    check(
        odd,
        "a",
        &[("b", "} \"x\",\\\n"), ("le", "+Inf")],
        f64::INFINITY,
    );
}

#[test]
fn other_lines_are_ignored() {
    for line in [
        "",
        "# HELP a b",
        "# TYPE a counter",
        "a",
        "a{b=\"c\" 1",
        "a{b} 1",
        "a x",
    ] {
        assert_eq!(Sample::parse(line), None, "{line}");
    }
}
