use super::*;

/// Kinds and the output of flect 1.0.3 for each, lower-cased as kubebuilder does. Its output for
/// acronyms in upper case, such as `dnsDNSes` for DNS, is not a name, and is left out.
const EXPECTED: &str = include_str!("kubebuilder.txt");

#[test]
fn plurals_are_those_of_kubebuilder() {
    let rows: Vec<_> = EXPECTED
        .lines()
        .filter_map(|line| line.split_once(' '))
        .collect();
    assert!(rows.len() > 150, "{}", rows.len());
    for (kind, expected) in rows {
        assert_eq!(plural(kind), expected, "{kind}");
    }
}

#[test]
fn an_acronym_stays_a_name() {
    assert_eq!(plural("DNS"), "dns");
}

#[test]
fn regular_plurals_are_those_of_the_macro() {
    for (kind, expected) in [
        ("Demo", "demos"),
        ("Policy", "policies"),
        ("Bus", "buses"),
        ("Day", "days"),
    ] {
        assert_eq!(regular(kind), expected);
    }
}
