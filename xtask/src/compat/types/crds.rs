//! The CRDs of a project, and the command that generates their types.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::compare;

/// CRD in a file.
#[derive(Debug)]
pub(super) struct Crd {
    path: PathBuf,
    value: Value,
}

/// One version of a CRD.
#[derive(Clone, Debug)]
pub(super) struct Version {
    pub(super) name: String,
    /// CRD with only this version.
    crd: Value,
}

/// Reads the CRDs of the files of a folder.
pub(super) fn read(folder: &Path) -> Result<Vec<Crd>> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    paths.sort();
    let mut crds = Vec::new();
    for path in paths {
        if path.extension().is_none_or(|it| it != "yaml") {
            continue;
        }
        let text = fs::read_to_string(&path)?;
        let documents: Vec<Value> = serde_saphyr::from_multiple(&text)
            .with_context(|| format!("{} is not valid YAML", path.display()))?;
        let is_crd =
            |it: &Value| it.get("kind").and_then(Value::as_str) == Some("CustomResourceDefinition");
        let found = documents.into_iter().filter(is_crd);
        crds.extend(found.map(|value| Crd {
            path: path.clone(),
            value,
        }));
    }
    ensure!(!crds.is_empty(), "{} has no CRDs", folder.display());
    Ok(crds)
}

impl Crd {
    fn name(&self) -> &str {
        text(&self.value, "/metadata/name")
    }

    /// Returns the versions of the CRD.
    pub(super) fn versions(&self) -> Vec<Version> {
        let versions = self.value.pointer("/spec/versions");
        let versions = versions.and_then(Value::as_array).into_iter().flatten();
        let version = |version: &Value| {
            let mut crd = self.value.clone();
            *crd.pointer_mut("/spec/versions")? = json!([version]);
            Some(Version {
                name: version.get("name")?.as_str()?.to_owned(),
                crd,
            })
        };
        versions.filter_map(version).collect()
    }
}

impl Version {
    pub(super) fn kind(&self) -> &str {
        text(&self.crd, "/spec/names/kind")
    }

    pub(super) fn api_version(&self) -> String {
        format!("{}/{}", text(&self.crd, "/spec/group"), self.name)
    }

    /// Returns the name of the Rust module for the type.
    pub(super) fn module(&self) -> String {
        let name = text(&self.crd, "/metadata/name").replace(['.', '-'], "_");
        format!("{name}_{}", self.name)
    }

    /// Returns the schema of the objects.
    pub(super) fn schema(&self) -> &Value {
        let schema = "/spec/versions/0/schema/openAPIV3Schema";
        self.crd.pointer(schema).unwrap_or(&Value::Null)
    }

    /// Returns the CRD of this version in the form in which CRDs are compared.
    pub(super) fn normal(&self) -> Value {
        compare::normal(&self.crd)
    }
}

fn text<'a>(value: &'a Value, path: &str) -> &'a str {
    value
        .pointer(path)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// Runs `opkit types from-crd` for one version of a CRD.
pub(super) fn generate(command: &Path, crd: &Crd, version: &Version, out: &Path) -> Result<()> {
    let output = Command::new(command)
        .args(["types", "from-crd"])
        .arg(&crd.path)
        .args([crd.name(), "--version", &version.name, "--out"])
        .arg(out)
        .output()
        .with_context(|| format!("cannot run {}", command.display()))?;
    ensure!(
        output.status.success(),
        "{}: {}",
        version.module(),
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(())
}
