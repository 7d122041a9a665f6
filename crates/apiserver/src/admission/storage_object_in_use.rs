//! The plugin `StorageObjectInUseProtection`.

use serde_json::{Value, json};

use crate::kinds::Kind;
use crate::object;

/// The finalizer of a PersistentVolumeClaim, which stays while a Pod uses the claim.
pub(crate) const CLAIM_PROTECTION: &str = "kubernetes.io/pvc-protection";
/// The finalizer of a PersistentVolume, which stays while the volume is bound.
pub(crate) const VOLUME_PROTECTION: &str = "kubernetes.io/pv-protection";

/// Adds the finalizer of a new claim or volume.
pub(super) fn admit(kind: &Kind, object: &mut Value) {
    let finalizer = match kind.group_resource().as_str() {
        "persistentvolumeclaims" => CLAIM_PROTECTION,
        "persistentvolumes" => VOLUME_PROTECTION,
        _ => return,
    };
    let mut finalizers: Vec<String> = object::finalizers(object)
        .into_iter()
        .map(str::to_owned)
        .collect();
    if !finalizers.iter().any(|known| known == finalizer) {
        finalizers.push(finalizer.to_owned());
        object::set_meta(object, "finalizers", json!(finalizers));
    }
}
