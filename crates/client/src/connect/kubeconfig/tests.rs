use super::*;

/// Writes files of this content, reads them as one kubeconfig, and returns their directory as well.
fn read_files(contents: &[&[u8]]) -> (PathBuf, Result<Kubeconfig, ConnectError>) {
    let directory = tempfile::tempdir().unwrap();
    let paths: Vec<PathBuf> = (0..contents.len())
        .map(|n| directory.path().join(format!("config-{n}")))
        .collect();
    for (path, content) in paths.iter().zip(contents) {
        std::fs::write(path, content).unwrap();
    }
    let config = read_all(&paths);
    (directory.path().to_owned(), config)
}

const CONFIG: &str = "
apiVersion: v1
kind: Config
current-context: 1234
contexts: [{name: 1234, context: {cluster: one, user: me, namespace: 7}}]
clusters:
- name: one
  cluster: {server: 'https://one', certificate-authority: ca.crt, insecure-skip-tls-verify: true}
  extensions: [{name: any, extension: {count: 1}}]
users:
- name: me
  user:
    client-key: /abs/key
    tokenFile: token
    exec: {command: bin/login, provideClusterInfo: true}
- name: other
  user: {token: yes, exec: {command: aws}}
";

#[test]
fn paths_are_relative_to_the_file_and_scalars_are_strings() {
    let (directory, config) = read_files(&[CONFIG.as_bytes()]);
    let config = config.unwrap();
    let inside = |name: &str| Some(directory.join(name).to_str().unwrap().to_owned());
    assert_eq!(config.current_context.as_deref(), Some("1234"));
    let context = config.contexts[0].context.as_ref().unwrap();
    assert_eq!(context.namespace.as_deref(), Some("7"));
    let cluster = config.clusters[0].cluster.as_ref().unwrap();
    assert_eq!(cluster.certificate_authority, inside("ca.crt"));
    assert_eq!(cluster.insecure_skip_tls_verify, Some(true));
    let me = config.auth_infos[0].auth_info.as_ref().unwrap();
    assert_eq!(me.client_key.as_deref(), Some("/abs/key"));
    assert_eq!(me.token_file, inside("token"));
    let exec = me.exec.as_ref().unwrap();
    assert_eq!(exec.command, inside("bin/login"));
    assert!(exec.provide_cluster_info);
    let other = config.auth_infos[1].auth_info.as_ref().unwrap();
    let command = other.exec.as_ref().unwrap().command.as_deref();
    assert_eq!(command, Some("aws"));
}

#[test]
fn the_first_file_that_sets_a_value_wins() {
    let first = "{current-context: a, clusters: [{name: one, cluster: {server: 'https://a'}}]}";
    let second = "{current-context: b, clusters: [{name: one, cluster: {server: 'https://b'}}, \
                  {name: two, cluster: {server: 'https://c'}}]}";
    let (_, config) = read_files(&[first.as_bytes(), second.as_bytes()]);
    let config = config.unwrap();
    assert_eq!(config.current_context.as_deref(), Some("a"));
    let clusters = config.clusters.iter();
    let servers: Vec<_> = clusters.map(|it| it.cluster.clone()?.server).collect();
    assert_eq!(
        servers,
        [Some("https://a".to_owned()), Some("https://c".to_owned())]
    );
}

#[test]
fn documents_of_one_file_are_merged() {
    let (_, config) = read_files(&[b"current-context: a\n---\ncurrent-context: b\n"]);
    assert_eq!(config.unwrap().current_context.as_deref(), Some("a"));
}

#[test]
fn text_is_decoded_by_its_byte_order_mark() {
    let units = "current-context: é".encode_utf16();
    let le: Vec<u8> = units.clone().flat_map(u16::to_le_bytes).collect();
    let be: Vec<u8> = units.flat_map(u16::to_be_bytes).collect();
    let utf8 = "current-context: é".as_bytes();
    for bytes in [
        [&[0xFF, 0xFE][..], &le].concat(),
        [&[0xFE, 0xFF][..], &be].concat(),
        [&[0xEF, 0xBB, 0xBF][..], utf8].concat(),
        utf8.to_vec(),
    ] {
        let (_, config) = read_files(&[&bytes]);
        assert_eq!(config.unwrap().current_context.as_deref(), Some("é"));
    }
    let (_, broken) = read_files(&[&[0xC3, 0x28]]);
    assert!(broken.unwrap_err().to_string().ends_with("it is not text"));
}

#[test]
fn an_entry_of_the_first_file_wins_as_a_whole() {
    let first = "{current-context: '', users: [{name: red, user: {username: a}}]}";
    let second = "{current-context: b, users: [{name: red, user: {token: t}}, {name: blue}]}";
    let (_, config) = read_files(&[first.as_bytes(), b"", second.as_bytes()]);
    let config = config.unwrap();
    // An empty text sets nothing.
    assert_eq!(config.current_context.as_deref(), Some("b"));
    assert_eq!(config.auth_infos.len(), 2);
    let red = config.auth_infos[0].auth_info.as_ref().unwrap();
    assert_eq!(red.username.as_deref(), Some("a"));
    assert!(red.token.is_none());
}

#[test]
fn paths_are_relative_to_the_file_that_has_them() {
    let root = tempfile::tempdir().unwrap();
    let mut paths = Vec::new();
    for name in ["one", "two"] {
        let folder = root.path().join(name);
        std::fs::create_dir(&folder).unwrap();
        let text = format!("{{users: [{{name: {name}, user: {{tokenFile: token}}}}]}}");
        std::fs::write(folder.join("config"), text).unwrap();
        paths.push(folder.join("config"));
    }
    let config = read_all(&paths).unwrap();
    let users = config.auth_infos.iter();
    let files: Vec<_> = users
        .map(|it| it.auth_info.clone().unwrap().token_file)
        .collect();
    let inside = |name: &str| root.path().join(name).to_str().map(str::to_owned);
    assert_eq!(files, [inside("one/token"), inside("two/token")]);
}

#[test]
fn files_of_a_list_may_be_missing_but_not_all() {
    let (directory, _) = read_files(&[]);
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("config");
    std::fs::write(&file, "current-context: a").unwrap();
    let gone = directory.join("gone");
    let config = read_all(&[gone.clone(), file]).unwrap();
    assert_eq!(config.current_context.as_deref(), Some("a"));
    let error = read_all(&[gone.clone(), gone.clone()]).unwrap_err();
    let gone = gone.display();
    assert_eq!(
        error.to_string(),
        format!("no file in KUBECONFIG exists: {gone}:{gone}")
    );
    // A directory exists, and cannot be read.
    let error = read_all(&[root.path().to_owned()]).unwrap_err();
    assert!(matches!(error, ConnectError::Read { .. }), "{error}");
}

#[test]
fn a_file_that_is_not_a_kubeconfig_is_named() {
    let check = |second: &str, expected: &str| {
        let (directory, config) = read_files(&[b"{}", second.as_bytes()]);
        let path = directory.join("config-1");
        assert_eq!(
            config.unwrap_err().to_string(),
            format!("cannot use the kubeconfig {}: {expected}", path.display())
        );
    };
    check(
        "{apiVersion: v1, kind: Pod}",
        "it is a Pod of v1, and not a Config of v1",
    );
    check(
        "{clusters: [{name: a}, {name: a}]}",
        r#"it has two clusters with the name "a""#,
    );
}
