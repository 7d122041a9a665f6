//! The members of an ApplySet in the cluster, and the deletion of those that are not kept.

use serde_json::Value;

use crate::progress::Report;
use crate::{ApplySet, DeployError, Deployer, ObjectReference, PART_OF_LABEL, Progress};

impl Deployer {
    /// Deletes the members of the set that are not kept, in the reverse order of creation.
    pub(crate) async fn delete_members(
        &self,
        set: &ApplySet,
        kept: impl Fn(&ObjectReference) -> bool,
        report: Report<'_>,
    ) -> Result<Vec<ObjectReference>, DeployError> {
        let labels = format!("{PART_OF_LABEL}={}", set.id());
        let mut members = Vec::new();
        for group_kind in &set.kinds {
            // Without the kind there are no objects of it.
            let Some(resource) = self.cluster.group_kind(group_kind).await? else {
                continue;
            };
            if resource.kind().namespaced {
                for namespace in &set.namespaces {
                    let namespace = Some(namespace.as_str());
                    let found = self.cluster.list(&resource, namespace, &labels);
                    members.extend(found.await?);
                }
            } else {
                members.extend(self.cluster.list(&resource, None, &labels).await?);
            }
        }
        let members = members.into_iter().map(Value::from);
        let mut members: Vec<_> = members
            .map(|member| (ObjectReference::of(&member), member))
            .filter(|(reference, _)| !kept(reference))
            .collect();
        members.sort_by_key(|(reference, _)| deletion_order(&reference.kind));
        let mut deleted = Vec::new();
        for (reference, member) in members {
            if self.cluster.delete(&member).await? {
                report(Progress::Deleted {
                    object: reference.clone(),
                });
                deleted.push(reference);
            }
        }
        Ok(deleted)
    }

    /// Reads the inventory; `None` if there is none.
    pub(crate) async fn set(
        &self,
        operator: &str,
        namespace: &str,
    ) -> Result<Option<ApplySet>, DeployError> {
        let parent = ApplySet::new(operator, namespace).parent();
        let found = self.cluster.get(&parent).await?;
        Ok(found.map(|parent| ApplySet::read(operator, namespace, &parent.into())))
    }

    pub(crate) async fn write_parent(&self, set: &ApplySet) -> Result<(), DeployError> {
        if !self.cluster.dry_run {
            self.cluster.apply(&set.parent(), None).await?;
        }
        Ok(())
    }
}

/// Returns the position of a kind in the order of deletion: webhooks, which would refuse writes
/// without their operator, come first, and a namespace last.
fn deletion_order(kind: &str) -> usize {
    const ORDER: [&str; 10] = [
        "MutatingWebhookConfiguration",
        "ValidatingWebhookConfiguration",
        "ValidatingAdmissionPolicyBinding",
        "MutatingAdmissionPolicyBinding",
        "PodDisruptionBudget",
        "Deployment",
        "",
        "RoleBinding",
        "ClusterRoleBinding",
        "Namespace",
    ];
    let position = |wanted: &str| ORDER.iter().position(|kind| *kind == wanted);
    position(kind).or_else(|| position("")).unwrap_or_default()
}

#[cfg(test)]
mod tests;
