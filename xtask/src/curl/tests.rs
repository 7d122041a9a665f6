use super::{kubeconfig, parse};

#[test]
fn a_response_is_parsed_from_curls_output() {
    let output =
        b"HTTP/1.1 201 Created\r\nWarning: 299 - \"a\"\r\nWarning: 299 - \"b\"\r\n\r\n{}\r\n\r\n";
    let reply = parse(output).unwrap();
    assert_eq!(reply.status(), 201);
    assert_eq!(reply.headers().get_all("warning").iter().count(), 2);
    assert_eq!(reply.body(), b"{}\r\n\r\n");
    assert!(parse(b"HTTP/1.1 200 OK").is_err());
}

#[test]
fn server_and_token_come_from_the_current_context() {
    let text = "current-context: b
contexts:
- {name: a, context: {cluster: x, user: x}}
- {name: b, context: {cluster: real, user: admin}}
clusters:
- {name: real, cluster: {server: \"https://10.0.0.1:6443/\"}}
users:
- {name: admin, user: {token: secret}}
";
    let found = kubeconfig(text).unwrap();
    assert_eq!(found.server, "https://10.0.0.1:6443");
    assert_eq!(found.token, "secret");
    assert!(kubeconfig(&text.replace("token", "exec")).is_err());
}
