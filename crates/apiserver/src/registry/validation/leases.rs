//! Validation of Leases.

use super::field::{Errors, Field};

/// Adds the errors in a Lease.
pub(super) fn lease(object: &Field<'_>, errors: &mut Errors) {
    let spec = object.get("spec");
    let (duration, transitions) = (
        spec.get("leaseDurationSeconds"),
        spec.get("leaseTransitions"),
    );
    if duration.is_set() && duration.int() <= 0 {
        errors.invalid(&duration, "must be greater than 0");
    }
    errors.not_negative(&transitions);
}
