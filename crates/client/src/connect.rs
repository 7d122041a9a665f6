//! Selection of the cluster to connect to. As in controller-runtime, the first configuration that
//! exists is used, in this order: a given kubeconfig, `KUBECONFIG`, the pod's service account,
//! `~/.kube/config`.

mod kubeconfig;
mod proxy;
mod resolve;
mod selection;

use std::path::{Path, PathBuf};

use kube::config::{AuthInfo, Cluster, Kubeconfig};
use kube::{Client, Config};

use self::resolve::Parts;
pub use self::selection::{ClusterSelection, SelectedCluster};
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
    /// `KUBECONFIG` has only files that do not exist.
    #[error("no file in KUBECONFIG exists: {}", paths.display())]
    NoFile {
        /// The value of `KUBECONFIG`.
        paths: PathBuf,
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
        /// The invalid TLS, credential or proxy setting; a
        /// [`CredentialsError`](crate::CredentialsError) for credentials.
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
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
    let selection = ClusterSelection {
        kubeconfig: kubeconfig.map(Path::to_owned),
        ..ClusterSelection::default()
    };
    let (config, _) = find(&selection)?;
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
    let (mut config, _) = find(&ClusterSelection::default())?;
    config.auth_info = AuthInfo {
        token: Some(token.into()),
        ..AuthInfo::default()
    };
    options.client(config)
}

/// Returns the selected configuration, and the name of its context.
fn find(selection: &ClusterSelection) -> Result<(Config, Option<String>), ConnectError> {
    let is_pod = std::env::var_os("KUBERNETES_SERVICE_HOST").is_some();
    let is_pod = is_pod && selection.kubeconfig.is_none() && files_of_environment().is_empty();
    if is_pod && !selection.names_part_of_kubeconfig() {
        return Ok((in_pod(selection)?, None));
    }
    let (kubeconfig, path) = load(selection)?;
    let config = resolve::select(kubeconfig, selection)
        .and_then(|(parts, context)| Ok((resolve::resolve(parts, selection)?, context)));
    config.map_err(|cause| unusable(&path, cause))
}

/// Returns the merged kubeconfig, and its path or paths for error messages.
fn load(selection: &ClusterSelection) -> Result<(Kubeconfig, PathBuf), ConnectError> {
    if let Some(path) = &selection.kubeconfig {
        return Ok((kubeconfig::read(path)?, path.clone()));
    }
    let files = files_of_environment();
    if !files.is_empty() {
        let paths = std::env::join_paths(&files).unwrap_or_default();
        return Ok((kubeconfig::read_all(&files)?, paths.into()));
    }
    let home = std::env::home_dir().map(|home| home.join(".kube/config"));
    match home {
        Some(path) if path.exists() => Ok((kubeconfig::read(&path)?, path)),
        // The flags alone can be sufficient.
        _ if selection.server.is_some() => Ok((Kubeconfig::default(), "of the flags".into())),
        _ => Err(ConnectError::NotConfigured),
    }
}

/// Returns the paths in `KUBECONFIG`.
fn files_of_environment() -> Vec<PathBuf> {
    let paths = std::env::var_os("KUBECONFIG").unwrap_or_default();
    let files = std::env::split_paths(&paths);
    files.filter(|path| !path.as_os_str().is_empty()).collect()
}

fn unusable(path: &Path, cause: resolve::ResolveError) -> ConnectError {
    ConnectError::Use {
        path: path.display().to_string(),
        cause: cause.into(),
    }
}

/// Returns the configuration of the pod's service account.
fn in_pod(selection: &ClusterSelection) -> Result<Config, ConnectError> {
    let found = Config::incluster().map_err(ConnectError::InCluster)?;
    let path = |path: PathBuf| path.to_string_lossy().into_owned();
    let parts = Parts {
        cluster: Cluster {
            server: Some(found.cluster_url.to_string()),
            certificate_authority: found.root_cert_file.map(path),
            ..Cluster::default()
        },
        user: found.auth_info,
        namespace: Some(found.default_namespace),
        user_name: "the pod's service account".to_owned(),
    };
    let config = resolve::resolve(parts, selection);
    config.map_err(|cause| unusable(Path::new("of the pod's service account"), cause))
}

/// Returns the proxy that the environment sets for a server.
#[cfg(feature = "oidc")]
pub(crate) fn environment_proxy(
    server: &http::Uri,
) -> Result<Option<http::Uri>, impl std::error::Error + use<>> {
    proxy::Environment::read().proxy_of(server)
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
