//! Turns a merged kubeconfig and a selection into the configuration of a client, by the rules of
//! client-go (`tools/clientcmd/client_config.go`).

use std::path::{Path, PathBuf};

use base64::Engine;
use http::Uri;
use kube::Config;
use kube::config::{AuthInfo, Cluster, Context, ExecAuthCluster, Kubeconfig};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use super::ClusterSelection;
use super::proxy::{self, ProxyUrlError};

/// The reason why a kubeconfig does not define a usable cluster.
#[derive(Debug, thiserror::Error)]
pub(super) enum ResolveError {
    #[error("there is no {item} {name:?}{}; {}", by_flag(flag), known(item, names))]
    Unknown {
        item: &'static str,
        name: String,
        /// The flag with the name, unless the kubeconfig has the name.
        flag: Option<&'static str>,
        names: Vec<String>,
    },
    #[error(
        "it sets no current-context: choose one with --context; {}",
        known("context", names)
    )]
    NoContext { names: Vec<String> },
    #[error("the cluster {0:?} has no server")]
    NoServer(String),
    #[error("{value:?} is not a valid URL of the API server")]
    Server {
        value: String,
        #[source]
        cause: http::uri::InvalidUri,
    },
    #[error(transparent)]
    Proxy(#[from] ProxyUrlError),
    #[error("cannot read the {item} {}: {cause}", path.display())]
    Read {
        item: &'static str,
        path: PathBuf,
        cause: std::io::Error,
    },
    #[error("the {0} is not valid base64")]
    Base64(&'static str),
    #[error("the certificate authority has no certificate in PEM")]
    NoCertificate,
    #[error("a group, UID or extra field to impersonate needs a user (--as)")]
    NoUserToImpersonate,
    #[error("it has a token and a password for the user {0:?}; only one is allowed")]
    TwoMethods(String),
    #[error("the client certificate of the user {0:?} has no key (--client-key)")]
    NoClientKey(String),
}

fn by_flag(flag: &Option<&'static str>) -> String {
    flag.map(|flag| format!(" ({flag})")).unwrap_or_default()
}

fn known(item: &str, names: &[String]) -> String {
    match names {
        [] => format!("it has no {item}s"),
        [name] => format!("the only {item} is {name}"),
        names => format!("the {item}s are {}", names.join(", ")),
    }
}

/// Cluster, user and namespace of a client, before files are read.
#[derive(Default)]
pub(super) struct Parts {
    pub(super) cluster: Cluster,
    pub(super) user: AuthInfo,
    pub(super) namespace: Option<String>,
    /// Name of the user, for error messages.
    pub(super) user_name: String,
}

/// Returns the parts of `kubeconfig` that `selection` selects, and the name of the context.
pub(super) fn select(
    kubeconfig: Kubeconfig,
    selection: &ClusterSelection,
) -> Result<(Parts, Option<String>), ResolveError> {
    let Kubeconfig {
        clusters,
        auth_infos,
        contexts,
        current_context,
        ..
    } = kubeconfig;
    let context_name = selection.context.clone().or(present(current_context));
    let context_names = || contexts.iter().map(|it| it.name.clone()).collect();
    let context = match &context_name {
        Some(name) => {
            let found = contexts.iter().find(|it| it.name == *name);
            found.ok_or_else(|| ResolveError::Unknown {
                item: "context",
                name: name.clone(),
                flag: selection.context.as_ref().map(|_| "--context"),
                names: context_names(),
            })?
        }
        .context
        .clone()
        .unwrap_or_default(),
        // As for kubectl, flags alone can select a cluster.
        None if selection.cluster.is_some() || selection.server.is_some() => Context::default(),
        None => {
            return Err(ResolveError::NoContext {
                names: context_names(),
            });
        }
    };

    let chosen = selection.cluster.clone();
    let cluster_name = chosen.or(present(Some(context.cluster)));
    let cluster = match &cluster_name {
        Some(name) => match clusters.iter().find(|it| it.name == *name) {
            Some(found) => found.cluster.clone().unwrap_or_default(),
            None if selection.cluster.is_none() && selection.server.is_some() => Cluster::default(),
            None => {
                return Err(ResolveError::Unknown {
                    item: "cluster",
                    name: name.clone(),
                    flag: selection.cluster.as_ref().map(|_| "--cluster"),
                    names: clusters.iter().map(|it| it.name.clone()).collect(),
                });
            }
        },
        None => Cluster::default(),
    };
    if present(cluster.server.clone()).is_none() && selection.server.is_none() {
        return Err(ResolveError::NoServer(cluster_name.unwrap_or_default()));
    }

    let user_name = selection.user.clone().or(present(context.user));
    let found = auth_infos
        .iter()
        .find(|it| Some(&it.name) == user_name.as_ref());
    let user = match (found, &selection.user) {
        (Some(found), _) => found.auth_info.clone().unwrap_or_default(),
        // A context may name a user that does not exist; a flag may not.
        (None, None) => AuthInfo::default(),
        (None, Some(name)) => {
            return Err(ResolveError::Unknown {
                item: "user",
                name: name.clone(),
                flag: Some("--user"),
                names: auth_infos.iter().map(|it| it.name.clone()).collect(),
            });
        }
    };
    let parts = Parts {
        cluster,
        user,
        namespace: present(context.namespace),
        user_name: user_name.unwrap_or_default(),
    };
    Ok((parts, context_name))
}

/// Returns the configuration of a client from its parts, with the values of `selection` in place of
/// theirs.
pub(super) fn resolve(
    mut parts: Parts,
    selection: &ClusterSelection,
) -> Result<Config, ResolveError> {
    override_cluster(&mut parts.cluster, selection);
    override_user(&mut parts.user, selection);
    let Parts {
        cluster,
        mut user,
        namespace,
        user_name,
    } = parts;
    check_user(&user, user_name)?;

    let mut config = Config::new(server_url(&cluster, &user)?);
    config.default_namespace = namespace.unwrap_or_else(|| "default".to_owned());
    config.accept_invalid_certs = cluster.insecure_skip_tls_verify.unwrap_or(false);
    config.disable_compression =
        cluster.disable_compression.unwrap_or(false) || selection.disable_compression;
    config.tls_server_name = present(cluster.tls_server_name.clone());
    let authority = authority(&cluster)?;
    if let Some(pem) = &authority {
        config.root_cert = Some(certificates(pem)?);
        let has_data = present(cluster.certificate_authority_data.clone()).is_some();
        let file = present(cluster.certificate_authority.clone()).filter(|_| !has_data);
        config.root_cert_file = file.map(PathBuf::from);
    }
    config.proxy_url = match present(cluster.proxy_url.clone()) {
        Some(url) => Some(proxy::parse(&url)?),
        None => proxy::Environment::read().proxy_of(&config.cluster_url)?,
    };
    // As client-go: without TLS, anybody on the way could read the credentials.
    if config.cluster_url.scheme_str() != Some("https") {
        user = without_credentials(user);
    }
    if let Some(exec) = user.exec.as_mut().filter(|exec| exec.provide_cluster_info) {
        exec.cluster = Some(exec_cluster(&cluster, authority));
    }
    config.auth_info = user;
    Ok(config)
}

/// Returns a kubeconfig in JSON with one cluster, one user and one context.
pub(super) fn kubeconfig(mut parts: Parts, selection: &ClusterSelection) -> String {
    override_cluster(&mut parts.cluster, selection);
    override_user(&mut parts.user, selection);
    parts.cluster.disable_compression = parts
        .cluster
        .disable_compression
        .or(selection.disable_compression.then_some(true));
    let name = "opkit";
    serde_json::json!({
        "apiVersion": "v1", "kind": "Config", "current-context": name,
        "clusters": [{"name": name, "cluster": parts.cluster}],
        "users": [{"name": name, "user": parts.user}],
        "contexts": [{"name": name, "context": {
            "cluster": name, "user": name, "namespace": parts.namespace,
        }}],
    })
    .to_string()
}

/// Replaces values of the cluster by those of `selection`.
fn override_cluster(cluster: &mut Cluster, selection: &ClusterSelection) {
    if selection.insecure_skip_tls_verify || selection.certificate_authority.is_some() {
        cluster.insecure_skip_tls_verify = Some(selection.insecure_skip_tls_verify);
        cluster.certificate_authority = text(selection.certificate_authority.as_deref());
        cluster.certificate_authority_data = None;
    }
    if selection.server.is_some() || selection.tls_server_name.is_some() {
        cluster
            .tls_server_name
            .clone_from(&selection.tls_server_name);
    }
    if selection.server.is_some() {
        cluster.server.clone_from(&selection.server);
    }
}

/// Replaces values of the user by those of `selection`.
fn override_user(user: &mut AuthInfo, selection: &ClusterSelection) {
    if let Some(token) = &selection.token {
        user.token = Some(token.clone().into());
        user.token_file = None;
    }
    if selection.client_certificate.is_some() {
        user.client_certificate = text(selection.client_certificate.as_deref());
        user.client_certificate_data = None;
    }
    if selection.client_key.is_some() {
        user.client_key = text(selection.client_key.as_deref());
        user.client_key_data = None;
    }
    if selection.impersonate_user.is_some() {
        user.impersonate.clone_from(&selection.impersonate_user);
    }
    if selection.impersonate_uid.is_some() {
        user.impersonate_uid.clone_from(&selection.impersonate_uid);
    }
    if !selection.impersonate_groups.is_empty() {
        user.impersonate_groups = Some(selection.impersonate_groups.clone());
    }
}

fn text(path: Option<&Path>) -> Option<String> {
    path.map(|path| path.to_string_lossy().into_owned())
}

/// Refuses combinations that client-go refuses as well.
fn check_user(user: &AuthInfo, name: String) -> Result<(), ResolveError> {
    let impersonates = present(user.impersonate.clone()).is_some();
    let has_details = present(user.impersonate_uid.clone()).is_some()
        || user
            .impersonate_groups
            .as_ref()
            .is_some_and(|it| !it.is_empty())
        || user
            .impersonate_user_extra
            .as_ref()
            .is_some_and(|it| !it.is_empty());
    if has_details && !impersonates {
        return Err(ResolveError::NoUserToImpersonate);
    }
    if user.token.is_some() && (user.username.is_some() || user.password.is_some()) {
        return Err(ResolveError::TwoMethods(name));
    }
    let has_certificate = present(user.client_certificate.clone()).is_some()
        || present(user.client_certificate_data.clone()).is_some();
    let has_key = present(user.client_key.clone()).is_some() || user.client_key_data.is_some();
    if has_certificate && !has_key {
        return Err(ResolveError::NoClientKey(name));
    }
    Ok(())
}

/// Returns the URL of the server. A host without a scheme means HTTPS if there is a setting for
/// TLS, or else HTTP, as for kubectl.
fn server_url(cluster: &Cluster, user: &AuthInfo) -> Result<Uri, ResolveError> {
    let value = cluster.server.clone().unwrap_or_default();
    let url = if value.contains("://") {
        value.clone()
    } else {
        let has_tls = cluster.insecure_skip_tls_verify == Some(true)
            || cluster.certificate_authority.is_some()
            || cluster.certificate_authority_data.is_some()
            || user.client_certificate.is_some()
            || user.client_certificate_data.is_some();
        let scheme = if has_tls { "https" } else { "http" };
        format!("{scheme}://{value}")
    };
    url.parse()
        .map_err(|cause| ResolveError::Server { value, cause })
}

/// Returns the PEM text of the certificate authorities, if there are any. The text in the
/// kubeconfig has precedence over the file.
fn authority(cluster: &Cluster) -> Result<Option<Vec<u8>>, ResolveError> {
    if let Some(data) = present(cluster.certificate_authority_data.clone()) {
        let decoded = base64::engine::general_purpose::STANDARD.decode(data);
        let error = |_| ResolveError::Base64("certificate-authority-data");
        return decoded.map(Some).map_err(error);
    }
    let Some(path) = present(cluster.certificate_authority.clone()) else {
        return Ok(None);
    };
    match std::fs::read(&path) {
        Ok(pem) => Ok(Some(pem)),
        Err(cause) => Err(ResolveError::Read {
            item: "certificate authority",
            path: path.into(),
            cause,
        }),
    }
}

fn certificates(pem: &[u8]) -> Result<Vec<Vec<u8>>, ResolveError> {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem)
        .map(|certificate| certificate.map(|it| it.to_vec()))
        .collect();
    certificates
        .ok()
        .filter(|certificates| !certificates.is_empty())
        .ok_or(ResolveError::NoCertificate)
}

/// Returns the description of the cluster for an exec plugin.
fn exec_cluster(cluster: &Cluster, authority: Option<Vec<u8>>) -> ExecAuthCluster {
    let extensions = cluster.extensions.iter().flatten();
    let mut configs = extensions.filter(|it| it.name == "client.authentication.k8s.io/exec");
    ExecAuthCluster {
        server: cluster.server.clone(),
        insecure_skip_tls_verify: cluster.insecure_skip_tls_verify,
        certificate_authority_data: authority,
        proxy_url: present(cluster.proxy_url.clone()),
        tls_server_name: present(cluster.tls_server_name.clone()),
        config: configs.next().map(|it| it.extension.clone()),
    }
}

/// Returns a user with only the fields for impersonation.
fn without_credentials(user: AuthInfo) -> AuthInfo {
    AuthInfo {
        impersonate: user.impersonate,
        impersonate_uid: user.impersonate_uid,
        impersonate_groups: user.impersonate_groups,
        impersonate_user_extra: user.impersonate_user_extra,
        ..AuthInfo::default()
    }
}

/// An empty text in a kubeconfig is the same as none.
fn present(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests;
