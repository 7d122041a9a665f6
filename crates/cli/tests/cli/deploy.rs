//! `opkit manifests`, `install`, `deploy` and their opposites, with a binary that prints a model,
//! against a control plane in another process.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{ListParams, PostParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use opkit_manifests::{DeploymentManifest, Model, Part};
use serde_json::{Value, json};

use super::*;

const NAMESPACE: &str = "op-system";
const CRD: &str = "robots.op.opkit.dev";

/// Prints the model beside it, and notes other calls.
const BINARY: &str = r#"#!/bin/sh
directory=$(dirname "$0")
case "$1" in
  manifests) cat "$directory/model.json" ;;
  plan) if [ -e "$directory/plan.json" ]; then cat "$directory/plan.json"; else echo '{}'; fi ;;
  *) echo "$@" >> "$directory/calls"
     if [ -e "$directory/waits" ]; then
       trap 'echo TERM >> "$directory/calls"; exit 0' TERM
       trap 'echo INT >> "$directory/calls"; exit 0' INT
       echo waiting >> "$directory/calls"
       while true; do sleep 0.02; done
     fi ;;
esac
"#;

pub(super) fn model(version: &str) -> Model {
    let mut model = Model::new("op", version, NAMESPACE);
    model.add(
        Part::Manager,
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}),
    );
    model.add(
        Part::Crd,
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": CRD},
            "spec": {
                "group": "op.opkit.dev", "scope": "Namespaced",
                "names": {"plural": "robots", "singular": "robot", "kind": "Robot", "listKind": "RobotList"},
                "versions": [{
                    "name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object"}},
                }],
            },
        }),
    );
    model.add(
        Part::Rbac,
        json!({"apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": {"name": "op-controller-manager", "namespace": NAMESPACE}}),
    );
    let deployment = DeploymentManifest::new("op", NAMESPACE).image(format!("op:{version}"));
    model.add(Part::Manager, deployment.document());
    model
}

/// A directory with the operator's binary.
pub(super) struct Place {
    pub(super) root: TempDir,
}

impl Place {
    pub(super) fn new() -> Self {
        let root = TempDir::new().unwrap();
        let binary = root.path().join("op");
        fs::write(&binary, BINARY).unwrap();
        fs::set_permissions(&binary, fs::Permissions::from_mode(0o755)).unwrap();
        let place = Self { root };
        place.print(&model("1.0.0"));
        place
    }

    /// Sets the model that the binary prints.
    pub(super) fn print(&self, model: &Model) {
        let text = serde_json::to_string(model).unwrap();
        fs::write(self.root.path().join("model.json"), text).unwrap();
    }

    pub(super) fn opkit(&self, arguments: &[&str]) -> Output {
        let (command, rest) = arguments.split_first().unwrap();
        let mut opkit = opkit(self.root.path());
        opkit.args([command, "--binary", "op"]).args(rest);
        opkit.env("KUBECONFIG", self.root.path().join(".opkit/kubeconfig"));
        opkit.output().unwrap()
    }

    /// Runs the command, which must succeed, and returns its standard output.
    pub(super) fn stdout(&self, arguments: &[&str]) -> String {
        let output = self.opkit(arguments);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {stderr}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn read(&self, path: &str) -> String {
        let text = fs::read_to_string(self.root.path().join(path));
        text.unwrap_or_else(|error| panic!("{path}: {error}"))
    }
}

/// A place with a control plane.
pub(super) struct Cluster {
    pub(super) place: Place,
    pub(super) client: kube::Client,
    _child: Killed,
}

impl Cluster {
    pub(super) async fn start() -> Self {
        Self::start_with(Place::new(), &[]).await
    }

    /// Starts the control plane with further arguments.
    pub(super) async fn start_with(place: Place, arguments: &[&str]) -> Self {
        let mut up = opkit(place.root.path());
        up.args(["cluster", "up"]).args(arguments);
        let child = Killed(up.stdout(Stdio::null()).spawn().unwrap());
        let path = place.root.path().join(".opkit/kubeconfig");
        wait(|| fs::read_to_string(&path).is_ok_and(|text| text.contains("https://127.0.0.1:")));
        Self {
            client: client(&path).await,
            place,
            _child: child,
        }
    }

    fn all<K>(&self) -> Api<K>
    where
        K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    /// Returns the number of objects in the operator's namespace.
    async fn number_of<K>(&self) -> usize
    where
        K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
        K: Clone + std::fmt::Debug + serde::de::DeserializeOwned,
    {
        let all = self.all::<K>();
        all.list(&ListParams::default()).await.unwrap().items.len()
    }

    fn robots(&self) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk("op.opkit.dev", "v1", "Robot");
        let kind = ApiResource::from_gvk_with_plural(&kind, "robots");
        Api::default_namespaced_with(self.client.clone(), &kind)
    }

    async fn crd_exists(&self) -> bool {
        let crds: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        crds.get_opt(CRD).await.unwrap().is_some()
    }

    pub(super) async fn create_robot(&self) {
        let robot =
            json!({"apiVersion": "op.opkit.dev/v1", "kind": "Robot", "metadata": {"name": "one"}});
        let robot = serde_json::from_value(robot).unwrap();
        let (robots, post) = (self.robots(), PostParams::default());
        robots.create(&post, &robot).await.unwrap();
    }
}

pub(super) fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[tokio::test]
async fn a_release_is_deployed_pruned_rolled_back_and_removed() {
    let cluster = Cluster::start().await;
    let place = &cluster.place;
    let two = ["deploy", "--replicas", "2"];
    let text = place.stdout(&two);
    let last = text.lines().last().unwrap();
    let expected = "deployed op 1.0.0 as revision 1: 5 created, 0 changed, 0 deleted, 0 unchanged";
    assert_eq!(last, expected, "{text}");
    assert!(
        text.contains("op-controller-manager   2 of 2 available"),
        "{text}"
    );
    assert!(!text.contains('\x1b'), "no terminal: {text:?}");
    golden("deploy.txt", &masked(&text));

    // A new version without the budget: it is pruned.
    place.print(&model("1.1.0"));
    let deployed = json(&place.stdout(&["deploy", "--output", "json"]));
    assert_eq!(deployed["revision"], 2);
    assert_eq!(deployed["deleted"][0]["kind"], "PodDisruptionBudget");
    assert_eq!(cluster.number_of::<PodDisruptionBudget>().await, 0);
    let image = async || {
        let deployment: Deployment = cluster.all().get("op-controller-manager").await.unwrap();
        let pod = deployment.spec.unwrap().template.spec.unwrap();
        pod.containers[0].image.clone().unwrap()
    };
    assert_eq!(image().await, "op:1.1.0");

    // The binary is not asked for its model: it may be broken.
    fs::remove_file(place.root.path().join("model.json")).unwrap();
    let back = place.stdout(&["deploy", "--rollback", "--operator-name", "op"]);
    assert!(
        back.contains("rolled back to op 1.0.0 as revision 3: 1 created, 1 changed"),
        "{back}"
    );
    golden("deploy-rollback.txt", &masked(&back));
    assert_eq!(image().await, "op:1.0.0");
    assert_eq!(cluster.number_of::<PodDisruptionBudget>().await, 1);
    let missing = place.opkit(&["deploy", "--rollback=7", "--operator-name", "op"]);
    refused(&missing, &["no revision 7", "1, 2, 3"]);

    // With a robot, the CRD stays; nothing else does.
    cluster.create_robot().await;
    let gone = place.stdout(&["undeploy", "--operator-name", "op"]);
    assert!(
        gone.contains("kept           crd robots.op.opkit.dev"),
        "{gone}"
    );
    assert!(gone.ends_with("0 CRDs deleted, 1 kept\n"), "{gone}");
    golden("undeploy.txt", &masked(&gone));
    assert!(cluster.crd_exists().await);
    let namespaces: Api<Namespace> = Api::all(cluster.client.clone());
    assert!(namespaces.get_opt(NAMESPACE).await.unwrap().is_none());
    assert_eq!(cluster.number_of::<ServiceAccount>().await, 0);
    let again = place.opkit(&["undeploy", "--operator-name", "op"]);
    refused(&again, &["op is not deployed in the namespace op-system"]);
}

#[tokio::test]
async fn crds_are_installed_and_deleted_without_their_operator() {
    let cluster = Cluster::start().await;
    let place = &cluster.place;
    let dry = place.stdout(&["install", "--dry-run"]);
    assert!(
        dry.ends_with("installed 1 CRDs, 1 changed (dry run)\n"),
        "{dry}"
    );
    golden("install-dry-run.txt", &masked(&dry));
    assert!(!cluster.crd_exists().await);
    let run = place.opkit(&["run"]);
    refused(&run, &[CRD, "`opkit install`"]);
    let installed = json(&place.stdout(&["install", "-o", "json"]));
    assert_eq!(
        installed["crds"][0],
        json!({"name": CRD, "change": "created"})
    );

    let ran = place.opkit(&["run", "--", "--log-level", "debug"]);
    assert!(ran.status.success(), "{ran:?}");
    let calls = place.read("calls");
    let expected = "run --leader-election-namespace default --webhook-port 0 --log-level debug";
    assert!(calls.starts_with(expected), "{calls}");

    // Ctrl-C reaches the whole process group; the operator gets one signal, from the command.
    fs::write(place.root.path().join("waits"), "").unwrap();
    let mut run = opkit(place.root.path());
    run.args(["run", "--binary", "op"]).process_group(0);
    run.env("KUBECONFIG", ".opkit/kubeconfig");
    let mut run = Killed(run.stderr(Stdio::null()).spawn().unwrap());
    wait(|| place.read("calls").ends_with("waiting\n"));
    let group = rustix::process::Pid::from_raw(run.0.id().cast_signed()).unwrap();
    rustix::process::kill_process_group(group, rustix::process::Signal::INT).unwrap();
    assert!(run.0.wait().unwrap().success());
    assert!(place.read("calls").ends_with("waiting\nTERM\n"));

    cluster.create_robot().await;
    let kept = place.opkit(&["uninstall"]);
    refused(&kept, &["robots.op.opkit.dev (1)", "--force"]);
    assert!(cluster.crd_exists().await);
    let forced = place.stdout(&["uninstall", "--force"]);
    golden("uninstall.txt", &masked(&forced));
    assert!(!cluster.crd_exists().await);
}

/// The operator on this machine would read objects that the API server cannot convert.
#[tokio::test]
async fn an_operator_is_not_run_if_objects_must_be_converted() {
    let cluster = Cluster::start().await;
    let place = &cluster.place;
    let mut converted = model("1.0.0");
    let crd = (converted.objects.iter_mut()).find(|it| it.part == Part::Crd);
    let spec = &mut crd.unwrap().object["spec"];
    let mut old = spec["versions"][0].clone();
    old["name"] = json!("v1alpha1");
    spec["versions"][0]["storage"] = json!(false);
    spec["versions"].as_array_mut().unwrap().push(old);
    spec["conversion"] = json!({"strategy": "Webhook", "webhook": {
        "conversionReviewVersions": ["v1"],
        "clientConfig": {"service": {"namespace": NAMESPACE, "name": "op-webhook-service"}},
    }});
    place.print(&converted);
    place.stdout(&["install"]);
    let crds: Api<CustomResourceDefinition> = Api::all(cluster.client.clone());
    let before = crds.get(CRD).await.unwrap();
    let expected = "stored as v1alpha1, the operator reads them as v1";
    refused(&place.opkit(&["run"]), &[CRD, expected, "deploy"]);
    assert!(!place.root.path().join("calls").exists());
    let after = crds.get(CRD).await.unwrap();
    assert_eq!(
        before.metadata.resource_version,
        after.metadata.resource_version
    );

    // With a port, the API server is said to reach the webhook.
    place.stdout(&["run", "--webhook-port", "9443"]);
    assert!(place.read("calls").contains("--webhook-port 9443"));
}

#[test]
fn manifests_are_written_and_checked() {
    let place = Place::new();
    let yaml = place.stdout(&[
        "manifests",
        "--namespace",
        "robots",
        "--image",
        "ghcr.io/a/op:2",
    ]);
    let objects: Vec<Value> = serde_saphyr::from_multiple(&yaml).unwrap();
    let kinds: Vec<_> = objects
        .iter()
        .map(|it| it["kind"].as_str().unwrap())
        .collect();
    let expected = [
        "Namespace",
        "CustomResourceDefinition",
        "ServiceAccount",
        "Deployment",
    ];
    assert_eq!(kinds, expected);
    assert!(!yaml.contains(NAMESPACE), "{yaml}");

    let out = [
        "manifests",
        "--kustomize",
        "--out",
        "config",
        "--replicas",
        "2",
    ];
    let check = [&out[..], &["--check"]].concat();
    refused(
        &place.opkit(&check),
        &["config/crd/kustomization.yaml is missing"],
    );
    place.stdout(&out);
    place.stdout(&check);
    let default = place.read("config/default/kustomization.yaml");
    assert!(
        default.contains("- ../crd\n- ../manager\n- ../rbac\n"),
        "{default}"
    );

    // An edit, and a file that is no longer printed.
    let path = place.root.path().join("config/manager/manager.yaml");
    let edited = fs::read_to_string(&path).unwrap() + "# mine\n";
    fs::write(&path, edited).unwrap();
    let one = ["manifests", "--kustomize", "--out", "config", "--check"];
    let expected = [
        "manager.yaml differs",
        "config/manager/pod_disruption_budget.yaml is no longer printed",
        "without --check",
    ];
    refused(&place.opkit(&one), &expected);
    fs::write(place.root.path().join("config/mine.yaml"), "kind: Mine\n").unwrap();
    place.stdout(&one[..4]);
    place.stdout(&one);
    assert_eq!(
        place.read("config/mine.yaml"),
        "kind: Mine\n",
        "a file of the user"
    );
    assert!(!path.with_file_name("pod_disruption_budget.yaml").exists());
}

#[test]
fn a_crd_that_a_server_refuses_is_reported_with_its_field() {
    let place = Place::new();
    let mut wrong = model("1.0.0");
    let crd = wrong
        .objects
        .iter_mut()
        .find(|it| it.part == Part::Crd)
        .unwrap();
    let schema = "/spec/versions/0/schema/openAPIV3Schema";
    *crd.object.pointer_mut(schema).unwrap() = json!({
        "type": "object", "properties": {"size": {"type": "integer", "default": "large"}},
    });
    place.print(&wrong);
    refused(
        &place.opkit(&["manifests"]),
        &["robots.op.opkit.dev/v1 .size: default"],
    );
}

/// The command refuses a model in a format that it does not know.
#[test]
fn a_binary_of_another_version_is_reported() {
    let place = Place::new();
    let path = place.root.path().join("model.json");
    fs::write(&path, r#"{"apiVersion": "model.opkit.dev/v9"}"#).unwrap();
    refused(
        &place.opkit(&["manifests"]),
        &["model.opkit.dev/v9", "same version"],
    );
    fs::write(&path, "apiVersion: v1").unwrap();
    refused(&place.opkit(&["manifests"]), &["does not print a model"]);
}

#[test]
fn wrong_usage_exits_with_2() {
    let place = Place::new();
    for wrong in [
        &["manifests", "--check"][..],
        &["manifests", "--kustomize"],
        &["deploy", "--rollback", "--image", "a/b"],
        &["deploy", "--output", "xml"],
    ] {
        let output = place.opkit(wrong);
        assert_eq!(output.status.code(), Some(2), "{wrong:?}: {output:?}");
    }
    refused(&place.opkit(&["deploy"]), &[".opkit/kubeconfig"]);
}

/// A user who has never used the command finds an example in each help.
#[test]
fn every_command_has_an_example() {
    let root = TempDir::new().unwrap();
    let commands = [
        "manifests",
        "install",
        "uninstall",
        "deploy",
        "undeploy",
        "run",
        "test",
        "completion",
        "man",
    ];
    for command in commands {
        let output = opkit(root.path())
            .args([command, "--help"])
            .output()
            .unwrap();
        let help = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{command}");
        assert!(help.contains(&format!("\n  opkit {command}")), "{help}");
    }
}

#[test]
fn shells_and_manuals_get_their_files() {
    let root = TempDir::new().unwrap();
    let stdout = |arguments: &[&str]| {
        let output = opkit(root.path()).args(arguments).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    for shell in ["bash", "zsh", "fish", "powershell"] {
        let script = stdout(&["completion", shell]);
        assert!(script.contains("undeploy"), "{shell}");
    }
    assert_eq!(
        stdout(&["version"]),
        format!("opkit {}\n", env!("CARGO_PKG_VERSION"))
    );
    stdout(&["man", "--out", "man"]);
    let page = fs::read_to_string(root.path().join("man/opkit-deploy.1")).unwrap();
    assert!(page.contains("rollback"), "{page}");
}

#[test]
fn tests_run_on_one_control_plane_after_the_other() {
    let source = r#"
fn main() {}
#[test]
fn embedded() {
    assert_eq!(std::env::var("OPKIT_CONTROL_PLANE").as_deref(), Ok("embedded"));
}
"#;
    let root = workspace(source);
    let output = opkit(root.path()).arg("test").output().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    assert!(stdout.contains("   embedded       passed"), "{stdout}");
    let output = opkit(root.path())
        .args(["test", "--binaries"])
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(stdout.contains("   binaries       FAILED"), "{stdout}");
    refused(&output, &["tests of op failed on binaries"]);
}
