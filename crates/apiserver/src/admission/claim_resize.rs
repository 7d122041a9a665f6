//! The plugin `PersistentVolumeClaimResize`: a claim can grow only if its StorageClass allows it.

use serde_json::Value;

use super::resource_list;
use super::resource_quota::storage_class;
use crate::object;

/// Checks an update of a claim. `find_class` returns the StorageClass with a name.
pub(super) fn check(
    old: &Value,
    new: &Value,
    find_class: impl FnOnce(&str) -> Option<std::sync::Arc<Value>>,
) -> Result<(), &'static str> {
    let size = |claim| {
        let requests = object::at(claim, &["spec", "resources", "requests"]);
        let requests = resource_list::parse(requests);
        requests.get("storage").copied().unwrap_or_default()
    };
    if size(new) <= size(old) {
        return Ok(());
    }
    if object::text(old, &["status", "phase"]) != "Bound" {
        return Err("Only bound persistent volume claims can be expanded");
    }
    let (class, before) = (storage_class(new), storage_class(old));
    let class = Some(class).filter(|class| !class.is_empty() && *class == before);
    let class = class.and_then(find_class);
    let can_grow = |class: &Value| object::at(class, &["allowVolumeExpansion"]) == true;
    match class.is_some_and(|class| can_grow(&class)) {
        true => Ok(()),
        false => Err(
            "only dynamically provisioned pvc can be resized and the storageclass that provisions \
             the pvc must support resize",
        ),
    }
}

#[cfg(test)]
mod tests;
