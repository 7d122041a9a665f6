#[test]
fn formats_accept_and_reject() {
    fn check(format: &str, good: &[&str], bad: &[&str]) {
        for text in good {
            assert_eq!(super::matches(format, text), Some(true), "{format} {text}");
        }
        for text in bad {
            assert_eq!(super::matches(format, text), Some(false), "{format} {text}");
        }
    }
    check("byte", &["YQ==", "YWJj"], &["", "a", "YQ=a"]);
    check(
        "cidr",
        &["10.0.0.0/8", "fe80::/10"],
        &["10.0.0.0", "10.0.0.0/33", "x/8", "::/129"],
    );
    check(
        "creditcard",
        &["4111 1111 1111 1111"],
        &["4111 1111 1111 1112", "1"],
    );
    check(
        "date",
        &["2024-02-29"],
        &["2023-02-29", "2024-2-9", "24-02-09"],
    );
    check(
        "date-time",
        &["2024-02-29T10:00:00Z", "2024-02-29t10:00:00.5+02:00"],
        &[
            "2024-02-29",
            "2024-02-29T24:00:00Z",
            "2024-02-29T10:00:00",
            "now",
        ],
    );
    check(
        "datetime",
        &["2024-02-29T10:00:00Z"],
        &["2024-02-29 10:00:00Z"],
    );
    check(
        "duration",
        &["1h30m", "-1.5s", "2 days", "10 weeks", "0"],
        &["", "ten", "3 x"],
    );
    check(
        "email",
        &["a@b.c", "Ann <a@b.c>"],
        &["a", "a@", "@b", "a b@c"],
    );
    check("hexcolor", &["#fff", "00aaFF"], &["#ff", "red"]);
    check(
        "hostname",
        &["a", "a-b.example.com"],
        &["-a", "a..b", "a_b", "a.b.c1"],
    );
    check(
        "ipv4",
        &["10.0.0.1", "010.0.0.1"],
        &["10.0.0", "10.0.0.256", "::1"],
    );
    check("ipv6", &["::1", "fe80::1"], &["10.0.0.1", "g::"]);
    check(
        "isbn",
        &["0321751043", "978-0321751041"],
        &["0321751044", "1"],
    );
    check("k8s-short-name", &["a", "a-b"], &["A", "-a", "a.b", ""]);
    check("k8s-long-name", &["a", "a-b.c"], &["A", "a..b", ""]);
    check(
        "mac",
        &["01:02:03:04:05:ab", "0102.0304.05ab"],
        &["01:02", "01:02:03:04:05:xx"],
    );
    check("password", &[""], &[]);
    check("rgbcolor", &["rgb(1, 2, 255)"], &["rgb(1,2,256)", "red"]);
    check("ssn", &["111-22-3333"], &["111-22-33"]);
    check("uri", &["http://a/b", "/a", "urn:x"], &["a", "", "a b"]);
    check(
        "uuid",
        &["12345678-1234-1234-1234-1234567890AB"],
        &["12345678", "x"],
    );
    check(
        "uuid4",
        &["12345678-1234-4234-9234-1234567890ab"],
        &["12345678-1234-1234-1234-1234567890ab"],
    );
    assert_eq!(super::matches("int32", "x"), None);
}
