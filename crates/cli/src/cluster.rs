//! `opkit cluster up`: runs only the control plane.

use anyhow::Result;

use crate::control_plane::ControlPlane;
use crate::signals::StopSignals;
use crate::{ControlPlaneArgs, output};

/// Runs the control plane until Ctrl-C.
pub(crate) async fn up(args: &ControlPlaneArgs) -> Result<()> {
    let mut stop = StopSignals::listen()?;
    let mut plane = ControlPlane::start(args).await?;
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
