//! Where CRDs come from: files, git revisions, clusters, and the operator of the current directory.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::git::Revision;
use crate::deploy::{OperatorArgs, Printer};

/// The new CRDs.
#[derive(Debug, clap::Args)]
pub(crate) struct NewArgs {
    #[command(flatten)]
    pub(super) operator: OperatorArgs,
    /// File or directory with the new CRDs [default: those of the operator, which is built]
    #[arg(long, value_name = "PATH", conflicts_with_all = ["package", "binary"])]
    pub(super) crds: Option<PathBuf>,
}

impl NewArgs {
    /// Returns the new CRDs.
    pub(super) async fn crds(&self, is_for_script: bool) -> Result<Vec<Value>> {
        let crds = match &self.crds {
            Some(path) => read(path)?,
            None => {
                let printer = Printer::new(is_for_script);
                let built = self.operator.build(&[], &printer).await?;
                built.model.crds().into_iter().cloned().collect()
            }
        };
        let problems = opkit_apiserver::crd_problems(&crds);
        match problems.as_slice() {
            [] => Ok(crds),
            problems => bail!("an API server refuses these CRDs: {}", problems.join("; ")),
        }
    }
}

/// Value of `--against`.
#[derive(Debug)]
pub(super) enum Against {
    Cluster,
    Path(PathBuf),
    Git(Revision),
}

impl Against {
    pub(super) fn parse(text: &str) -> Result<Self> {
        if text == "cluster" {
            return Ok(Self::Cluster);
        }
        if Path::new(text).exists() {
            return Ok(Self::Path(text.into()));
        }
        match Revision::find(text)? {
            Some(revision) => Ok(Self::Git(revision)),
            None => bail!(
                "--against {text}: there is no such file and no such git revision here; `cluster` is the cluster of the kubeconfig"
            ),
        }
    }
}

/// Reads the CRDs of a file, or of all YAML and JSON files of a directory and its subdirectories.
pub(crate) fn read(path: &Path) -> Result<Vec<Value>> {
    let mut crds = Vec::new();
    let mut waiting = vec![path.to_owned()];
    let is_directory = path.is_dir();
    while let Some(path) = waiting.pop() {
        let fail = || format!("cannot read {}", path.display());
        if path.is_dir() {
            for entry in fs::read_dir(&path).with_context(fail)? {
                waiting.push(entry.with_context(fail)?.path());
            }
            waiting.sort_by(|left, right| right.cmp(left));
        } else if !is_directory || is_manifest(&path) {
            let text = fs::read_to_string(&path).with_context(fail)?;
            match parse(&text) {
                Ok(found) => crds.extend(found),
                // A directory may have other files, such as templates.
                Err(_) if is_directory && !text.contains("CustomResourceDefinition") => {}
                Err(error) => return Err(error).with_context(fail),
            }
        }
    }
    if crds.is_empty() {
        bail!("{} has no CustomResourceDefinition", path.display());
    }
    Ok(crds)
}

/// Reports whether a file may have CRDs, by its name.
pub(super) fn is_manifest(path: &Path) -> bool {
    let extension = path.extension().and_then(|it| it.to_str());
    matches!(extension, Some("yaml" | "yml" | "json"))
}

/// Returns the CRDs among the documents of a file, and among the items of its lists.
pub(crate) fn parse(text: &str) -> Result<Vec<Value>> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text)?;
    let mut crds = Vec::new();
    for mut document in documents {
        let is_list = document.get("kind").and_then(Value::as_str) == Some("List");
        let items = document.get_mut("items").filter(|_| is_list);
        match items.map(Value::take) {
            Some(Value::Array(items)) => crds.extend(items),
            _ => crds.push(document),
        }
    }
    crds.retain(|crd| crd.get("kind").and_then(Value::as_str) == Some("CustomResourceDefinition"));
    Ok(crds)
}
