use std::sync::Arc;

use k8s_openapi::api::rbac::v1::Role;
use opkit_apiserver::{Options, Server};
use opkit_client::{ClientOptions, DiskCache, Seam};
use tempfile::TempDir;

use super::*;

const CONFIG: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {color: red}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: web}]}
";

fn crd(scope: &str) -> String {
    format!(
        "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: robots.robot.opkit.dev}}
spec:
  group: robot.opkit.dev
  scope: {scope}
  names: {{plural: robots, singular: robot, kind: Robot}}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {{openAPIV3Schema: {{type: object, x-kubernetes-preserve-unknown-fields: true}}}}
"
    )
}

const ROBOT: &str = "
apiVersion: robot.opkit.dev/v1
kind: Robot
metadata: {name: one}
";

/// One run of the command: a new control plane, and the discovery that it finds in `directory`.
struct Run {
    installer: Installer,
    seam: Seam,
    files: TempDir,
    _server: Arc<Server>,
}

impl Run {
    fn new(directory: &Path) -> Self {
        let server = Arc::new(Server::start(Options::default()).unwrap());
        let seam = Seam::new();
        let kube = ClientOptions::default().in_process(server.service(), "default");
        let kube = seam.wrap(kube);
        let discovery = Discovery::with_disk(kube.clone(), DiskCache::at(directory));
        Self {
            installer: Installer::new(kube, discovery),
            seam,
            files: TempDir::new().unwrap(),
            _server: server,
        }
    }

    /// Returns the number of discovery requests.
    fn discoveries(&self) -> usize {
        let exchanges = self.seam.exchanges();
        let paths = exchanges.iter().map(|it| it.info.path.as_str());
        paths
            .filter(|path| ["/api", "/apis"].contains(path))
            .count()
    }

    async fn apply(&self, yaml: &str) -> Result<Vec<String>> {
        let path = self.files.path().join("sample.yaml");
        fs::write(&path, yaml).unwrap();
        self.installer.apply_file(&path).await
    }
}

#[tokio::test]
async fn discovery_is_shared_between_runs() {
    let directory = TempDir::new().unwrap();
    let first = Run::new(directory.path());
    let applied = first.apply(CONFIG).await.unwrap();
    assert_eq!(applied, ["configmap/settings", "deployment/web"]);
    assert_eq!(first.discoveries(), 2, "/api and /apis");
    let second = Run::new(directory.path());
    second.apply(CONFIG).await.unwrap();
    assert_eq!(second.discoveries(), 0);
}

#[tokio::test]
async fn a_kind_that_changed_since_the_last_run_is_found() {
    let directory = TempDir::new().unwrap();
    for scope in ["Namespaced", "Cluster"] {
        let run = Run::new(directory.path());
        let crds = run.installer.install_crds(&crd(scope), None).await.unwrap();
        assert_eq!(crds.len(), 1);
        assert_eq!(run.apply(ROBOT).await.unwrap(), ["robot/one"]);
    }
}

#[tokio::test]
async fn an_object_that_cannot_be_applied_is_an_error() {
    let directory = TempDir::new().unwrap();
    let run = Run::new(directory.path());
    for (yaml, expected) in [
        (
            ROBOT,
            "the control plane has no kind Robot in robot.opkit.dev/v1",
        ),
        ("kind: ConfigMap", "an object has no apiVersion and kind"),
        ("apiVersion: v1\nkind: ConfigMap", "an object has no name"),
        (
            "apiVersion: a/b/c\nkind: X\nmetadata: {name: x}",
            "a/b/c is not an apiVersion",
        ),
    ] {
        let error = run.apply(yaml).await.unwrap_err();
        assert_eq!(error.root_cause().to_string(), expected);
    }
}

const ROLES: &str = "
apiVersion: v1
kind: ServiceAccount
metadata: {name: robot, namespace: default}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: kept, namespace: default}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: dropped, namespace: default}
";

#[tokio::test]
async fn roles_that_are_no_longer_in_the_manifests_are_deleted() {
    let directory = TempDir::new().unwrap();
    let run = Run::new(directory.path());
    let account = run.installer.install_permissions(ROLES, "").await.unwrap();
    let account = account.unwrap();
    assert_eq!(account.user(), "system:serviceaccount:default:robot");

    let fewer = ROLES.split("---").take(2).collect::<Vec<_>>().join("---");
    run.installer
        .install_permissions(&fewer, ROLES)
        .await
        .unwrap();
    let roles = |name: &'static str| run.installer.client.get::<Role>(("default", name));
    assert!(roles("kept").await.is_ok());
    assert!(roles("dropped").await.unwrap_err().is_not_found());
}
