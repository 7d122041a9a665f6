use super::*;

fn parse(arguments: &[&str]) -> Result<Arguments, clap::Error> {
    let all = std::iter::once("robot-operator").chain(arguments.iter().copied());
    let line = CommandLine::new("robot-operator", &[]).unwrap();
    line.parse(all.map(Into::into))
        .map(|(arguments, _)| arguments)
}

fn parsed(arguments: &[&str]) -> Arguments {
    parse(arguments).unwrap()
}

#[test]
fn flags_are_accepted_before_and_after_the_command() {
    for arguments in [["--kubeconfig=/a", "run"], ["run", "--kubeconfig=/a"]] {
        let parsed = parsed(&arguments);
        assert_eq!(parsed.command, Some(Command::Run));
        assert_eq!(parsed.flags.kubeconfig.unwrap().to_str(), Some("/a"));
    }
    assert_eq!(parsed(&[]).command, None);
}

#[test]
fn namespaces_are_separated_by_commas() {
    let flags = parsed(&["--namespace", "a, b,", "--namespace", "c"]).flags;
    assert_eq!(flags.namespace, ["a", " b", "", "c"]);
}

#[test]
fn a_file_for_an_address_needs_an_address() {
    assert!(parse(&["--debug-address-file", "/a"]).is_err());
    let both = [
        "--debug-bind-address=127.0.0.1:0",
        "run",
        "--debug-address-file=/a",
    ];
    assert!(parse(&both).is_ok(), "also on either side of the command");
}

#[test]
fn addresses_are_as_in_go() {
    let check = |text: &str, expected: Option<&str>| {
        let address = bind_address(text).unwrap().0;
        assert_eq!(
            address.map(|address| address.to_string()).as_deref(),
            expected
        );
    };
    check("0", None);
    check("", None);
    // Every address of both families: a pod may have only one of them.
    check(":8443", Some("[::]:8443"));
    check("0.0.0.0:8443", Some("0.0.0.0:8443"));
    check("127.0.0.1:0", Some("127.0.0.1:0"));
    check("localhost:80", Some("127.0.0.1:80"));
    check("[::1]:80", Some("[::1]:80"));
    for wrong in ["8080", ":x", "a:b:c"] {
        assert_eq!(
            bind_address(wrong).unwrap_err(),
            "it must be 0, :PORT or ADDRESS:PORT"
        );
    }
}

#[test]
fn the_value_of_a_switch_is_optional() {
    let check = |arguments: &[&str], expected: Option<bool>| {
        assert_eq!(parsed(arguments).flags.leader_elect, expected);
    };
    check(&[], None);
    check(&["--leader-elect"], Some(true));
    check(&["--leader-elect=false"], Some(false));
    check(&["--leader-elect", "run"], Some(true));
}

#[test]
fn hosts_and_names_of_webhooks_are_checked() {
    let flags = parsed(&[
        "--webhook-host",
        "127.0.0.1,maps.example",
        "--webhook-host=::1",
    ])
    .flags;
    assert_eq!(flags.webhook_host, ["127.0.0.1", "maps.example", "::1"]);
    for wrong in [
        ["--webhook-host", "https://maps"],
        ["--webhook-secret", "Upper"],
        ["--webhook-configuration-prefix", "a/b"],
    ] {
        let error = parse(&wrong).unwrap_err().to_string();
        assert!(
            error.contains(wrong[1]) && error.contains(wrong[0]),
            "{error}"
        );
    }
}

#[test]
fn http2_is_off_by_default() {
    use crate::operator::RunOptions;
    assert!(!RunOptions::from(parsed(&[]).flags).enable_http2);
    assert!(RunOptions::from(parsed(&["--enable-http2"]).flags).enable_http2);
}

#[tokio::test]
async fn a_kubeconfig_and_a_context_select_the_cluster() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let text = "{current-context: a, \
                contexts: [{name: a, context: {cluster: a}}, {name: b, context: {cluster: b}}], \
                clusters: [{name: a, cluster: {server: 'https://a'}}, \
                           {name: b, cluster: {server: 'https://b'}}]}";
    std::fs::write(file.path(), text).unwrap();
    let path = format!("--kubeconfig={}", file.path().display());
    for (flag, expected) in [("--context=a", Ok("https://a/")), ("--context=x", Err(()))] {
        let flags = parsed(&[&path, "run", flag]).flags;
        let cluster = flags.connect(ClientOptions::default()).await;
        match expected {
            Ok(server) => assert_eq!(cluster.unwrap().server, server),
            Err(()) => {
                let error = cluster.unwrap_err().to_string();
                let expected = r#"there is no context "x" (--context); the contexts are a, b"#;
                assert!(error.ends_with(expected), "{error}");
            }
        }
    }
}
