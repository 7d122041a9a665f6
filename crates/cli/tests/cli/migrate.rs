//! `opkit migrate storage` against a control plane in another process.

use std::collections::BTreeMap;

use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{ListParams, PostParams, WatchEvent, WatchParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use serde_json::json;

use super::*;

const CRD: &str = "robots.fleet.opkit.dev";

/// Returns the CRD with three versions, of which `storage` is the storage version.
pub(super) fn crd(storage: &str) -> CustomResourceDefinition {
    let versions = ["v1", "v1beta1", "v1alpha1"].map(|name| {
        json!({
            "name": name, "served": true, "storage": name == storage,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                "spec": {"type": "object", "properties": {"size": {"type": "integer"}}},
            }}},
        })
    });
    serde_json::from_value(json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": CRD},
        "spec": {
            "group": "fleet.opkit.dev", "scope": "Namespaced",
            "names": {"plural": "robots", "kind": "Robot"}, "versions": versions,
        },
    }))
    .unwrap()
}

/// Control plane in a process of its own, with stored robots.
pub(super) struct Plane {
    pub(super) root: TempDir,
    _child: Killed,
    pub(super) client: kube::Client,
}

impl Plane {
    pub(super) async fn start() -> Self {
        let root = TempDir::new().unwrap();
        let mut up = opkit(root.path());
        up.args(["cluster", "up", "--no-controllers"]);
        let child = Killed(up.stdout(Stdio::null()).spawn().unwrap());
        let path = root.path().join(".opkit/kubeconfig");
        wait(|| fs::read_to_string(&path).is_ok_and(|text| text.contains("https://127.0.0.1:")));
        Self {
            client: client(&path).await,
            root,
            _child: child,
        }
    }

    pub(super) fn crds(&self) -> Api<CustomResourceDefinition> {
        Api::all(self.client.clone())
    }

    fn robots(&self, version: &str) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk("fleet.opkit.dev", version, "Robot");
        let resource = ApiResource::from_gvk_with_plural(&kind, "robots");
        Api::default_namespaced_with(self.client.clone(), &resource)
    }

    /// Replaces the CRD with one that has another storage version.
    async fn store_as(&self, storage: &str) {
        let mut changed = crd(storage);
        let current = self.crds().get(CRD).await.unwrap();
        changed.metadata.resource_version = current.metadata.resource_version;
        let post = PostParams::default();
        self.crds().replace(CRD, &post, &changed).await.unwrap();
    }

    /// Creates robots of a version.
    async fn create(&self, version: &str, names: std::ops::Range<usize>) {
        let (api, post) = (&self.robots(version), &PostParams::default());
        let created = stream::iter(names).map(|at| async move {
            let robot = serde_json::from_value(json!({
                "apiVersion": format!("fleet.opkit.dev/{version}"), "kind": "Robot",
                "metadata": {"name": format!("robot-{at:05}")}, "spec": {"size": at},
            }))
            .unwrap();
            api.create(post, &robot).await.map(drop)
        });
        let created = created.buffer_unordered(16);
        created.try_collect::<()>().await.unwrap();
    }

    async fn stored_versions(&self) -> Vec<String> {
        let status = self.crds().get(CRD).await.unwrap().status.unwrap();
        status.stored_versions.unwrap()
    }

    /// Returns the resourceVersion of each robot by its name, and of the list. Each write of a
    /// robot gives it another one, and the server writes an unchanged robot only if it was stored
    /// in another version.
    async fn written(&self) -> (BTreeMap<String, String>, String) {
        let params = ListParams::default();
        let list = self.robots("v1").list_metadata(&params).await.unwrap();
        let robots = list.items.into_iter().map(|robot| {
            let version = robot.metadata.resource_version.unwrap();
            (robot.metadata.name.unwrap(), version)
        });
        (robots.collect(), list.metadata.resource_version.unwrap())
    }

    /// Returns the command that migrates the robots.
    fn migrate(&self, rate: usize) -> Command {
        let mut command = opkit(self.root.path());
        command.args(["migrate", "storage", "robots", "--rate", &rate.to_string()]);
        command.args(["--kubeconfig", ".opkit/kubeconfig"]);
        command
    }
}

/// The variable `OPKIT_MIGRATION_OBJECTS` sets the number of objects.
#[tokio::test]
async fn a_killed_migration_is_started_again() {
    let count = std::env::var("OPKIT_MIGRATION_OBJECTS").map_or(1_000, |it| it.parse().unwrap());
    let plane = Plane::start().await;
    let post = PostParams::default();
    plane.crds().create(&post, &crd("v1alpha1")).await.unwrap();
    plane.create("v1alpha1", 0..count / 2).await;
    plane.store_as("v1beta1").await;
    plane.create("v1beta1", count / 2..count).await;
    plane.store_as("v1").await;
    assert_eq!(plane.stored_versions().await, ["v1alpha1", "v1beta1", "v1"]);
    let (before, position) = plane.written().await;
    assert_eq!(before.len(), count);

    // The rate leaves two thirds of the time after the watch has reported a third of the robots.
    let watch = WatchParams::default();
    let events = plane.robots("v1").watch(&watch, &position).await.unwrap();
    let mut first = plane.migrate(count / 2);
    let mut first = Killed(first.stdout(Stdio::null()).spawn().unwrap());
    let rewritten = events.try_filter(|event| {
        let is_rewrite = matches!(event, WatchEvent::Modified(_));
        async move { is_rewrite }
    });
    let rewritten: Vec<_> = rewritten.take(count / 3).try_collect().await.unwrap();
    assert_eq!(rewritten.len(), count / 3);
    first.0.kill().unwrap();
    let status = first.0.wait().unwrap();
    assert_eq!(status.code(), None, "a signal ended the process");

    let (middle, _) = plane.written().await;
    let changed = |robots: &BTreeMap<String, String>, since: &BTreeMap<String, String>| {
        let changed = robots.iter().filter(|(name, at)| since[*name] != **at);
        changed.count()
    };
    let done = changed(&middle, &before);
    assert!((count / 3..count).contains(&done), "{done} of {count}");
    assert_eq!(plane.stored_versions().await.len(), 3, "not cleaned yet");

    let second = plane.migrate(0).output().unwrap();
    let stdout = String::from_utf8_lossy(&second.stdout);
    assert!(second.status.success(), "{second:?}");
    assert!(
        stdout.contains(" objects, status.storedVersions is v1\n"),
        "{stdout}"
    );
    let (after, _) = plane.written().await;
    assert_eq!(changed(&after, &before), count, "every robot is rewritten");
    assert_eq!(changed(&after, &middle), count - done, "and only once");
    assert_eq!(plane.stored_versions().await, ["v1"]);

    let third = plane.migrate(0).output().unwrap();
    assert_eq!(
        String::from_utf8_lossy(&third.stdout),
        "   robots.fleet.opkit.dev  all objects are stored as v1\n"
    );
    assert_eq!(plane.written().await.0, after);
}

#[tokio::test]
async fn a_resource_that_cannot_be_migrated_is_reported() {
    let plane = Plane::start().await;
    let migrate = |resource: &str| {
        let mut command = opkit(plane.root.path());
        command.args(["migrate", "storage", resource]);
        command.args(["--kubeconfig", ".opkit/kubeconfig"]);
        command.output().unwrap()
    };
    refused(&migrate("pods"), &["pods is not a custom resource"]);
    refused(&migrate("robots"), &["robots"]);
}
