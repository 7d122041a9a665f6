//! The data in the Secret that the replicas share.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier as _;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::issue::{Pair, fingerprint};
use crate::replicas::Replica;

#[cfg(test)]
mod tests;

/// Keys of the Secret. `tls.crt`, `tls.key` and `ca.crt` are the keys of a Secret of the type
/// `kubernetes.io/tls` and of cert-manager.
const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";
const AUTHORITIES: &str = "ca.crt";
const AUTHORITY_KEYS: &str = "ca.key";
/// Key of the times and names of the certificates.
const DATES: &str = "certificates.json";
/// Key of the reports of the replicas.
const REPLICAS: &str = "replicas.json";

/// The certificates that the replicas share, and the reports of the replicas.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Content {
    /// Authorities that API servers have to trust, the newest first: one, or two in a rotation.
    pub(crate) authorities: Vec<Authority>,
    pub(crate) serving: Option<Serving>,
    pub(crate) history: History,
    /// Reports by name of the replica.
    pub(crate) replicas: BTreeMap<String, Replica>,
}

/// What happened to the certificates before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct History {
    /// Number of changes of the certificates. A Secret with a lower number than one that was seen
    /// before is an old copy.
    pub(crate) changes: u64,
    /// Time when a replica restored the Secret from memory, in seconds since 1970. The replica may
    /// not have known the last change.
    pub(crate) restored: Option<i64>,
}

/// A certificate authority. Times are in seconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Authority {
    pub(crate) pair: Pair,
    pub(crate) dates: AuthorityDates,
}

/// A serving certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Serving {
    pub(crate) pair: Pair,
    pub(crate) dates: ServingDates,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AuthorityDates {
    /// Common name, which is different for each authority.
    pub(crate) name: String,
    /// Time when the authority was added to the bundle.
    pub(crate) added: i64,
    pub(crate) expires: i64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ServingDates {
    /// Common name of the authority that signed the certificate.
    pub(crate) authority: String,
    /// DNS names and IP addresses of the server.
    pub(crate) names: Vec<String>,
    pub(crate) issued: i64,
    pub(crate) expires: i64,
}

/// Times and names of all certificates, as stored in the Secret.
#[derive(Serialize, Deserialize)]
struct Dates {
    authorities: Vec<AuthorityDates>,
    serving: ServingDates,
    history: History,
}

impl Serving {
    /// Identifies the certificate in the reports of replicas.
    pub(crate) fn fingerprint(&self) -> String {
        fingerprint(&self.pair.certificate)
    }
}

impl Content {
    /// Returns the certificates of all authorities as PEM: the `caBundle` of the webhooks.
    pub(crate) fn bundle(&self) -> String {
        let certificates = self.authorities.iter();
        certificates
            .map(|authority| authority.pair.certificate.as_str())
            .collect()
    }

    /// Reads the `data` of a Secret.
    ///
    /// # Errors
    /// If the data is incomplete or its parts do not belong together. The error is the reason.
    pub(crate) fn decode(data: Option<&Value>) -> Result<Self, String> {
        let text = |key: &str| -> Result<String, String> {
            let encoded = data.and_then(|data| data.get(key)).and_then(Value::as_str);
            let encoded = encoded.ok_or_else(|| format!("{key} is missing"))?;
            let bytes = STANDARD.decode(encoded);
            let bytes = bytes.map_err(|_| format!("{key} is not valid base64"))?;
            String::from_utf8(bytes).map_err(|_| format!("{key} is not text"))
        };
        // Lost reports only delay a rotation, because each replica reports again.
        let replicas = text(REPLICAS)
            .ok()
            .and_then(|text| serde_json::from_str(&text).ok())
            .unwrap_or_default();
        if data.and_then(|data| data.get(DATES)).is_none() {
            return Ok(Self {
                replicas,
                ..Self::default()
            });
        }
        let dates: Dates = serde_json::from_str(&text(DATES)?)
            .map_err(|error| format!("{DATES} is not valid: {error}"))?;
        let certificates = blocks(&text(AUTHORITIES)?);
        let keys = blocks(&text(AUTHORITY_KEYS)?);
        let count = dates.authorities.len();
        if certificates.len() != count || keys.len() != count || count == 0 {
            return Err(format!(
                "{AUTHORITIES} has {} certificates and {AUTHORITY_KEYS} {} keys, not {count}",
                certificates.len(),
                keys.len()
            ));
        }
        let pairs = certificates.into_iter().zip(keys);
        let authorities: Vec<Authority> = dates
            .authorities
            .into_iter()
            .zip(pairs)
            .map(|(dates, (certificate, key))| Authority {
                pair: Pair { certificate, key },
                dates,
            })
            .collect();
        let serving = Serving {
            pair: Pair {
                certificate: text(CERTIFICATE)?,
                key: text(KEY)?,
            },
            dates: dates.serving,
        };
        check(&authorities, &serving)?;
        Ok(Self {
            authorities,
            serving: Some(serving),
            history: dates.history,
            replicas,
        })
    }

    /// Returns the `data` of the Secret.
    pub(crate) fn encode(&self) -> Value {
        let mut data = json!({REPLICAS: encoded(&json!(self.replicas).to_string())});
        if let (Some(serving), Value::Object(data)) = (&self.serving, &mut data) {
            let dates = Dates {
                authorities: self
                    .authorities
                    .iter()
                    .map(|authority| authority.dates.clone())
                    .collect(),
                serving: serving.dates.clone(),
                history: self.history,
            };
            let keys: String = self
                .authorities
                .iter()
                .map(|authority| authority.pair.key.as_str())
                .collect();
            for (key, text) in [
                (CERTIFICATE, serving.pair.certificate.clone()),
                (KEY, serving.pair.key.clone()),
                (AUTHORITIES, self.bundle()),
                (AUTHORITY_KEYS, keys),
                (DATES, json!(dates).to_string()),
            ] {
                data.insert(key.to_owned(), encoded(&text));
            }
        }
        data
    }
}

fn encoded(text: &str) -> Value {
    Value::String(STANDARD.encode(text))
}

/// Splits a PEM text into its blocks.
pub(crate) fn blocks(text: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut block = String::new();
    for line in text.lines() {
        block.push_str(line);
        block.push('\n');
        if line.starts_with("-----END ") {
            blocks.push(std::mem::take(&mut block));
        }
    }
    blocks
}

/// Checks that the authorities and the serving certificate belong together, whatever the time is.
fn check(authorities: &[Authority], serving: &Serving) -> Result<(), String> {
    for authority in authorities {
        let name = &authority.dates.name;
        rcgen::KeyPair::from_pem(&authority.pair.key)
            .map_err(|error| format!("the key of the authority {name} is not valid: {error}"))?;
    }
    let dates = &serving.dates;
    let authority = authorities
        .iter()
        .find(|authority| authority.dates.name == dates.authority)
        .ok_or_else(|| format!("{CERTIFICATE} is signed by an unknown authority"))?;
    for name in &dates.names {
        verify(
            &serving.pair.certificate,
            &authority.pair.certificate,
            name,
            dates.issued,
        )?;
    }
    certified_key(&serving.pair).map_err(|error| format!("{KEY} is not valid: {error}"))?;
    Ok(())
}

/// Verifies a serving certificate as an API server does.
pub(crate) fn verify(certificate: &str, bundle: &str, name: &str, now: i64) -> Result<(), String> {
    let mut roots = RootCertStore::empty();
    for authority in CertificateDer::pem_slice_iter(bundle.as_bytes()) {
        let authority = authority.map_err(|error| format!("{AUTHORITIES}: {error}"))?;
        let added = roots.add(authority);
        added.map_err(|error| format!("{AUTHORITIES}: {error}"))?;
    }
    let certificate = CertificateDer::from_pem_slice(certificate.as_bytes())
        .map_err(|error| format!("{CERTIFICATE}: {error}"))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
        .build()
        .map_err(|error| format!("{AUTHORITIES}: {error}"))?;
    let name = ServerName::try_from(name).map_err(|error| format!("{name}: {error}"))?;
    let now = std::time::Duration::from_secs(now.max(0).unsigned_abs());
    verifier
        .verify_server_cert(
            &certificate,
            &[],
            &name,
            &[],
            UnixTime::since_unix_epoch(now),
        )
        .map(drop)
        .map_err(|error| format!("{CERTIFICATE}: {error}"))
}

/// Returns the certificate and key in the type of the TLS server.
pub(crate) fn certified_key(pair: &Pair) -> Result<rustls::sign::CertifiedKey, rustls::Error> {
    let invalid = |error| rustls::Error::General(format!("not valid PEM: {error}"));
    let certificate = CertificateDer::from_pem_slice(pair.certificate.as_bytes());
    let key = rustls::pki_types::PrivateKeyDer::from_pem_slice(pair.key.as_bytes());
    rustls::sign::CertifiedKey::from_der(
        vec![certificate.map_err(invalid)?],
        key.map_err(invalid)?,
        &rustls::crypto::ring::default_provider(),
    )
}
