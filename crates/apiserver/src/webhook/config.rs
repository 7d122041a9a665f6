//! The configuration file of a webhook, in the format of a kubeconfig.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::{HeaderValue, Uri};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;

use crate::object;

/// The address of a webhook and the credentials of the API server.
pub(super) struct Config {
    pub(super) uri: Uri,
    pub(super) authorization: Option<HeaderValue>,
    pub(super) tls: ClientConfig,
}

/// Reads a configuration. Files that the configuration names are read now.
pub(super) fn parse(text: &str) -> Result<Config, String> {
    let config: Value = serde_saphyr::from_str(text).map_err(|error| error.to_string())?;
    let current = object::text(&config, &["current-context"]);
    let context = named(&config, "contexts", current, "context")
        .ok_or_else(|| format!("there is no context {current:?}"))?;
    let name = object::text(context, &["cluster"]);
    let cluster = named(&config, "clusters", name, "cluster")
        .ok_or_else(|| format!("there is no cluster {name:?}"))?;
    let none = Value::Null;
    let user = named(&config, "users", object::text(context, &["user"]), "user").unwrap_or(&none);
    let server = object::text(cluster, &["server"]);
    let uri: Uri = server
        .parse()
        .map_err(|error| format!("the server {server:?} is not a URL: {error}"))?;
    if uri.scheme().is_none() || uri.authority().is_none() {
        return Err(format!("the server {server:?} is not a URL"));
    }
    let token = match object::text(user, &["token"]) {
        "" => file_or_data(user, "tokenFile", "")?,
        token => Some(token.as_bytes().to_vec()),
    };
    let authorization = token.map(|token| {
        let token = String::from_utf8_lossy(&token).trim().to_owned();
        let header = HeaderValue::from_str(&format!("Bearer {token}"));
        header.map_err(|_| "the token is not valid in a header".to_owned())
    });
    Ok(Config {
        uri,
        authorization: authorization.transpose()?,
        tls: tls(cluster, user)?,
    })
}

fn named<'a>(config: &'a Value, list: &str, name: &str, field: &str) -> Option<&'a Value> {
    let mut items = object::items(config, &[list]).iter();
    let item = items.find(|item| object::text(item, &["name"]) == name)?;
    item.get(field)
}

/// Returns the contents of the file that `file` names, or the decoded `data`.
fn file_or_data(of: &Value, file: &str, data: &str) -> Result<Option<Vec<u8>>, String> {
    let text = object::text(of, &[data]);
    if !text.is_empty() {
        let decoded = BASE64_STANDARD.decode(text);
        return decoded
            .map(Some)
            .map_err(|error| format!("{data}: {error}"));
    }
    match object::text(of, &[file]) {
        "" => Ok(None),
        path => match std::fs::read(path) {
            Ok(contents) => Ok(Some(contents)),
            Err(error) => Err(format!("cannot read {path}: {error}")),
        },
    }
}

fn tls(cluster: &Value, user: &Value) -> Result<ClientConfig, String> {
    let fail = |error: rustls::Error| error.to_string();
    if object::at(cluster, &["insecure-skip-tls-verify"]) == &Value::Bool(true) {
        return Err("insecure-skip-tls-verify is not supported: name the authority".to_owned());
    }
    let authority = file_or_data(
        cluster,
        "certificate-authority",
        "certificate-authority-data",
    )?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(authority.as_deref().unwrap_or_default()) {
        let certificate = certificate.map_err(|error| format!("certificate-authority: {error}"))?;
        roots.add(certificate).map_err(fail)?;
    }
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(fail)?
        .with_root_certificates(roots);
    let certificate = file_or_data(user, "client-certificate", "client-certificate-data")?;
    let key = file_or_data(user, "client-key", "client-key-data")?;
    let (Some(certificate), Some(key)) = (certificate, key) else {
        return Ok(builder.with_no_client_auth());
    };
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&certificate).collect();
    let chain = chain.map_err(|error| format!("client-certificate: {error}"))?;
    let key = PrivateKeyDer::from_pem_slice(&key);
    let key = key.map_err(|error| format!("client-key: {error}"))?;
    builder.with_client_auth_cert(chain, key).map_err(fail)
}
