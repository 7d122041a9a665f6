//! Webhooks of the operator under `opkit dev`: the API server calls them on a loopback port, with a
//! certificate that is created for this run.

use std::ffi::OsString;
use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use k8s_openapi::ByteString;
use opkit_client::Unstructured;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use serde_json::json;

use super::install::parse;
use crate::control_plane::ControlPlane;

/// Flags that the user may give instead.
const FLAGS: [&str; 2] = ["--webhook-port", "--webhook-cert-path"];
/// Time for which the webhooks are served after a signal. The API server of this command waits for
/// no other replica, so the time would only delay each restart.
const SHUTDOWN_DELAY: &str = "--webhook-shutdown-delay";

/// Address and certificate of the operator's webhooks.
pub(crate) struct DevWebhooks {
    port: u16,
    certificates: PathBuf,
    /// Certificate of the authority in PEM.
    authority: String,
}

impl DevWebhooks {
    /// Creates a certificate for the Service in the manifests of an operator, and sends the
    /// requests of the API server for that Service to a free port. Returns `None` if the operator
    /// has no webhooks, or if the user has chosen their port or certificate.
    pub(crate) fn prepare(
        operator: &str,
        plane: &ControlPlane,
        manifests: &str,
        arguments: &[OsString],
    ) -> Result<Option<Self>> {
        let is_chosen = |argument: &OsString| {
            let text = argument.to_string_lossy();
            FLAGS.iter().any(|flag| text.starts_with(flag))
        };
        if arguments.iter().any(is_chosen) {
            return Ok(None);
        }
        let objects = parse(manifests)?;
        let mut services = objects.iter().filter(|object| object.kind() == "Service");
        let service = services.find(|service| service.name().ends_with("-webhook-service"));
        let Some(service) = service else {
            return Ok(None);
        };
        let namespace = service.namespace().unwrap_or("default");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
        let address = listener.and_then(|listener| listener.local_addr());
        let address = address.context("there is no free port for the webhooks")?;
        let route = format!("{namespace}/{}={address}", service.name());
        let route = route.parse().map_err(anyhow::Error::msg)?;
        plane.server.set_service_address(route);
        let path = plane.kubeconfig.path();
        let certificates = path.with_file_name(format!("{operator}.webhook-certs"));
        let host = format!("{}.{namespace}.svc", service.name());
        let authority = write_certificate(&certificates, &host)?;
        Ok(Some(Self {
            port: address.port(),
            certificates,
            authority,
        }))
    }

    /// Returns the flags of the operator, without those that the user has given.
    pub(crate) fn arguments(&self, user: &[OsString]) -> Vec<OsString> {
        let [port, path] = FLAGS;
        let mut arguments = vec![
            port.into(),
            self.port.to_string().into(),
            path.into(),
            self.certificates.clone().into(),
        ];
        let is_delay = |it: &OsString| it.to_string_lossy().starts_with(SHUTDOWN_DELAY);
        if !user.iter().any(is_delay) {
            arguments.extend([SHUTDOWN_DELAY.into(), "0".into()]);
        }
        arguments
    }

    /// Adds the certificate of the authority to the webhooks of a configuration, or to the
    /// conversion webhook of a CRD.
    pub(crate) fn trust(&self, object: &mut Unstructured) {
        let bundle = json!(ByteString(self.authority.as_bytes().to_owned()));
        let conversion = ["spec", "conversion", "webhook", "clientConfig"];
        if object.get(&conversion).is_some() {
            let path = [conversion.as_slice(), &["caBundle"]].concat();
            let _ = object.set(&path, bundle.clone());
        }
        let webhooks = object.get(&["webhooks"]).and_then(|it| it.as_array());
        let Some(mut webhooks) = webhooks.cloned() else {
            return;
        };
        for webhook in &mut webhooks {
            let config = webhook.get_mut("clientConfig");
            if let Some(config) = config.and_then(|it| it.as_object_mut()) {
                config.insert("caBundle".to_owned(), bundle.clone());
            }
        }
        let _ = object.set(&["webhooks"], webhooks);
    }

    /// Removes the certificate.
    pub(crate) fn remove(&self) {
        let _ = fs::remove_dir_all(&self.certificates);
    }
}

/// Writes a certificate for `host` and its key to a directory, and returns the authority in PEM.
fn write_certificate(directory: &Path, host: &str) -> Result<String> {
    let context = || format!("cannot write {}", directory.display());
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let key = KeyPair::generate()?;
    let authority = params.self_signed(&key)?.pem();
    let issuer = Issuer::new(params, key);
    let key = KeyPair::generate()?;
    let certificate = CertificateParams::new([host.to_owned()])?.signed_by(&key, &issuer)?;
    fs::create_dir_all(directory).with_context(context)?;
    fs::write(directory.join("tls.crt"), certificate.pem()).with_context(context)?;
    fs::write(directory.join("tls.key"), key.serialize_pem()).with_context(context)?;
    Ok(authority)
}

#[cfg(test)]
mod tests;
