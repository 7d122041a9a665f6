//! The connection flags of every command that talks to a cluster, with the names and the rules of
//! kubectl.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use opkit_client::{ClientOptions, ClusterSelection, SelectedCluster};

/// Path of the kubeconfig that an operator's process gets, if the user selects a cluster by flags.
const OPERATOR_KUBECONFIG: &str = ".opkit/context.kubeconfig";

/// Heading of the connection flags in the help.
const HEADING: &str = "Cluster";

/// Flags that select the cluster and the user, with the names of kubectl.
#[derive(Clone, Default, clap::Args)]
pub(crate) struct ClusterArgs {
    /// Path of the kubeconfig [default: KUBECONFIG, the pod's service account, ~/.kube/config]
    #[arg(help_heading = HEADING, long, value_name = "PATH")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig [default: the current one]
    #[arg(help_heading = HEADING, long, value_name = "NAME")]
    pub(crate) context: Option<String>,
    /// Cluster of the kubeconfig [default: that of the context]
    #[arg(help_heading = HEADING, id = "kubeconfig-cluster", long = "cluster", value_name = "NAME")]
    cluster: Option<String>,
    /// User of the kubeconfig [default: that of the context]
    #[arg(help_heading = HEADING, long, value_name = "NAME")]
    user: Option<String>,
    /// Address of the API server
    #[arg(help_heading = HEADING, long, short, value_name = "URL")]
    server: Option<String>,
    /// Bearer token for the API server
    #[arg(help_heading = HEADING, long, value_name = "TOKEN")]
    token: Option<String>,
    /// Act as this user
    #[arg(help_heading = HEADING, id = "as", long = "as", value_name = "USER")]
    act_as: Option<String>,
    /// Act as a member of this group; can be repeated
    #[arg(help_heading = HEADING, long, value_name = "GROUP")]
    as_group: Vec<String>,
    /// Act as a user with this UID
    #[arg(help_heading = HEADING, long, value_name = "UID")]
    as_uid: Option<String>,
    /// File with the certificate authorities of the API server
    #[arg(help_heading = HEADING, long, value_name = "PATH")]
    certificate_authority: Option<PathBuf>,
    /// File with the client certificate
    #[arg(help_heading = HEADING, long, value_name = "PATH")]
    client_certificate: Option<PathBuf>,
    /// File with the key of the client certificate
    #[arg(help_heading = HEADING, long, value_name = "PATH")]
    client_key: Option<PathBuf>,
    /// Accept any certificate of the API server; the connection is not secure
    #[arg(help_heading = HEADING, long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value = "false", hide_default_value = true, hide_possible_values = true)]
    insecure_skip_tls_verify: bool,
    /// Name that the certificate of the API server must have [default: the host of its address]
    #[arg(help_heading = HEADING, long, value_name = "NAME")]
    tls_server_name: Option<String>,
    /// Time limit of each request, such as 30, 30s or 2m; 0 is no limit
    #[arg(help_heading = HEADING, long, value_name = "TIME", value_parser = request_timeout)]
    request_timeout: Option<Duration>,
    /// Do not ask the API server to compress responses
    #[arg(help_heading = HEADING, long)]
    disable_compression: bool,
}

impl ClusterArgs {
    /// Returns arguments with only a kubeconfig and a context.
    pub(crate) fn of_context(kubeconfig: Option<PathBuf>, context: Option<String>) -> Self {
        Self {
            kubeconfig,
            context,
            ..Self::default()
        }
    }

    /// Creates a client of the cluster. Sends no request.
    pub(crate) async fn connect(&self) -> Result<SelectedCluster> {
        let selection = self.selection();
        Ok(selection.connect(ClientOptions::default()).await?)
    }

    fn selection(&self) -> ClusterSelection {
        let mut selection = ClusterSelection::default();
        selection.kubeconfig.clone_from(&self.kubeconfig);
        selection.context.clone_from(&self.context);
        selection.cluster.clone_from(&self.cluster);
        selection.user.clone_from(&self.user);
        selection.server.clone_from(&self.server);
        selection.token.clone_from(&self.token);
        selection.impersonate_user.clone_from(&self.act_as);
        selection.impersonate_groups.clone_from(&self.as_group);
        selection.impersonate_uid.clone_from(&self.as_uid);
        let authority = &self.certificate_authority;
        selection.certificate_authority.clone_from(authority);
        let certificate = &self.client_certificate;
        selection.client_certificate.clone_from(certificate);
        selection.client_key.clone_from(&self.client_key);
        selection.insecure_skip_tls_verify = self.insecure_skip_tls_verify;
        selection.tls_server_name.clone_from(&self.tls_server_name);
        selection.request_timeout = self.request_timeout.filter(|limit| !limit.is_zero());
        selection.disable_compression = self.disable_compression;
        selection
    }

    /// Returns the flags of an operator's process, and the value of `KUBECONFIG`, with which it
    /// connects to the same cluster as the same user. The request timeout is only for the requests
    /// of this command.
    pub(crate) fn environment(&self) -> Result<(Vec<OsString>, Option<OsString>)> {
        let kubeconfig = self.kubeconfig.as_deref();
        let selection = self.selection();
        let mut by_context = ClusterSelection::default();
        by_context.kubeconfig.clone_from(&self.kubeconfig);
        by_context.context.clone_from(&self.context);
        by_context.request_timeout = selection.request_timeout;
        if selection != by_context {
            let path = std::path::absolute(OPERATOR_KUBECONFIG)?;
            write_private(&path, &selection.kubeconfig()?)?;
            return Ok((Vec::new(), Some(path.into())));
        }
        Ok(match (&self.context, kubeconfig) {
            (Some(context), _) => (Vec::new(), Some(with_context(context, kubeconfig)?)),
            (None, Some(path)) => (vec!["--kubeconfig".into(), path.into()], None),
            (None, None) => (Vec::new(), None),
        })
    }
}

/// The token is a secret and is left out.
impl std::fmt::Debug for ClusterArgs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("ClusterArgs")
            .field(&self.selection())
            .finish()
    }
}

/// Returns a value of `KUBECONFIG` that selects a context. Kubeconfigs are merged, and the first
/// one that sets a value wins, so a small file with only the name of the context comes first. No
/// credential is copied.
fn with_context(context: &str, kubeconfig: Option<&Path>) -> Result<OsString> {
    let path = Path::new(OPERATOR_KUBECONFIG);
    let content = serde_json::json!({
        "apiVersion": "v1", "kind": "Config", "current-context": context,
    });
    write_private(path, &content.to_string())?;
    let chosen = kubeconfig.map(|path| path.as_os_str().to_owned());
    let variable = || std::env::var_os("KUBECONFIG").filter(|it| !it.is_empty());
    let home = || std::env::home_dir().map(|home| home.join(".kube/config").into_os_string());
    let rest = chosen.or_else(variable).or_else(home).unwrap_or_default();
    let all = std::iter::once(path.to_owned()).chain(std::env::split_paths(&rest));
    Ok(std::env::join_paths(all)?)
}

/// Writes a file that only its owner can read.
fn write_private(path: &Path, content: &str) -> Result<()> {
    let write = || {
        if let Some(directory) = path.parent() {
            fs::create_dir_all(directory)?;
        }
        match fs::remove_file(path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        options.open(path)?.write_all(content.as_bytes())
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}

/// Parses a number of seconds, or numbers with Go's units, such as `1h30m` or `1.5s`.
fn request_timeout(text: &str) -> Result<Duration, String> {
    let expected = || "it must be a time such as 30, 30s or 2m".to_owned();
    if let Ok(seconds) = text.parse() {
        return Ok(Duration::from_secs(seconds));
    }
    let (mut rest, mut total) = (text, Duration::ZERO);
    while !rest.is_empty() {
        let end = rest.find(|char: char| char != '.' && !char.is_ascii_digit());
        let (number, tail) = rest
            .split_at_checked(end.unwrap_or(0))
            .ok_or_else(expected)?;
        let units = [("ms", 0.001), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];
        let unit = units.iter().find(|(name, _)| tail.starts_with(name));
        let (name, seconds) = unit.ok_or_else(expected)?;
        let number: f64 = number.parse().map_err(|_| expected())?;
        let part = Duration::try_from_secs_f64(number * seconds).map_err(|_| expected())?;
        total = total.checked_add(part).ok_or_else(expected)?;
        rest = tail.strip_prefix(name).unwrap_or_default();
    }
    match text.is_empty() {
        true => Err(expected()),
        false => Ok(total),
    }
}

#[cfg(test)]
mod tests;
