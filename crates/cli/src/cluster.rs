//! `opkit cluster up`: runs only the control plane.

use std::fs;

use anyhow::{Context, Result};
use opkit_apiserver::{AuditOptions, Options};

use crate::control_plane::ControlPlane;
use crate::signals::StopSignals;
use crate::{AuditArgs, ControlPlaneArgs, output};

/// Runs the control plane until Ctrl-C. Without `controllers`, only the API server runs.
pub(crate) async fn up(args: &ControlPlaneArgs, controllers: bool, audit: AuditArgs) -> Result<()> {
    let mut stop = StopSignals::listen()?;
    let mut options = Options::default();
    options.controllers = controllers;
    options.audit = audit_options(audit)?;
    let mut plane = ControlPlane::start(args, options).await?;
    plane.write_kubeconfig()?;
    let file = &plane.kubeconfig;
    output::line("control plane", &format!("https://{}", plane.address()));
    let path = file.path().display();
    output::line("kubeconfig", &format!("{path}   ({})", file.export_line()));
    output::line("", "Press Ctrl-C to stop it.");
    stop.requested().await;
    plane.stop().await;
    Ok(())
}

/// Returns the options of the audit log, or `None` if the command has no arguments for it.
fn audit_options(args: AuditArgs) -> Result<Option<AuditOptions>> {
    let (Some(policy), Some(log_path)) = (args.audit_policy_file, args.audit_log_path) else {
        return Ok(None);
    };
    let text =
        fs::read_to_string(&policy).with_context(|| format!("cannot read {}", policy.display()))?;
    Ok(Some(AuditOptions::new(text, log_path)))
}
