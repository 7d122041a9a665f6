use super::{
    config_key, dns_label, header_name, path_segment, percentage, port_name, search_domain,
    variable_name, wildcard_subdomain,
};

#[track_caller]
fn check(rule: impl Fn(&str) -> Vec<String>, fine: &[&str], broken: &[(&str, usize)]) {
    for text in fine {
        assert!(rule(text).is_empty(), "{text:?}");
    }
    for (text, count) in broken {
        assert_eq!(rule(text).len(), *count, "{text:?}");
    }
}

#[test]
fn names_follow_their_rules() {
    let long = "a".repeat(64);
    check(dns_label, &["a", "a-1"], &[("", 1), ("A", 1), (&long, 1)]);
    assert_eq!(dns_label("a.b"), ["must not contain dots"]);
    check(
        wildcard_subdomain,
        &["*.example.com"],
        &[("*", 1), ("a.*.b", 1), ("*.A", 1)],
    );
    check(search_domain, &["_a.b_c", "x"], &[("a b", 1), ("-a", 1)]);
    check(
        path_segment,
        &["a", "A:b"],
        &[(".", 1), ("a/b", 1), ("a%/", 2)],
    );
}

#[test]
fn ports_have_a_letter_and_no_double_hyphen() {
    check(
        port_name,
        &["http", "a-1"],
        &[("", 2), ("80", 1), ("a--b", 1), ("-a", 1), ("A", 2)],
    );
}

#[test]
fn keys_variables_and_headers_have_their_characters() {
    check(
        config_key,
        &["a.b_c-D"],
        &[("", 1), ("a b", 1), ("..", 1), ("..a", 1)],
    );
    check(
        variable_name,
        &["A B", "1"],
        &[("", 1), ("a=b", 1), ("ä", 1)],
    );
    check(header_name, &["X-A"], &[("", 1), ("a b", 1)]);
}

#[test]
fn percentages_are_digits_and_a_sign() {
    assert_eq!(percentage("25%"), Some(25));
    for text in ["%", "25", "-1%", "1.5%"] {
        assert_eq!(percentage(text), None, "{text}");
    }
}
