//! Validation of the kinds of `storage.k8s.io`.

use std::collections::BTreeMap;

use super::field::{Errors, Field};
use super::{format, persistent_volumes, resources, selectors, volumes};

/// Limits of the parameters of a class: number of entries, and total length in bytes.
const PARAMETERS_MAX: usize = 512;
const PARAMETERS_LENGTH_MAX: usize = 256 * 1024;

/// Adds the errors in a StorageClass.
pub(super) fn storage_class(class: &Field<'_>, errors: &mut Errors) {
    provisioner(&class.get("provisioner"), errors);
    parameters(&class.get("parameters"), errors);
    let policy = class.get("reclaimPolicy");
    if !policy.is_empty() {
        errors.supported(&policy, &["Delete", "Retain"]);
    }
    let mode = class.get("volumeBindingMode");
    match mode.is_set() {
        true => errors.supported(&mode, &["Immediate", "WaitForFirstConsumer"]),
        false => errors.required(&mode, ""),
    }
    let mut seen: Vec<BTreeMap<&str, Vec<&str>>> = Vec::new();
    for term in class.get("allowedTopologies").items() {
        let topology = topology_term(&term, errors);
        if seen.contains(&topology) {
            errors.duplicate(term.join("matchLabelExpressions"), "");
        }
        seen.push(topology);
    }
}

fn topology_term<'a>(term: &Field<'a>, errors: &mut Errors) -> BTreeMap<&'a str, Vec<&'a str>> {
    let mut found = BTreeMap::new();
    for expression in term.get("matchLabelExpressions").items() {
        let (key, values) = (expression.get("key"), expression.get("values"));
        if values.is_empty() {
            errors.required(&values, "");
        }
        let mut texts: Vec<&str> = Vec::new();
        for value in values.items() {
            if texts.contains(&value.text()) {
                errors.duplicate(&value.path, value.text());
            }
            texts.push(value.text());
        }
        errors.rules(&key, format::qualified_name(key.text()));
        if found.contains_key(key.text()) {
            errors.duplicate(&key.path, key.text());
        }
        texts.sort_unstable();
        found.insert(key.text(), texts);
    }
    found
}

fn provisioner(name: &Field<'_>, errors: &mut Errors) {
    if name.is_empty() {
        return errors.required(name, "");
    }
    let lower = name.text().to_lowercase();
    for rule in format::qualified_name(&lower) {
        errors.invalid_value(&name.path, lower.clone().into(), &rule);
    }
}

fn parameters(map: &Field<'_>, errors: &mut Errors) {
    let too_long = |max: usize| {
        let max = u64::try_from(max).unwrap_or(u64::MAX);
        opkit_apimachinery::structural::FieldError::too_long(&map.path, max)
    };
    if map.len() > PARAMETERS_MAX {
        return errors.0.push(too_long(PARAMETERS_MAX));
    }
    let mut length = 0;
    for (key, value) in map.entries() {
        if key.is_empty() {
            errors.invalid_value(&map.path, key.into(), "field can not be empty.");
        }
        length += key.len() + value.text().len();
    }
    if length > PARAMETERS_LENGTH_MAX {
        errors.0.push(too_long(PARAMETERS_LENGTH_MAX));
    }
}

/// Adds the errors in the change of a StorageClass.
pub(super) fn storage_class_update(live: &Field<'_>, new: &Field<'_>, errors: &mut Errors) {
    for name in [
        "parameters",
        "provisioner",
        "reclaimPolicy",
        "volumeBindingMode",
    ] {
        errors.immutable(&new.get(name), live.get(name).value);
    }
}

/// Adds the errors in a CSIDriver. The name of one field in messages is a mistake of Kubernetes.
pub(super) fn csi_driver(driver: &Field<'_>, errors: &mut Errors) {
    let spec = driver.get("spec");
    for (field, name) in [
        ("attachRequired", "attachedRequired"),
        ("podInfoOnMount", "podInfoOnMount"),
        ("storageCapacity", "storageCapacity"),
    ] {
        if !spec.get(field).is_set() {
            errors.required(&spec.get(field).renamed(spec.join(name)), "");
        }
    }
    let policies = ["File", "None", "ReadWriteOnceWithFSType"];
    errors.supported_if_set(&spec.get("fsGroupPolicy"), &policies);
    token_requests(&spec.get("tokenRequests"), errors);
    let modes = spec.get("volumeLifecycleModes");
    for mode in modes.items() {
        let mode = mode.renamed(modes.path.clone());
        errors.supported(&mode, &["Persistent", "Ephemeral"]);
    }
    if !spec.get("seLinuxMount").is_set() {
        errors.required(&spec.get("seLinuxMount"), "");
    }
    let period = spec.get("nodeAllocatableUpdatePeriodSeconds");
    if period.is_set() && period.int() < 10 {
        errors.invalid(&period, "must be greater than or equal to 10 seconds");
    }
    let in_secrets = spec.get("serviceAccountTokenInSecrets");
    if in_secrets.is_set() && spec.get("tokenRequests").is_empty() {
        let detail = "serviceAccountTokenInSecrets is set but no tokenRequests are specified";
        errors.invalid(&in_secrets, detail);
    }
}

fn token_requests(list: &Field<'_>, errors: &mut Errors) {
    let mut audiences: Vec<&str> = Vec::new();
    for request in list.items() {
        let (audience, expiration) = (request.get("audience"), request.get("expirationSeconds"));
        if audiences.contains(&audience.text()) {
            errors.duplicate(&audience.path, audience.text());
            continue;
        }
        audiences.push(audience.text());
        if expiration.is_set() && expiration.int() < 600 {
            let detail = "may not specify a duration less than 10 minutes";
            errors.invalid(&expiration, detail);
        }
        if expiration.int() > 1 << 32 {
            let detail = "may not specify a duration larger than 2^32 seconds";
            errors.invalid(&expiration, detail);
        }
    }
}

/// Adds the errors in the change of a CSIDriver.
pub(super) fn csi_driver_update(live: &Field<'_>, new: &Field<'_>, errors: &mut Errors) {
    let (before, after) = (live.get("spec"), new.get("spec"));
    let required = after.get("attachRequired");
    let required = required.renamed(after.join("attachedRequired"));
    errors.immutable(&required, before.get("attachRequired").value);
    let modes = after.get("volumeLifecycleModes");
    errors.immutable(&modes, before.get("volumeLifecycleModes").value);
}

/// Adds the errors in a CSINode.
pub(super) fn csi_node(node: &Field<'_>, errors: &mut Errors) {
    let mut names: Vec<&str> = Vec::new();
    for driver in node.at(&["spec", "drivers"]).items() {
        let (name, id) = (driver.get("name"), driver.get("nodeID"));
        volumes::driver_name(&name, errors);
        errors.not_empty(&id);
        if id.text().len() > 256 {
            errors.invalid(&id, "must be 256 characters or less");
        }
        errors.not_negative(&driver.at(&["allocatable", "count"]));
        if names.contains(&name.text()) {
            errors.duplicate(&name.path, name.text());
        }
        names.push(name.text());
        let mut keys: Vec<&str> = Vec::new();
        for key in driver.get("topologyKeys").items() {
            let key = key.renamed(driver.path.clone());
            errors.not_empty(&key);
            if keys.contains(&key.text()) {
                errors.duplicate(&key.path, key.text());
            }
            keys.push(key.text());
            errors.rules(&key, format::qualified_name(key.text()));
        }
    }
}

/// Adds the errors in a VolumeAttachment.
pub(super) fn volume_attachment(attachment: &Field<'_>, errors: &mut Errors) {
    let spec = attachment.get("spec");
    volumes::driver_name(&spec.get("attacher"), errors);
    let source = spec.get("source");
    let (inline, name) = (
        source.get("inlineVolumeSpec"),
        source.get("persistentVolumeName"),
    );
    let detail = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
    match (inline.is_set(), name.is_set()) {
        (false, false) => errors.required(&source, detail),
        (true, true) => errors.forbidden(&source, detail),
        (false, true) if name.is_empty() => {
            errors.required(&name, "must specify non empty persistentVolumeName");
        }
        (true, false) => persistent_volumes::spec(&inline, true, errors),
        (false, true) => {}
    }
    let node = spec.get("nodeName");
    errors.rules(&node, format::dns_subdomain(node.text()));
    if name.is_set() {
        errors.rules(&name, format::dns_subdomain(name.text()));
    }
}

/// Adds the errors in a CSIStorageCapacity.
pub(super) fn storage_capacity(capacity: &Field<'_>, errors: &mut Errors) {
    selectors::selector(&capacity.get("nodeTopology"), errors);
    let class = capacity.get("storageClassName");
    errors.rules(&class, format::dns_subdomain(class.text()));
    resources::not_negative(&capacity.get("capacity"), errors);
}

/// Adds the errors in a VolumeAttributesClass.
pub(super) fn volume_attributes_class(class: &Field<'_>, errors: &mut Errors) {
    provisioner(&class.get("driverName"), errors);
    let map = class.get("parameters");
    parameters(&map, errors);
    if map.is_empty() {
        errors.required(&map, "must contain at least one key/value pair");
    }
}

/// Adds the errors in the change of a VolumeAttributesClass.
pub(super) fn volume_attributes_class_update(
    live: &Field<'_>,
    new: &Field<'_>,
    errors: &mut Errors,
) {
    for name in ["driverName", "parameters"] {
        if new.get(name).value != live.get(name).value {
            let detail = format!("updates to {name} are forbidden.");
            errors.forbidden(&new.get(name), &detail);
        }
    }
}
