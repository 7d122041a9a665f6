//! Field managers that wrote a custom resource in another version than that of a request.
//!
//! Kubernetes converts the object to the version of each manager to find the fields that it loses.
//! Without a conversion webhook, only `apiVersion` changes, so the object may have fields that the
//! other version does not declare. An update then loses all field managers, and a server-side apply
//! fails.

use std::collections::BTreeSet;

use opkit_apimachinery::managedfields::{self, ConvertedWrite, Manager};
use opkit_apimachinery::schema::{NoDefinitions, Typed};
use opkit_apimachinery::structural;
use serde_json::Value;

use super::merge::apply_error;
use super::prepare::WrittenBy;
use super::{Registry, Write, conversion};
use crate::kinds::Kind;
use crate::object;
use crate::status::{ApiError, ApiResult};
use crate::target::Target;

impl Registry {
    /// Removes the fields that a write of a custom resource has changed from the managers that own
    /// them in other versions, into which a webhook converts the object.
    ///
    /// # Errors
    /// If the webhook fails, or if a server-side apply changes a field of another manager.
    pub(super) async fn release_in_versions(
        &self,
        by: WrittenBy,
        target: &Target,
        write: &Write,
        (live, new): (&Value, &mut Value),
    ) -> ApiResult<()> {
        let kind = &target.kind;
        let own = kind.api_version();
        let Some(versions) = kind
            .versions()
            .filter(|versions| versions.webhook.is_some())
        else {
            return Ok(());
        };
        let managers = object::items(new, &["metadata", "managedFields"]).iter();
        let others: BTreeSet<String> = managers
            .map(|manager| object::text(manager, &["apiVersion"]))
            .filter(|version| *version != own)
            .map(str::to_owned)
            .collect();
        for version in others {
            let Some(schema) = versions.schema(&version) else {
                continue;
            };
            let pair = vec![live.clone(), new.clone()];
            let converted = conversion::convert(self, kind, pair, &version).await?;
            let [before, after] = converted.as_slice() else {
                continue;
            };
            let applier = Manager {
                name: &write.manager,
                api_version: &own,
                subresource: &target.subresource,
            };
            let applier = Some(&applier).filter(|_| by == WrittenBy::Apply && !write.force);
            let changed = ConvertedWrite::new(&version, before, after);
            let typed = Typed::new(schema, &NoDefinitions);
            managedfields::release(new, &changed, &typed, applier).map_err(apply_error)?;
        }
        Ok(())
    }

    /// Reports whether an object has fields that the version of one of the managers of `live` does
    /// not declare.
    pub(super) fn loses_managers(&self, kind: &Kind, live: &Value, new: &Value) -> bool {
        let managers = object::items(live, &["metadata", "managedFields"]).iter();
        let mut versions = managers.map(|manager| object::text(manager, &["apiVersion"]));
        versions.any(|version| {
            undeclared(kind, live, version).is_some() || undeclared(kind, new, version).is_some()
        })
    }

    /// Checks that the version in which `manager` last applied declares all fields of the merged
    /// object.
    pub(super) fn check_last_applied(
        &self,
        kind: &Kind,
        live: &Value,
        merged: &Value,
        manager: &str,
    ) -> ApiResult<()> {
        let managers = object::items(live, &["metadata", "managedFields"]).iter();
        let mut applied = managers.filter(|entry| {
            object::text(entry, &["manager"]) == manager
                && object::text(entry, &["operation"]) == "Apply"
        });
        let field = applied
            .find_map(|entry| undeclared(kind, merged, object::text(entry, &["apiVersion"])));
        match field {
            None => Ok(()),
            Some(field) => Err(ApiError::without_reason(
                500,
                format!(
                    "failed to prune fields: failed to convert merged object to last applied \
                     version: .{field}: field not declared in schema"
                ),
            )),
        }
    }
}

/// Returns the first field of an object that another version of its kind does not declare.
fn undeclared(kind: &Kind, object: &Value, version: &str) -> Option<String> {
    let versions = kind.versions()?;
    if version == kind.api_version() || versions.webhook.is_some() {
        return None;
    }
    let schema = versions.schema(version)?;
    let typed = Typed::new(schema, &NoDefinitions);
    structural::unknown_fields(object, &typed)
        .into_iter()
        .next()
}
