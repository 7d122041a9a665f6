//! `opkit crd check`: whether new CRDs can replace the old ones.

use anyhow::{Context, Result};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use opkit_client::{DynamicClient, GroupVersionResource, Kind, ListOptions, SelectedCluster};
use opkit_crds::{ObjectCheck, StoredObjects, Upgrade, common_version, compare, render};
use serde_json::{Value, json};

use super::source::{Against, NewArgs};
use crate::connection::ClusterArgs;
use crate::deploy::{OutputFormat, print};
use crate::exit::Unsuccessful;
use crate::output;

/// CRDs to check, and those before.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  opkit crd check --against v0.1.0                  # a tag, branch or commit
  opkit crd check --against v0.1.0:config/crd       # the CRDs of this folder at that revision
  opkit crd check --against cluster                 # also validates the stored objects
  opkit crd check --against old.yaml --crds config/crd --output json")]
pub(crate) struct CheckArgs {
    /// CRDs before: a file or a directory, a git revision (its committed CRDs; others are those of
    /// the operator that is built from it), REVISION:PATH, or `cluster`
    #[arg(long, value_name = "SOURCE")]
    against: String,
    #[command(flatten)]
    new: NewArgs,
    #[command(flatten)]
    cluster: ClusterArgs,
    /// Print the result for a script
    #[arg(long, short, value_name = "FORMAT")]
    output: Option<OutputFormat>,
}

impl CheckArgs {
    pub(super) async fn run(&self) -> Result<()> {
        let against = Against::parse(&self.against)?;
        let new = self.new.crds(self.output.is_some()).await?;
        let upgrades = match &against {
            Against::Cluster => {
                let cluster = self.cluster.connect().await?;
                in_cluster(&cluster, &new).await?
            }
            Against::Path(path) => compare(&super::source::read(path)?, &new)?,
            Against::Git(revision) => {
                let names: Vec<&str> = new.iter().filter_map(name).collect();
                let found = revision.crds(&names, &self.new).await?;
                let mut upgrades = compare(&found.crds, &new)?;
                for upgrade in &mut upgrades {
                    if found.unknown.contains(&upgrade.name) {
                        let place = revision.place();
                        let note = format!("{place} with this CRD, and is not built");
                        upgrade.notes.push(note);
                    }
                }
                upgrades
            }
        };
        let is_safe = upgrades.iter().all(Upgrade::is_safe);
        match self.output {
            Some(format) => print(
                format,
                &json!({"against": self.against, "safe": is_safe, "crds": upgrades}),
            )?,
            None => output::write(&render(&upgrades)),
        }
        match is_safe {
            true => Ok(()),
            false => Err(Unsuccessful.into()),
        }
    }
}

fn name(crd: &Value) -> Option<&str> {
    crd.pointer("/metadata/name").and_then(Value::as_str)
}

/// Compares with the CRDs of a cluster, and validates the stored objects of each.
async fn in_cluster(cluster: &SelectedCluster, new: &[Value]) -> Result<Vec<Upgrade>> {
    let client = DynamicClient::new(cluster.client.clone());
    let crds = client.resource(Kind::of::<CustomResourceDefinition>());
    let mut old = Vec::new();
    for crd in new {
        match crds.get(name(crd).unwrap_or_default()).await {
            Ok(found) => old.push(Value::from(found)),
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error.into()),
        }
    }
    let mut upgrades = compare(&old, new)?;
    for upgrade in &mut upgrades {
        let find = |crds: &'_ [Value]| {
            let mut crds = crds.iter();
            crds.find(|crd| name(crd) == Some(&upgrade.name)).cloned()
        };
        if let (Some(old), Some(new)) = (find(&old), find(new)) {
            upgrade.objects = stored(&client, &old, &new).await?;
            if upgrade.objects.is_none() {
                let cause = "both CRDs serve no version in common";
                let note = format!("stored objects were not validated: {cause}");
                upgrade.notes.push(note);
            }
        }
    }
    Ok(upgrades)
}

/// Validates the stored objects of one CRD; `None` if both CRDs have no served version in common.
async fn stored(client: &DynamicClient, old: &Value, new: &Value) -> Result<Option<StoredObjects>> {
    let Some(version) = common_version(old, new) else {
        return Ok(None);
    };
    let text = |pointer: &str| {
        let found = old.pointer(pointer).and_then(Value::as_str);
        found.unwrap_or_default()
    };
    let resource =
        GroupVersionResource::new(text("/spec/group"), &*version, text("/spec/names/plural"));
    let kind = Kind::at(&resource, text("/spec/scope") == "Namespaced");
    let (before, after) = (
        ObjectCheck::new(old, &version)?,
        ObjectCheck::new(new, &version)?,
    );
    let objects = client.resource(kind).list_all(&ListOptions::new()).await;
    let objects = objects.with_context(|| {
        format!(
            "cannot read the stored {} to validate them",
            text("/metadata/name")
        )
    })?;
    let mut stored = StoredObjects::new(version);
    for object in objects.items {
        after.add(&Value::from(object), Some(&before), &mut stored);
    }
    Ok(Some(stored))
}
