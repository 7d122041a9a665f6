//! Kinds whose objects the API server converts by a webhook, which it cannot reach on this machine.

use anyhow::{Result, bail};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

/// Refuses a CRD if objects are converted between the version that the operator reads, `hub`, and a
/// version that is stored: each request of the operator would fail. The version that new objects
/// are stored in counts, and so do the versions of objects in the cluster.
pub(crate) fn refuse_conversion(hub: &str, crd: &CustomResourceDefinition) -> Result<()> {
    let conversion = crd.spec.conversion.as_ref();
    if conversion.is_none_or(|conversion| conversion.strategy != "Webhook") {
        return Ok(());
    }
    let new = crd.spec.versions.iter().filter(|version| version.storage);
    let status = crd.status.iter();
    let old = status.filter_map(|status| status.stored_versions.as_ref());
    let mut stored: Vec<_> = new.map(|version| &version.name).collect();
    stored.extend(old.flatten());
    stored.sort_unstable();
    stored.dedup();
    if stored.iter().all(|version| *version == hub) {
        return Ok(());
    }
    let stored: Vec<_> = stored.into_iter().map(String::as_str).collect();
    bail!(
        "objects of {} are stored as {}, the operator reads them as {hub}, and the API server cannot reach the conversion webhook on this machine: deploy the operator instead; once `storage` is {hub}, `opkit migrate storage` rewrites the objects while it is deployed",
        crd.metadata.name.as_deref().unwrap_or_default(),
        stored.join(" and "),
    )
}

#[cfg(test)]
mod tests;
