//! Children of a namespace.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    LimitRange, LimitRangeItem, LimitRangeSpec, ResourceQuota, ResourceQuotaSpec,
};
use k8s_openapi::api::networking::v1::{
    NetworkPolicy, NetworkPolicyIngressRule, NetworkPolicyPeer, NetworkPolicySpec,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};

use crate::{NAME, Size};

fn metadata(namespace: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(NAME.to_owned()),
        namespace: Some(namespace.to_owned()),
        ..Default::default()
    }
}

fn quantities<const N: usize>(of: [(&str, &str); N]) -> BTreeMap<String, Quantity> {
    of.map(|(name, quantity)| (name.to_owned(), Quantity(quantity.to_owned())))
        .into()
}

/// Returns the limit for the total requests of all pods in the namespace.
pub(crate) fn quota(namespace: &str, size: Size) -> ResourceQuota {
    let (cpu, memory) = match size {
        Size::Small => ("2", "4Gi"),
        Size::Large => ("16", "64Gi"),
    };
    ResourceQuota {
        metadata: metadata(namespace),
        spec: Some(ResourceQuotaSpec {
            hard: Some(quantities([
                ("requests.cpu", cpu),
                ("requests.memory", memory),
            ])),
            ..Default::default()
        }),
        ..Default::default()
    }
}

/// Returns the default requests of containers: without them the quota would refuse pods that set
/// none.
pub(crate) fn limits(namespace: &str) -> LimitRange {
    LimitRange {
        metadata: metadata(namespace),
        spec: Some(LimitRangeSpec {
            limits: vec![LimitRangeItem {
                type_: "Container".to_owned(),
                default_request: Some(quantities([("cpu", "100m"), ("memory", "128Mi")])),
                ..Default::default()
            }],
        }),
    }
}

/// Returns a policy that admits only traffic from pods of the same namespace.
pub(crate) fn network_policy(namespace: &str) -> NetworkPolicy {
    let own = NetworkPolicyPeer {
        pod_selector: Some(LabelSelector::default()),
        ..Default::default()
    };
    NetworkPolicy {
        metadata: metadata(namespace),
        spec: Some(NetworkPolicySpec {
            pod_selector: Some(LabelSelector::default()),
            policy_types: Some(vec!["Ingress".to_owned()]),
            ingress: Some(vec![NetworkPolicyIngressRule {
                from: Some(vec![own]),
                ..Default::default()
            }]),
            ..Default::default()
        }),
    }
}
