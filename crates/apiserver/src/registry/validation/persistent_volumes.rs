//! Validation of PersistentVolumes.

use opkit_apimachinery::structural::FieldError;
use serde_json::{Value, json};

use super::claims::{self, VOLUME_MODES};
use super::field::{Errors, Field};
use super::{format, resources, scheduling, volumes};

const INLINE: &str = "in the context of inline volumes";
/// The sources of PersistentVolumes in the order in which Kubernetes validates them, with their
/// names in messages about their fields and about a second source.
const SOURCES: &[(&str, &str, &str)] = &[
    ("hostPath", "hostPath", "hostPath"),
    ("gcePersistentDisk", "persistentDisk", "gcePersistentDisk"),
    (
        "awsElasticBlockStore",
        "awsElasticBlockStore",
        "awsElasticBlockStore",
    ),
    ("glusterfs", "glusterfs", "glusterfs"),
    ("flocker", "flocker", "flocker"),
    ("nfs", "nfs", "nfs"),
    ("rbd", "rbd", "rbd"),
    ("quobyte", "quobyte", "quobyte"),
    ("cephfs", "cephfs", "cephFS"),
    ("iscsi", "iscsi", "iscsi"),
    ("cinder", "cinder", "cinder"),
    ("fc", "fc", "fc"),
    ("flexVolume", "flexVolume", "flexVolume"),
    ("azureFile", "azureFile", "azureFile"),
    ("vsphereVolume", "vsphereVolume", "vsphereVolume"),
    (
        "photonPersistentDisk",
        "photonPersistentDisk",
        "photonPersistentDisk",
    ),
    ("portworxVolume", "portworxVolume", "portworxVolume"),
    ("azureDisk", "azureDisk", "azureDisk"),
    ("scaleIO", "scaleIO", "scaleIO"),
    ("local", "local", "local"),
    ("storageos", "storageos", "storageos"),
    ("csi", "csi", "csi"),
];

/// Adds the errors in a volume.
pub(super) fn volume(object: &Field<'_>, errors: &mut Errors) {
    spec(&object.get("spec"), false, errors);
}

/// Adds the errors in the spec of a volume. `is_inline` is true for the volume of a
/// VolumeAttachment.
pub(super) fn spec(spec: &Field<'_>, is_inline: bool, errors: &mut Errors) {
    if is_inline {
        for name in ["claimRef", "capacity"] {
            if !spec.get(name).is_empty() {
                let detail = format!("may not be specified {INLINE}");
                errors.forbidden(&spec.get(name), &detail);
            }
        }
        if !spec.get("csi").is_set() {
            let detail = format!("has to be specified {INLINE}");
            errors.required(&spec.get("csi"), &detail);
        }
    }
    let modes = spec.get("accessModes");
    if modes.is_empty() {
        errors.required(&modes, "");
    }
    claims::access_modes(&modes, errors);
    if !is_inline {
        capacity(&spec.get("capacity"), errors);
    }
    let policy = spec.get("persistentVolumeReclaimPolicy");
    if is_inline && !matches!(policy.text(), "" | "Retain") {
        errors.forbidden(&policy, &format!("may only be Retain {INLINE}"));
    } else if !policy.is_empty() && !is_inline {
        errors.supported(&policy, &["Delete", "Recycle", "Retain"]);
    }
    let affinity = spec.get("nodeAffinity");
    if affinity.is_set() && is_inline {
        errors.forbidden(&affinity, &format!("may not be specified {INLINE}"));
    } else if affinity.is_set() {
        let required = affinity.get("required");
        match required.is_set() {
            true => scheduling::node_selector(&required, errors),
            false => errors.required(&required, "must specify required node constraints"),
        }
    }
    source(spec, errors);
    let path = spec.at(&["hostPath", "path"]).text();
    let is_root = path.starts_with('/') && path.split('/').all(|s| matches!(s, "" | "."));
    if is_root && policy.text() == "Recycle" {
        let detail = "may not be 'recycle' for a hostPath mount of '/'";
        errors.forbidden(&policy, detail);
    }
    classes(spec, is_inline, errors);
}

fn capacity(capacity: &Field<'_>, errors: &mut Errors) {
    if capacity.is_empty() {
        errors.required(capacity, "");
    }
    if !capacity.get("storage").is_set() || capacity.len() > 1 {
        let supported = ["storage"];
        let error = FieldError::not_supported(&capacity.path, capacity.value, &supported);
        errors.0.push(error);
    }
    for (_, amount) in capacity.entries() {
        resources::basic(&amount, errors);
        resources::positive(&amount, errors);
    }
}

fn classes(spec: &Field<'_>, is_inline: bool, errors: &mut Errors) {
    let class = spec.get("storageClassName");
    if !class.is_empty() && is_inline {
        errors.forbidden(&class, &format!("may not be specified {INLINE}"));
    } else if !class.is_empty() {
        errors.rules(&class, format::dns_subdomain(class.text()));
    }
    let mode = spec.get("volumeMode");
    if is_inline && !matches!(mode.text(), "" | "Filesystem") {
        let detail = format!("may not specify volumeMode other than Filesystem {INLINE}");
        errors.forbidden(&mode, &detail);
    } else if !is_inline {
        errors.supported_if_set(&mode, VOLUME_MODES);
    }
    let class = spec.get("volumeAttributesClassName");
    if class.is_set() && !is_inline {
        match class.text() {
            "" => errors.required(&class, "an empty string is disallowed"),
            text => errors.rules(&class, format::dns_subdomain(text)),
        }
        if !spec.get("csi").is_set() {
            let detail = "has to be specified when using volumeAttributesClassName";
            errors.required(&spec.get("csi"), detail);
        }
    }
}

fn source(spec: &Field<'_>, errors: &mut Errors) {
    let mut has_source = false;
    for (name, path, second) in SOURCES {
        let source = spec.get(name);
        if !source.is_set() {
            continue;
        }
        if has_source {
            let detail = "may not specify more than 1 volume type";
            errors.forbidden(&source.renamed(spec.join(second)), detail);
            continue;
        }
        has_source = true;
        let source = source.renamed(spec.join(path));
        match *name {
            "hostPath" => volumes::host_path(&source, errors),
            "gcePersistentDisk" => {
                errors.not_empty(&source.get("pdName"));
                volumes::partition(&source, errors);
            }
            "awsElasticBlockStore" => {
                errors.not_empty(&source.get("volumeID"));
                volumes::partition(&source, errors);
            }
            "nfs" => {
                errors.not_empty(&source.get("server"));
                errors.not_empty(&source.get("path"));
                volumes::nfs(&source, errors);
            }
            "iscsi" => volumes::iscsi(&source, errors),
            "fc" => volumes::fibre_channel(&source, errors),
            "local" => {
                let path = source.get("path");
                match path.text() {
                    "" => errors.required(&path, ""),
                    _ => format::no_backsteps(&path, errors),
                }
                if !spec.get("nodeAffinity").is_set() {
                    let detail = "Local volume requires node affinity";
                    errors.required(&spec.get("nodeAffinity"), detail);
                }
            }
            "csi" => csi(&source, errors),
            _ => {}
        }
    }
    if !has_source {
        errors.required(spec, "must specify a volume type");
    }
}

fn csi(source: &Field<'_>, errors: &mut Errors) {
    volumes::driver_name(&source.get("driver"), errors);
    errors.not_empty(&source.get("volumeHandle"));
    for name in [
        "controllerPublishSecretRef",
        "controllerExpandSecretRef",
        "nodePublishSecretRef",
        "nodeExpandSecretRef",
    ] {
        let secret = source.get(name);
        if !secret.is_set() {
            continue;
        }
        let (name, namespace) = (secret.get("name"), secret.get("namespace"));
        match name.text() {
            "" => errors.required(&name, ""),
            text => errors.rules(&name, format::dns_subdomain(text)),
        }
        match namespace.text() {
            "" => errors.required(&namespace, ""),
            text => errors.rules(&namespace, format::dns_label(text)),
        }
    }
}

/// Adds the errors in the change of a volume.
pub(super) fn volume_update(live: &Field<'_>, new: &Field<'_>, errors: &mut Errors) {
    let (before, after) = (live.get("spec"), new.get("spec"));
    let source = |spec: &Field<'_>| -> Value {
        let sources = SOURCES.iter().map(|(name, ..)| (*name, spec.get(name)));
        let sources = sources.filter(|(_, source)| source.is_set());
        sources
            .map(|(name, source)| (name.to_owned(), source.value.clone()))
            .collect::<serde_json::Map<String, Value>>()
            .into()
    };
    if source(&before) != source(&after) {
        let detail = "spec.persistentvolumesource is immutable after creation";
        let error = FieldError::forbidden("spec.persistentvolumesource", detail);
        errors.0.push(error);
    }
    let mode = after.get("volumeMode").renamed("volumeMode");
    errors.immutable(&mode, before.get("volumeMode").value);
    let affinity = after.get("nodeAffinity");
    if before.get("nodeAffinity").is_set() && before.get("nodeAffinity").value != affinity.value {
        let detail = "field is immutable, except for updating from beta label to GA";
        errors.invalid_value("nodeAffinity", json!(affinity.value), detail);
    }
}
