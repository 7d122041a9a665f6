use super::*;

fn canonical(text: &str) -> String {
    Quantity::parse(text).map_or("none".to_owned(), |quantity| quantity.to_string())
}

/// What kube-apiserver 1.36.3 makes of them in a LimitRange.
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

/// The server leaves some of these as they were sent, and has its own mind on the smallest CPU.
#[test]
fn other_forms_are_read() {
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
fn what_is_no_quantity() {
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
