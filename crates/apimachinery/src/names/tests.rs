use super::*;

#[test]
fn labels_and_subdomains_are_those_of_rfc_1123() {
    let check = |text: &str, is_label: bool, is_subdomain: bool| {
        assert_eq!(check_dns_label(text).is_ok(), is_label, "{text:?}");
        assert_eq!(check_dns_subdomain(text).is_ok(), is_subdomain, "{text:?}");
    };
    check("a", true, true);
    check("my-operator1", true, true);
    check("a.b-c.d", false, true);
    for text in [
        "",
        "-a",
        "a-",
        "A",
        "a b",
        "a/b",
        "a..b",
        ".a",
        "a.",
        "ä",
        "My Operator",
    ] {
        check(text, false, false);
    }
    check(&"a".repeat(63), true, true);
    check(&"a".repeat(64), false, true);
    check(&"a".repeat(253), false, true);
    check(&"a".repeat(254), false, false);
}

#[test]
fn finalizers_have_a_domain() {
    let check = |text: &str, expected: Option<&str>| match expected {
        None => assert_eq!(check_finalizer(text), Ok(())),
        Some(expected) => {
            let error = check_finalizer(text).unwrap_err();
            assert!(error.contains(expected), "{text:?}: {error}");
        }
    };
    check("example.com/clean_up.1", None);
    check("cleanup", Some("must have a domain"));
    check("/cleanup", Some("prefix part must be non-empty"));
    check("example.com/", Some("name part must be non-empty"));
    check("Example.com/a", Some("prefix part"));
    check("example.com/a/b", Some("optional DNS subdomain prefix"));
    check("example.com/a b", Some("name part must consist of"));
}

#[test]
fn field_managers_are_short_and_printable() {
    assert_eq!(check_field_manager("shop-operator.shop"), Ok(()));
    assert_eq!(check_field_manager(&"x".repeat(128)), Ok(()));
    assert!(check_field_manager(&"x".repeat(129)).is_err());
    assert!(check_field_manager("a\nb").is_err());
    assert!(check_field_manager("").is_err());
}
