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
use opkit::prelude::*;

use children::{limits, network_policy, quota};

/// Label that selects the size of a namespace.
pub const SIZE: &str = "namespace.opkit.dev/size";
/// Name of all objects that this operator creates.
pub const NAME: &str = "namespace-operator";

/// Returns the operator.
pub fn operator() -> Operator {
    Operator::new("namespace-operator").controller(
        // Labels are metadata: nothing else of the namespaces is requested or cached.
        Controller::metadata(reconcile)
            .owns::<ResourceQuota>()
            .owns::<LimitRange>()
            .owns::<NetworkPolicy>()
            // Not only `label_selector`: a namespace that has just lost the label would not pass,
            // and would keep its children.
            .primary(|namespaces| namespaces.only(predicate::labels_changed())),
    )
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
    if let Some(text) = namespace.labels().get(SIZE) {
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
    Ok(Action::await_change())
}
