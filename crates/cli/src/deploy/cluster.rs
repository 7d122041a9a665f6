//! The cluster that a command works on.

use std::path::PathBuf;

use anyhow::Result;
use opkit_client::{ClientOptions, ClusterSelection, SelectedCluster};

use super::progress::Printer;

/// Flags that select the cluster, with the names of kubectl.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ClusterArgs {
    /// Path of the kubeconfig [default: KUBECONFIG, the pod's service account, ~/.kube/config]
    #[arg(long, value_name = "PATH")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig [default: the current one]
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,
}

impl ClusterArgs {
    /// Creates a client of the cluster. Sends no request.
    pub(crate) async fn connect(&self) -> Result<SelectedCluster> {
        let mut selection = ClusterSelection::default();
        selection.kubeconfig.clone_from(&self.kubeconfig);
        selection.context.clone_from(&self.context);
        Ok(selection.connect(ClientOptions::default()).await?)
    }
}

/// Prints the name, the address and the version of the cluster, and thereby checks that it can be
/// reached.
pub(crate) async fn show(cluster: &SelectedCluster, printer: &Printer) -> Result<()> {
    let version = cluster.client.apiserver_version().await.map_err(|error| {
        anyhow::anyhow!(
            "cannot reach the API server {}: {}",
            cluster.server,
            opkit_client::one_line(&error)
        )
    })?;
    let version = version.git_version.trim_start_matches('v').to_owned();
    let name = cluster.context.as_deref().unwrap_or("in this pod");
    let server = cluster.server.trim_end_matches('/');
    printer.line(
        "cluster",
        &format!("{name}   {server}   Kubernetes {version}"),
    );
    Ok(())
}

/// Reports whether the API server is on this machine: an embedded control plane, the binaries of
/// envtest, or kind.
pub(crate) fn is_local(cluster: &SelectedCluster) -> bool {
    let host = cluster.server.split("://").nth(1).unwrap_or_default();
    ["127.", "localhost", "[::1]"]
        .iter()
        .any(|local| host.starts_with(local))
}
