use super::*;

#[test]
fn a_request_timeout_has_gos_format() {
    let check = |text: &str, expected: Option<f64>| {
        let parsed = request_timeout(text).ok();
        assert_eq!(parsed.map(|it| it.as_secs_f64()), expected, "{text}");
    };
    check("0", Some(0.0));
    check("30", Some(30.0));
    check("30s", Some(30.0));
    check("2m", Some(120.0));
    check("1h30m", Some(5400.0));
    check("1.5s", Some(1.5));
    check("250ms", Some(0.25));
    for text in [
        "",
        "s",
        "-1",
        "-1s",
        "1d",
        "1s2",
        "1.2.3s",
        "99999999999999999999h",
    ] {
        check(text, None);
    }
}

#[test]
fn the_token_is_not_in_the_debug_text() {
    let args = ClusterArgs {
        token: Some("secret".to_owned()),
        ..ClusterArgs::default()
    };
    assert!(!format!("{args:?}").contains("secret"));
}
