use super::*;

fn canonical(text: &str) -> String {
    Quantity::parse(text).map_or("none".to_owned(), |quantity| quantity.to_string())
}

/// Canonical forms that kube-apiserver 1.36.3 stores in a LimitRange.
#[test]
fn the_canonical_form() {
    let table = [
        ("0", "0"),
        ("0.0", "0"),
        ("1", "1"),
        ("1000m", "1"),
        ("1.5", "1500m"),
        ("0.1", "100m"),
        (".5", "500m"),
        ("1000", "1k"),
        ("1500", "1500"),
        ("100", "100"),
        ("1024", "1024"),
        ("1000000", "1M"),
        ("1Gi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("0.5Gi", "512Mi"),
        ("1024Mi", "1Gi"),
        ("1023Ki", "1023Ki"),
        ("0.5Ki", "512"),
        ("1e3", "1e3"),
        ("1000e0", "1e3"),
        ("1.2e2", "120"),
        ("1000000u", "1"),
    ];
    for (text, want) in table {
        assert_eq!(canonical(text), want, "{text}");
    }
}

/// The server stores some of these as they were sent, and has another rule for the smallest CPU.
#[test]
fn other_forms_are_parsed() {
    for (text, want) in [
        ("1.", "1"),
        ("+1", "1"),
        ("007", "7"),
        ("12E6", "12e6"),
        ("0.1n", "1n"),
    ] {
        assert_eq!(canonical(text), want, "{text}");
    }
}

#[test]
fn invalid_quantities_are_rejected() {
    for text in [
        "",
        "-",
        "m",
        ".",
        "1.2.3",
        "1 ",
        "1kb",
        "1ki",
        "1e",
        "1e1.5",
        "true",
        "nginx:1.27",
        "1.27.3",
        "1e400",
        "999999999999999999999999999999999999E",
    ] {
        assert_eq!(Quantity::parse(text), None, "{text}");
    }
}

#[test]
fn equal_numbers_are_equal_quantities() {
    for (a, b) in [
        ("1000m", "1"),
        ("1Ki", "1024"),
        ("-0.5", "-500m"),
        ("1e3", "1k"),
    ] {
        assert_eq!(Quantity::parse(a), Quantity::parse(b), "{a} {b}");
    }
    assert_ne!(Quantity::parse("1M"), Quantity::parse("1Mi"));
}

fn quantity(text: &str) -> Quantity {
    text.parse().unwrap()
}

#[test]
fn quantities_have_an_order() {
    let ascending = [
        "-1", "0", "1n", "999m", "1", "1.5", "1k", "1Ki", "1e9", "1Gi",
    ];
    for pair in ascending.windows(2) {
        assert!(quantity(pair[0]) < quantity(pair[1]), "{pair:?}");
    }
    assert_eq!(
        quantity("1Gi").cmp(&quantity("1024Mi")),
        std::cmp::Ordering::Equal
    );
    assert_eq!(
        [quantity("2"), quantity("1500m")].iter().min(),
        Some(&quantity("1.5"))
    );
}

/// The results, and their forms, are those of Kubernetes' `Add` and `Sub`.
#[test]
fn arithmetic_is_exact_and_keeps_the_form() {
    let add = [
        ("1Gi", "512Mi", "1536Mi"),
        ("1Gi", "1G", "2073741824"),
        ("1G", "1Gi", "2073741824"),
        ("0", "1Gi", "1Gi"),
        ("100m", "200m", "300m"),
        ("0.1", "0.2", "300m"),
        ("1n", "1", "1000000001n"),
        ("1e3", "1", "1001"),
        ("1e3", "9k", "10e3"),
    ];
    for (one, other, sum) in add {
        assert_eq!(
            (quantity(one) + quantity(other)).to_string(),
            sum,
            "{one} + {other}"
        );
        let difference = quantity(sum) - quantity(other);
        assert_eq!(difference, quantity(one), "{sum} - {other}");
    }
    assert_eq!((quantity("1Gi") - quantity("2Gi")).to_string(), "-1Gi");
    assert_eq!((quantity("250m") * 4).to_string(), "1");
    assert_eq!((-quantity("1Gi")).to_string(), "-1Gi");
    let sum: Quantity = ["1Gi", "1Gi", "1Mi"].map(quantity).into_iter().sum();
    assert_eq!(sum.to_string(), "2049Mi");
    let mut grown = quantity("1");
    grown += quantity("500m");
    grown -= quantity("1");
    assert_eq!(grown.to_string(), "500m");
    assert!(Quantity::default().is_zero());
}

#[test]
fn overflow_returns_none_or_saturates() {
    let large = quantity("1e28") * 16;
    assert_eq!(large.checked_add(large), None);
    assert_eq!((-large).checked_sub(large), None);
    assert_eq!(large.checked_mul(i64::MAX), None);
    assert!(large + large >= large);
    assert_eq!(
        quantity("1").checked_add(quantity("1")),
        Some(quantity("2"))
    );
    assert_eq!(large.value(), None);
}

#[test]
fn numbers_are_converted() {
    let table = [
        ("1.5Gi", 1_610_612_736),
        ("1500m", 2),
        ("-1500m", -2),
        ("1n", 1),
        ("0", 0),
    ];
    for (text, value) in table {
        assert_eq!(quantity(text).value(), Some(value), "{text}");
    }
    assert_eq!(quantity("1.5").milli_value(), Some(1500));
    assert_eq!(Quantity::from_milli(250).to_string(), "250m");
    assert_eq!(Quantity::from_bytes(1 << 30).to_string(), "1Gi");
    assert_eq!(Quantity::from(1000).to_string(), "1k");
}

#[test]
fn quantities_are_text_or_numbers_in_objects() {
    let read = |json: &str| serde_json::from_str::<Quantity>(json).map(|it| it.to_string());
    for (json, text) in [
        (r#""1024Mi""#, "1Gi"),
        ("3", "3"),
        ("0.5", "500m"),
        ("-1", "-1"),
    ] {
        assert_eq!(read(json).unwrap(), text);
    }
    let error = read(r#""much""#).unwrap_err().to_string();
    assert!(error.contains(r#""much" is not a quantity"#), "{error}");
    assert!(read("{}").is_err());
    assert_eq!(serde_json::to_string(&quantity("1000m")).unwrap(), r#""1""#);
    let schema = schemars::schema_for!(Quantity);
    assert_eq!(schema.get("x-kubernetes-int-or-string"), Some(&true.into()));
    let pattern = schema.get("pattern").and_then(|it| it.as_str()).unwrap();
    let pattern = regex::Regex::new(pattern).unwrap();
    for text in ["1", "1.5Gi", "-500m", ".5", "1e3", "100u"] {
        assert!(pattern.is_match(text), "{text}");
    }
    assert!(!pattern.is_match("much"));
}
