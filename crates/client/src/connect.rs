//! Finding the cluster: an explicit kubeconfig, `KUBECONFIG`, the pod's service account, or
//! `~/.kube/config`, in this order (controller-runtime's, whose `--kubeconfig` comes first as
//! well).

mod kubeconfig;

use std::path::{Path, PathBuf};

use kube::config::KubeConfigOptions;
use kube::{Client, Config};

use crate::ClientOptions;

/// Why no cluster was found. Each message is one sentence that names the file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The kubeconfig is not there, or not readable.
    #[error("cannot read the kubeconfig {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        cause: std::io::Error,
    },
    /// The kubeconfig is there, but does not say which cluster.
    #[error("cannot use the kubeconfig {path}: {}", first_line(cause.as_ref()))]
    Use {
        /// The file, or the files that `KUBECONFIG` names.
        path: String,
        /// Why; not a source, because its text is part of the message.
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A service account is mounted, but incomplete.
    #[error("cannot use the pod's service account")]
    InCluster(#[source] kube::config::InClusterError),
    /// There is no kubeconfig anywhere, and this is not a pod.
    #[error(
        "no cluster is configured: set --kubeconfig or KUBECONFIG, write ~/.kube/config, or run in a pod"
    )]
    NotConfigured,
    /// The configuration is complete, but no client can be made of it.
    #[error("cannot make a client for the API server {server}")]
    Client {
        /// The URL of the server.
        server: String,
        /// Why.
        #[source]
        cause: Box<kube::Error>,
    },
}

/// Makes a client for the cluster of `kubeconfig`, of `KUBECONFIG`, of the pod this runs in, or of
/// `~/.kube/config`. No request is sent.
///
/// # Errors
/// When a file that is named cannot be used, and when nothing names a cluster. A later candidate
/// never hides the fault of an earlier one.
///
/// # Cancel safety
/// May be dropped at any time.
pub async fn connect(kubeconfig: Option<&Path>) -> Result<Client, ConnectError> {
    Ok(connect_named(kubeconfig).await?.0)
}

/// As [`connect`], with the URL of the server, to name it in errors.
///
/// # Errors
/// As [`connect`].
///
/// # Cancel safety
/// May be dropped at any time.
pub async fn connect_named(kubeconfig: Option<&Path>) -> Result<(Client, String), ConnectError> {
    connect_with(kubeconfig, ClientOptions::default()).await
}

/// As [`connect_named`], sending as `options` say.
///
/// # Errors
/// As [`connect`].
///
/// # Cancel safety
/// May be dropped at any time.
pub async fn connect_with(
    kubeconfig: Option<&Path>,
    options: ClientOptions,
) -> Result<(Client, String), ConnectError> {
    let config = find(kubeconfig).await?;
    let server = config.cluster_url.to_string();
    Ok((options.client(config)?, server))
}

async fn find(explicit: Option<&Path>) -> Result<Config, ConnectError> {
    if let Some(path) = explicit {
        return read(&[path.to_owned()]).await;
    }
    if let Some(paths) = std::env::var_os("KUBECONFIG").filter(|paths| !paths.is_empty()) {
        let files = std::env::split_paths(&paths);
        let files: Vec<PathBuf> = files.filter(|path| !path.as_os_str().is_empty()).collect();
        return read(&files).await;
    }
    if std::env::var_os("KUBERNETES_SERVICE_HOST").is_some() {
        return Config::incluster().map_err(ConnectError::InCluster);
    }
    let home = std::env::home_dir().map(|home| home.join(".kube/config"));
    match home {
        Some(path) if path.exists() => read(&[path]).await,
        _ => Err(ConnectError::NotConfigured),
    }
}

/// Reads the kubeconfig of these files and resolves its current context.
async fn read(files: &[PathBuf]) -> Result<Config, ConnectError> {
    let kubeconfig = kubeconfig::read(files.iter().map(PathBuf::as_path))?;
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
    config.map_err(|cause| ConnectError::Use {
        path: std::env::join_paths(files)
            .unwrap_or_default()
            .display()
            .to_string(),
        cause: cause.into(),
    })
}

/// A YAML error quotes the file over several lines; the first says what and where.
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
