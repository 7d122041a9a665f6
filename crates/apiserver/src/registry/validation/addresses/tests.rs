use serde_json::json;

use super::super::field::{Errors, Field};
use super::{Cidr, cidr, endpoint_ip, ip, parse_ip};

fn details(check: impl Fn(&Field<'_>, &mut Errors), text: &str) -> Vec<String> {
    let value = json!(text);
    let mut errors = Errors::default();
    check(&Field::new("f", &value), &mut errors);
    let details = errors.0.into_iter().map(|error| error.detail);
    details
        .map(|detail| detail.replace(&format!("Invalid value: {text:?}: "), ""))
        .collect()
}

#[test]
fn addresses_may_not_have_leading_zeros() {
    for fine in ["10.0.0.1", "::1", "2001:db8::1"] {
        assert!(details(ip, fine).is_empty(), "{fine}");
    }
    assert_eq!(details(ip, "010.0.0.1"), ["must not have leading 0s"]);
    let mapped = "must not be an IPv4-mapped IPv6 address";
    assert_eq!(details(ip, "::ffff:1.2.3.4"), [mapped]);
    assert!(details(ip, "1.2.3")[0].starts_with("must be a valid IP address"));
    assert!(parse_ip("1.2.3.256").is_none() && parse_ip("00.0.0.0").is_some());
}

#[test]
fn endpoints_are_not_local() {
    assert!(details(endpoint_ip, "10.0.0.1").is_empty());
    for local in [
        "127.0.0.1",
        "::1",
        "169.254.0.1",
        "fe80::1",
        "224.0.0.5",
        "ff02::1",
        "0.0.0.0",
    ] {
        assert_eq!(details(endpoint_ip, local).len(), 1, "{local}");
    }
}

#[test]
fn ranges_have_no_bits_beyond_their_prefix() {
    let parse = |field: &Field<'_>, errors: &mut Errors| {
        cidr(field, errors);
    };
    let check = |text: &str| details(parse, text);
    for fine in ["10.0.0.0/8", "0.0.0.0/0", "2001:db8::/64", "::/0"] {
        assert!(check(fine).is_empty(), "{fine}");
    }
    let beyond = "must not have bits set beyond the prefix length";
    assert_eq!(check("10.0.0.1/8"), [beyond]);
    let zeros = "must not have leading 0s in IP or prefix length";
    assert_eq!(check("10.0.0.0/08"), [zeros]);
    assert!(check("10.0.0.0/33")[0].starts_with("must be a valid CIDR value"));
}

#[test]
fn a_subset_is_smaller_than_the_range() {
    let range = |text: &str| Cidr::parse(text).unwrap();
    assert!(range("10.0.0.0/8").has_strict_subset(range("10.1.0.0/16")));
    assert!(!range("10.0.0.0/8").has_strict_subset(range("10.0.0.0/8")));
    assert!(!range("10.0.0.0/8").has_strict_subset(range("11.0.0.0/16")));
    assert!(!range("10.0.0.0/8").has_strict_subset(range("::/64")));
}
