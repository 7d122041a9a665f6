//! Objects of the deployment's ApplySet that no release has.

use opkit_deploy::{ApplySet, ObjectReference, PART_OF_LABEL};
use serde_json::Value;

use crate::value::{items, labels, reference};
use crate::{Facts, Finding};

pub(super) fn check(facts: &Facts) -> Vec<Finding> {
    let manifests = &facts.manifests;
    let set = ApplySet::new(&manifests.operator, &manifests.namespace);
    let is_member = |object: &&Value| {
        // An EndpointSlice has the labels of the Service that owns it.
        if !items(object, "/metadata/ownerReferences").is_empty() {
            return false;
        }
        let label = labels(object).and_then(|labels| labels.get(PART_OF_LABEL));
        label.and_then(Value::as_str) == Some(set.id())
    };
    let members: Vec<_> = facts.objects.iter().filter(is_member).collect();
    let parent = set.parent_name();
    let namespace = manifests.namespace.as_str();
    let has_parent = facts.find("Secret", Some(namespace), &parent).is_some();
    if !members.is_empty() && !has_parent && facts.is_read("Secret") {
        let label = format!("{PART_OF_LABEL}={}", set.id());
        let message = format!(
            "{} objects belong to the ApplySet of {}, whose inventory secret/{parent} does not exist: `opkit undeploy` would not find them",
            members.len(),
            manifests.operator
        );
        let command = format!(
            "kubectl get clusterroles,clusterrolebindings,all -A -l {label}   # opkit deploy writes the inventory again"
        );
        return vec![Finding::warning("leftover", message).command(command)];
    }
    let Some(deployed) = &facts.deployed else {
        return Vec::new();
    };
    let deployed: Vec<_> = deployed.iter().map(ObjectReference::of).collect();
    let surplus = members
        .into_iter()
        .filter(|member| !deployed.contains(&ObjectReference::of(member)));
    let findings = surplus.map(|member| {
        let message = format!(
            "{} is not in the newest release, and an interrupted deployment did not delete it",
            reference(member)
        );
        Finding::warning("leftover", message)
            .about(member)
            .command("opkit deploy")
    });
    super::limited("leftover", findings.collect())
}
