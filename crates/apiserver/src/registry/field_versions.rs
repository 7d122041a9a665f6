//! Field managers that wrote a custom resource in another version than that of a request.
//!
//! Kubernetes converts the object to the version of each manager to find the fields that it owns.
//! Without a conversion webhook, only `apiVersion` changes, so the object may have fields that the
//! other version does not declare. An update then loses all field managers, and a server-side apply
//! fails.

use opkit_apimachinery::schema::{NoDefinitions, Typed};
use opkit_apimachinery::structural;
use serde_json::Value;

use super::Registry;
use crate::kinds::Kind;
use crate::object;
use crate::status::{ApiError, ApiResult};

impl Registry {
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
