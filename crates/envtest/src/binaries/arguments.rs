//! Command-line arguments of the processes.

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};

/// Name of the file that configures the authentication webhook.
pub(crate) const AUTHENTICATION: &str = "authentication.yaml";
/// Name of the file that configures the authorization webhook.
pub(crate) const AUTHORIZATION: &str = "authorization.yaml";

/// Name of the file with the audit policy.
pub(crate) const AUDIT_POLICY: &str = "audit.yaml";
/// Audit policy of kube-apiserver: one event for each write, and the body of a deletion, which is
/// where its options are. Reviews, which store nothing, are left out.
pub(crate) const AUDITED: &str = "\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: None
  resources: [{group: authentication.k8s.io}, {group: authorization.k8s.io}]
- level: Request
  verbs: [delete, deletecollection]
- level: Metadata
  verbs: [create, update, patch]
- level: None
";
/// Name of the audit log.
const AUDIT_LOG: &str = "audit.log";

/// Ports that the processes listen on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ports {
    pub(crate) etcd: u16,
    pub(crate) peer: u16,
    pub(crate) apiserver: u16,
    pub(crate) controller_manager: u16,
}

impl Ports {
    /// Returns four ports that no process listens on at the moment.
    pub(crate) fn free() -> io::Result<Self> {
        // All listeners are kept until the last port is found; otherwise a port could be returned
        // twice.
        let listen = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
        let listeners = [listen()?, listen()?, listen()?, listen()?];
        let [etcd, peer, apiserver, controller_manager] = &listeners;
        let port = |listener: &TcpListener| listener.local_addr().map(|address| address.port());
        Ok(Self {
            etcd: port(etcd)?,
            peer: port(peer)?,
            apiserver: port(apiserver)?,
            controller_manager: port(controller_manager)?,
        })
    }
}

/// Returns the arguments of etcd. etcd does not sync to disk, because its data is needed only
/// during the test.
pub(crate) fn etcd(directory: &Path, ports: Ports) -> Vec<String> {
    let (client, peer) = (local("http", ports.etcd), local("http", ports.peer));
    vec![
        format!("--data-dir={}", directory.join("etcd").display()),
        "--unsafe-no-fsync".to_owned(),
        "--log-level=warn".to_owned(),
        format!("--listen-client-urls={client}"),
        format!("--advertise-client-urls={client}"),
        format!("--listen-peer-urls={peer}"),
        format!("--initial-advertise-peer-urls={peer}"),
        format!("--initial-cluster=default={peer}"),
    ]
}

/// Returns the arguments of kube-apiserver, with a self-signed certificate and one token. The
/// admission plugin ServiceAccount is off: otherwise pods would wait for a service account that
/// only kube-controller-manager creates. The plugin OwnerReferencesPermissionEnforcement is on, as
/// in some distributions of Kubernetes, so that operators need the permission to block the deletion
/// of owners. `shards` turns on the feature gate `ShardedListAndWatch`, alpha in 1.36. With
/// `webhooks`, the server asks the authentication and authorization webhooks that the files
/// [`AUTHENTICATION`] and [`AUTHORIZATION`] configure.
pub(crate) fn apiserver(
    directory: &Path,
    ports: Ports,
    shards: bool,
    webhooks: bool,
) -> Vec<String> {
    let file = |name: &str| directory.join(name).display().to_string();
    let mut arguments = vec![
        format!("--etcd-servers={}", local("http", ports.etcd)),
        "--bind-address=127.0.0.1".to_owned(),
        "--advertise-address=127.0.0.1".to_owned(),
        format!("--secure-port={}", ports.apiserver),
        format!("--cert-dir={}", file("certs")),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        format!("--service-account-key-file={}", file("sa.pub")),
        format!("--service-account-signing-key-file={}", file("sa.key")),
        "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
        format!("--token-auth-file={}", file("tokens.csv")),
        format!("--audit-policy-file={}", file(AUDIT_POLICY)),
        format!("--audit-log-path={}", audit_log(directory).display()),
        format!(
            "--authorization-mode={}",
            if webhooks { "RBAC,Webhook" } else { "RBAC" }
        ),
        "--allow-privileged=true".to_owned(),
        "--disable-admission-plugins=ServiceAccount".to_owned(),
        "--enable-admission-plugins=OwnerReferencesPermissionEnforcement".to_owned(),
    ];
    if webhooks {
        let (authentication, authorization) = (file(AUTHENTICATION), file(AUTHORIZATION));
        arguments.extend([
            format!("--authentication-token-webhook-config-file={authentication}"),
            "--authentication-token-webhook-version=v1".to_owned(),
            format!("--authorization-webhook-config-file={authorization}"),
            "--authorization-webhook-version=v1".to_owned(),
        ]);
    }
    if shards {
        arguments.push("--feature-gates=ShardedListAndWatch=true".to_owned());
    }
    arguments
}

/// Returns the arguments of kube-controller-manager, without the controllers that need heartbeats
/// of a node, because the simulated node sends none.
pub(crate) fn controller_manager(directory: &Path, ports: Ports) -> Vec<String> {
    let file = |name: &str| directory.join(name).display().to_string();
    vec![
        format!("--kubeconfig={}", file("kubeconfig")),
        format!("--service-account-private-key-file={}", file("sa.key")),
        "--leader-elect=false".to_owned(),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={}", ports.controller_manager),
        format!("--cert-dir={}", file("kcm-certs")),
        "--controllers=*,-node-lifecycle-controller,-taint-eviction-controller".to_owned(),
        // Tests run in parallel; the default rate limits are meant for production clusters.
        "--kube-api-qps=200".to_owned(),
        "--kube-api-burst=400".to_owned(),
    ]
}

/// Returns a kubeconfig of the user of `token`, with `namespace` as the default.
pub(crate) fn kubeconfig(directory: &Path, ports: Ports, token: &str, namespace: &str) -> String {
    let server = local("https", ports.apiserver);
    let authority = authority(directory).display().to_string();
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: opkit\n\
         clusters: [{{name: opkit, cluster: {{server: '{server}', certificate-authority: '{authority}'}}}}]\n\
         users: [{{name: opkit, user: {{token: '{token}'}}}}]\n\
         contexts: [{{name: opkit, context: {{cluster: opkit, user: opkit, namespace: '{namespace}'}}}}]\n"
    )
}

/// Returns the path of the file that the server writes when it starts. The file contains the
/// certificates of the server and of its certificate authority.
pub(crate) fn authority(directory: &Path) -> PathBuf {
    directory.join("certs/apiserver.crt")
}

/// Returns the path of the audit log, to which the server appends a JSON object for each write.
pub(crate) fn audit_log(directory: &Path) -> PathBuf {
    directory.join(AUDIT_LOG)
}

fn local(scheme: &str, port: u16) -> String {
    format!("{scheme}://127.0.0.1:{port}")
}
