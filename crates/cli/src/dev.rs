//! `opkit dev`: runs an operator on its own control plane, with nothing else installed. An edit of
//! the operator's sources rebuilds and restarts it; the control plane and its objects stay. The
//! operator acts as its ServiceAccount, with the roles that its command `manifests` prints.

mod activity;
mod events;
mod identity;
mod install;
mod log_tail;
mod operator;
pub(crate) mod package;
mod rows;
mod session;
mod sources;
mod terminal;
mod view;
mod webhooks;

use std::ffi::OsString;

use anyhow::Result;
use opkit_apiserver::Options;
use tokio::time::Instant;

use crate::ControlPlaneArgs;
use crate::control_plane::ControlPlane;
use crate::signals::StopSignals;
use identity::OperatorIdentity;
use package::Package;
use session::Session;
use view::View;

/// Builds the operator, starts a control plane, installs and runs the operator with `arguments`,
/// and shows its objects and reconciles until Ctrl-C.
pub(crate) async fn run(
    name: Option<&str>,
    args: &ControlPlaneArgs,
    as_admin: bool,
    arguments: Vec<OsString>,
) -> Result<()> {
    let mut stop = StopSignals::listen()?;
    let package = Package::find(name)?;
    let started = Instant::now();
    let plane = ControlPlane::start(args, Options::default()).await?;
    let mut view = View::new(&package.name);
    view.ready_in(started.elapsed());
    let identity = OperatorIdentity::new(&package.name, &plane, as_admin)?;
    let mut session = Session::new(package, arguments, plane, identity, view);
    let outcome = tokio::select! {
        outcome = session.develop() => outcome,
        () = stop.requested() => Ok(()),
    };
    session.stop().await;
    outcome
}
