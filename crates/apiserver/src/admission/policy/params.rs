//! The parameters of a binding.

use opkit_apimachinery::selector::LabelSelector;
use serde_json::Value;

use super::definition::{Binding, Policy};
use crate::admission::Attributes;
use crate::object;
use crate::registry::{Registry, storage_name};
use crate::store::Key;

/// Returns the parameters with which a policy is evaluated for a request: one null if the policy or
/// the binding has no parameters, and nothing if the parameters are missing and that is allowed.
///
/// # Errors
/// A sentence with the reason why the parameters cannot be used.
pub(super) fn collect(
    registry: &Registry,
    attributes: &Attributes<'_>,
    policy: &Policy,
    binding: &Binding,
) -> Result<Vec<Value>, String> {
    let Some((api_version, kind_name)) = &policy.param_kind else {
        return Ok(vec![Value::Null]);
    };
    let (group, version) = match api_version.split_once('/') {
        Some((group, version)) => (group, version),
        None => ("", api_version.as_str()),
    };
    let kind = registry
        .catalog
        .find(|kind| kind.group == group && kind.version == version && kind.kind == *kind_name);
    let kind = kind.ok_or_else(|| {
        format!(
            "failed to find resource referenced by paramKind: '{api_version}, Kind={kind_name}'"
        )
    })?;
    let reference = &binding.param_ref;
    if reference.is_null() {
        return Ok(vec![Value::Null]);
    }
    let given = object::text(reference, &["namespace"]);
    let namespace = match (kind.namespaced, given) {
        (false, "") => "",
        (false, _) => {
            return Err(
                "paramRef.namespace must not be provided for a cluster-scoped `paramKind`"
                    .to_owned(),
            );
        }
        (true, "") if attributes.namespace().is_empty() => {
            return Err(
                "cannot use namespaced paramRef in policy binding that matches cluster-scoped \
                 resources"
                    .to_owned(),
            );
        }
        (true, "") => attributes.namespace(),
        (true, given) => given,
    };
    let storage = storage_name(&kind);
    let present = |stored: &Value| crate::registry::from_storage(&kind, stored.clone());
    let params: Vec<Value> = match object::text(reference, &["name"]) {
        "" => {
            let selector = LabelSelector::from_object(object::at(reference, &["selector"]));
            let selector = selector.map_err(|error| error.to_string())?;
            let namespace = Some(namespace).filter(|_| kind.namespaced);
            let (objects, _) = registry.store.list(&storage, namespace);
            let selected = objects
                .iter()
                .filter(|object| selector.matches(object::labels(object)));
            selected.map(|object| present(object)).collect()
        }
        name => {
            let found = registry.store.get(&storage, &Key::new(namespace, name));
            found.iter().map(|object| present(object)).collect()
        }
    };
    let is_denied = object::text(reference, &["parameterNotFoundAction"]) == "Deny";
    match params.is_empty() && is_denied {
        true => {
            Err("no params found for policy binding with `Deny` parameterNotFoundAction".to_owned())
        }
        false => Ok(params),
    }
}
