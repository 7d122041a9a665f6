use opkit_apiserver::AuthorizationMode;

use super::*;

fn flags(arguments: &[&str]) -> Flags {
    match FLAGS
        .parse(arguments.iter().map(|a| (*a).to_owned()))
        .unwrap()
    {
        Parsed::Flags(flags) => flags,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_flags_of_envtest_become_options() {
    let folder = tempfile::tempdir().unwrap();
    let ca = folder.path().join("client-cert-auth-ca.crt");
    fs::write(&ca, "a certificate").unwrap();
    let flags = flags(&[
        "--allow-privileged=true",
        "--authorization-mode=RBAC",
        "--bind-address=127.0.0.1",
        &format!("--cert-dir={}", folder.path().display()),
        &format!("--client-ca-file={}", ca.display()),
        "--disable-admission-plugins=ServiceAccount",
        "--enable-admission-plugins=AlwaysPullImages,LimitRanger,EventRateLimit",
        "--etcd-servers=http://127.0.0.1:2379",
        "--secure-port=6443",
        "--service-account-issuer=https://127.0.0.1:6443/",
        "--service-cluster-ip-range=10.0.0.0/24",
    ]);
    assert_eq!(FLAGS.without_effect(&flags), ["allow-privileged"]);
    assert_eq!(
        address(&flags).unwrap(),
        SocketAddr::from(([127, 0, 0, 1], 6443))
    );
    assert!(certificate(&flags).unwrap().is_none());
    let options = options(&flags).unwrap();
    assert!(!options.controllers);
    assert!(!options.sharded_list_and_watch);
    assert_eq!(options.authorization, [AuthorizationMode::Rbac]);
    assert_eq!(
        options.authentication.client_ca.as_deref(),
        Some("a certificate")
    );
    assert_eq!(
        options.authentication.service_accounts.issuers,
        ["https://127.0.0.1:6443/"]
    );
    assert_eq!(options.service_cluster_ip_range, "10.0.0.0/24");
    let is_enabled = |name| options.admission_plugins.iter().any(|p| p.as_str() == name);
    assert!(!is_enabled("ServiceAccount"));
    assert!(is_enabled("AlwaysPullImages") && is_enabled("LimitRanger"));
    assert!(!is_enabled("OwnerReferencesPermissionEnforcement"));
}

#[test]
fn the_certificate_is_that_of_the_directory_or_of_the_files() {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [("apiserver.crt", "certificate"), ("apiserver.key", "key")] {
        fs::write(folder.path().join(name), text).unwrap();
    }
    let directory = format!("--cert-dir={}", folder.path().display());
    let found = certificate(&flags(&[&directory])).unwrap().unwrap();
    assert_eq!((&*found.certificate, &*found.key), ("certificate", "key"));
    let error = certificate(&flags(&[&directory, "--tls-cert-file=/x"])).unwrap_err();
    assert_eq!(
        error.to_string(),
        "--tls-cert-file and --tls-private-key-file must be specified together"
    );
}

#[test]
fn an_audit_log_needs_a_policy_and_a_path() {
    let folder = tempfile::tempdir().unwrap();
    let policy = folder.path().join("policy.yaml");
    fs::write(&policy, "a policy").unwrap();
    let policy = format!("--audit-policy-file={}", policy.display());
    let path = "--audit-log-path=/tmp/audit.log";
    assert!(options(&flags(&[&policy])).unwrap().audit.is_none());
    assert!(options(&flags(&[path])).unwrap().audit.is_none());
    let both = flags(&[&policy, path]);
    assert!(FLAGS.without_effect(&both).is_empty());
    let audit = options(&both).unwrap().audit.unwrap();
    assert_eq!(audit.policy, "a policy");
    assert_eq!(audit.log_path, Path::new("/tmp/audit.log"));
}

#[test]
fn wrong_values_name_their_flag() {
    let error = |argument: &str| format!("{:#}", options(&flags(&[argument])).unwrap_err());
    assert!(error("--authorization-mode=ABAC,Magic").starts_with("--authorization-mode: "));
    assert!(
        error("--client-ca-file=/missing").starts_with("--client-ca-file: cannot read /missing")
    );
    assert_eq!(
        error("--service-node-port-range=9-1"),
        "--service-node-port-range: \"9-1\" is not a range such as 30000-32767"
    );
}

#[test]
fn the_flags_of_front_proxies_become_options() {
    let folder = tempfile::tempdir().unwrap();
    let ca = folder.path().join("front-proxy-ca.crt");
    fs::write(&ca, "a certificate").unwrap();
    let ca = format!("--requestheader-client-ca-file={}", ca.display());
    let given = options(&flags(&[
        &ca,
        "--requestheader-allowed-names=a,b",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
    ]));
    let proxies = given.unwrap().authentication.request_header.unwrap();
    assert_eq!(proxies.client_ca, "a certificate");
    assert_eq!(proxies.allowed_names, ["a", "b"]);
    assert_eq!(proxies.username_headers, ["X-Remote-User"]);
    // As in kube-apiserver, a header that is not given is not read.
    assert!(proxies.uid_headers.is_empty());
    let error = options(&flags(&[&ca])).unwrap_err().to_string();
    assert!(error.contains("--requestheader-username-headers"));
    assert!(
        options(&flags(&[]))
            .unwrap()
            .authentication
            .request_header
            .is_none()
    );
}
