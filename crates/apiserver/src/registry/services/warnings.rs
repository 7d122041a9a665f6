//! Warnings in the response to a write of a Service.

use serde_json::Value;

use super::spec;
use crate::object;

/// Returns the warnings of Kubernetes about fields of a Service that are deprecated or without
/// effect.
pub(super) fn warnings(service: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let hints = "service.kubernetes.io/topology-aware-hints";
    if object::at(service, &["metadata", "annotations"])
        .get(hints)
        .is_some()
    {
        found.push(format!(
            "annotation {hints} is deprecated, please use service.kubernetes.io/topology-mode \
             instead"
        ));
    }
    let type_ = spec::text(service, "type");
    let is_headless = type_ == spec::CLUSTER_IP && spec::text(service, "clusterIP") == spec::NONE;
    let has_external = !object::items(service, &["spec", "externalIPs"]).is_empty();
    if is_headless {
        if !spec::text(service, "loadBalancerIP").is_empty() {
            found.push("spec.loadBalancerIP is ignored for headless services".to_owned());
        }
        if has_external {
            found.push("spec.externalIPs is ignored for headless services".to_owned());
        }
        if spec::text(service, "sessionAffinity") != "None" {
            found.push("spec.SessionAffinity is ignored for headless services".to_owned());
        }
    }
    if has_external && !is_headless && type_ != spec::EXTERNAL_NAME {
        let text = "spec.externalIPs is deprecated and may no longer be implemented in some \
                    clusters";
        found.push(text.to_owned());
    }
    let external = spec::EXTERNAL_NAME;
    if type_ == external && has_external {
        found.push(format!(
            "spec.externalIPs is ignored when spec.type is {external:?}"
        ));
    }
    if type_ != external && !spec::text(service, "externalName").is_empty() {
        found.push(format!(
            "spec.externalName is ignored when spec.type is not {external:?}"
        ));
    }
    if spec::text(service, "trafficDistribution") == "PreferClose" {
        let text = "spec.trafficDistribution: \"PreferClose\" is deprecated; use \
                    \"PreferSameZone\"";
        found.push(text.to_owned());
    }
    found
}
