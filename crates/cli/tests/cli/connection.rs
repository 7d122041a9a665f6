//! The connection flags of a command that talks to a cluster, each against a control plane in
//! another process.

use std::io::{Read, Write};
use std::net::TcpStream;

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

/// Runs a proxy that connects each client with the control plane, whatever the target is. Returns
/// the address of the proxy, and the targets.
fn proxy(server: &str) -> (String, std::sync::mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let server = server.trim_start_matches("https://").to_owned();
    let (sender, targets) = std::sync::mpsc::sync_channel(16);
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let (mut client, mut server) = (client.unwrap(), TcpStream::connect(&server).unwrap());
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                client.read_exact(&mut byte).unwrap();
                head.extend(byte);
            }
            let head = String::from_utf8(head).unwrap();
            let _ = sender.try_send(head.split(' ').nth(1).unwrap_or_default().to_owned());
            client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
            let (mut from, mut to) = (server.try_clone().unwrap(), client.try_clone().unwrap());
            std::thread::spawn(move || {
                let _ = std::io::copy(&mut client, &mut server);
                let _ = server.shutdown(std::net::Shutdown::Write);
            });
            std::thread::spawn(move || std::io::copy(&mut from, &mut to));
        }
    });
    (address, targets)
}

#[tokio::test]
async fn proxies_are_those_of_the_environment_and_the_kubeconfig() {
    let cluster = Cluster::start().await;
    let (address, targets) = proxy(cluster.server());
    let run = |flags: &[&str], variables: &[(&str, &str)]| {
        let mut command = opkit(cluster.plane.root.path());
        command.args(["migrate", "storage", "robots"]).args(flags);
        command.env_remove("NO_PROXY").env_remove("no_proxy");
        command.envs(variables.iter().copied()).output().unwrap()
    };
    let elsewhere = [
        "--server=https://api.test:6443",
        "--tls-server-name=localhost",
    ];
    let flags = [&KUBECONFIG[..], &elsewhere].concat();
    let by_proxy = run(&flags, &[("HTTPS_PROXY", &address)]);
    assert!(by_proxy.status.success(), "{by_proxy:?}");
    assert_eq!(targets.recv().unwrap(), "api.test:6443");
    // The name does not exist without the proxy.
    let excluded = [("HTTPS_PROXY", &*address), ("NO_PROXY", ".test")];
    assert!(!run(&flags, &excluded).status.success());

    let proxied = json!({
        "current-context": "a", "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "clusters": [{"name": "a", "cluster": {
            "server": "https://api.test", "tls-server-name": "localhost",
            "proxy-url": format!("http://{address}"),
            "certificate-authority-data": text(cluster.cluster(), "certificate-authority-data"),
        }}],
        "users": [{"name": "a", "user": cluster.user()}],
    });
    cluster.write("proxied", proxied.to_string());
    // `NO_PROXY` is only for the proxies of the environment.
    let by_kubeconfig = run(&["--kubeconfig=proxied"], &[("NO_PROXY", "*")]);
    assert!(by_kubeconfig.status.success(), "{by_kubeconfig:?}");
    assert!(targets.try_iter().any(|target| target == "api.test:443"));
}
