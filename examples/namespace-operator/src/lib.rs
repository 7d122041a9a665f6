//! An operator that creates the quota, limits and network policy of namespaces. It defines no kind:
//! users set a label on a Namespace, and remove it.
//!
//! ```yaml
//! apiVersion: v1
//! kind: Namespace
//! metadata:
//!   name: team-red
//!   labels:
//!     namespace.opkit.dev/size: small
//! ```

mod children;

use k8s_openapi::api::core::v1::{LimitRange, Namespace, ResourceQuota};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use kube::core::PartialObjectMeta;
use opkit::client::{Kind, MetadataClient, Patch, WriteOptions};
use opkit::prelude::*;
use opkit::serde_json::json;

use children::{limits, network_policy, quota};

/// Label that selects the size of a namespace.
pub const SIZE: &str = "namespace.opkit.dev/size";
/// Annotation with the size that is in force, so that users see that their label took effect.
pub const APPLIED: &str = "namespace.opkit.dev/applied-size";
/// Name of all objects that this operator creates.
pub const NAME: &str = "namespace-operator";

/// Returns the operator.
pub fn operator() -> Operator {
    Operator::new("namespace-operator")
        .controller(
            // Labels are metadata: nothing else of the namespaces is requested or cached.
            Controller::metadata(reconcile)
                .owns::<ResourceQuota>()
                .owns::<LimitRange>()
                .owns::<NetworkPolicy>()
                // Not only `label_selector`: a namespace that has just lost the label would not
                // pass, and would keep its children.
                .primary(|namespaces| namespaces.only(predicate::labels_changed())),
        )
        // The annotation is written by a request of its own, which opkit cannot infer.
        .rule(PolicyRule::new("", ["namespaces"], ["patch"]))
}

/// Size of a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Size {
    Small,
    Large,
}

impl Size {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "small" => Some(Self::Small),
            "large" => Some(Self::Large),
            _ => None,
        }
    }
}

/// Applies the objects of one namespace as its label selects, or prunes them. This is not called
/// for a namespace that is being deleted: Kubernetes deletes all objects in it, and refuses new
/// ones.
async fn reconcile(namespace: Arc<PartialObjectMeta<Namespace>>, cx: Context) -> Result<Action> {
    let label = namespace.labels().get(SIZE);
    if let Some(text) = label {
        let Some(size) = Size::parse(text) else {
            // An early return prunes nothing: a typing error does not open the namespace to the
            // network.
            let note = format!("the label {SIZE} is {text:?}, not small or large");
            cx.event(Warning, "UnknownSize", note.as_str());
            return Err(Error::terminal(Error::msg(note)));
        };
        // The owner is cluster-scoped, so each child must set its namespace.
        let name = namespace.name_any();
        cx.apply(quota(&name, size)).await?;
        cx.apply(limits(&name)).await?;
        cx.apply(network_policy(&name)).await?;
    }
    cx.prune().await?;
    annotate(&namespace, label.map(String::as_str), &cx).await?;
    Ok(Action::await_change())
}

/// Writes the size that is in force to the namespace, or removes the annotation. Reads and sends
/// nothing but metadata.
async fn annotate(
    namespace: &PartialObjectMeta<Namespace>,
    size: Option<&str>,
    cx: &Context,
) -> Result<()> {
    if namespace.annotations().get(APPLIED).map(String::as_str) == size {
        return Ok(());
    }
    let options = WriteOptions::for_manager(cx.field_manager());
    let client = MetadataClient::new(cx.client()).with(options);
    let patch = json!({"metadata": {"annotations": {APPLIED: size}}});
    let (kind, patch) = (Kind::of::<Namespace>(), Patch::Merge(&patch));
    client.patch(&kind, namespace.name_any(), patch).await?;
    Ok(())
}
