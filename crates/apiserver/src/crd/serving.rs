//! From a stored CRD to the kinds that are served, and to the status of the CRD.

use std::sync::Arc;

use opkit_apimachinery::schema::Schema;
use serde_json::{Value, json};

use super::conditions::{self, Condition};
use super::naming::{self, UsedNames};
use super::{Versions, approval, kind_of, validation};
use crate::kinds::{Catalog, Kind};
use crate::object;
use crate::registry::{Registry, Write};
use crate::status::{ApiError, ApiResult};
use crate::store::Key;
use crate::target::Target;

/// The resource of CRDs in the store.
const CRDS: &str = "customresourcedefinitions.apiextensions.k8s.io";

impl Registry {
    /// Accepts the names of a CRD, sets its status, and serves its kinds if the CRD is established.
    /// Other CRDs may then get names that this CRD has given up.
    pub(crate) async fn establish(&self, crd: &Value) -> ApiResult<()> {
        let kind = self.builtin("apiextensions.k8s.io", "customresourcedefinitions")?;
        let target = Target::new(&kind, "", object::name(crd)).subresource("status");
        let now = self.clock.now_rfc3339();
        let group = object::text(crd, &["spec", "group"]);
        let used = UsedNames::of(self.crds_of(group).iter().map(AsRef::as_ref));
        let write = &mut Write::by("kube-apiserver");
        let updated = self.modify(&target, write, |live| {
            let mut new = live.clone();
            set_status(&mut new, &used, &now);
            Ok(new)
        });
        let updated = updated.await?;
        self.serve(&updated);
        let accepted = |crd: &Value| object::at(crd, &["status", "acceptedNames"]).clone();
        if accepted(crd) != accepted(&updated) {
            self.reconsider_names(group, object::name(crd)).await;
        }
        Ok(())
    }

    /// Accepts the names of the CRDs of a group again, except of the CRD `except`.
    pub(crate) async fn reconsider_names(&self, group: &str, except: &str) {
        for crd in self.crds_of(group) {
            let is_waiting = !naming::is_accepted(&crd) && !object::is_deleting(&crd);
            if object::name(&crd) == except || !is_waiting {
                continue;
            }
            if let Err(error) = Box::pin(self.establish(&crd)).await {
                tracing::error!(crd = object::name(&crd), ?error, "cannot accept the names");
            }
        }
    }

    fn crds_of(&self, group: &str) -> Vec<Arc<Value>> {
        let (mut crds, _) = self.store.list(CRDS, None);
        crds.retain(|crd| object::text(crd, &["spec", "group"]) == group);
        crds
    }

    /// Adds the kinds of an established CRD to the catalog of served kinds. A resource of the
    /// server itself stays as it is.
    fn serve(&self, crd: &Value) {
        let spec = object::at(crd, &["spec"]);
        let plural = object::text(spec, &["names", "plural"]);
        let group = object::text(spec, &["group"]);
        if Catalog::is_builtin(group, plural) {
            return;
        }
        let (mut served, mut rest) = (Vec::new(), None);
        let is_established = conditions::is_true(crd, "Established");
        let before = self.kind_stored(&format!("{plural}.{group}"));
        let before = before.as_deref().and_then(Kind::versions);
        let versions = Versions::of(crd, self.store.revision(), before);
        let versions = Arc::new(versions);
        for version in object::items(spec, &["versions"])
            .iter()
            .filter(|_| is_established)
        {
            let schema = object::at(version, &["schema", "openAPIV3Schema"]);
            let Ok(schema) = Schema::parse(schema) else {
                continue;
            };
            let kind = kind_of(crd, version, &versions);
            self.schemas.insert_custom(&kind, schema);
            if object::at(version, &["served"]) == &json!(true) {
                served.push(kind);
            } else {
                rest = Some(kind);
            }
        }
        self.catalog.replace(group, plural, served, rest);
    }

    /// Stops serving the kinds of a deleted CRD, and gives its names to other CRDs of the group.
    pub(crate) async fn stop_serving(&self, crd: &Value) {
        let group = object::text(crd, &["spec", "group"]);
        let plural = object::text(crd, &["spec", "names", "plural"]);
        if !Catalog::is_builtin(group, plural) {
            self.catalog.remove(group, plural);
        }
        self.reconsider_names(group, object::name(crd)).await;
    }

    /// Refuses to create an object of a CRD that is being deleted.
    pub(crate) fn check_crd_open(&self, kind: &Arc<Kind>, name: &str) -> ApiResult<()> {
        if !kind.is_custom() {
            return Ok(());
        }
        let key = Key::new("", kind.group_resource());
        match self.store.stored(CRDS, &key) {
            Some(crd) if crd.is_deleting() => {
                let why = "create not allowed while custom resource definition is terminating";
                let (group, plural) = (&kind.group, &kind.plural);
                Err(ApiError::forbidden_named(group, plural, name, why))
            }
            _ => Ok(()),
        }
    }
}

/// Sets the status of a CRD that is not being deleted.
fn set_status(crd: &mut Value, used: &UsedNames, now: &str) {
    if let Some((status, reason, message)) = approval::condition(crd) {
        let condition = Condition {
            type_: "KubernetesAPIApprovalPolicyConformant",
            status,
            reason,
            message: &message,
        };
        if !conditions::has(crd, &condition) {
            conditions::set(crd, &condition, now);
        }
    }
    naming::accept(crd, used, now);
    naming::establish(crd, validation::is_valid_ca_bundle(crd), now);
}

/// Adds the storage version of a CRD to its stored versions, unless it is one of them.
pub(crate) fn add_stored_version(crd: &mut Value) {
    let mut stored = object::items(crd, &["status", "storedVersions"]).to_vec();
    if let Some(version) = super::storage_version(crd)
        && !stored.contains(&version)
    {
        stored.push(version);
        object::set(crd, &["status", "storedVersions"], json!(stored));
    }
}

/// Sets the stored versions of a CRD without any to its storage version.
pub(crate) fn set_default_stored_versions(crd: &mut Value) {
    if object::items(crd, &["status", "storedVersions"]).is_empty() {
        add_stored_version(crd);
    }
}

/// Sets the condition `Terminating` of a CRD while its objects are deleted.
pub(crate) fn set_instances_being_deleted(crd: &mut Value, now: &str) {
    let condition = Condition {
        type_: "Terminating",
        status: "True",
        reason: "InstanceDeletionInProgress",
        message: "CustomResource deletion is in progress",
    };
    conditions::set(crd, &condition, now);
}

/// Sets the condition `Terminating` of a CRD whose objects are about to be deleted.
pub(crate) fn set_terminating(crd: &mut Value, now: &str) {
    if conditions::find(crd, "Terminating").is_some() {
        return;
    }
    let condition = Condition {
        type_: "Terminating",
        status: "True",
        reason: "InstanceDeletionPending",
        message: "CustomResourceDefinition marked for deletion; CustomResource deletion will begin \
                  soon",
    };
    conditions::set(crd, &condition, now);
}

#[cfg(test)]
mod tests;
