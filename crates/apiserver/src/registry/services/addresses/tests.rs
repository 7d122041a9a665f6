use super::*;

fn range(text: &str) -> AddressRange {
    text.parse().unwrap()
}

#[test]
fn the_network_and_broadcast_addresses_are_not_used() {
    let small = range("10.0.0.9/29");
    assert_eq!(small.to_string(), "10.0.0.8/29");
    assert_eq!(small.first().to_string(), "10.0.0.9");
    for (address, is_in) in [
        ("10.0.0.8", false),
        ("10.0.0.9", true),
        ("10.0.0.14", true),
        ("10.0.0.15", false),
        ("fd00::9", false),
    ] {
        assert_eq!(small.contains(address.parse().unwrap()), is_in, "{address}");
    }
    assert!(range("fd00::/112").contains("fd00::ffff".parse().unwrap()));
}

#[test]
fn every_address_is_a_candidate_once_and_the_upper_part_comes_first() {
    for random in [0, 1, 77, u64::MAX] {
        let all: Vec<IpAddr> = range("10.0.0.0/24").candidates(random).collect();
        let mut sorted = all.clone();
        sorted.sort();
        sorted.dedup();
        assert_eq!(sorted.len(), 254);
        // 254 / 16 = 15, but at least 16 addresses are kept.
        let upper: IpAddr = "10.0.0.17".parse().unwrap();
        assert!(all.iter().take(238).all(|address| *address >= upper));
        assert!(all.iter().skip(238).all(|address| *address < upper));
    }
}

#[test]
fn ranges_of_other_sizes_are_refused() {
    for text in [
        "10.0.0.0",
        "10.0.0/24",
        "10.0.0.0/8",
        "10.0.0.0/31",
        "fd00::/48",
        "10.0.0.0/x",
    ] {
        assert!(text.parse::<AddressRange>().is_err(), "{text}");
    }
}
