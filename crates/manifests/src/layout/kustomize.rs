//! The kustomize layout: the directories of kubebuilder's `config/`.

use std::fmt::Write as _;

use serde_json::Value;

use super::{HEADER, ManifestFile};
use crate::model::{Model, Part};
use crate::object::text;
use crate::{Settings, YamlError};

/// Name of the image in the Deployment, which `kustomize edit set image controller=...` replaces;
/// kubebuilder's name.
const IMAGE: &str = "controller";

/// Returns the files below `config/`, each directory with its `kustomization.yaml`. Everything that
/// the settings do not select is printed too, and is a comment in `default/kustomization.yaml`.
/// `samples` are the names of the files in `samples/`, which are not printed.
///
/// # Errors
/// [`YamlError`] if an object cannot be formatted as YAML.
pub fn kustomize(
    model: &Model,
    settings: &Settings,
    samples: &[String],
) -> Result<Vec<ManifestFile>, YamlError> {
    let all = Settings {
        image: Some(format!("{IMAGE}:latest")),
        prometheus: true,
        network_policy: true,
        grafana: true,
        ..settings.clone()
    };
    let image = settings.image.as_deref().or(model.image());
    let mut files = Vec::new();
    let mut directories = Vec::new();
    for (part, objects) in Model::parts(model.objects(&all)) {
        let directory = part.directory();
        let mut resources: Vec<(String, Vec<Value>)> = Vec::new();
        for object in objects {
            let name = file_name(part, &object, &model.operator);
            match resources.iter_mut().find(|(known, _)| *known == name) {
                Some((_, objects)) => objects.push(object),
                None => resources.push((name, vec![object])),
            }
        }
        resources.sort_by(|(one, _), (other, _)| one.cmp(other));
        let names: Vec<_> = resources.iter().map(|(name, _)| name.clone()).collect();
        let image = image.filter(|_| part == Part::Manager);
        files.push(kustomization(directory, &names, image));
        for (name, objects) in resources {
            let path = format!("{directory}/{name}");
            files.push(ManifestFile::of(path, &objects)?);
        }
        directories.push((part, is_selected(part, settings)));
    }
    if !samples.is_empty() {
        files.push(kustomization(Part::Samples.directory(), samples, None));
    }
    files.push(default(&directories));
    files.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(files)
}

fn is_selected(part: Part, settings: &Settings) -> bool {
    match part {
        Part::Prometheus => settings.prometheus,
        Part::NetworkPolicy => settings.network_policy,
        Part::Grafana => settings.grafana,
        _ => true,
    }
}

fn kustomization(directory: &str, resources: &[String], image: Option<&str>) -> ManifestFile {
    let mut text = format!("{HEADER}resources:\n");
    for resource in resources {
        let _ = writeln!(text, "- {resource}");
    }
    if let Some(image) = image {
        text.push_str("images:\n");
        text.push_str(&image_entry(image));
    }
    ManifestFile {
        path: format!("{directory}/kustomization.yaml"),
        text,
    }
}

/// Returns the entry that replaces the image. A digest follows `@`; a colon before the last slash
/// belongs to the registry's port.
fn image_entry(image: &str) -> String {
    let name_start = image.rfind('/').map_or(0, |at| at.saturating_add(1));
    let (registry, name) = image.split_at_checked(name_start).unwrap_or(("", image));
    let (name, field, tag) = match (name.split_once('@'), name.split_once(':')) {
        (Some((name, digest)), _) => (name, "digest", digest),
        (None, Some((name, tag))) => (name, "newTag", tag),
        (None, None) => (name, "newTag", "latest"),
    };
    // A tag such as 1.10 is a number in YAML.
    format!("- name: {IMAGE}\n  newName: {registry}{name}\n  {field}: \"{tag}\"\n")
}

fn default(directories: &[(Part, bool)]) -> ManifestFile {
    let mut text = format!("{HEADER}resources:\n");
    for (part, is_selected) in directories {
        let mark = if *is_selected { "" } else { "#" };
        let _ = writeln!(text, "{mark}- ../{}", part.directory());
    }
    ManifestFile {
        path: "default/kustomization.yaml".to_owned(),
        text,
    }
}

/// Returns the name of the file of an object, as kubebuilder names it.
fn file_name(part: Part, object: &Value, operator: &str) -> String {
    let name = text(object, "/metadata/name");
    let short = name
        .strip_prefix(operator)
        .and_then(|rest| rest.strip_prefix('-'));
    let short = short.unwrap_or(name).replace(['-', '.'], "_");
    let stem = match (part, text(object, "/kind")) {
        (Part::Crd, _) => {
            let (group, plural) = ("/spec/group", "/spec/names/plural");
            return format!(
                "bases/{}_{}.yaml",
                text(object, group),
                text(object, plural)
            );
        }
        (Part::Manager, "Namespace" | "Deployment") => "manager".to_owned(),
        (Part::Manager, "Service") => "metrics_service".to_owned(),
        (Part::Manager, "PodDisruptionBudget") => "pod_disruption_budget".to_owned(),
        (Part::Rbac, "ServiceAccount") => "service_account".to_owned(),
        // The operator's own role; a limited operator has one in each namespace.
        (Part::Rbac, "Role" | "ClusterRole") if short == "manager_role" => "role".to_owned(),
        (Part::Rbac, "RoleBinding" | "ClusterRoleBinding") => {
            let role = short.trim_end_matches("_rolebinding");
            match role {
                "manager" => "role_binding".to_owned(),
                role => format!("{role}_role_binding"),
            }
        }
        (Part::Webhook, "Service") => "service".to_owned(),
        (Part::Webhook, _) => "manifests".to_owned(),
        (Part::Prometheus, _) => "monitor".to_owned(),
        (Part::NetworkPolicy, _) => short.replace('_', "-"),
        (Part::Grafana, _) => "dashboard".to_owned(),
        (Part::Certmanager, kind) => kind.to_lowercase(),
        _ => short,
    };
    format!("{stem}.yaml")
}
