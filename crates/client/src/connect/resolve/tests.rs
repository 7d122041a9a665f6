use std::time::Duration;

use kube::config::Kubeconfig;

use super::*;

const CONFIG: &str = "
current-context: dev
contexts:
- {name: dev, context: {cluster: one, user: me, namespace: fleet}}
- {name: prod, context: {cluster: two, user: robot}}
- {name: lost, context: {cluster: gone, user: nobody}}
clusters:
- {name: one, cluster: {server: 'https://one:6443', tls-server-name: kubernetes, insecure-skip-tls-verify: true}}
- {name: two, cluster: {server: 'https://two', proxy-url: 'socks5h://proxy:1080'}}
users:
- {name: me, user: {token: secret}}
- {name: robot, user: {tokenFile: /token, as: jane, as-groups: [staff]}}
";

/// Resolves [`CONFIG`] with a selection.
fn resolved(change: impl FnOnce(&mut ClusterSelection)) -> Result<Config, String> {
    resolve_text(CONFIG, &selection(change))
}

fn selection(change: impl FnOnce(&mut ClusterSelection)) -> ClusterSelection {
    let mut selection = ClusterSelection::default();
    change(&mut selection);
    selection
}

fn resolve_text(text: &str, selection: &ClusterSelection) -> Result<Config, String> {
    let kubeconfig: Kubeconfig = serde_saphyr::from_str(text).unwrap();
    let config = select(kubeconfig, selection).and_then(|(parts, _)| resolve(parts, selection));
    config.map_err(|error| error.to_string())
}

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

/// Returns the token, which kube keeps secret.
fn token(config: &Config) -> Option<String> {
    let user = serde_json::to_value(&config.auth_info).unwrap();
    user["token"].as_str().map(str::to_owned)
}

#[test]
fn the_current_context_is_used() {
    let config = resolved(|_| ()).unwrap();
    assert_eq!(config.cluster_url, "https://one:6443/");
    assert_eq!(config.default_namespace, "fleet");
    assert_eq!(config.tls_server_name, some("kubernetes"));
    assert!(config.accept_invalid_certs);
    assert_eq!(token(&config), some("secret"));
}

#[test]
fn names_of_contexts_clusters_and_users_are_selected() {
    let config = resolved(|it| it.context = some("prod")).unwrap();
    assert_eq!(config.cluster_url, "https://two/");
    assert_eq!(config.default_namespace, "default");
    assert_eq!(config.auth_info.impersonate, some("jane"));
    // The proxy resolves names for `socks5` as well.
    assert_eq!(config.proxy_url.unwrap(), "socks5://proxy:1080/");

    let config = resolved(|it| it.cluster = some("two")).unwrap();
    assert_eq!(config.cluster_url, "https://two/");
    assert_eq!(config.default_namespace, "fleet");
    let config = resolved(|it| it.user = some("robot")).unwrap();
    assert_eq!(config.cluster_url, "https://one:6443/");
    assert_eq!(config.auth_info.token_file, some("/token"));
}

#[test]
fn an_unknown_name_is_reported_with_the_known_ones() {
    for (selection, expected) in [
        (
            resolved(|it| it.context = some("x")),
            r#"there is no context "x" (--context); the contexts are dev, prod, lost"#,
        ),
        (
            resolved(|it| it.cluster = some("x")),
            r#"there is no cluster "x" (--cluster); the clusters are one, two"#,
        ),
        (
            resolved(|it| it.user = some("x")),
            r#"there is no user "x" (--user); the users are me, robot"#,
        ),
        (
            resolved(|it| it.context = some("lost")),
            r#"there is no cluster "gone"; the clusters are one, two"#,
        ),
    ] {
        assert_eq!(selection.unwrap_err(), expected);
    }
    let none = ClusterSelection::default();
    let check = |text: &str, expected: &str| {
        assert_eq!(resolve_text(text, &none).unwrap_err(), expected);
    };
    check(
        "{current-context: x}",
        r#"there is no context "x"; it has no contexts"#,
    );
    check(
        "{current-context: '', contexts: [{name: a, context: {cluster: b}}]}",
        "it sets no current-context: choose one with --context; the only context is a",
    );
    check(
        "{current-context: a, contexts: [{name: a, context: {cluster: b}}], clusters: [{name: b, cluster: {}}]}",
        r#"the cluster "b" has no server"#,
    );
}

#[test]
fn a_server_clears_the_tls_server_name() {
    let config = resolved(|it| it.server = some("https://three")).unwrap();
    assert_eq!(config.cluster_url, "https://three/");
    assert_eq!(config.tls_server_name, None);
    assert_eq!(token(&config), some("secret"));
    let config = resolved(|it| it.tls_server_name = some("other")).unwrap();
    assert_eq!(config.cluster_url, "https://one:6443/");
    assert_eq!(config.tls_server_name, some("other"));
}

#[test]
fn flags_alone_select_a_server() {
    let mut selection = selection(|it| it.server = some("localhost:8080"));
    let url = |selection: &ClusterSelection| resolve_text("{}", selection).unwrap().cluster_url;
    assert_eq!(url(&selection), "http://localhost:8080/");
    selection.insecure_skip_tls_verify = true;
    assert_eq!(url(&selection), "https://localhost:8080/");
    selection.server = some("https://a b");
    let error = resolve_text("{}", &selection).unwrap_err();
    assert_eq!(
        error,
        r#""https://a b" is not a valid URL of the API server"#
    );
}

#[test]
fn a_certificate_authority_turns_verification_on() {
    let signed = rcgen::generate_simple_self_signed(vec!["a".to_owned()]).unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), signed.cert.pem()).unwrap();
    let path = Some(file.path().to_owned());
    let config = resolved(|it| it.certificate_authority = path.clone()).unwrap();
    assert!(!config.accept_invalid_certs);
    assert_eq!(config.root_cert.unwrap(), [signed.cert.der().to_vec()]);
    assert_eq!(config.root_cert_file, path);
    // And the other way round.
    let with_authority = CONFIG.replace(
        "insecure-skip-tls-verify: true",
        "certificate-authority: /gone",
    );
    let mut selection = ClusterSelection::default();
    let error = resolve_text(&with_authority, &selection).unwrap_err();
    assert!(
        error.starts_with("cannot read the certificate authority /gone: "),
        "{error}"
    );
    selection.insecure_skip_tls_verify = true;
    let config = resolve_text(&with_authority, &selection).unwrap();
    assert!(config.accept_invalid_certs && config.root_cert.is_none());
    std::fs::write(file.path(), "no PEM").unwrap();
    let error = resolved(|it| it.certificate_authority = path).unwrap_err();
    assert_eq!(error, "the certificate authority has no certificate in PEM");
}

#[test]
fn credentials_of_flags_replace_those_of_the_kubeconfig() {
    let config = resolved(|it| {
        it.token = some("other");
        it.user = some("robot");
    });
    let config = config.unwrap();
    assert_eq!(token(&config), some("other"));
    assert_eq!(config.auth_info.token_file, None);
    assert_eq!(config.auth_info.impersonate, some("jane"));
    let config = resolved(|it| {
        it.client_certificate = Some("/tls.crt".into());
        it.client_key = Some("/tls.key".into());
    });
    let user = config.unwrap().auth_info;
    assert_eq!(user.client_certificate, some("/tls.crt"));
    assert_eq!(user.client_key, some("/tls.key"));
    let error = resolved(|it| it.client_certificate = Some("/tls.crt".into())).unwrap_err();
    assert_eq!(
        error,
        r#"the client certificate of the user "me" has no key (--client-key)"#
    );
    let both = CONFIG.replace("{token: secret}", "{username: me, password: secret}");
    let selection = selection(|it| it.token = some("other"));
    let error = resolve_text(&both, &selection).unwrap_err();
    assert_eq!(
        error,
        r#"it has a token and a password for the user "me"; only one is allowed"#
    );
}

#[test]
fn impersonation_needs_a_user() {
    let config = resolved(|it| {
        it.impersonate_user = some("ann");
        it.impersonate_groups = vec!["a".to_owned(), "b".to_owned()];
        it.impersonate_uid = some("7");
    });
    let user = config.unwrap().auth_info;
    assert_eq!(user.impersonate, some("ann"));
    assert_eq!(
        user.impersonate_groups.unwrap(),
        ["a".to_owned(), "b".to_owned()]
    );
    assert_eq!(user.impersonate_uid, some("7"));
    let error = resolved(|it| it.impersonate_groups = vec!["a".to_owned()]).unwrap_err();
    assert_eq!(
        error,
        "a group, UID or extra field to impersonate needs a user (--as)"
    );
}

#[test]
fn credentials_are_not_sent_without_tls() {
    let config = resolved(|it| {
        it.server = some("http://one");
        it.impersonate_user = some("ann");
    });
    let config = config.unwrap();
    assert_eq!(token(&config), None);
    assert_eq!(config.auth_info.impersonate, some("ann"));
}

#[test]
fn a_kubeconfig_for_another_process_has_the_flags() {
    let mut selection = selection(|it| {
        it.context = some("prod");
        it.impersonate_user = some("ann");
        it.server = some("https://three");
        it.request_timeout = Some(Duration::from_secs(1));
    });
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), CONFIG).unwrap();
    selection.kubeconfig = Some(file.path().to_owned());
    let text = selection.kubeconfig().unwrap();
    let config = resolve_text(&text, &ClusterSelection::default()).unwrap();
    assert_eq!(config.cluster_url, "https://three/");
    assert_eq!(config.auth_info.impersonate, some("ann"));
    assert_eq!(config.auth_info.token_file, some("/token"));
    assert_eq!(config.proxy_url.unwrap(), "socks5://proxy:1080/");
}
