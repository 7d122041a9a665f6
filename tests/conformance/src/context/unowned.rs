//! `cx.apply_unowned`: children in other namespaces and cluster-scoped children.

use std::sync::atomic::{AtomicU32, Ordering};

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod, Secret};
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::Api;
use kube::api::{Patch, PatchParams};
use opkit::client::{Effect, Rule};
use opkit::prelude::*;
use serde_json::{Value, json};

use super::{APPLIED_ANNOTATION, MANAGER, Rig, data, merge, object, secret};

/// Annotation that records children; also the name of the finalizer.
const RECORD: &str = "unowned.opkit.dev/rig.configmap";
/// Annotation of a child with the UID of its owner.
const OWNER: &str = "opkit.dev/owner";

/// Control plane with a second namespace.
struct Elsewhere {
    plane: ControlPlane,
    namespace: String,
}

impl Elsewhere {
    async fn new(plane: &ControlPlane) -> opkit::Result<Self> {
        let namespace = format!("{}-elsewhere", plane.namespace());
        let elsewhere: Namespace = object(json!({"metadata": {"name": namespace}}));
        plane.apply(elsewhere).await?;
        let owner: ConfigMap = object(json!({"metadata": {"name": "owner"}}));
        plane.apply(owner).await?;
        Ok(Self {
            plane: plane.clone(),
            namespace,
        })
    }

    /// Starts a rig that may apply secrets in both namespaces, and cluster roles.
    async fn start(&self) -> opkit::Result<Rig<ConfigMap>> {
        let namespaces = vec![self.plane.namespace().to_owned(), self.namespace.clone()];
        Rig::start_in(&self.plane, namespaces, |operator, controller| {
            let granted = operator.cross_namespace::<Secret>(|reference, _| reference.is_applied);
            granted.controller(
                controller
                    .owns::<Secret>()
                    .applies_unowned::<Secret>()
                    .applies_unowned::<ClusterRole>(),
            )
        })
        .await
    }

    fn secret(&self, name: &str, entries: &[(&str, &str)]) -> Secret {
        let mut secret = secret(name, entries);
        secret.metadata.namespace = Some(self.namespace.clone());
        secret
    }

    fn role(&self) -> ClusterRole {
        object(json!({"metadata": {"name": self.namespace}, "rules": []}))
    }

    async fn stored(&self, name: &str) -> opkit::Result<Option<Secret>> {
        self.plane.get((self.namespace.as_str(), name)).await
    }

    async fn owner(&self) -> opkit::Result<ConfigMap> {
        Ok(self.plane.get("owner").await?.expect("the owner"))
    }

    /// Returns the names of the recorded children, or `None` if there is no record.
    async fn recorded(&self) -> opkit::Result<Option<Vec<String>>> {
        let owner = self.owner().await?;
        let finalizers = owner.finalizers().iter();
        let is_held = finalizers.filter(|name| *name == RECORD).count() == 1;
        let record = owner.annotations().get(RECORD);
        assert_eq!(
            is_held,
            record.is_some(),
            "finalizer and record exist together"
        );
        let Some(record) = record else {
            return Ok(None);
        };
        let children: Vec<Value> = serde_json::from_str(record)?;
        let names = children.iter().map(|child| child["name"].as_str());
        Ok(Some(names.flatten().map(str::to_owned).collect()))
    }

    /// Changes a secret in the second namespace as another user than the operator.
    async fn change(&self, name: &str, patch: Value) -> opkit::Result<Secret> {
        let api: Api<Secret> = Api::namespaced(self.plane.client(), &self.namespace);
        let params = PatchParams {
            field_manager: Some("other".into()),
            ..Default::default()
        };
        Ok(api.patch(name, &params, &Patch::Merge(patch)).await?)
    }

    /// Deletes the owner, which would keep its namespace, and the objects outside of the namespace.
    async fn end(self, rig: Rig<ConfigMap>) -> opkit::Result {
        if self.plane.get::<ConfigMap>("owner").await?.is_some() {
            self.plane.delete::<ConfigMap>("owner").await?;
            self.plane.eventually_gone::<ConfigMap>("owner").await?;
        }
        let namespace = self.namespace.as_str();
        assert_eq!(self.plane.get::<ClusterRole>(namespace).await?, None);
        rig.stop().await?;
        self.plane.delete::<Namespace>(namespace).await
    }
}

#[opkit::test]
async fn a_child_is_recorded_annotated_and_applied(plane: ControlPlane) -> opkit::Result {
    let there = Elsewhere::new(&plane).await?;
    let mut rig = there.start().await?;
    let (owner, cx) = rig.run().await?;
    rig.writes();
    let child = cx
        .apply_unowned(there.secret("child", &[("a", "1")]))
        .await?;
    assert_eq!(
        rig.writes(),
        [
            "patch configmaps owner",
            "create secrets ",
            "patch secrets child",
            "patch secrets child"
        ],
        "the record is written first"
    );
    cx.apply_unowned(there.role()).await?;
    assert_eq!(
        there.owner().await?.annotations()[RECORD],
        format!(
            r#"[{{"kind":"Secret","namespace":"{0}","name":"child"}},{{"group":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"{0}"}}]"#,
            there.namespace
        )
    );
    assert!(there.recorded().await?.is_some());
    let stored = there.stored("child").await?.unwrap();
    assert_eq!(*child, stored);
    assert_eq!(stored.metadata.owner_references, None);
    let uid = owner.metadata.uid.clone().unwrap();
    let mark = format!("{}/owner:{uid}", plane.namespace());
    assert_eq!(stored.annotations()[OWNER], mark);
    assert!(stored.annotations()[APPLIED_ANNOTATION].starts_with(&format!("{MANAGER}:")));

    // No request is sent while nothing differs.
    let (_, cx) = rig.run().await?;
    rig.writes();
    cx.apply_unowned(there.secret("child", &[("a", "1")]))
        .await?;
    cx.apply_unowned(there.role()).await?;
    assert_eq!(cx.prune().await?, 0);
    assert_eq!(rig.writes(), [""; 0]);
    // A field that is no longer applied is removed.
    cx.apply_unowned(there.secret("child", &[("b", "2")]))
        .await?;
    let stored = there.stored("child").await?.unwrap();
    assert_eq!(data(&stored), [("b", "2")]);
    there.end(rig).await
}

#[opkit::test]
async fn a_change_of_a_child_triggers_a_reconcile_of_its_owner(
    plane: ControlPlane,
) -> opkit::Result {
    let there = Elsewhere::new(&plane).await?;
    let mut rig = there.start().await?;
    let (owner, cx) = rig.run().await?;
    let child = || there.secret("child", &[("a", "1")]);
    cx.apply_unowned(child()).await?;
    let (_, cx) = rig.run().await?;
    cx.apply_unowned(child()).await?;
    quiet(&mut rig).await;
    there
        .change("child", json!({"data": {"a": "Mg=="}}))
        .await?;
    let (_, cx) = next(&mut rig).await.expect("a reconcile of the owner");
    cx.apply_unowned(child()).await?;
    assert_eq!(data(&there.stored("child").await?.unwrap()), [("a", "1")]);

    // A secret with the annotations, but without a record, does not lead to a reconcile.
    quiet(&mut rig).await;
    let uid = owner.metadata.uid.clone().unwrap();
    let mut forged = there.secret("forged", &[]);
    forged.metadata.annotations = Some(
        [
            (
                OWNER.to_owned(),
                format!("{}/owner:{uid}", plane.namespace()),
            ),
            (
                APPLIED_ANNOTATION.to_owned(),
                format!("{MANAGER}:0123456789abcdef"),
            ),
        ]
        .into(),
    );
    plane.apply(forged).await?;
    there
        .change("forged", json!({"data": {"a": "Mg=="}}))
        .await?;
    assert!(next(&mut rig).await.is_none());
    there.end(rig).await
}

/// Returns the response to a request that is not allowed; clients do not retry it.
fn forbidden() -> Effect {
    let status = kube::core::Status::failure("not now", "Forbidden");
    Effect::Fail(Box::new(status.with_code(403)))
}

/// Waits until there are no more reconciles.
async fn quiet(rig: &mut Rig<ConfigMap>) {
    while next(rig).await.is_some() {}
}

async fn next(rig: &mut Rig<ConfigMap>) -> Option<(Arc<ConfigMap>, Context)> {
    let next = tokio::time::timeout(Duration::from_millis(500), rig.contexts.recv());
    next.await.ok().flatten()
}

#[opkit::test]
async fn children_that_a_run_did_not_apply_are_pruned(plane: ControlPlane) -> opkit::Result {
    let there = Elsewhere::new(&plane).await?;
    let mut rig = there.start().await?;
    let (_, cx) = rig.run().await?;
    for name in ["one", "two"] {
        cx.apply_unowned(there.secret(name, &[])).await?;
    }
    cx.apply_unowned(there.role()).await?;
    assert_eq!(cx.prune().await?, 0);

    let (_, cx) = rig.run().await?;
    cx.apply_unowned(there.secret("two", &[])).await?;
    rig.writes();
    assert_eq!(cx.prune().await?, 2);
    assert_eq!(
        rig.writes(),
        ["delete secrets one", "patch configmaps owner"]
    );
    assert_eq!(there.stored("one").await?, None);
    assert_eq!(
        plane.get::<ClusterRole>(there.namespace.as_str()).await?,
        None
    );
    assert_eq!(there.recorded().await?, Some(vec!["two".to_owned()]));

    // A child that stays because of its finalizers stays in the record too.
    there
        .change(
            "two",
            json!({"metadata": {"finalizers": ["rig.opkit.dev/a"]}}),
        )
        .await?;
    let (_, cx) = rig.run().await?;
    assert_eq!(cx.prune().await?, 1);
    assert_eq!(there.recorded().await?, Some(vec!["two".to_owned()]));
    there
        .change("two", json!({"metadata": {"finalizers": null}}))
        .await?;
    plane
        .eventually_gone::<Secret>((there.namespace.as_str(), "two"))
        .await?;
    let (_, cx) = rig.run().await?;
    assert_eq!(cx.prune().await?, 0);
    assert_eq!(
        there.recorded().await?,
        None,
        "the finalizer is removed too"
    );
    there.end(rig).await
}

#[opkit::test]
async fn annotations_or_a_record_alone_have_no_effect(plane: ControlPlane) -> opkit::Result {
    let there = Elsewhere::new(&plane).await?;
    let mut rig = there.start().await?;
    let (owner, cx) = rig.run().await?;
    cx.apply_unowned(there.secret("ours", &[])).await?;
    let uid = owner.metadata.uid.clone().unwrap();
    let marks = |owner: &str, manager: &str| {
        Some(
            [
                (OWNER.to_owned(), owner.to_owned()),
                (
                    APPLIED_ANNOTATION.to_owned(),
                    format!("{manager}:0123456789abcdef"),
                ),
            ]
            .into(),
        )
    };
    let of_owner = format!("{}/owner:{uid}", plane.namespace());
    // All annotations, but no record.
    let mut marked = there.secret("marked", &[]);
    marked.metadata.annotations = marks(&of_owner, MANAGER);
    plane.apply(marked).await?;
    // A record by a user who may write the owner, with missing or wrong annotations on the object.
    plane.apply(there.secret("plain", &[])).await?;
    let mut other_owner = there.secret("other-owner", &[]);
    other_owner.metadata.annotations =
        marks(&format!("{}/owner:other", plane.namespace()), MANAGER);
    plane.apply(other_owner).await?;
    let mut other_manager = there.secret("other-manager", &[]);
    other_manager.metadata.annotations = marks(&of_owner, "rig.other");
    plane.apply(other_manager).await?;
    let forged = ["ours", "plain", "other-owner", "other-manager"];
    let forged =
        forged.map(|name| json!({"kind": "Secret", "namespace": there.namespace, "name": name}));
    let forged = serde_json::to_string(&forged)?;
    merge::<ConfigMap>(
        &plane,
        "owner",
        json!({"metadata": {"annotations": {RECORD: forged}}}),
    )
    .await?;

    let (_, cx) = rig.run().await?;
    assert_eq!(cx.prune().await?, 1, "only the operator's own child");
    let stays = ["marked", "plain", "other-owner", "other-manager"];
    for name in stays {
        assert!(there.stored(name).await?.is_some(), "{name}");
        let error = cx.apply_unowned(there.secret(name, &[("a", "1")])).await;
        match name {
            // A user who annotates an object in this way agrees to it, and the owner applies it as
            // well.
            "marked" => drop(error?),
            _ => assert!(error.unwrap_err().is_not_ours(), "{name}"),
        }
    }
    plane.delete::<ConfigMap>("owner").await?;
    plane.eventually_gone::<ConfigMap>("owner").await?;
    for name in &stays[1..] {
        assert!(there.stored(name).await?.is_some(), "{name}");
    }
    there.end(rig).await
}

#[opkit::test]
async fn an_object_of_another_client_is_neither_changed_nor_recorded(
    plane: ControlPlane,
) -> opkit::Result {
    let there = Elsewhere::new(&plane).await?;
    let theirs = plane
        .apply(there.secret("child", &[("theirs", "1")]))
        .await?;
    let mut rig = there.start().await?;
    let (_, cx) = rig.run().await?;
    let error = cx
        .apply_unowned(there.secret("child", &[]))
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "Secret {}/child exists and does not have the annotations of a child of ConfigMap {}/owner",
            there.namespace,
            plane.namespace()
        )
    );
    assert_eq!(there.stored("child").await?, Some(theirs));
    assert_eq!(there.recorded().await?, None);
    there.end(rig).await
}

#[opkit::test]
async fn undeclared_and_ungranted_kinds_are_refused(plane: ControlPlane) -> opkit::Result {
    let there = Elsewhere::new(&plane).await?;
    let namespaces = vec![plane.namespace().to_owned(), there.namespace.clone()];
    let mut rig: Rig<ConfigMap> = Rig::start_in(&plane, namespaces, |operator, controller| {
        operator.controller(controller.owns::<Secret>().applies_unowned::<Secret>())
    })
    .await?;
    let (_, cx) = rig.run().await?;
    rig.writes();
    let error = cx
        .apply_unowned(there.secret("child", &[]))
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "ConfigMap {}/owner may not apply Secret {}/child in another namespace: declare .cross_namespace::<Secret>(..) with a function that grants it",
            plane.namespace(),
            there.namespace
        )
    );
    let pod: Pod = object(json!({"metadata": {"name": "pod"}}));
    let error = cx.apply_unowned(pod).await.unwrap_err().to_string();
    assert!(
        error.contains("declare it with .applies_unowned::<Pod>()"),
        "{error}"
    );
    assert_eq!(rig.writes(), [""; 0]);
    // No grant is needed in the owner's namespace.
    cx.apply_unowned(secret("near", &[])).await?;
    assert!(plane.get::<Secret>("near").await?.is_some());
    there.end(rig).await
}

#[opkit::test]
async fn a_run_that_ends_at_any_point_leaves_nothing_behind(plane: ControlPlane) -> opkit::Result {
    let there = Elsewhere::new(&plane).await?;
    let mut rig = there.start().await?;
    let (_, cx) = rig.run().await?;
    // The run stops between the record and the creation.
    let refused = || Rule::new(forbidden()).resource("secrets");
    rig.seam.add(refused().verb("create").times(1));
    assert!(cx.apply_unowned(there.secret("child", &[])).await.is_err());
    assert_eq!(there.recorded().await?, Some(vec!["child".to_owned()]));
    let (_, cx) = rig.run().await?;
    assert_eq!(cx.prune().await?, 0);
    assert_eq!(there.recorded().await?, None);

    // The record cannot be written: nothing is applied.
    let (_, cx) = rig.run().await?;
    rig.seam.add(
        Rule::new(forbidden())
            .resource("configmaps")
            .verb("patch")
            .times(1),
    );
    assert!(cx.apply_unowned(there.secret("child", &[])).await.is_err());
    assert_eq!(there.stored("child").await?, None);

    // The run stops between the deletion and the removal of the record.
    cx.apply_unowned(there.secret("child", &[])).await?;
    let (_, cx) = rig.run().await?;
    rig.seam.add(
        Rule::new(forbidden())
            .resource("configmaps")
            .verb("patch")
            .times(1),
    );
    assert!(cx.prune().await.is_err());
    assert_eq!(there.stored("child").await?, None);
    assert_eq!(there.recorded().await?, Some(vec!["child".to_owned()]));
    let (_, cx) = rig.run().await?;
    assert_eq!(cx.prune().await?, 0);
    assert_eq!(there.recorded().await?, None);

    // After a restart, children that another process applied are found and deleted.
    let (_, cx) = rig.run().await?;
    cx.apply_unowned(there.secret("child", &[])).await?;
    rig.stop().await?;
    let mut rig = there.start().await?;
    let (_, cx) = rig.run().await?;
    assert_eq!(cx.prune().await?, 1);
    assert_eq!(there.stored("child").await?, None);
    there.end(rig).await
}

#[opkit::test]
async fn children_are_deleted_with_their_owner(plane: ControlPlane) -> opkit::Result {
    let there = Elsewhere::new(&plane).await?;
    let mut rig = there.start().await?;
    let (_, cx) = rig.run().await?;
    let mut held = there.secret("held", &[]);
    held.metadata.finalizers = Some(vec!["rig.opkit.dev/a".to_owned()]);
    cx.apply_unowned(held).await?;
    cx.apply_unowned(there.secret("child", &[])).await?;
    cx.apply_unowned(there.role()).await?;
    plane.delete::<ConfigMap>("owner").await?;
    let child = (there.namespace.as_str(), "child");
    plane.eventually_gone::<Secret>(child).await?;
    plane
        .eventually_gone::<ClusterRole>(there.namespace.as_str())
        .await?;
    // The owner waits for all children; deleted ones are removed from the record afterwards.
    let holds_one = |owner: &ConfigMap| {
        let record = owner.annotations().get(RECORD);
        let record = record.and_then(|record| serde_json::from_str::<Vec<Value>>(record).ok());
        record.is_some_and(|children| children.len() == 1)
    };
    plane.eventually("owner", holds_one).await?;
    assert_eq!(there.recorded().await?, Some(vec!["held".to_owned()]));
    there
        .change("held", json!({"metadata": {"finalizers": null}}))
        .await?;
    plane.eventually_gone::<ConfigMap>("owner").await?;
    assert_eq!(there.stored("held").await?, None);
    there.end(rig).await
}

#[opkit::test]
async fn children_outlive_the_finalizer_function_of_their_owner(
    plane: ControlPlane,
) -> opkit::Result {
    let there = Elsewhere::new(&plane).await?;
    let namespaces = vec![plane.namespace().to_owned(), there.namespace.clone()];
    let calls: Arc<AtomicU32> = Arc::default();
    let counted = calls.clone();
    let child = ObjectKey::from((there.namespace.as_str(), "child"));
    let mut rig: Rig<ConfigMap> = Rig::start_in(&plane, namespaces, |operator, controller| {
        let granted = operator.cross_namespace::<Secret>(|_, _| true);
        let clean_up = move |_: Arc<ConfigMap>, cx: Context| {
            let is_there = cx.get::<Secret>(child.clone()).unwrap().is_some();
            // The finalizer's function may still need the child.
            counted.fetch_add(u32::from(is_there), Ordering::SeqCst);
            std::future::ready(Ok::<_, Error>(Cleanup::Done))
        };
        let controller = controller.finalizer("rig.opkit.dev/cleanup", clean_up);
        granted.controller(controller.applies_unowned::<Secret>())
    })
    .await?;
    let (_, cx) = rig.run().await?;
    cx.apply_unowned(there.secret("child", &[])).await?;
    plane.delete::<ConfigMap>("owner").await?;
    plane.eventually_gone::<ConfigMap>("owner").await?;
    assert_eq!(there.stored("child").await?, None);
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    there.end(rig).await
}

#[opkit::test]
async fn an_invalid_record_keeps_the_owner(plane: ControlPlane) -> opkit::Result {
    let there = Elsewhere::new(&plane).await?;
    let mut rig = there.start().await?;
    let (_, cx) = rig.run().await?;
    cx.apply_unowned(there.secret("child", &[])).await?;
    let record = |record: &str| json!({"metadata": {"annotations": {RECORD: record}}});
    let good = there.owner().await?.annotations()[RECORD].clone();
    merge::<ConfigMap>(&plane, "owner", record("children")).await?;
    let (_, cx) = rig.run().await?;
    let unreadable = format!(
        "cannot read the annotation {RECORD} of ConfigMap {}/owner, which records its children",
        plane.namespace()
    );
    let error = cx
        .apply_unowned(there.secret("other", &[]))
        .await
        .unwrap_err();
    assert_eq!(error.to_string(), unreadable);
    assert_eq!(cx.prune().await.unwrap_err().to_string(), unreadable);
    // A kind that the operator does not declare, or no longer declares.
    let foreign = good.replace("Secret", "Pod");
    merge::<ConfigMap>(&plane, "owner", record(&foreign)).await?;
    plane.delete::<ConfigMap>("owner").await?;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(
        there.recorded().await?,
        Some(vec!["child".to_owned()]),
        "the record is kept"
    );
    merge::<ConfigMap>(&plane, "owner", record(&good)).await?;
    plane.eventually_gone::<ConfigMap>("owner").await?;
    assert_eq!(there.stored("child").await?, None);
    there.end(rig).await
}
