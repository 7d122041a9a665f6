//! `opkit dev`: runs an operator on its own control plane, with nothing else installed. An edit of
//! the operator's sources rebuilds and restarts it; the control plane and its objects stay. The
//! operator acts as its ServiceAccount, with the roles that its command `manifests` prints. With
//! `--on-cluster`, it works on a cluster instead, as the user of a kubeconfig and without webhooks.

mod activity;
mod debugged;
mod events;
mod identity;
mod install;
mod log_tail;
mod operator;
pub(crate) mod package;
mod rows;
mod session;
mod sources;
mod target;
mod terminal;
mod view;
mod webhooks;

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::Result;
use opkit_apiserver::Options;
use tokio::time::Instant;

use crate::ControlPlaneArgs;
use crate::connection::ClusterArgs;
use crate::control_plane::ControlPlane;
use crate::signals::StopSignals;
use identity::OperatorIdentity;
use package::Package;
use session::Session;
use target::{Embedded, OnCluster, Target};
use view::View;

/// The process of the operator.
#[derive(Debug, clap::Args)]
pub(crate) struct ProcessArgs {
    /// Run the operator as administrator, not as a ServiceAccount with the roles that its command
    /// `manifests` prints
    #[arg(long)]
    as_admin: bool,
    /// Start everything but the operator, and print its program and arguments, for a debugger
    #[arg(long)]
    no_run: bool,
}

/// The cluster that the operator works on instead of the embedded control plane.
#[derive(Debug, clap::Args)]
pub(crate) struct OnClusterArgs {
    /// Run the operator against the cluster of the current kubeconfig, as its user, without
    /// webhooks; CRDs are installed, samples are not
    #[arg(long, conflicts_with_all = ["as_admin", "port", "service_address"])]
    on_cluster: bool,
    /// Path of the kubeconfig of the cluster
    #[arg(long, value_name = "PATH", requires = "on_cluster")]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig [default: the current one]
    #[arg(long, value_name = "NAME", requires = "on_cluster")]
    context: Option<String>,
}

/// Builds the operator, starts a control plane unless there is a cluster, installs and runs the
/// operator with `arguments`, and shows its objects and reconciles until Ctrl-C.
pub(crate) async fn run(
    name: Option<&str>,
    args: &ControlPlaneArgs,
    process: ProcessArgs,
    on: OnClusterArgs,
    arguments: Vec<OsString>,
) -> Result<()> {
    let mut stop = StopSignals::listen()?;
    let package = Package::find(name)?;
    let mut view = View::new(&package.name);
    let target = match on.on_cluster {
        true => {
            let args = ClusterArgs::of_context(on.kubeconfig, on.context);
            let cluster = args.connect().await?;
            Target::Cluster(Box::new(OnCluster { cluster, args }))
        }
        false => {
            let started = Instant::now();
            let plane = ControlPlane::start(args, Options::default()).await?;
            view.ready_in(started.elapsed());
            let identity = OperatorIdentity::new(&package.name, &plane, process.as_admin)?;
            Target::Embedded(Box::new(Embedded { plane, identity }))
        }
    };
    let mut session = Session::new(package, arguments, target, view);
    if process.no_run {
        session = session.without_run();
    }
    let outcome = tokio::select! {
        outcome = session.develop() => outcome,
        () = stop.requested() => Ok(()),
    };
    session.stop().await;
    outcome
}
