//! Admission policies: rules and mutations in CEL that objects in the cluster declare.

mod definition;
mod evaluation;
mod mutating;
mod params;
mod type_checking;
mod validating;

use crate::registry::Registry;
use definition::Policies;

pub(crate) use definition::PolicyType;
pub(crate) use mutating::mutate;
pub(crate) use type_checking::warnings as type_warnings;
pub(crate) use validating::validate;

/// The policies in the store.
#[derive(Debug)]
pub(crate) struct AdmissionPolicies {
    mutating: Policies,
    validating: Policies,
}

impl AdmissionPolicies {
    pub(crate) fn new() -> Self {
        Self {
            mutating: Policies::new(PolicyType::Mutating),
            validating: Policies::new(PolicyType::Validating),
        }
    }

    /// Reports whether there is a mutating policy with a binding.
    pub(crate) fn has_mutating(&self, registry: &Registry) -> bool {
        !self.mutating.get(&registry.store).is_empty()
    }
}
