//! The stand-in for kube-apiserver: the embedded API server without controllers, with the flags of
//! kube-apiserver.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use opkit_apiserver::{
    AdmissionPlugin, AuditOptions, Options, RequestHeaderOptions, Server, ServingCertificate,
    StaticToken,
};

use super::flags::{FlagSet, Flags, Parsed};
use super::storage;
use crate::output;
use crate::signals::StopSignals;

const FLAGS: FlagSet = FlagSet {
    program: "kube-apiserver",
    known: include_str!("flags/kube-apiserver.txt"),
    implemented: &[
        "anonymous-auth",
        "api-audiences",
        "audit-log-path",
        "audit-policy-file",
        "authorization-mode",
        "bind-address",
        "cert-dir",
        "client-ca-file",
        "disable-admission-plugins",
        "enable-admission-plugins",
        "etcd-servers",
        "feature-gates",
        "requestheader-allowed-names",
        "requestheader-client-ca-file",
        "requestheader-extra-headers-prefix",
        "requestheader-group-headers",
        "requestheader-uid-headers",
        "requestheader-username-headers",
        "secure-port",
        "service-account-extend-token-expiration",
        "service-account-issuer",
        "service-account-jwks-uri",
        "service-account-key-file",
        "service-account-max-token-expiration",
        "service-account-signing-key-file",
        "service-cluster-ip-range",
        "service-node-port-range",
        "tls-cert-file",
        "tls-private-key-file",
        "token-auth-file",
    ],
};

const ABOUT: &str = "opkit's stand-in for kube-apiserver: an API server that keeps its objects in \
                     memory, without controllers.";

/// Feature gate that lets lists and watches use the parameter `shardSelector`.
const SHARDED: &str = "ShardedListAndWatch";

/// Runs the stand-in until a signal stops it.
pub(super) async fn run(arguments: Vec<String>) -> Result<ExitCode> {
    let flags = match FLAGS.parse(arguments)? {
        Parsed::Flags(flags) => flags,
        Parsed::Help => {
            output::write(&FLAGS.help(ABOUT));
            return Ok(ExitCode::SUCCESS);
        }
        Parsed::Version => {
            output::write("Kubernetes v1.36.3+opkit\n");
            return Ok(ExitCode::SUCCESS);
        }
    };
    let mut signals = StopSignals::listen()?;
    let without_effect = FLAGS.without_effect(&flags);
    if !without_effect.is_empty() {
        tracing::warn!(flags = without_effect.join(","), "flags without effect");
    }
    let address = address(&flags)?;
    let certificate = certificate(&flags)?;
    let options = options(&flags)?;
    let claim = storage::claim(&flags.list("etcd-servers")).await?;
    if claim.was_used {
        tracing::warn!("the objects of the API server that used this etcd before are gone");
    }
    let server = Server::start(options)?;
    let address = match certificate {
        Some(certificate) => server.listen_with(address, &certificate).await?,
        None => server.listen(address).await?.address(),
    };
    tracing::info!(%address, "serving");
    signals.requested().await;
    server.shutdown().await;
    drop(claim);
    Ok(ExitCode::SUCCESS)
}

/// Returns the address to listen on. The defaults are those of kube-apiserver.
fn address(flags: &Flags) -> Result<SocketAddr> {
    let ip: Option<IpAddr> = flags.parse("bind-address")?;
    let port: Option<u16> = flags.parse("secure-port")?;
    let ip = ip.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
    Ok(SocketAddr::new(ip, port.unwrap_or(6443)))
}

/// Returns the certificate of `--tls-cert-file`, or the one in `--cert-dir`. Returns `None` if both
/// are missing: the server then creates a certificate.
fn certificate(flags: &Flags) -> Result<Option<ServingCertificate>> {
    let files = (
        flags.get("tls-cert-file"),
        flags.get("tls-private-key-file"),
    );
    let (certificate, key) = match files {
        (Some(certificate), Some(key)) => (certificate.into(), key.into()),
        (None, None) => {
            let directory = Path::new(flags.get("cert-dir").unwrap_or("/var/run/kubernetes"));
            let files = ["apiserver.crt", "apiserver.key"].map(|name| directory.join(name));
            match files {
                [certificate, key] if certificate.exists() && key.exists() => (certificate, key),
                _ => return Ok(None),
            }
        }
        _ => bail!("--tls-cert-file and --tls-private-key-file must be specified together"),
    };
    Ok(Some(ServingCertificate {
        certificate: read(&certificate)?,
        key: read(&key)?,
    }))
}

/// Returns the options of the API server for these flags.
fn options(flags: &Flags) -> Result<Options> {
    let mut options = Options::default();
    options.controllers = false;
    options.sharded_list_and_watch = flags
        .list("feature-gates")
        .iter()
        .any(|gate| gate.split_once('=') == Some((SHARDED, "true")));
    let enabled = flags.list("enable-admission-plugins");
    for name in enabled {
        match name.parse::<AdmissionPlugin>() {
            Ok(plugin) if options.admission_plugins.contains(&plugin) => {}
            Ok(plugin) => options.admission_plugins.push(plugin),
            Err(_) => tracing::warn!(%name, "admission plugin without effect"),
        }
    }
    let disabled = flags.list("disable-admission-plugins");
    options
        .admission_plugins
        .retain(|plugin: &AdmissionPlugin| !disabled.iter().any(|name| name == plugin.as_str()));
    if let Some(range) = flags.get("service-cluster-ip-range") {
        range.clone_into(&mut options.service_cluster_ip_range);
    }
    if let Some(range) = flags.get("service-node-port-range") {
        options.service_node_port_range = port_range(range)?;
    }
    let modes = flags.list("authorization-mode").into_iter();
    options.authorization = modes
        .map(|mode| mode.parse().map_err(anyhow::Error::msg))
        .collect::<Result<_>>()
        .context("--authorization-mode")?;
    if options.authorization.is_empty() {
        // The default of kube-apiserver, where only tests leave the flag out.
        options.authorization = vec![opkit_apiserver::AuthorizationMode::AlwaysAllow];
    }
    authentication(flags, &mut options)?;
    options.audit = audit(flags)?;
    Ok(options)
}

/// Returns the options of the audit log. As in kube-apiserver, events are written only if there are
/// both a policy and a path.
fn audit(flags: &Flags) -> Result<Option<AuditOptions>> {
    let path = flags.get("audit-log-path").filter(|path| !path.is_empty());
    match (file(flags, "audit-policy-file")?, path) {
        (Some(policy), Some(path)) => Ok(Some(AuditOptions::new(policy, path))),
        (None, Some(_)) => {
            tracing::warn!("no audit events are written: there is no --audit-policy-file");
            Ok(None)
        }
        (_, None) => Ok(None),
    }
}

fn authentication(flags: &Flags, options: &mut Options) -> Result<()> {
    let authentication = &mut options.authentication;
    if let Some(anonymous) = flags.parse("anonymous-auth")? {
        authentication.anonymous = anonymous;
    }
    authentication.client_ca = file(flags, "client-ca-file")?;
    authentication.request_header = request_header(flags)?;
    if let Some(text) = file(flags, "token-auth-file")? {
        authentication.tokens = StaticToken::parse_file(&text)
            .map_err(anyhow::Error::msg)
            .context("--token-auth-file")?;
    }
    let accounts = &mut authentication.service_accounts;
    let issuers = flags.list("service-account-issuer");
    if !issuers.is_empty() {
        accounts.issuers = issuers;
    }
    accounts.audiences = flags.list("api-audiences");
    accounts.signing_key = file(flags, "service-account-signing-key-file")?;
    for path in flags.list("service-account-key-file") {
        let key = read(Path::new(&path)).context("--service-account-key-file")?;
        accounts.keys.push(key);
    }
    accounts.jwks_uri = flags.get("service-account-jwks-uri").map(str::to_owned);
    if let Some(extend) = flags.parse("service-account-extend-token-expiration")? {
        accounts.extend_expiration = extend;
    }
    if let Some(text) = flags.get("service-account-max-token-expiration") {
        let duration: jiff::SignedDuration = text.parse().with_context(|| {
            format!("invalid argument {text:?} for \"--service-account-max-token-expiration\" flag")
        })?;
        accounts.max_expiration_seconds = Some(duration.as_secs()).filter(|seconds| *seconds > 0);
    }
    Ok(())
}

/// Returns the options of front proxies, or `None` if no authority signs their certificates.
fn request_header(flags: &Flags) -> Result<Option<RequestHeaderOptions>> {
    let Some(client_ca) = file(flags, "requestheader-client-ca-file")? else {
        return Ok(None);
    };
    let mut options = RequestHeaderOptions::new(client_ca);
    options.allowed_names = flags.list("requestheader-allowed-names");
    options.username_headers = flags.list("requestheader-username-headers");
    options.uid_headers = flags.list("requestheader-uid-headers");
    options.group_headers = flags.list("requestheader-group-headers");
    options.extra_headers_prefixes = flags.list("requestheader-extra-headers-prefix");
    if options.username_headers.is_empty() {
        bail!("--requestheader-client-ca-file needs --requestheader-username-headers");
    }
    Ok(Some(options))
}

/// Parses a range of ports, such as `30000-32767`.
fn port_range(text: &str) -> Result<std::ops::RangeInclusive<u16>> {
    let ports = text.split_once('-');
    let ports = ports.and_then(|(first, last)| Some((first.parse().ok()?, last.parse().ok()?)));
    match ports {
        Some((first, last)) if first <= last => Ok(first..=last),
        _ => bail!("--service-node-port-range: {text:?} is not a range such as 30000-32767"),
    }
}

/// Returns the content of the file that a flag names, or `None` if the flag is missing.
fn file(flags: &Flags, name: &str) -> Result<Option<String>> {
    let path = flags.get(name).map(Path::new);
    path.map(read)
        .transpose()
        .with_context(|| format!("--{name}"))
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

#[cfg(test)]
mod tests;
