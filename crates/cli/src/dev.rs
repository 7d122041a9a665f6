//! `opkit dev OPERATOR`: an operator at work on a control plane of its own, with nothing else installed.

mod activity;
mod install;
mod operator;
mod package;
mod rows;
mod view;

use std::time::Duration;

use anyhow::Result;
use kube::Client;
use tokio::time::{Instant, MissedTickBehavior};

use crate::{ControlPlaneArgs, control_plane::ControlPlane, signals::StopSignals};
use install::Installer;
use operator::OperatorProcess;
use package::Package;
use view::View;

/// How often the view looks for something new.
const REFRESH: Duration = Duration::from_millis(250);

/// Builds the operator, starts a control plane, installs and runs the operator, and shows what it does until
/// Ctrl-C.
pub(crate) async fn run(name: &str, args: &ControlPlaneArgs) -> Result<()> {
    let mut stop = StopSignals::listen()?;
    let package = Package::find(name)?;
    let started = Instant::now();
    let mut plane = ControlPlane::start(args).await?;
    let mut view = View::new();
    view.ready_in(started.elapsed());
    // Outside of what Ctrl-C cuts short, so that it can be asked to stop and be waited for.
    let mut process = None;
    let outcome = tokio::select! {
        outcome = develop(&package, &mut plane, &mut view, &mut process) => outcome,
        () = stop.requested() => Ok(()),
    };
    if let Some(process) = process {
        process.stop().await;
    }
    plane.stop().await;
    outcome
}

async fn develop(
    package: &Package,
    plane: &mut ControlPlane,
    view: &mut View,
    process: &mut Option<OperatorProcess>,
) -> Result<()> {
    let client = Client::new(plane.server.service(), "default");
    let executable = package.build(view).await?;
    let installer = Installer::new(client.clone());
    let crds = installer
        .install_crds(&operator::manifests(&executable).await?)
        .await?;
    plane.write_kubeconfig()?;
    view.banner(plane, &crds);

    let operator = process.insert(OperatorProcess::start(package, &executable, plane, view)?);
    let controllers = match operator.running().await?.len() {
        1 => "1 controller".to_owned(),
        many => format!("{many} controllers"),
    };
    view.line(
        "operator",
        &format!("{} running, {controllers}", package.name),
    );
    if let Some(log) = operator.log() {
        view.line("log", &log.display().to_string());
    }
    for sample in package.samples()? {
        let applied = installer.apply_file(&sample).await?;
        view.line("samples", &format!("applied {}", applied.join(", ")));
    }

    let mut tick = tokio::time::interval(REFRESH);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            error = operator.failed() => return Err(error),
            _ = tick.tick() => {}
        }
        let last = operator.activity().await.last_of_each;
        view.show(&rows::collect(&client, &crds, &last).await);
    }
}
