//! The client certificate of connections.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use base64::Engine;
use kube::config::AuthInfo;
use parking_lot::Mutex;
use rustls::SignatureScheme;
use rustls::client::ResolvesClientCert;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use tokio::time::Instant;

use super::{CredentialsError, secret};

/// Time after which the files are read again without a new connection. client-go waits 5 minutes.
const READ_AFTER: Duration = Duration::from_secs(60);

/// Client certificate and key: in a kubeconfig, in files that rotate, or from a credential plugin.
pub(crate) struct Identity {
    /// Texts or files; `None` if there is no certificate, or it is from a plugin.
    sources: Option<[PemSource; 2]>,
    state: Mutex<State>,
    /// Number of changes of the certificate. Connections from before the last change are not used
    /// for new requests, because the server knows their client by the old certificate.
    changes: AtomicU64,
}

struct State {
    key: Option<Arc<CertifiedKey>>,
    read: Instant,
}

/// Text or file with PEM.
#[derive(Clone)]
enum PemSource {
    Text(Vec<u8>),
    File(PathBuf),
}

impl Identity {
    /// Reads the client certificate of a user, if there is one.
    pub(super) fn new(user: &AuthInfo) -> Result<Arc<Self>, CredentialsError> {
        let certificate = PemSource::new(
            "client-certificate-data",
            user.client_certificate_data.as_deref(),
            user.client_certificate.as_deref(),
        )?;
        let key = PemSource::new(
            "client-key-data",
            secret(user.client_key_data.as_ref()),
            user.client_key.as_deref(),
        )?;
        let sources = match (certificate, key) {
            (Some(certificate), Some(key)) => Some([certificate, key]),
            (Some(_), None) => {
                return Err(CredentialsError::Invalid {
                    item: "client certificate",
                    reason: "it has no key".to_owned(),
                });
            }
            // As in client-go, a key alone is not used.
            (None, _) => None,
        };
        let key = sources.as_ref().map(read).transpose()?;
        Ok(Arc::new(Self {
            sources,
            state: Mutex::new(State {
                key,
                read: Instant::now(),
            }),
            changes: AtomicU64::new(0),
        }))
    }

    /// Returns whether there is a certificate.
    pub(super) fn is_present(&self) -> bool {
        self.state.lock().key.is_some()
    }

    /// Returns the number of changes. Reads the files again once a minute.
    pub(crate) fn changes(&self) -> u64 {
        if self.has_files() {
            let mut state = self.state.lock();
            if state.read.elapsed() >= READ_AFTER {
                self.read_again(&mut state);
            }
        }
        self.changes.load(Ordering::Relaxed)
    }

    /// Replaces the certificate by that of a plugin, in PEM, or removes it.
    pub(super) fn replace(&self, pair: Option<[&str; 2]>) -> Result<(), CredentialsError> {
        let key = pair
            .map(|pair| parse(pair.map(str::as_bytes)))
            .transpose()?;
        self.set(&mut self.state.lock(), key);
        Ok(())
    }

    fn has_files(&self) -> bool {
        let mut sources = self.sources.iter().flatten();
        sources.any(|source| matches!(source, PemSource::File(_)))
    }

    /// Reads the files. If they are not valid, for example because only one of them is new, the
    /// last certificate stays in use.
    fn read_again(&self, state: &mut State) {
        state.read = Instant::now();
        match self.sources.as_ref().map(read).transpose() {
            Ok(key) => self.set(state, key),
            Err(error) => {
                let error = crate::one_line(&error);
                tracing::warn!(error, "the last client certificate stays in use");
            }
        }
    }

    fn set(&self, state: &mut State, key: Option<Arc<CertifiedKey>>) {
        let is_same = match (&state.key, &key) {
            (Some(old), Some(new)) => old.cert == new.cert,
            (old, new) => old.is_none() && new.is_none(),
        };
        if !is_same {
            state.key = key;
            self.changes.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl ResolvesClientCert for Identity {
    /// Called for each new connection.
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        let mut state = self.state.lock();
        if self.has_files() {
            self.read_again(&mut state);
        }
        state.key.clone()
    }

    fn has_certs(&self) -> bool {
        self.state.lock().key.is_some()
    }
}

/// The key is a secret.
impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").finish_non_exhaustive()
    }
}

impl PemSource {
    /// The text in the kubeconfig, in base64, has precedence over the file.
    fn new(
        item: &'static str,
        data: Option<&str>,
        file: Option<&str>,
    ) -> Result<Option<Self>, CredentialsError> {
        let is_given = |text: &&str| !text.is_empty();
        match (data.filter(is_given), file.filter(is_given)) {
            (Some(data), _) => {
                let text = base64::engine::general_purpose::STANDARD.decode(data);
                let text = text.map_err(|error| invalid(item, &error))?;
                Ok(Some(Self::Text(text)))
            }
            (None, Some(path)) => Ok(Some(Self::File(path.into()))),
            (None, None) => Ok(None),
        }
    }

    fn read(&self, item: &'static str) -> Result<Vec<u8>, CredentialsError> {
        match self {
            Self::Text(text) => Ok(text.clone()),
            Self::File(path) => std::fs::read(path).map_err(|cause| CredentialsError::Read {
                item,
                path: path.clone(),
                cause,
            }),
        }
    }
}

fn read([certificate, key]: &[PemSource; 2]) -> Result<Arc<CertifiedKey>, CredentialsError> {
    let certificate = certificate.read("client certificate")?;
    let key = key.read("key of the client certificate")?;
    parse([&certificate, &key])
}

/// Parses a certificate chain and a key in PEM, and checks that they belong to each other.
fn parse([certificate, key]: [&[u8]; 2]) -> Result<Arc<CertifiedKey>, CredentialsError> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificate).collect();
    let chain = chain.map_err(|error| invalid("client certificate", &error))?;
    if chain.is_empty() {
        return Err(invalid("client certificate", &"there is no PEM"));
    }
    let item = "key of the client certificate";
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| invalid(item, &error))?;
    let provider = rustls::crypto::ring::default_provider();
    let key = CertifiedKey::from_der(chain, key, &provider);
    Ok(Arc::new(key.map_err(|error| invalid(item, &error))?))
}

fn invalid(item: &'static str, reason: &dyn fmt::Display) -> CredentialsError {
    CredentialsError::Invalid {
        item,
        reason: reason.to_string(),
    }
}

#[cfg(test)]
mod tests;
