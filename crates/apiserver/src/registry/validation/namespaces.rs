//! Validation of Namespaces.

use super::field::{Errors, Field};
use super::format;

/// Finalizers of Kubernetes, whose names have no domain.
const STANDARD: &[&str] = &["kubernetes", "orphan", "foregroundDeletion"];

/// Adds the errors in a Namespace. The paths of finalizers in messages do not have an index.
pub(super) fn namespace(object: &Field<'_>, errors: &mut Errors) {
    let list = object.at(&["spec", "finalizers"]);
    for finalizer in list.items() {
        let finalizer = finalizer.renamed(list.path.clone());
        let name = finalizer.text();
        errors.rules(&finalizer, format::qualified_name(name));
        if !name.contains('/') && !STANDARD.contains(&name) {
            let detail = "name is neither a standard finalizer name nor is it fully qualified";
            errors.invalid_text(&finalizer, detail);
        }
    }
}
