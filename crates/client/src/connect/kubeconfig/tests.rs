use std::path::PathBuf;

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
    let config = read(paths.iter().map(PathBuf::as_path));
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
