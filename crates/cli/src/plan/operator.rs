//! What the new build of an operator would change: it reconciles on this machine, and the server
//! stores no write.

use std::process::Stdio;

use anyhow::{Context, Result, bail};
use opkit_debug::OperatorPlan;
use opkit_deploy::{Change, ObjectChange, Plan};
use tokio::process::Command;

use super::PlanArgs;
use crate::deploy::BuiltOperator;

/// Returns the plan of the operator. `cluster` is what its deployment would change before.
pub(super) async fn plan(
    args: &PlanArgs,
    built: &BuiltOperator,
    cluster: &Plan,
) -> Result<OperatorPlan> {
    if let Some(reason) = missing_version(cluster) {
        return Ok(OperatorPlan::refused(reason));
    }
    let mut command = Command::new(&built.executable);
    let (flags, kubeconfig) = args.cluster.environment()?;
    command
        .arg("plan")
        .args(flags)
        .args(&args.render.arguments)
        .stdin(Stdio::null())
        .kill_on_drop(true);
    if let Some(kubeconfig) = kubeconfig {
        command.env("KUBECONFIG", kubeconfig);
    }
    if built.model.namespaced {
        command.env("WATCH_NAMESPACE", &cluster.namespace);
    }
    let output = command.output().await;
    let output =
        output.with_context(|| format!("cannot run {} plan", built.executable.display()))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        let mut lines = stderr.lines().filter(|line| !line.trim().is_empty());
        let first = lines.next().unwrap_or("it prints no error").trim();
        bail!("the operator's command `plan` failed: {first}");
    }
    serde_json::from_slice(&output.stdout)
        .with_context(|| format!("cannot use the plan of {}", built.executable.display()))
}

/// Returns why the operator cannot read its objects before the deployment, or `None` if it can: the
/// cluster does not have a CRD, or a version of it.
pub(super) fn missing_version(cluster: &Plan) -> Option<String> {
    let missing = |change: &ObjectChange| {
        if change.object.kind != "CustomResourceDefinition" {
            return None;
        }
        let name = &change.object.name;
        if change.change == Change::Created {
            return Some(format!("the cluster does not have the CRD {name} yet"));
        }
        let mut fields = change.fields.iter().filter(|field| field.before.is_none());
        fields.find_map(|field| {
            let version = field.path.strip_prefix(".spec.versions[")?;
            let version = version.strip_suffix(']')?;
            Some(format!(
                "the cluster does not serve the version {version} of {name} yet"
            ))
        })
    };
    let reason = cluster.changes.iter().find_map(missing)?;
    Some(format!("{reason}; `opkit install` adds it"))
}

/// Returns a note for each CRD to which the deployment adds fields: the operator has reconciled
/// with the schema of the cluster.
pub(super) fn notes(cluster: &Plan) -> Vec<String> {
    let adds_fields = |crd: &ObjectChange| {
        crd.fields.iter().any(|field| {
            let (parent, name) = field.path.rsplit_once('.').unwrap_or_default();
            let is_field = parent.ends_with(".properties") || name == "properties";
            field.before.is_none() && parent.contains(".schema.openAPIV3Schema") && is_field
        })
    };
    let changes = cluster.changes.iter();
    let crds = changes.filter(|it| it.object.kind == "CustomResourceDefinition");
    crds.filter(|crd| adds_fields(crd))
        .map(|crd| {
            let name = &crd.object.name;
            format!(
                "{name} gets new fields, which the server does not store yet: the operator was run without them"
            )
        })
        .collect()
}
