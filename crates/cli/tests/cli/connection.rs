//! The connection flags of a command that talks to a cluster, each against a control plane in
//! another process.

use kube::api::PostParams;
use serde_json::{Value, json};

use super::migrate::{Plane, crd};
use super::*;

/// A control plane with a CRD, and the parts of its kubeconfig.
struct Cluster {
    plane: Plane,
    kubeconfig: Value,
}

impl Cluster {
    async fn start() -> Self {
        let plane = Plane::start().await;
        let post = PostParams::default();
        plane.crds().create(&post, &crd("v1")).await.unwrap();
        let path = plane.root.path().join(".opkit/kubeconfig");
        let config = Kubeconfig::read_from(path).unwrap();
        let kubeconfig = serde_json::to_value(config).unwrap();
        Self { plane, kubeconfig }
    }

    fn cluster(&self) -> &Value {
        self.kubeconfig.pointer("/clusters/0/cluster").unwrap()
    }

    fn user(&self) -> &Value {
        self.kubeconfig.pointer("/users/0/user").unwrap()
    }

    fn server(&self) -> &str {
        text(self.cluster(), "server")
    }

    /// Writes a file next to the control plane's.
    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.plane.root.path().join(name), content).unwrap();
    }

    /// Writes the base64 text of the kubeconfig in a file.
    fn write_decoded(&self, name: &str, data: &str) {
        let mut command = Command::new("base64");
        let command = command.arg("-d").stdin(Stdio::piped());
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), data.as_bytes()).unwrap();
        self.write(name, child.wait_with_output().unwrap().stdout);
    }

    /// Runs a command that reads the CRD, with these flags.
    fn run(&self, flags: &[&str]) -> Output {
        let mut command = opkit(self.plane.root.path());
        command.args(["migrate", "storage", "robots"]).args(flags);
        command.env_remove("KUBECONFIG").env("HOME", "/nowhere");
        command.output().unwrap()
    }

    fn succeeds(&self, flags: &[&str]) {
        let output = self.run(flags);
        let stdout = String::from_utf8_lossy(&output.stdout);
        assert!(
            stdout.contains("all objects are stored as v1"),
            "{flags:?}: {output:?}"
        );
    }
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap()
}

const KUBECONFIG: [&str; 2] = ["--kubeconfig", ".opkit/kubeconfig"];

fn with(flags: &[&'static str]) -> Vec<&'static str> {
    [&KUBECONFIG, flags].concat()
}

#[tokio::test]
async fn a_context_a_cluster_and_a_user_are_selected() {
    let cluster = Cluster::start().await;
    let config = json!({
        "current-context": "broken",
        "contexts": [
            {"name": "broken", "context": {"cluster": "gone", "user": "nobody"}},
            {"name": "dev", "context": {"cluster": "dev", "user": "admin"}},
        ],
        "clusters": [
            {"name": "gone", "cluster": {"server": "https://127.0.0.1:1"}},
            {"name": "dev", "cluster": cluster.cluster()},
        ],
        "users": [
            {"name": "nobody", "user": {}},
            {"name": "admin", "user": cluster.user()},
        ],
    });
    cluster.write("config", config.to_string());
    cluster.succeeds(&["--kubeconfig", "config", "--context", "dev"]);
    cluster.succeeds(&["--kubeconfig", "config", "--cluster=dev", "--user", "admin"]);
    let unknown = cluster.run(&["--kubeconfig", "config", "--context", "x"]);
    let expected = r#"there is no context "x" (--context); the contexts are broken, dev"#;
    refused(&unknown, &["the kubeconfig config", expected]);
    let anonymous = cluster.run(&["--kubeconfig", "config", "--context=dev", "--user=nobody"]);
    refused(&anonymous, &["system:anonymous"]);
}

#[tokio::test]
async fn a_user_is_impersonated() {
    let cluster = Cluster::start().await;
    refused(
        &cluster.run(&with(&["--as", "jane"])),
        &[r#"User "jane" cannot"#],
    );
    cluster.succeeds(&with(&[
        "--as=jane",
        "--as-group=a",
        "--as-group=system:masters",
    ]));
    // The server takes a UID only with a user.
    cluster.succeeds(&with(&[
        "--as=jane",
        "--as-uid=7",
        "--as-group=system:masters",
    ]));
    refused(
        &cluster.run(&with(&["--as-uid=7"])),
        &["needs a user (--as)"],
    );
}

#[tokio::test]
async fn flags_replace_the_server_and_the_credentials() {
    let cluster = Cluster::start().await;
    cluster.write_decoded(
        "ca.crt",
        text(cluster.cluster(), "certificate-authority-data"),
    );
    let server = ["--server", cluster.server()];
    let authority = ["--certificate-authority", "ca.crt"];
    let insecure = ["--insecure-skip-tls-verify"];
    // Only flags, without any kubeconfig.
    let user = cluster.user();
    cluster.write_decoded("tls.crt", text(user, "client-certificate-data"));
    cluster.write_decoded("tls.key", text(user, "client-key-data"));
    let credentials = ["--client-certificate=tls.crt", "--client-key=tls.key"];
    let run = |flags: &[&[&str]]| cluster.run(&[&flags.concat()[..], &credentials].concat());
    let is_success = |output: &Output| output.status.success();
    assert!(is_success(&run(&[&server, &authority])));
    assert!(is_success(&run(&[&server, &insecure])));
    refused(&run(&[&server]), &["certificate"]);
    refused(
        &run(&[&server, &["--certificate-authority=gone"]]),
        &["cannot read the certificate authority gone"],
    );
    refused(
        &run(&[&server, &authority, &["--tls-server-name=other"]]),
        &["certificate", "other"],
    );
    let name = ["--tls-server-name=localhost"];
    assert!(is_success(&run(&[&server, &authority, &name])));

    let token = ["--token", "wrong"];
    refused(&cluster.run(&[server, authority, token].concat()), &["401"]);
    let unreachable = cluster.run(&with(&["--server=https://127.0.0.1:1"]));
    refused(&unreachable, &["refused"]);
    cluster.succeeds(&with(&["--disable-compression"]));
}

#[tokio::test]
async fn a_request_timeout_ends_a_request() {
    let cluster = Cluster::start().await;
    // This server accepts connections and never responds.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = format!("http://{}", silent.local_addr().unwrap());
    let output = cluster.run(&["--server", &server, "--request-timeout=100ms"]);
    refused(
        &output,
        &["no complete response within 100ms, the request timeout"],
    );
    cluster.succeeds(&with(&["--request-timeout=60"]));
    cluster.succeeds(&with(&["--request-timeout=0"]));
    let output = cluster.run(&["--request-timeout=soon"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}
