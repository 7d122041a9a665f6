//! The resources that the objects of a namespace use together, for the controller of quotas.

use opkit_apimachinery::quantity::Quantity;
use serde_json::Value;

use super::evaluator::Evaluator;
use crate::admission::resource_list::{self, ResourceList};
use crate::object;
use crate::registry::{Registry, storage_name};

/// The resources whose objects use more than a number of objects.
const MEASURED: &[&str] = &[
    "pods",
    "services",
    "persistentvolumeclaims",
    "resourceclaims.resource.k8s.io",
];

/// Returns the use of those resources in `hard` that can be measured, by the objects in the
/// namespace of the quota that belong to its scopes.
pub(crate) fn calculate(registry: &Registry, quota: &Value, hard: &ResourceList) -> ResourceList {
    let mut used = ResourceList::new();
    for name in hard.keys() {
        if used.contains_key(name) {
            continue;
        }
        let measured = MEASURED.iter().map(|name| Evaluator::of_resource(name));
        let mut measured = measured.zip(MEASURED.iter().copied());
        let counted = name.strip_prefix("count/").unwrap_or(name);
        let found = measured.find(|(evaluator, _)| evaluator.counts(name));
        let (evaluator, resource) = match found {
            Some(found) => found,
            None => (Evaluator::of_resource(counted), counted),
        };
        let is_own = |kind: &crate::kinds::Kind| {
            kind.group_resource() == resource && Evaluator::of(kind).is_some()
        };
        let Some(kind) = registry.catalog.find(is_own) else {
            continue;
        };
        if !evaluator.counts(name) {
            continue;
        }
        let names = hard.keys().filter(|name| evaluator.counts(name));
        let zeros = names.map(|name| (name.clone(), Quantity::default()));
        let mut total: ResourceList = zeros.collect();
        let namespace = object::namespace(quota);
        let (objects, _) = registry.store.list(&storage_name(&kind), Some(namespace));
        let now = registry.clock.now();
        for object in objects {
            if evaluator.is_in_scopes(quota, &object) {
                resource_list::add(&mut total, &evaluator.usage(&object, now));
            }
        }
        total.retain(|name, _| hard.contains_key(name));
        used.extend(total);
    }
    used
}
