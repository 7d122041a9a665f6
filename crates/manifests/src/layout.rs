//! Files of the manifests: one file for each part, or a kustomize layout like kubebuilder's
//! `config/`.

mod kustomize;

use serde_json::Value;

pub use self::kustomize::kustomize;
use crate::model::{Model, ModelObject, Part};
use crate::{Settings, YamlError, yaml};

/// First line of each file, by which files that are no longer printed are found.
pub const HEADER: &str =
    "# Printed by `opkit manifests`: an edit is lost when it is printed again.\n";

/// File of the manifests.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ManifestFile {
    /// Path below the output directory, with `/`.
    pub path: String,
    /// Content.
    pub text: String,
}

impl ManifestFile {
    /// Creates a file.
    pub fn new(path: String, text: String) -> Self {
        Self { path, text }
    }

    /// Creates a file with the [`HEADER`] and `objects`.
    fn of(path: String, objects: &[Value]) -> Result<Self, YamlError> {
        let text = format!("{HEADER}{}", yaml(objects)?);
        Ok(Self { path, text })
    }
}

/// Returns one file for each part. The names of the files sort in the order in which
/// `kubectl apply -f` must send them.
///
/// # Errors
/// [`YamlError`] if an object cannot be formatted as YAML.
pub fn files(model: &Model, settings: &Settings) -> Result<Vec<ManifestFile>, YamlError> {
    let objects = model.objects(settings);
    let (namespace, mut objects): (Vec<_>, Vec<_>) = (objects.into_iter())
        .partition(|it| crate::object::text(&it.object, "/kind") == "Namespace");
    // The CRDs do not need the namespace, and the webhooks need the operator.
    objects.sort_by_key(|it| position(it.part));
    let mut files = Vec::new();
    if !namespace.is_empty() {
        files.push(ManifestFile::of(
            "00-namespace.yaml".to_owned(),
            &values(namespace),
        )?);
    }
    for (part, objects) in Model::parts(objects) {
        let path = format!("{}-{}.yaml", position(part), part.directory());
        files.push(ManifestFile::of(path, &objects)?);
    }
    files.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(files)
}

fn values(objects: Vec<ModelObject>) -> Vec<Value> {
    objects.into_iter().map(|it| it.object).collect()
}

/// Returns the number in the name of the file of a part.
fn position(part: Part) -> u8 {
    match part {
        Part::Crd => 10,
        Part::Rbac => 20,
        Part::Certmanager => 30,
        Part::NetworkPolicy => 35,
        Part::Manager => 40,
        Part::Policy => 50,
        Part::Webhook => 60,
        Part::Prometheus => 70,
        Part::Grafana => 80,
        Part::Samples => 90,
    }
}

#[cfg(test)]
mod tests;
