//! The cluster and user that the flags of a command select, with kubectl's names and rules.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use kube::Client;

use super::{ConnectError, find};
use crate::ClientOptions;

/// A cluster and a user that a person selects, as with the connection flags of kubectl. A field
/// that is set replaces the value in the kubeconfig.
///
/// # Examples
/// ```
/// use opkit_client::ClusterSelection;
/// let mut selection = ClusterSelection::default();
/// selection.context = Some("staging".to_owned());
/// selection.impersonate_user = Some("jane".to_owned());
/// assert_eq!(selection.kubeconfig, None);
/// ```
#[derive(Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ClusterSelection {
    /// Path of the kubeconfig (`--kubeconfig`); `None` for the first configuration that exists, as
    /// in [`connect`](crate::connect).
    pub kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig (`--context`); `None` for the current one.
    pub context: Option<String>,
    /// Cluster of the kubeconfig (`--cluster`); `None` for that of the context.
    pub cluster: Option<String>,
    /// User of the kubeconfig (`--user`); `None` for that of the context.
    pub user: Option<String>,
    /// URL of the API server (`--server`). Also clears the TLS server name of the kubeconfig.
    pub server: Option<String>,
    /// File with the certificates of the authorities that may sign the server's certificate
    /// (`--certificate-authority`). Replaces the authorities in the kubeconfig.
    pub certificate_authority: Option<PathBuf>,
    /// Whether any certificate of the server is accepted (`--insecure-skip-tls-verify`). The
    /// connection is then not secure.
    pub insecure_skip_tls_verify: bool,
    /// Name that the server's certificate must have (`--tls-server-name`); `None` for the host in
    /// the URL.
    pub tls_server_name: Option<String>,
    /// Bearer token (`--token`).
    pub token: Option<String>,
    /// File with the client certificate (`--client-certificate`). The file is read again when it
    /// changes.
    pub client_certificate: Option<PathBuf>,
    /// File with the key of the client certificate (`--client-key`).
    pub client_key: Option<PathBuf>,
    /// User to impersonate (`--as`).
    pub impersonate_user: Option<String>,
    /// Groups to impersonate (`--as-group`).
    pub impersonate_groups: Vec<String>,
    /// UID to impersonate (`--as-uid`).
    pub impersonate_uid: Option<String>,
    /// Time limit of each request with its response (`--request-timeout`); `None` for the limit in
    /// [`ClientOptions`]. Also ends watches.
    pub request_timeout: Option<Duration>,
    /// Whether responses are not compressed (`--disable-compression`).
    pub disable_compression: bool,
}

impl ClusterSelection {
    /// Creates a client with `options` for the selected cluster. Sends no request.
    ///
    /// # Errors
    /// Same as [`connect`](crate::connect), and [`ConnectError::Use`] if there is no such context,
    /// cluster or user.
    ///
    /// # Cancel safety
    /// May be dropped at any time.
    pub async fn connect(
        &self,
        mut options: ClientOptions,
    ) -> Result<SelectedCluster, ConnectError> {
        let (config, context) = find(self)?;
        options.request_timeout = self.request_timeout.or(options.request_timeout);
        Ok(SelectedCluster {
            server: config.cluster_url.to_string(),
            namespace: config.default_namespace.clone(),
            client: options.client(config)?,
            context,
        })
    }

    /// Returns a kubeconfig with only the selected cluster and user, for another process. The
    /// kubeconfig contains the credentials of the user.
    ///
    /// # Errors
    /// Same as [`connect`](ClusterSelection::connect).
    pub fn kubeconfig(&self) -> Result<String, ConnectError> {
        let (kubeconfig, path) = super::load(self)?;
        let text = super::resolve::select(kubeconfig, self)
            .map(|(parts, _)| super::resolve::kubeconfig(parts, self));
        text.map_err(|cause| super::unusable(&path, cause))
    }

    /// Returns whether a context, cluster or user of a kubeconfig is named, so that only a
    /// kubeconfig can be meant.
    pub(super) fn names_part_of_kubeconfig(&self) -> bool {
        self.context.is_some() || self.cluster.is_some() || self.user.is_some()
    }
}

/// The token is a secret and is left out.
impl fmt::Debug for ClusterSelection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterSelection")
            .field("kubeconfig", &self.kubeconfig)
            .field("context", &self.context)
            .field("cluster", &self.cluster)
            .field("user", &self.user)
            .field("server", &self.server)
            .field("has_token", &self.token.is_some())
            .field("impersonate_user", &self.impersonate_user)
            .finish_non_exhaustive()
    }
}

/// Client of a selected cluster, and the names under which the user knows the cluster.
#[derive(Clone)]
#[non_exhaustive]
pub struct SelectedCluster {
    /// The client.
    pub client: Client,
    /// URL of the server.
    pub server: String,
    /// Namespace of the context.
    pub namespace: String,
    /// Name of the context; `None` in a pod.
    pub context: Option<String>,
}

impl fmt::Debug for SelectedCluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SelectedCluster")
            .field("server", &self.server)
            .field("context", &self.context)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
