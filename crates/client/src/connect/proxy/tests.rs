use super::*;

fn environment(no_proxy: &str) -> Environment {
    Environment {
        http_proxy: "plain:3128".to_owned(),
        https_proxy: "http://secure:3128".to_owned(),
        no_proxy: no_proxy.to_owned(),
        is_cgi: false,
    }
}

fn proxy(environment: &Environment, server: &str) -> Option<String> {
    let proxy = environment.proxy_of(&server.parse().unwrap()).unwrap();
    proxy.map(|proxy| proxy.to_string())
}

#[test]
fn the_scheme_of_the_server_selects_the_proxy() {
    let all = environment("");
    let check = |server: &str, expected: Option<&str>| {
        assert_eq!(proxy(&all, server).as_deref(), expected, "{server}");
    };
    check("https://example.com", Some("http://secure:3128/"));
    check("http://example.com", Some("http://plain:3128/"));
    check("https://10.0.0.1:6443", Some("http://secure:3128/"));
    // This machine is never reached through a proxy.
    check("https://localhost:6443", None);
    check("https://127.0.0.2:6443", None);
    check("https://[::1]:6443", None);
    let cgi = Environment {
        is_cgi: true,
        ..environment("")
    };
    assert_eq!(proxy(&cgi, "http://example.com"), None);
    assert_eq!(proxy(&Environment::default(), "https://example.com"), None);
}

/// The cases are those of Go's `httpproxy` package.
#[test]
fn the_hosts_of_no_proxy_are_reached_directly() {
    let check = |no_proxy: &str, server: &str, is_direct: bool| {
        let found = proxy(&environment(no_proxy), server);
        assert_eq!(found.is_none(), is_direct, "{no_proxy} {server}");
    };
    check("*", "https://example.com", true);
    check("example.com", "https://example.com", true);
    check("example.com", "https://EXAMPLE.com", true);
    check("example.com", "https://api.example.com", true);
    check("example.com", "https://notexample.com", false);
    check(".example.com", "https://api.example.com", true);
    check(".example.com", "https://example.com", false);
    check("*.example.com", "https://api.example.com", true);
    check("*.example.com", "https://example.com", false);
    check("example.com:443", "https://example.com", true);
    check("example.com:6443", "https://example.com", false);
    check("a, ,b,example.com,", "https://example.com", true);
    check("10.0.0.0/8", "https://10.96.0.1", true);
    check("10.0.0.0/8", "https://11.0.0.1", false);
    check("0.0.0.0/0", "https://11.0.0.1", true);
    check("10.0.0.0/33", "https://10.0.0.1", false);
    check("10.0.0.1", "https://10.0.0.1:6443", true);
    check("10.0.0.1:443", "https://10.0.0.1:6443", false);
    check("fd00::/8", "https://[fd00::1]:6443", true);
    check("::/0", "https://[fd00::1]:6443", true);
    check("fd00::1", "https://[fd00::1]:6443", true);
    check("[fd00::1]:6443", "https://[fd00::1]:6443", true);
    check("fd00::/8", "https://10.0.0.1", false);
    check("0.1", "https://10.0.0.1", false);
    check(":443,/,/8,x/y", "https://10.0.0.1", false);
}

#[test]
fn a_proxy_that_is_not_valid_is_named_without_its_password() {
    let check = |url: &str, expected: &str| {
        assert_eq!(parse(url).unwrap_err().to_string(), expected);
    };
    check(
        "gopher://me:secret@proxy:70",
        r#"the proxy "gopher://proxy:70" is not supported: its URL must start with http, https or socks5"#,
    );
    check(
        "http://me:secret@pro xy",
        r#""http://pro xy" is not a valid URL of a proxy"#,
    );
    check(
        "me:secret@proxy:1",
        r#""proxy:1" is not a valid URL of a proxy"#,
    );
    assert_eq!(parse("socks5h://p:1").unwrap(), "socks5://p:1/");
}
