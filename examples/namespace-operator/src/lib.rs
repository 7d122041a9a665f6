//! An operator that gives namespaces their quota, limits and network policy. It defines no kind:
//! users put a label on a Namespace, and take it off again.
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

/// The label that says how much a namespace may use.
pub const SIZE: &str = "namespace.opkit.dev/size";
/// The name of everything that this operator makes.
pub const NAME: &str = "namespace-operator";

/// The whole operator.
pub fn operator() -> Operator {
    Operator::new("namespace-operator").controller(
        // Labels are metadata: nothing else of the namespaces is asked for or cached.
        Controller::metadata(reconcile)
            .owns::<ResourceQuota>()
            .owns::<LimitRange>()
            .owns::<NetworkPolicy>()
            // Not `label_selector` alone: a namespace that has just lost the label would not pass,
            // and keep its children.
            .primary(|namespaces| namespaces.only(predicate::labels_changed())),
    )
}

/// How much a namespace may use.
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

/// Gives one namespace what its label asks for, or takes it away. A namespace that is being deleted
/// does not come here: Kubernetes takes everything out of it, and lets nothing new in.
async fn reconcile(namespace: Arc<PartialObjectMeta<Namespace>>, cx: Context) -> Result<Action> {
    if let Some(text) = namespace.labels().get(SIZE) {
        let Some(size) = Size::parse(text) else {
            // An early return prunes nothing: a typing error does not open the namespace to the
            // network.
            let note = format!("the label {SIZE} is {text:?}, not small or large");
            cx.event(Warning, "UnknownSize", note.as_str());
            return Err(Error::terminal(Error::msg(note)));
        };
        // The owner is in no namespace, so each child says that it is in this one.
        let name = namespace.name_any();
        cx.apply(quota(&name, size)).await?;
        cx.apply(limits(&name)).await?;
        cx.apply(network_policy(&name)).await?;
    }
    cx.prune().await?;
    Ok(Action::await_change())
}
