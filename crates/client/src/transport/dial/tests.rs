use super::*;

#[test]
fn the_credentials_of_a_proxy_are_unescaped() {
    let check = |proxy: &str, expected: Option<&str>| {
        let header = credentials(&proxy.parse().unwrap());
        let encoded = expected
            .map(|plain| base64::engine::general_purpose::STANDARD.encode(plain))
            .map(|encoded| format!("Basic {encoded}"));
        assert_eq!(
            header.as_ref().map(|header| header.to_str().unwrap()),
            encoded.as_deref()
        );
    };
    check("http://proxy:3128", None);
    check("http://user:pa%40ss@proxy:3128", Some("user:pa@ss"));
}

#[test]
fn an_unknown_proxy_is_refused_and_named_without_its_password() {
    let mut config = kube::Config::new("https://example.com".parse().unwrap());
    config.proxy_url = Some("gopher://me:secret@proxy:1".parse().unwrap());
    let error = crate::ClientOptions::default()
        .client(config)
        .err()
        .unwrap();
    let error = crate::one_line(&error);
    assert!(
        error.contains("the proxy gopher://proxy:1 is not"),
        "{error}"
    );
}

#[test]
fn a_socks_proxy_has_a_default_port() {
    let port = |proxy: &str| with_socks_port(&proxy.parse().unwrap()).map(|it| it.to_string());
    assert_eq!(
        port("socks5://me@proxy"),
        Some("socks5://proxy:1080/".to_owned())
    );
    assert_eq!(port("socks5://proxy:1081"), None);
}
