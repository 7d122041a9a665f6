//! The cluster that a command works on.

use anyhow::Result;
use opkit_client::SelectedCluster;

use super::progress::Printer;

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
