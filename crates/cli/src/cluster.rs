//! `opkit cluster up`: runs only the control plane.

use anyhow::Result;
use opkit_apiserver::Options;

use crate::control_plane::ControlPlane;
use crate::signals::StopSignals;
use crate::{ControlPlaneArgs, output};

/// Runs the control plane until Ctrl-C. Without `controllers`, only the API server runs.
pub(crate) async fn up(args: &ControlPlaneArgs, controllers: bool) -> Result<()> {
    let mut stop = StopSignals::listen()?;
    let mut options = Options::default();
    options.controllers = controllers;
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
