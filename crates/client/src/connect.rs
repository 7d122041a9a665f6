//! Selection of the cluster to connect to. As in controller-runtime, the first configuration that
//! exists is used, in this order: a given kubeconfig, `KUBECONFIG`, the pod's service account,
//! `~/.kube/config`.

mod kubeconfig;

use std::path::{Path, PathBuf};

use kube::config::{AuthInfo, KubeConfigOptions};
use kube::{Client, Config};

use crate::ClientOptions;

/// The reason why no client can be created. Each message is one sentence that names the file or the
/// server, if there is one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The kubeconfig is missing or cannot be read.
    #[error("cannot read the kubeconfig {}", path.display())]
    Read {
        /// Path of the kubeconfig.
        path: PathBuf,
        /// The I/O error.
        #[source]
        cause: std::io::Error,
    },
    /// The kubeconfig was read, but does not define a usable cluster.
    #[error("cannot use the kubeconfig {path}: {}", first_line(cause.as_ref()))]
    Use {
        /// Path of the kubeconfig, or the value of `KUBECONFIG`.
        path: String,
        /// The error in the kubeconfig. Not a `source`, because the message contains the text of
        /// this error.
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The pod's service account is incomplete.
    #[error("cannot use the pod's service account")]
    InCluster(#[source] kube::config::InClusterError),
    /// There is no kubeconfig, and the process does not run in a pod.
    #[error(
        "no cluster is configured: set --kubeconfig or KUBECONFIG, write ~/.kube/config, or run in a pod"
    )]
    NotConfigured,
    /// The configuration is complete, but no client can be created from the configuration.
    #[error("cannot create a client for the API server {server}")]
    Client {
        /// URL of the server.
        server: String,
        /// The invalid TLS, credential or proxy setting.
        #[source]
        cause: Box<kube::Error>,
    },
}

/// Creates a client from the first configuration that exists: `kubeconfig`, the files in
/// `KUBECONFIG`, the service account of the pod that this process runs in, `~/.kube/config`. Sends
/// no request.
///
/// # Errors
/// Fails if the selected configuration cannot be used, or if no configuration exists. An invalid
/// configuration is never skipped in favour of a later one.
///
/// # Cancel safety
/// May be dropped at any time.
pub async fn connect(kubeconfig: Option<&Path>) -> Result<Client, ConnectError> {
    let (client, _server) = connect_with(kubeconfig, ClientOptions::default()).await?;
    Ok(client)
}

/// Creates a client with `options` for the cluster that [`connect`] selects. Also returns the URL
/// of the server, for use in messages.
///
/// # Errors
/// Same as [`connect`].
///
/// # Cancel safety
/// May be dropped at any time.
pub async fn connect_with(
    kubeconfig: Option<&Path>,
    options: ClientOptions,
) -> Result<(Client, String), ConnectError> {
    let (config, _) = find(kubeconfig, None).await?;
    let server = config.cluster_url.to_string();
    Ok((options.client(config)?, server))
}

/// Creates a client with `options` for the cluster that [`connect`] selects. The client sends
/// `token` instead of the credentials in the configuration.
///
/// # Errors
/// Same as [`connect`].
///
/// # Cancel safety
/// May be dropped at any time.
pub async fn connect_with_token(
    token: String,
    options: ClientOptions,
) -> Result<Client, ConnectError> {
    let (mut config, _) = find(None, None).await?;
    config.auth_info = AuthInfo {
        token: Some(token.into()),
        ..AuthInfo::default()
    };
    options.client(config)
}

/// A cluster that a user selects, as with the flags `--kubeconfig` and `--context` of kubectl.
///
/// # Examples
/// ```
/// use opkit_client::ClusterSelection;
/// let mut selection = ClusterSelection::default();
/// selection.context = Some("staging".to_owned());
/// assert_eq!(selection.kubeconfig, None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ClusterSelection {
    /// Path of the kubeconfig; `None` for the first configuration that exists, as in [`connect`].
    pub kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig; `None` for the current one.
    pub context: Option<String>,
}

impl ClusterSelection {
    /// Creates a client with `options` for the selected cluster. Sends no request.
    ///
    /// # Errors
    /// Same as [`connect`], and [`ConnectError::Use`] if there is no such context.
    ///
    /// # Cancel safety
    /// May be dropped at any time.
    pub async fn connect(&self, options: ClientOptions) -> Result<SelectedCluster, ConnectError> {
        let (config, context) = find(self.kubeconfig.as_deref(), self.context.clone()).await?;
        Ok(SelectedCluster {
            server: config.cluster_url.to_string(),
            namespace: config.default_namespace.clone(),
            client: options.client(config)?,
            context,
        })
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

impl std::fmt::Debug for SelectedCluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SelectedCluster")
            .field("server", &self.server)
            .field("context", &self.context)
            .finish_non_exhaustive()
    }
}

/// Returns the selected configuration, and the name of its context.
async fn find(
    explicit: Option<&Path>,
    context: Option<String>,
) -> Result<(Config, Option<String>), ConnectError> {
    if let Some(path) = explicit {
        return read(&[path.to_owned()], context).await;
    }
    let paths = std::env::var_os("KUBECONFIG").unwrap_or_default();
    let files = std::env::split_paths(&paths).filter(|path| !path.as_os_str().is_empty());
    let files: Vec<PathBuf> = files.collect();
    if !files.is_empty() {
        return read(&files, context).await;
    }
    if std::env::var_os("KUBERNETES_SERVICE_HOST").is_some() {
        let config = Config::incluster().map_err(ConnectError::InCluster)?;
        return Ok((config, None));
    }
    let home = std::env::home_dir().map(|home| home.join(".kube/config"));
    match home {
        Some(path) if path.exists() => read(&[path], context).await,
        _ => Err(ConnectError::NotConfigured),
    }
}

/// Reads and merges kubeconfig files, and resolves a context, or the current one.
async fn read(
    files: &[PathBuf],
    context: Option<String>,
) -> Result<(Config, Option<String>), ConnectError> {
    let kubeconfig = kubeconfig::read(files.iter().map(PathBuf::as_path))?;
    let name = context.clone().or(kubeconfig.current_context.clone());
    let options = KubeConfigOptions {
        context,
        ..KubeConfigOptions::default()
    };
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
    let config = config.map_err(|cause| ConnectError::Use {
        path: std::env::join_paths(files)
            .unwrap_or_default()
            .display()
            .to_string(),
        cause: cause.into(),
    })?;
    Ok((config, name))
}

/// Returns the first line of the error. A YAML error has the problem and its position in the first
/// line, and quotes the file in further lines.
fn first_line(cause: &(dyn std::error::Error + Send + Sync)) -> String {
    cause
        .to_string()
        .lines()
        .next()
        .unwrap_or_default()
        .trim()
        .to_owned()
}

#[cfg(test)]
mod tests;
