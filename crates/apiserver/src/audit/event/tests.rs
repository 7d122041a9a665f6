use std::net::Ipv4Addr;

use super::*;

#[test]
fn source_addresses_are_those_of_the_proxies_and_of_the_client() {
    let client = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let mapped = IpAddr::V6(Ipv4Addr::LOCALHOST.to_ipv6_mapped());
    for (forwarded, real, source, expected) in [
        ("", "", None, ""),
        ("", "", Some(client), "127.0.0.1"),
        ("", "", Some(mapped), "127.0.0.1"),
        ("1.1.1.1, x, ::2", "", Some(client), "1.1.1.1 ::2 127.0.0.1"),
        ("1.1.1.1", "1.1.1.1", Some(client), "1.1.1.1 127.0.0.1"),
        (
            "1.1.1.1",
            "3.3.3.3",
            Some(client),
            "1.1.1.1 3.3.3.3 127.0.0.1",
        ),
        ("127.0.0.1", "", Some(client), "127.0.0.1"),
        (
            "127.0.0.1,1.1.1.1",
            "",
            Some(client),
            "127.0.0.1 1.1.1.1 127.0.0.1",
        ),
    ] {
        let request = http::Request::get("/")
            .header("x-forwarded-for", forwarded)
            .header("x-real-ip", real);
        let (parts, ()) = request.body(()).unwrap().into_parts();
        let found: Vec<String> = source_ips(&parts, source)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(found.join(" "), expected, "{forwarded:?} {real:?}");
    }
}

#[test]
fn a_long_user_agent_is_cut_off() {
    let agent = "a".repeat(USER_AGENT_MAX);
    assert_eq!(shortened(&agent), agent);
    assert_eq!(
        shortened(&format!("{agent}b")),
        format!("{agent}...TRUNCATED")
    );
}

#[test]
fn times_have_six_digits_after_the_point() {
    let time = Timestamp::from_millisecond(1_500).unwrap();
    assert_eq!(micro_time(time), "1970-01-01T00:00:01.500000Z");
}
