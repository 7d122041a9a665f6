//! Validation of the volumes of a Pod, and of their mounts in containers.

mod projected;

use opkit_apimachinery::quantity::Quantity;
use serde_json::json;

use super::field::{Errors, Field};
use super::{claims, containers, environment, format, resources};

const ONE_TYPE: &str = "may not specify more than 1 volume type";
const FILE_MODE: &str = "must be a number between 0 and 0777 (octal), both inclusive";
const PARTITION: &str = "must be between 1 and 255, inclusive";
const ISCSI_LENGTH: &str = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 \
    characters if iscsi.initiatorName is specified.";

/// The sources of volumes in the order in which Kubernetes validates them. The second name is that
/// in messages about fields of the source, the third in the message about a second source: some of
/// them differ from the name of the field.
pub(super) const SOURCES: &[(&str, &str, &str)] = &[
    ("emptyDir", "emptyDir", "emptyDir"),
    ("hostPath", "hostPath", "hostPath"),
    ("gitRepo", "gitRepo", "gitRepo"),
    ("gcePersistentDisk", "persistentDisk", "gcePersistentDisk"),
    (
        "awsElasticBlockStore",
        "awsElasticBlockStore",
        "awsElasticBlockStore",
    ),
    ("secret", "secret", "secret"),
    ("nfs", "nfs", "nfs"),
    ("iscsi", "iscsi", "iscsi"),
    ("glusterfs", "glusterfs", "glusterfs"),
    ("flocker", "flocker", "flocker"),
    (
        "persistentVolumeClaim",
        "persistentVolumeClaim",
        "persistentVolumeClaim",
    ),
    ("rbd", "rbd", "rbd"),
    ("cinder", "cinder", "cinder"),
    ("cephfs", "cephfs", "cephFS"),
    ("quobyte", "quobyte", "quobyte"),
    ("downwardAPI", "downwardAPI", "downwarAPI"),
    ("fc", "fc", "fc"),
    ("flexVolume", "flexVolume", "flexVolume"),
    ("configMap", "configMap", "configMap"),
    ("azureFile", "azureFile", "azureFile"),
    ("vsphereVolume", "vsphereVolume", "vsphereVolume"),
    (
        "photonPersistentDisk",
        "photonPersistentDisk",
        "photonPersistentDisk",
    ),
    ("portworxVolume", "portworxVolume", "portworxVolume"),
    ("azureDisk", "azureDisk", "azureDisk"),
    ("storageos", "storageos", "storageos"),
    ("projected", "projected", "projected"),
    ("scaleIO", "scaleIO", "scaleIO"),
    ("csi", "csi", "csi"),
    ("ephemeral", "ephemeral", "ephemeral"),
    ("image", "image", "image"),
];

/// Fields that a source of a volume must have.
const REQUIRED: &[(&str, &[&str])] = &[
    ("gcePersistentDisk", &["pdName"]),
    ("awsElasticBlockStore", &["volumeID"]),
    ("secret", &["secretName"]),
    ("configMap", &["name"]),
    ("persistentVolumeClaim", &["claimName"]),
    ("nfs", &["server", "path"]),
    ("glusterfs", &["endpoints", "path"]),
    ("rbd", &["monitors", "image"]),
    ("cinder", &["volumeID"]),
    ("cephfs", &["monitors"]),
    ("flexVolume", &["driver"]),
    ("azureFile", &["secretName", "shareName"]),
    ("azureDisk", &["diskName", "diskURI"]),
    ("vsphereVolume", &["volumePath"]),
    ("photonPersistentDisk", &["pdID"]),
    ("portworxVolume", &["volumeID"]),
    ("scaleIO", &["gateway", "system", "volumeName"]),
];

/// The volumes of a Pod that are valid.
pub(super) struct Volumes<'a>(Vec<(&'a str, Field<'a>)>);

impl<'a> Volumes<'a> {
    fn find(&self, name: &str) -> Option<&Field<'a>> {
        let mut volumes = self.0.iter();
        volumes
            .find(|(known, _)| *known == name)
            .map(|(_, volume)| volume)
    }

    /// Adds volumes with the names of the claim templates of a StatefulSet.
    pub(super) fn add_claims(&mut self, names: impl Iterator<Item = Field<'a>>) {
        let claims = names.map(|template| (template.at(&["metadata", "name"]).text(), template));
        self.0.extend(claims);
    }
}

/// What the Pod with the volumes is.
#[derive(Clone, Copy)]
pub(super) struct Context<'a> {
    /// The name of the Pod, or an empty string for the template of a workload.
    pub(super) name: &'a str,
    /// Whether the object is a Pod and not a template.
    pub(super) is_pod: bool,
    /// Names of claim templates of a StatefulSet, which replace volumes with the same names.
    pub(super) replaced: &'a [&'a str],
}

/// Adds the errors in the volumes of a Pod, and returns the valid volumes.
pub(super) fn volumes<'a>(
    list: &Field<'a>,
    context: Context<'_>,
    errors: &mut Errors,
) -> Volumes<'a> {
    let volumes = list.items();
    let volumes = volumes.filter(|v| !context.replaced.contains(&v.get("name").text()));
    let volumes: Vec<Field<'a>> = volumes.collect();
    let ephemeral = volumes.iter().filter(|v| v.get("ephemeral").is_set());
    let created: Vec<String> = ephemeral
        .filter(|_| !context.name.is_empty())
        .map(|v| format!("{}-{}", context.name, v.get("name").text()))
        .collect();
    let mut valid = Volumes(Vec::new());
    for volume in volumes {
        let before = errors.len();
        source(&volume, context, errors);
        let name = volume.get("name");
        match name.text() {
            "" => errors.required(&name, ""),
            text => errors.rules(&name, format::dns_label(text)),
        }
        if valid.find(name.text()).is_some() {
            errors.duplicate(&name.path, name.text());
        }
        let claim = volume.at(&["persistentVolumeClaim", "claimName"]);
        if errors.len() == before {
            valid.0.push((name.text(), volume));
        }
        if created.iter().any(|created| created == claim.text()) {
            let detail = "must not reference a PVC that gets created for an ephemeral volume";
            errors.invalid(&claim, detail);
        }
    }
    valid
}

/// Adds the errors in the source of a volume.
fn source(volume: &Field<'_>, context: Context<'_>, errors: &mut Errors) {
    let mut has_source = false;
    for (name, path, second) in SOURCES {
        let source = volume.get(name);
        if !source.is_set() {
            continue;
        }
        let volume_name = volume.get("name");
        if has_source {
            errors.forbidden(&source.renamed(volume.join(second)), ONE_TYPE);
        } else {
            has_source = true;
            let source = source.renamed(volume.join(path));
            known_source(name, &source, context, errors);
            if *name == "ephemeral" && !context.name.is_empty() && !volume_name.is_empty() {
                let claim = format!("{}-{}", context.name, volume_name.text());
                for rule in format::dns_subdomain(&claim) {
                    errors.invalid(&volume_name, &format!("PVC name {claim:?}: {rule}"));
                }
            }
        }
        let portal = source.get("targetPortal").text();
        let length = volume_name.text().len() + 1 + portal.len();
        if *name == "iscsi" && source.get("initiatorName").is_set() && length > 64 {
            errors.invalid_text(&volume_name, ISCSI_LENGTH);
        }
    }
    if !has_source {
        errors.required(volume, "must specify a volume type");
    }
}

/// Adds the errors in the fields of a source.
fn known_source(name: &str, source: &Field<'_>, context: Context<'_>, errors: &mut Errors) {
    let required = REQUIRED.iter().find(|(known, _)| *known == name);
    for field in required.into_iter().flat_map(|(_, fields)| *fields) {
        if source.get(field).is_empty() {
            errors.required(&source.get(field), "");
        }
    }
    match name {
        "emptyDir" => {
            let size = source.get("sizeLimit");
            if resources::quantity(&size) < Quantity::default() {
                let detail = "SizeLimit field must be a valid resource quantity";
                errors.forbidden(&size, detail);
            }
        }
        "hostPath" => host_path(source, errors),
        "gitRepo" => {
            errors.not_empty(&source.get("repository"));
            format::descending_path(&source.get("directory"), errors);
        }
        "gcePersistentDisk" | "awsElasticBlockStore" => partition(source, errors),
        "secret" | "configMap" => {
            file_mode(&source.get("defaultMode"), errors);
            for item in source.get("items").items() {
                key_to_path(&item, errors);
            }
        }
        "nfs" => nfs(source, errors),
        "iscsi" => iscsi(source, errors),
        "fc" => fibre_channel(source, errors),
        "downwardAPI" => {
            file_mode(&source.get("defaultMode"), errors);
            for file in source.get("items").items() {
                downward_file(&file.renamed(source.path.clone()), errors);
            }
        }
        "projected" => projected::projected(source, errors),
        "csi" => {
            driver_name(&source.get("driver"), errors);
            let secret = source.get("nodePublishSecretRef");
            if secret.is_set() {
                let name = secret.get("name");
                match name.text() {
                    "" => errors.required(&name, ""),
                    text => {
                        let name = name.renamed(source.join("name"));
                        errors.rules(&name, format::dns_subdomain(text));
                    }
                }
            }
        }
        "ephemeral" => {
            let template = source.get("volumeClaimTemplate");
            if template.is_set() {
                claims::template(&template, errors);
            } else {
                errors.required(&template, "");
            }
        }
        "image" => {
            if context.is_pod {
                errors.not_empty(&source.get("reference"));
            }
            containers::pull_policy(&source.get("pullPolicy"), errors);
        }
        _ => {}
    }
}

/// Adds the errors in a path of a node.
pub(super) fn host_path(source: &Field<'_>, errors: &mut Errors) {
    let path = source.get("path");
    if path.is_empty() {
        return errors.required(&path, "");
    }
    format::no_backsteps(&path, errors);
    let types = [
        "",
        "BlockDevice",
        "CharDevice",
        "Directory",
        "DirectoryOrCreate",
        "File",
        "FileOrCreate",
        "Socket",
    ];
    errors.supported_if_set(&source.get("type"), &types);
}

pub(super) fn partition(source: &Field<'_>, errors: &mut Errors) {
    let partition = source.get("partition");
    if !(0..=255).contains(&partition.int()) {
        errors.invalid(&partition, PARTITION);
    }
}

pub(super) fn nfs(source: &Field<'_>, errors: &mut Errors) {
    let path = source.get("path");
    if !path.text().starts_with('/') {
        errors.invalid_text(&path, "must be an absolute path");
    }
}

pub(super) fn fibre_channel(source: &Field<'_>, errors: &mut Errors) {
    let (targets, ids) = (source.get("targetWWNs"), source.get("wwids"));
    if targets.is_empty() && ids.is_empty() {
        let detail = "must specify either targetWWNs or wwids, but not both";
        errors.required(&targets, detail);
    }
    if !targets.is_empty() && !ids.is_empty() {
        let detail = "targetWWNs and wwids can not be specified simultaneously";
        errors.invalid(&targets, detail);
    }
    let lun = source.get("lun");
    if !targets.is_empty() {
        match lun.is_set() {
            true => format::range(&lun, format::in_range(lun.int(), 0, 255), errors),
            false => errors.required(&lun, "lun is required if targetWWNs is specified"),
        }
    }
}

pub(super) fn iscsi(source: &Field<'_>, errors: &mut Errors) {
    errors.not_empty(&source.get("targetPortal"));
    let (name, lun) = (source.get("iqn"), source.get("lun"));
    match name.text() {
        "" => errors.required(&name, ""),
        text if !["iqn", "eui", "naa"].iter().any(|p| text.starts_with(p)) => {
            let detail = "must be valid format starting with iqn, eui, or naa";
            errors.invalid(&name, detail);
        }
        _ => {}
    }
    format::range(&lun, format::in_range(lun.int(), 0, 255), errors);
    let needs_secret =
        source.get("chapAuthDiscovery").is_true() || source.get("chapAuthSession").is_true();
    if needs_secret && !source.get("secretRef").is_set() {
        errors.required(&source.get("secretRef"), "");
    }
}

/// Adds the errors in the name of a CSI driver.
pub(super) fn driver_name(name: &Field<'_>, errors: &mut Errors) {
    if name.is_empty() {
        return errors.required(name, "");
    }
    errors.not_longer(name, 63);
    let rules = format::dns_subdomain(&name.text().to_lowercase());
    errors.rules(name, rules);
}

fn file_mode(mode: &Field<'_>, errors: &mut Errors) {
    if !(0..=0o777).contains(&mode.int()) {
        errors.invalid(mode, FILE_MODE);
    }
}

fn key_to_path(item: &Field<'_>, errors: &mut Errors) {
    errors.not_empty(&item.get("key"));
    errors.not_empty(&item.get("path"));
    format::local_path(&item.get("path"), errors);
    file_mode(&item.get("mode"), errors);
}

/// Adds the errors in a file whose content is a field of the Pod.
fn downward_file(file: &Field<'_>, errors: &mut Errors) {
    errors.not_empty(&file.get("path"));
    format::local_path(&file.get("path"), errors);
    let (field, resource) = (file.get("fieldRef"), file.get("resourceFieldRef"));
    if field.is_set() {
        environment::field_reference(&field, environment::FILE_FIELDS, errors);
        if resource.is_set() {
            let detail = "fieldRef and resourceFieldRef can not be specified simultaneously";
            errors.invalid_value(&file.path, json!("resource"), detail);
        }
    } else if resource.is_set() {
        environment::resource_reference(&resource, true, errors);
    } else {
        errors.required(file, "one of fieldRef and resourceFieldRef is required");
    }
    file_mode(&file.get("mode"), errors);
}

/// Adds the errors in the volume mounts of a container.
pub(super) fn mounts(container: &Field<'_>, volumes: &Volumes<'_>, errors: &mut Errors) {
    let devices: Vec<Field<'_>> = container.get("volumeDevices").items().collect();
    let list = container.get("volumeMounts");
    let mut paths: Vec<&str> = Vec::new();
    for mount in list.items() {
        let (name, path) = (mount.get("name"), mount.get("mountPath"));
        errors.not_empty(&name);
        if volumes.find(name.text()).is_none() {
            errors.not_found(&name.path, name.text());
        }
        errors.not_empty(&path);
        if paths.contains(&path.text()) {
            errors.invalid_text(&path, "must be unique");
        }
        paths.push(path.text());
        if devices.iter().any(|d| d.get("name").text() == name.text()) {
            errors.invalid_text(&name, "must not already exist in volumeDevices");
        }
        if devices
            .iter()
            .any(|d| d.get("devicePath").text() == path.text())
        {
            let detail = "must not already exist as a path in volumeDevices";
            errors.invalid_text(&path, detail);
        }
        let below = mount.get("subPath").renamed(list.join("subPath"));
        format::descending_path(&below, errors);
        let expression = mount.get("subPathExpr");
        if !expression.is_empty() {
            if !below.is_empty() {
                let detail = "subPathExpr and subPath are mutually exclusive";
                errors.invalid(&expression, detail);
            }
            let expression = expression.renamed(list.join("subPathExpr"));
            format::descending_path(&expression, errors);
        }
        propagation(container, &list, &mount, errors);
        recursive_read_only(&list, &mount, errors);
    }
}

fn propagation(container: &Field<'_>, list: &Field<'_>, mount: &Field<'_>, errors: &mut Errors) {
    let mode = mount.get("mountPropagation");
    let mode = mode.renamed(list.join("mountPropagation"));
    errors.supported_if_set(&mode, &["Bidirectional", "HostToContainer", "None"]);
    let is_privileged = container.at(&["securityContext", "privileged"]).is_true();
    if mode.text() == "Bidirectional" && !is_privileged {
        let detail = "Bidirectional mount propagation is available only to privileged containers";
        errors.forbidden(&mode, detail);
    }
}

fn recursive_read_only(list: &Field<'_>, mount: &Field<'_>, errors: &mut Errors) {
    let mode = mount.get("recursiveReadOnly");
    let mode = mode.renamed(list.join("recursiveReadOnly"));
    match mode.text() {
        "Enabled" | "IfPossible" => {
            if !mount.get("readOnly").is_true() {
                errors.forbidden(&mode, "may only be specified when readOnly is true");
            }
            let propagation = mount.get("mountPropagation");
            if propagation.is_set() && propagation.text() != "None" {
                let detail = "may only be specified when mountPropagation is None or not specified";
                errors.forbidden(&mode, detail);
            }
        }
        _ => errors.supported_if_set(&mode, &["Disabled", "Enabled", "IfPossible"]),
    }
}

/// Adds the errors in the volume devices of a container.
pub(super) fn devices(container: &Field<'_>, volumes: &Volumes<'_>, errors: &mut Errors) {
    let mounts: Vec<Field<'_>> = container.get("volumeMounts").items().collect();
    let (mut names, mut paths): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    for device in container.get("volumeDevices").items() {
        let (name, path) = (device.get("name"), device.get("devicePath"));
        errors.not_empty(&name);
        if names.contains(&name.text()) {
            errors.invalid_text(&name, "must be unique");
        }
        match volumes.find(name.text()) {
            Some(volume) => {
                let is_block = ["persistentVolumeClaim", "ephemeral", "spec"]
                    .iter()
                    .any(|source| volume.get(source).is_set());
                if !is_block {
                    let detail = "can only use volume source type of PersistentVolumeClaim or \
                                  Ephemeral for block mode";
                    errors.invalid_text(&name, detail);
                }
            }
            None => errors.not_found(&name.path, name.text()),
        }
        errors.not_empty(&path);
        if paths.contains(&path.text()) {
            errors.invalid_text(&path, "must be unique");
        }
        if format::has_backsteps(path.text()) {
            errors.invalid_text(&path, "can not contain backsteps ('..')");
        } else {
            paths.push(path.text());
        }
        if mounts.iter().any(|m| m.get("name").text() == name.text()) {
            errors.invalid_text(&name, "must not already exist in volumeMounts");
        }
        if mounts
            .iter()
            .any(|m| m.get("mountPath").text() == path.text())
        {
            let detail = "must not already exist as a path in volumeMounts";
            errors.invalid_text(&path, detail);
        }
        if !name.is_empty() {
            names.push(name.text());
        }
    }
}
