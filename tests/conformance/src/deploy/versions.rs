//! Operators with a kind in several versions: their conversion webhook ends with them, and objects
//! that are stored in another version cannot be read afterwards.

use kube::Api;
use kube::api::PostParams;
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use opkit::prelude::*;
use opkit::testing::Capability;
use opkit_deploy::{DeployError, Deployer, Progress};
use serde_json::{Value, json};

use super::{members, settings, unique};
use crate::admission::server::{Reply, WebhookServer};

/// A CRD of a test, with the versions v1alpha1 and v1.
struct Converted {
    group: String,
    kind: &'static str,
    /// URL and certificate authority of the conversion webhook.
    url: String,
    ca_bundle: String,
}

impl Converted {
    fn new(plane: &ControlPlane, kind: &'static str, server: &WebhookServer) -> Self {
        Self {
            group: format!("{}.opkit.dev", unique(plane)),
            kind,
            url: server.url("/convert"),
            ca_bundle: server.ca_bundle.clone(),
        }
    }

    fn plural(&self) -> String {
        format!("{}s", self.kind.to_lowercase())
    }

    fn name(&self) -> String {
        format!("{}.{}", self.plural(), self.group)
    }

    /// Returns the CRD that stores a version.
    fn crd(&self, stored: &str) -> Value {
        let version = |name: &str| {
            json!({
                "name": name, "served": true, "storage": name == stored,
                "schema": {"openAPIV3Schema": {"type": "object"}},
            })
        };
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": self.name()},
            "spec": {
                "group": self.group, "scope": "Namespaced",
                "names": {
                    "plural": self.plural(), "singular": self.kind.to_lowercase(),
                    "kind": self.kind, "listKind": format!("{}List", self.kind),
                },
                "versions": [version("v1"), version("v1alpha1")],
                "conversion": {"strategy": "Webhook", "webhook": {
                    "conversionReviewVersions": ["v1"],
                    "clientConfig": {"url": self.url, "caBundle": self.ca_bundle},
                }},
            },
        })
    }

    /// Returns the CRD without its conversion webhook. Objects of an unreachable webhook cannot be
    /// deleted otherwise.
    fn unconverted(&self) -> Value {
        let mut crd = self.crd("v1");
        crd["spec"]["conversion"] = json!({"strategy": "None"});
        crd
    }

    /// Creates an object, which is stored as v1alpha1.
    async fn store_old(&self, plane: &ControlPlane) -> opkit::Result {
        let gvk = GroupVersionKind::gvk(&self.group, "v1alpha1", self.kind);
        let resource = ApiResource::from_gvk_with_plural(&gvk, &self.plural());
        let objects: Api<DynamicObject> = Api::default_namespaced_with(plane.client(), &resource);
        let object = DynamicObject::new("old", &resource);
        objects.create(&PostParams::default(), &object).await?;
        Ok(())
    }
}

/// Converts objects by changing their version only.
fn convert(request: &Value) -> Reply {
    let mut objects = request["objects"].clone();
    for object in objects.as_array_mut().into_iter().flatten() {
        object["apiVersion"] = request["desiredAPIVersion"].clone();
    }
    let review = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
        "response": {
            "uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": objects,
        },
    });
    Reply::Body(200, review.to_string().into_bytes())
}

#[opkit::test]
async fn objects_of_an_old_version_do_not_stop_the_removal(plane: ControlPlane) -> opkit::Result {
    plane.require(Capability::ControllerManager)?;
    plane.require(Capability::ConversionWebhooks)?;
    plane.require(Capability::LocalServers)?;
    let deployer = Deployer::new(plane.client());
    let running = WebhookServer::start(|_, request| convert(request)).await;
    let stopped = WebhookServer::start(|_, request| convert(request)).await;
    // As `opkit add version` leaves it: the old version is still the stored one.
    let added = Converted::new(&plane, "Added", &stopped);
    // The stored version has changed, and the operator does not run any more.
    let orphan = Converted::new(&plane, "Orphan", &stopped);
    // The stored version has changed, and the operator runs until it is removed.
    let served = Converted::new(&plane, "Served", &running);
    let unused = Converted::new(&plane, "Unused", &stopped);
    drop(stopped);

    let all = [&added, &orphan, &served, &unused];
    let operator = Operator::new(format!("versions-{}", unique(&plane)));
    // A namespace of its own could not end on a real server, which lists all kinds for that.
    let settings = settings(plane.namespace());
    let mut release = super::release(operator, "1.0.0", &settings)?;
    let ignore = &mut |_: Progress| {};
    deployer
        .install(&all.map(|it| it.crd("v1alpha1")), ignore)
        .await?;
    for one in [&added, &orphan, &served] {
        one.store_old(&plane).await?;
    }
    release.add(added.crd("v1alpha1"));
    for one in [&orphan, &served, &unused] {
        release.add(one.crd("v1"));
    }
    deployer.deploy(&release, ignore).await?;

    // Without --force, CRDs with objects stay, whether their objects can be counted or not.
    let error = deployer.uninstall(&release.crds, false, ignore).await;
    let error = error.unwrap_err();
    assert!(matches!(error, DeployError::Instances { .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains(&format!("{} (1)", added.name())), "{text}");
    assert!(text.contains(&format!("{} (1)", served.name())), "{text}");
    assert!(text.contains(&orphan.name()), "{text}");
    assert!(text.contains("conversion webhook"), "{text}");
    assert!(!text.contains(&unused.name()), "{text}");

    let mut running = Some(running);
    let (operator, namespace) = (&release.operator, &release.namespace);
    let stop = &mut |progress: Progress| {
        if let Progress::Deleted { object } = progress
            && object.kind == "Deployment"
        {
            running.take();
        }
    };
    let undeployed = deployer.undeploy(operator, namespace, stop).await?;
    let mut kept = undeployed.crds.kept;
    kept.sort();
    assert_eq!(
        kept,
        [
            (added.name(), Some(1)),
            (orphan.name(), None),
            (served.name(), Some(1))
        ]
    );
    assert_eq!(undeployed.crds.deleted, [unused.name()]);
    assert_eq!(members(&plane, &release).await?, [""; 0]);
    let again = deployer.undeploy(operator, namespace, ignore).await;
    let error = again.unwrap_err();
    assert!(matches!(error, DeployError::NotDeployed { .. }), "{error}");

    // The namespace of the test could not end either.
    let crds = [&added, &orphan, &served].map(Converted::unconverted);
    deployer.install(&crds, ignore).await?;
    deployer.uninstall(&crds, true, ignore).await?;
    Ok(())
}
