//! Removes a deployment: the members of its set, its revisions, and CRDs without objects.

use opkit_client::Unstructured;
use serde::Serialize;
use serde_json::{Value, json};

use crate::{ApplySet, DeployError, Deployer, ObjectReference, Progress, Uninstalled};

/// Result of removing a deployment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Undeployed {
    /// Name of the operator.
    pub operator: String,
    /// Namespace that the operator was in.
    pub namespace: String,
    /// Deleted objects.
    pub deleted: Vec<ObjectReference>,
    /// CRDs that were deleted, and those that were kept.
    pub crds: Uninstalled,
}

impl Deployer {
    /// Deletes everything that deployments of an operator have created in a namespace and the
    /// cluster, and what the operator has created for itself. CRDs with objects stay, and so does a
    /// CRD whose objects cannot be listed because its conversion webhook does not respond.
    ///
    /// # Errors
    /// If the operator is not deployed there, the server refuses a deletion, or a wait takes too
    /// long.
    ///
    /// # Cancel safety
    /// Safe: the inventory is deleted last. The same call finishes the work, also without the
    /// operator's webhooks.
    pub async fn undeploy(
        &self,
        operator: &str,
        namespace: &str,
        report: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<Undeployed, DeployError> {
        let Some(set) = self.set(operator, namespace).await? else {
            return Err(DeployError::NotDeployed {
                operator: operator.to_owned(),
                namespace: namespace.to_owned(),
            });
        };
        let instances = self.count_instances(&set.crds).await?;
        let is_namespace = |member: &ObjectReference| member.kind == "Namespace";
        let mut deleted = self.delete_members(&set, is_namespace, report).await?;
        self.wait_for_pods(&deleted).await?;
        for object in &set.runtime_objects {
            if self.cluster.delete(object).await? {
                let reference = ObjectReference::of(object);
                report(Progress::Deleted {
                    object: reference.clone(),
                });
                deleted.push(reference);
            }
        }
        let crds = self.delete_unused_crds(instances, report).await?;
        for secret in self.revisions(operator, namespace).await? {
            self.cluster.delete(&secret).await?;
        }
        // The namespace contains the inventory, and is the last object in it.
        let namespaces = self
            .delete_members(&set, |member| !is_namespace(member), report)
            .await?;
        for object in &namespaces {
            let object = json!({
                "apiVersion": "v1", "kind": object.kind, "metadata": {"name": object.name},
            });
            self.cluster.wait_until_gone(&object, self.timeout).await?;
        }
        deleted.extend(namespaces);
        let parent = ApplySet::new(operator, namespace).parent();
        self.cluster.delete(&parent).await?;
        Ok(Undeployed {
            operator: operator.to_owned(),
            namespace: namespace.to_owned(),
            deleted,
            crds,
        })
    }

    /// Waits until the ReplicaSets and with them the Pods of deleted Deployments are gone: a
    /// running operator would create its Lease again.
    async fn wait_for_pods(&self, deleted: &[ObjectReference]) -> Result<(), DeployError> {
        if self.cluster.dry_run {
            return Ok(());
        }
        for deployment in deleted.iter().filter(|it| it.kind == "Deployment") {
            for (api_version, kind) in [("apps/v1", "ReplicaSet"), ("v1", "Pod")] {
                let object = json!({"apiVersion": api_version, "kind": kind});
                let Some(resource) = self.cluster.resource(&object).await? else {
                    continue;
                };
                let namespace = deployment.namespace.as_deref();
                for one in self.cluster.list(&resource, namespace, "").await? {
                    if is_of(&one, &deployment.name) {
                        let one = Value::from(one);
                        self.cluster.wait_until_gone(&one, self.timeout).await?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Reports whether a ReplicaSet or a Pod is of a Deployment. The name of a ReplicaSet is that of
/// its Deployment and a hash.
fn is_of(object: &Unstructured, deployment: &str) -> bool {
    object.owner_references().iter().any(|owner| {
        let name = owner.name.as_str();
        match owner.kind.as_str() {
            "Deployment" => name == deployment,
            "ReplicaSet" => name
                .rsplit_once('-')
                .is_some_and(|(it, _)| it == deployment),
            _ => false,
        }
    })
}

#[cfg(test)]
mod tests;
