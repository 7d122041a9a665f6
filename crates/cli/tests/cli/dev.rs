//! `opkit dev` while the operator's sources are edited.

use std::path::PathBuf;

use k8s_openapi::api::core::v1::{ConfigMap, ServiceAccount};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::PostParams;
use kube::{Api, Client};

use super::*;

/// Program that does only what `opkit dev` needs from an operator: prints a CRD, and reports that
/// it runs. It appends each start, with its arguments, to the file `seen`.
const OPERATOR: &str = r##"
use std::io::{Read, Write};

const VERSION: &str = "VERSION-HERE";

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments[0] == "manifests" {
        print!("{}", MANIFESTS.replace("VERSION", VERSION));
        return;
    }
    let mut seen = std::fs::OpenOptions::new().create(true).append(true).open("seen").unwrap();
    let own: Vec<_> = arguments.iter().skip(9).cloned().collect();
    writeln!(seen, "{VERSION} {}", own.join(" ")).unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = arguments.iter().position(|it| it == "--debug-address-file").unwrap();
    std::fs::write(&arguments[at + 1], listener.local_addr().unwrap().to_string()).unwrap();
    let body = r#"{"controllers": ["op"], "running": true, "lastOfEach": []}"#;
    for stream in listener.incoming() {
        let mut stream = stream.unwrap();
        let _ = stream.read(&mut [0; 4096]);
        let length = body.len();
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
        let _ = stream.write_all((head + body).as_bytes());
    }
}

const MANIFESTS: &str = r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: robots.opkit.dev
  labels: {made-by: "VERSION"}
spec:
  group: opkit.dev
  scope: Namespaced
  names: {plural: robots, kind: Robot}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object}}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: op, namespace: default}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: op}
rules: [{apiGroups: [opkit.dev], resources: [robots], verbs: [list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: op}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: op}
subjects: [{kind: ServiceAccount, name: op, namespace: default}]
"#;
"##;

pub(crate) fn operator(version: &str) -> String {
    OPERATOR.replace("VERSION-HERE", version)
}

/// A running `opkit dev`, and the workspace of its operator.
struct Dev {
    root: TempDir,
    child: Killed,
}

impl Dev {
    fn start(source: &str, arguments: &[&str]) -> Self {
        let root = workspace(source);
        let output = |name: &str| fs::File::create(root.path().join(name)).unwrap();
        let mut command = opkit(root.path());
        command.arg("dev").args(arguments);
        command.stdout(output("stdout")).stderr(output("stderr"));
        let child = Killed(command.spawn().unwrap());
        Self { root, child }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    fn edit(&self, source: &str) {
        fs::write(self.path("op/src/main.rs"), source).unwrap();
    }

    /// Waits until a file contains this text.
    fn until(&mut self, file: &str, text: &str) {
        wait(|| {
            let ended = self.child.0.try_wait().unwrap();
            assert!(
                ended.is_none(),
                "it ended\n{}{}",
                self.text("stdout"),
                self.text("stderr")
            );
            self.text(file).contains(text)
        });
    }

    async fn client(&self) -> Client {
        self.client_of(".opkit/kubeconfig").await
    }

    /// Returns a client of the user in a kubeconfig.
    async fn client_of(&self, kubeconfig: &str) -> Client {
        client(&self.path(kubeconfig)).await
    }

    /// Returns the operator version that installed the CRD.
    async fn crd_version(&self) -> String {
        let crds: Api<CustomResourceDefinition> = Api::all(self.client().await);
        let crd = crds.get("robots.opkit.dev").await.unwrap();
        let labels = crd.metadata.labels.unwrap();
        labels.get("made-by").cloned().unwrap_or_default()
    }
}

#[tokio::test]
async fn an_edit_restarts_the_operator_and_keeps_the_objects() {
    // Without a name, because there is only one operator.
    let mut dev = Dev::start(&operator("one"), &["--", "--store", "a b"]);
    dev.until("stdout", "op running, 1 controller");
    assert_eq!(dev.text("seen"), "one --store a b\n");
    assert_eq!(dev.crd_version().await, "one");
    let maps: Api<ConfigMap> = Api::default_namespaced(dev.client().await);
    let mut map = ConfigMap::default();
    map.metadata.name = Some("kept".to_owned());
    maps.create(&PostParams::default(), &map).await.unwrap();

    dev.edit(&operator("two"));
    dev.until("stdout", "op restarted, 1 controller");
    dev.until("stdout", " after the edit\n");
    assert_eq!(dev.text("seen"), "one --store a b\ntwo --store a b\n");
    assert_eq!(
        dev.crd_version().await,
        "two",
        "the changed CRD is installed"
    );
    assert!(
        maps.get("kept").await.is_ok(),
        "the control plane is the same"
    );
    assert!(
        dev.text("stdout")
            .contains("build          op/src/main.rs changed")
    );
}

#[tokio::test]
async fn the_operator_acts_as_its_service_account() {
    let mut dev = Dev::start(&operator("one"), &[]);
    dev.until("stdout", "op running, 1 controller");
    dev.until("stdout", "acts as        ServiceAccount default/op");
    let client = dev.client_of(".opkit/op.kubeconfig").await;
    let request = |path: &str| http::Request::get(path).body(Vec::new()).unwrap();
    let robots = request("/apis/opkit.dev/v1/namespaces/default/robots");
    client.request_text(robots).await.unwrap();
    let secrets = request("/api/v1/namespaces/default/secrets");
    client.request_text(secrets).await.unwrap_err();
    dev.until(
        "stdout",
        "denied         User \"system:serviceaccount:default:op\" cannot list resource \"secrets\" \
         in API group \"\" in the namespace \"default\" (`manifests` prints the roles",
    );

    // The edited operator has another role.
    let edited = operator("two").replace("resources: [robots]", "resources: [gadgets]");
    dev.edit(&edited);
    dev.until("stdout", "op restarted, 1 controller");
    let robots = request("/apis/opkit.dev/v1/namespaces/default/robots");
    client.request_text(robots).await.unwrap_err();
}

#[tokio::test]
async fn the_user_starts_the_operator_in_a_debugger() {
    let mut dev = Dev::start(&operator("one"), &["--no-run", "--", "--store", "a b"]);
    dev.until("stdout", "   operator       not started: ");
    assert_eq!(dev.text("seen"), "");
    assert_eq!(dev.crd_version().await, "one");
    let stdout = dev.text("stdout");
    let value = |label: &str| {
        let line = stdout.lines().find_map(|it| it.trim().strip_prefix(label));
        line.unwrap().trim().to_owned()
    };
    assert!(value("arguments").ends_with(" --store 'a b'"), "{stdout}");
    // The printed line, in another directory, by a shell.
    let line = format!("exec {} {}", value("program"), value("arguments"));
    let elsewhere = TempDir::new().unwrap();
    let mut shell = Command::new("sh");
    shell.args(["-c", &line]).current_dir(elsewhere.path());
    let debugger = Killed(shell.spawn().unwrap());
    dev.until("stdout", "op running, 1 controller");
    let seen = fs::read_to_string(elsewhere.path().join("seen")).unwrap();
    assert_eq!(seen, "one --store a b\n");
    drop(debugger);

    dev.edit(&operator("two"));
    dev.until("stdout", "op built: start it again");
    assert_eq!(dev.crd_version().await, "two");
}

#[tokio::test]
async fn the_operator_can_act_as_administrator() {
    let mut dev = Dev::start(&operator("one"), &["--as-admin"]);
    dev.until("stdout", "op running, 1 controller");
    assert!(!dev.path(".opkit/op.kubeconfig").exists());
    assert!(!dev.text("stdout").contains("ServiceAccount"));
}

#[tokio::test]
async fn an_edit_that_does_not_compile_leaves_the_operator_running() {
    let mut dev = Dev::start(&operator("one"), &["op"]);
    dev.until("stdout", "op running, 1 controller");
    dev.edit("fn main() { missing() }");
    dev.until(
        "stdout",
        "op does not compile; the previous operator keeps running",
    );
    assert!(
        dev.text("stderr")
            .contains("cannot find function `missing`")
    );
    assert_eq!(dev.text("seen"), "one \n");
    let address = dev.text(".opkit/op.debug-address");
    std::net::TcpStream::connect(address.trim()).unwrap();

    // An operator whose command `manifests` fails is not started either.
    dev.edit("fn main() { panic!(\"no manifests\") }");
    dev.until("stdout", "the operator's command `manifests` failed");
    std::net::TcpStream::connect(address.trim()).unwrap();

    dev.edit(&operator("two"));
    dev.until("stdout", "op restarted");
    assert_eq!(dev.text("seen"), "one \ntwo \n");
}

#[test]
fn an_operator_that_ends_later_waits_for_an_edit() {
    let mut dev = Dev::start(&operator("one"), &[]);
    dev.until("stdout", "op running, 1 controller");
    let ends = operator("two").replace("let listener", "std::process::exit(3); let listener");
    dev.edit(&ends.replace("fn main()", "#[allow(unreachable_code)] fn main()"));
    dev.until(
        "stdout",
        "op ended with exit code 3: see its log above; waiting for an edit",
    );
    dev.edit(&operator("three"));
    dev.until("stdout", "op restarted");
    assert_eq!(dev.text("seen"), "one \ntwo \nthree \n");
}

#[test]
fn several_operators_are_listed() {
    let root = workspace("fn main() {}");
    let other = root.path().join("other");
    fs::create_dir_all(other.join("src")).unwrap();
    fs::write(other.join("src/main.rs"), "fn main() {}").unwrap();
    let manifest = fs::read_to_string(root.path().join("op/Cargo.toml")).unwrap();
    fs::write(
        other.join("Cargo.toml"),
        manifest.replace("\"op\"", "\"other\""),
    )
    .unwrap();
    let members = "[workspace]\nmembers = [\"opkit\", \"op\", \"other\"]\nresolver = \"3\"\n";
    fs::write(root.path().join("Cargo.toml"), members).unwrap();
    let output = opkit(root.path()).arg("dev").output().unwrap();
    refused(
        &output,
        &[
            "several operators",
            "op, other",
            "opkit dev NAME",
            "-p NAME",
        ],
    );
    // In the directory of one operator, that operator is chosen; its command `manifests` fails.
    let output = opkit(&other).arg("dev").output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("cargo build --package other"));
}

#[tokio::test]
async fn the_operator_can_work_on_a_cluster() {
    // A control plane in another process.
    let place = TempDir::new().unwrap();
    let mut up = opkit(place.path());
    up.args(["cluster", "up"]).stdout(Stdio::null());
    let _cluster = Killed(up.spawn().unwrap());
    let kubeconfig = place.path().join(".opkit/kubeconfig");
    let is_up =
        || fs::read_to_string(&kubeconfig).is_ok_and(|it| it.contains("https://127.0.0.1:"));
    wait(is_up);
    let path = kubeconfig.to_str().unwrap();

    let arguments = ["--on-cluster", "--kubeconfig", path, "--", "--store"];
    let mut dev = Dev::start(&operator("one"), &arguments);
    dev.until("stdout", "op running, 1 controller");
    let client = client(&kubeconfig).await;
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    crds.get("robots.opkit.dev").await.unwrap();
    // The operator acts as the user of the kubeconfig, and its webhooks are off.
    let accounts: Api<ServiceAccount> = Api::default_namespaced(client);
    assert!(accounts.get_opt("op").await.unwrap().is_none());
    assert!(dev.text("stdout").contains("the user of the kubeconfig"));
    assert!(
        dev.text("seen").ends_with(" --store\n"),
        "{}",
        dev.text("seen")
    );
    assert!(!dev.path(".opkit/kubeconfig").exists());
    dev.edit(&operator("two"));
    dev.until("stdout", "op restarted");
    let crd = crds.get("robots.opkit.dev").await.unwrap();
    assert_eq!(crd.metadata.labels.unwrap_or_default()["made-by"], "two");
}

/// The API server cannot reach the conversion webhook: a CRD that needs it would make the objects
/// of the cluster unreadable, so it is not applied.
#[tokio::test]
async fn a_crd_that_needs_its_webhook_is_not_applied_to_a_cluster() {
    let place = TempDir::new().unwrap();
    let mut up = opkit(place.path());
    up.args(["cluster", "up"]).stdout(Stdio::null());
    let _cluster = Killed(up.spawn().unwrap());
    let kubeconfig = place.path().join(".opkit/kubeconfig");
    wait(|| fs::read_to_string(&kubeconfig).is_ok_and(|it| it.contains("https://127.0.0.1:")));
    let crds: Api<CustomResourceDefinition> = Api::all(client(&kubeconfig).await);
    let conversion = "
  conversion:
    strategy: Webhook
    webhook:
      conversionReviewVersions: [v1]
      clientConfig: {service: {namespace: default, name: op-webhook-service, path: /convert}}
  versions:
";
    let old = "
  - name: v1alpha1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object}}
---";
    let converted = operator("two")
        .replace("\n  versions:\n", conversion)
        .replacen("storage: true", "storage: false", 1)
        .replacen("\n---", old, 1);
    let path = kubeconfig.to_str().unwrap();
    let arguments = ["--on-cluster", "--kubeconfig", path];
    let expected = "the operator reads them as v1, and the API server cannot reach";

    // At the start: nothing is applied.
    let root = workspace(&converted);
    let mut command = opkit(root.path());
    let output = command.arg("dev").args(arguments).output().unwrap();
    refused(&output, &["robots.opkit.dev", expected]);
    assert!(crds.get_opt("robots.opkit.dev").await.unwrap().is_none());

    // After an edit: the CRD stays as it was, and so does the operator.
    let mut dev = Dev::start(&operator("one"), &arguments);
    dev.until("stdout", "op running, 1 controller");
    let before = crds.get("robots.opkit.dev").await.unwrap();
    dev.edit(&converted);
    dev.until("stdout", expected);
    dev.until("stdout", "; the previous operator keeps running");
    let after = crds.get("robots.opkit.dev").await.unwrap();
    assert_eq!(before.metadata.generation, after.metadata.generation);
    assert_eq!(before.metadata.labels, after.metadata.labels);
    assert_eq!(dev.text("seen").lines().count(), 1);
}

#[test]
fn flags_of_a_cluster_need_a_cluster() {
    let root = workspace("fn main() {}");
    let output = opkit(root.path())
        .args(["dev", "--context", "x"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--on-cluster"));
}
