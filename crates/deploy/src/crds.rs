//! Installs CRDs, and deletes those without objects.

use std::fmt;
use std::time::Duration;

use opkit_client::{ListOptions, Unstructured};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::cluster::{Cluster, POLL_INTERVAL};
use crate::progress::Report;
use crate::release::name;
use crate::{Change, DeployError, Deployer, ObjectChange, ObjectReference, Progress};

/// CRDs that were deleted, and those that were kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Uninstalled {
    /// Names of the deleted CRDs.
    pub deleted: Vec<String>,
    /// Names of the CRDs that were kept because objects of their kinds exist, with the numbers of
    /// objects. `None` means that the objects cannot be listed, such as those that a stopped
    /// operator converts.
    pub kept: Vec<(String, Option<u64>)>,
}

impl Deployer {
    /// Applies CRDs, and waits until the server has established them.
    ///
    /// # Errors
    /// If a CRD is refused, or is not established in time.
    ///
    /// # Cancel safety
    /// Safe: the CRDs that were applied stay. The same call finishes the work.
    pub async fn install(
        &self,
        crds: &[Value],
        report: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<Vec<(String, Change)>, DeployError> {
        let changes = self.apply_crds(crds, report).await?;
        let names = crds.iter().map(name);
        Ok(names.zip(changes.iter().map(effect)).collect())
    }

    /// Applies CRDs, and waits until they are established. Returns the change of each, or `None` if
    /// it was as it should be.
    pub(crate) async fn apply_crds(
        &self,
        crds: &[Value],
        report: Report<'_>,
    ) -> Result<Vec<Option<ObjectChange>>, DeployError> {
        let mut changes = Vec::new();
        for crd in crds {
            let before = self.cluster.get(crd).await?;
            let start = Instant::now();
            let change = self.cluster.apply(crd, before.as_ref()).await?;
            if !self.cluster.dry_run {
                wait_until_established(&self.cluster, crd, self.timeout).await?;
            }
            report(Progress::Established {
                name: name(crd),
                change: effect(&change),
                versions: versions(crd),
                elapsed: start.elapsed(),
            });
            changes.push(change);
        }
        Ok(changes)
    }

    /// Deletes CRDs.
    ///
    /// # Errors
    /// [`DeployError::Instances`] if objects of their kinds exist and `force` is not set; then no
    /// CRD is deleted.
    ///
    /// # Cancel safety
    /// Safe: the CRDs that were deleted are gone. The same call finishes the work.
    pub async fn uninstall(
        &self,
        crds: &[Value],
        force: bool,
        report: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<Uninstalled, DeployError> {
        if !force {
            let mut used = Vec::new();
            for crd in crds {
                match instances(&self.cluster, crd).await? {
                    Instances::Counted(0) => {}
                    found => used.push(format!("{} ({found})", name(crd))),
                }
            }
            if !used.is_empty() {
                return Err(DeployError::Instances { crds: used });
            }
        }
        let mut result = Uninstalled::default();
        for crd in crds {
            self.delete_crd(crd, &mut result, report).await?;
        }
        Ok(result)
    }

    /// Counts the objects of the kinds of CRDs of these names.
    pub(crate) async fn count_instances(
        &self,
        names: impl IntoIterator<Item = &String>,
    ) -> Result<Vec<(String, Instances)>, DeployError> {
        let mut counted = Vec::new();
        for name in names {
            let found = instances(&self.cluster, &named(name)).await?;
            counted.push((name.clone(), found));
        }
        Ok(counted)
    }

    /// Deletes the CRDs that have no objects. `counted` has their objects before the operator was
    /// deleted: afterwards, nothing may convert them, so that a list fails.
    pub(crate) async fn delete_unused_crds(
        &self,
        counted: Vec<(String, Instances)>,
        report: Report<'_>,
    ) -> Result<Uninstalled, DeployError> {
        let mut result = Uninstalled::default();
        for (name, before) in counted {
            let crd = named(&name);
            // Objects may have been created or deleted meanwhile. An empty list needs no webhook.
            let number = match instances(&self.cluster, &crd).await? {
                Instances::Counted(0) => {
                    self.delete_crd(&crd, &mut result, report).await?;
                    continue;
                }
                Instances::Counted(number) => Some(number),
                Instances::Unreadable(_) => before.number().filter(|number| *number > 0),
            };
            report(Progress::Kept {
                name: name.clone(),
                instances: number,
            });
            result.kept.push((name, number));
        }
        Ok(result)
    }

    async fn delete_crd(
        &self,
        crd: &Value,
        result: &mut Uninstalled,
        report: Report<'_>,
    ) -> Result<(), DeployError> {
        if self.cluster.delete(crd).await? {
            self.cluster.wait_until_gone(crd, self.timeout).await?;
            result.deleted.push(name(crd));
            report(Progress::Deleted {
                object: ObjectReference::of(crd),
            });
        }
        Ok(())
    }
}

pub(crate) fn effect(change: &Option<ObjectChange>) -> Change {
    let effect = change.as_ref().map(|changed| changed.change);
    effect.unwrap_or(Change::Unchanged)
}

/// Returns a CRD with only its identity.
fn named(name: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": name},
    })
}

fn versions(crd: &Value) -> Vec<String> {
    let versions = crd.pointer("/spec/versions").and_then(Value::as_array);
    let served = versions.into_iter().flatten().filter(|version| {
        let served = version.get("served").and_then(Value::as_bool);
        served.unwrap_or(true)
    });
    served.map(|version| text(version, "/name")).collect()
}

fn text(value: &Value, pointer: &str) -> String {
    let text = value.pointer(pointer).and_then(Value::as_str);
    text.unwrap_or_default().to_owned()
}

/// Objects of the kind of a CRD.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Instances {
    /// Number of objects; 0 if there is no such CRD.
    Counted(u64),
    /// Message of the server that cannot list the objects. An empty list always succeeds, so
    /// objects exist.
    Unreadable(String),
}

impl Instances {
    fn number(&self) -> Option<u64> {
        match self {
            Self::Counted(number) => Some(*number),
            Self::Unreadable(_) => None,
        }
    }
}

impl fmt::Display for Instances {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Counted(number) => number.fmt(f),
            Self::Unreadable(message) => write!(f, "cannot be listed: {message}"),
        }
    }
}

/// Returns the version in which the objects of a CRD are listed: the stored one, because its
/// objects need no conversion, or the first one that is served.
fn listed_version(crd: &Value) -> Option<String> {
    let served = versions(crd);
    let all = crd.pointer("/spec/versions").and_then(Value::as_array);
    let stored = all.into_iter().flatten().find(|version| {
        let storage = version.get("storage").and_then(Value::as_bool);
        storage.unwrap_or_default()
    });
    let stored = stored.map(|version| text(version, "/name"));
    let stored = stored.filter(|version| served.contains(version));
    stored.or_else(|| served.into_iter().next())
}

/// Counts the objects of the kind of a CRD in the cluster.
async fn instances(cluster: &Cluster, crd: &Value) -> Result<Instances, DeployError> {
    let Some(installed) = cluster.get(crd).await? else {
        return Ok(Instances::Counted(0));
    };
    let installed = Value::from(installed);
    let Some(version) = listed_version(&installed) else {
        return Ok(Instances::Counted(0));
    };
    let object = json!({
        "apiVersion": format!("{}/{version}", text(&installed, "/spec/group")),
        "kind": text(&installed, "/spec/names/kind"),
    });
    let Some(resource) = cluster.resource(&object).await? else {
        return Ok(Instances::Counted(0));
    };
    match resource.list(&ListOptions::new().limit(500)).await {
        Ok(list) => {
            let here = u64::try_from(list.items.len()).unwrap_or(u64::MAX);
            let more = list.metadata.remaining_item_count.unwrap_or_default();
            let number = here.saturating_add(more.try_into().unwrap_or_default());
            Ok(Instances::Counted(number))
        }
        // The server responds, but not with the objects.
        Err(error) => match error.status() {
            Some(status) => Ok(Instances::Unreadable(status.message.clone())),
            None => Err(error.into()),
        },
    }
}

async fn wait_until_established(
    cluster: &Cluster,
    crd: &Value,
    timeout: Duration,
) -> Result<(), DeployError> {
    let start = Instant::now();
    loop {
        let installed = cluster.get(crd).await?.unwrap_or_default();
        let problem = match problem(&installed) {
            None => return Ok(()),
            Some(problem) => problem,
        };
        if start.elapsed() >= timeout {
            return Err(DeployError::NotEstablished {
                name: name(crd),
                seconds: timeout.as_secs(),
                problem,
            });
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Returns why a CRD is not established, or `None` if it is.
fn problem(crd: &Unstructured) -> Option<String> {
    if crd.condition("Established") == Some("True") {
        return None;
    }
    let conditions = crd.conditions();
    let refused = conditions
        .iter()
        .find(|it| it.type_ == "NamesAccepted" && it.status == "False");
    Some(refused.map_or_else(
        || "the server has not accepted its names yet".to_owned(),
        |condition| condition.message.clone(),
    ))
}

#[cfg(test)]
mod tests;
