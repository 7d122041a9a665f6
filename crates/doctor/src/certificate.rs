//! Serving certificates of webhooks, verified as an API server does.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier as _;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, RootCertStore};

/// Time at which every certificate has expired, in seconds since 1970: the year 9999.
const FAR: u64 = 253_370_764_800;

/// Why an API server refuses a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The certificate or the bundle is not valid PEM.
    Unreadable(&'static str),
    /// No authority of the bundle has signed the certificate.
    UnknownAuthority,
    /// The certificate is not for this name.
    OtherName,
    /// The certificate is valid from a later time.
    NotYet,
    /// The certificate has expired.
    Expired,
    /// Another reason, in words.
    Other(String),
}

/// Time in which a certificate is valid, in seconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Validity {
    pub(crate) from: i64,
    pub(crate) until: i64,
}

/// Returns the PEM text in a field of base64, or an empty text.
pub(crate) fn decode(field: &str) -> String {
    let bytes = STANDARD.decode(field).unwrap_or_default();
    String::from_utf8(bytes).unwrap_or_default()
}

/// Verifies the first certificate of a chain for a DNS name, with the authorities of a `caBundle`.
pub(crate) fn verify(
    chain: &str,
    bundle: &str,
    dns_name: &str,
    now: Timestamp,
) -> Result<(), Refusal> {
    let authorities = certificates(bundle).ok_or(Refusal::Unreadable("the caBundle"))?;
    let chain = certificates(chain).ok_or(Refusal::Unreadable("the serving certificate"))?;
    let (first, rest) = chain
        .split_first()
        .ok_or(Refusal::Unreadable("the serving certificate"))?;
    let name = ServerName::try_from(dns_name.to_owned());
    let name = name.map_err(|error| Refusal::Other(error.to_string()))?;
    let now = now.as_second().max(0).unsigned_abs();
    match check(first, rest, &authorities, &name, now) {
        Ok(()) => Ok(()),
        Err(rustls::Error::InvalidCertificate(error)) => Err(match error {
            CertificateError::UnknownIssuer | CertificateError::BadSignature => {
                Refusal::UnknownAuthority
            }
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => Refusal::Expired,
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                Refusal::NotYet
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                Refusal::OtherName
            }
            other => Refusal::Other(other.to_string()),
        }),
        Err(other) => Err(Refusal::Other(other.to_string())),
    }
}

/// Returns the validity of each certificate of a PEM text. A certificate that cannot be read is
/// left out.
pub(crate) fn validities(pem: &str) -> Vec<Validity> {
    let certificates = certificates(pem).unwrap_or_default();
    certificates.iter().filter_map(validity).collect()
}

/// Reads the validity from the errors of a verification before and after it.
fn validity(certificate: &CertificateDer<'static>) -> Option<Validity> {
    let name = ServerName::try_from("validity.invalid").ok()?;
    let own = std::slice::from_ref(certificate);
    let at = |now| check(certificate, &[], own, &name, now).err();
    let seconds = |time: UnixTime| i64::try_from(time.as_secs()).ok();
    let from = match at(0)? {
        rustls::Error::InvalidCertificate(CertificateError::NotValidYetContext {
            not_before,
            ..
        }) => seconds(not_before)?,
        // Valid since before 1970.
        _ => 0,
    };
    match at(FAR)? {
        rustls::Error::InvalidCertificate(CertificateError::ExpiredContext {
            not_after, ..
        }) => Some(Validity {
            from,
            until: seconds(not_after)?,
        }),
        _ => None,
    }
}

fn check(
    certificate: &CertificateDer<'_>,
    intermediates: &[CertificateDer<'_>],
    authorities: &[CertificateDer<'static>],
    name: &ServerName<'_>,
    now: u64,
) -> Result<(), rustls::Error> {
    let mut roots = RootCertStore::empty();
    for authority in authorities {
        roots.add(authority.clone())?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
    let verifier = verifier.map_err(|error| rustls::Error::General(error.to_string()))?;
    let now = UnixTime::since_unix_epoch(Duration::from_secs(now));
    verifier
        .verify_server_cert(certificate, intermediates, name, &[], now)
        .map(drop)
}

/// Returns the certificates of a PEM text, or `None` if there are none or one is not valid.
fn certificates(pem: &str) -> Option<Vec<CertificateDer<'static>>> {
    let certificates = CertificateDer::pem_slice_iter(pem.as_bytes());
    let certificates: Result<Vec<_>, _> = certificates.collect();
    certificates.ok().filter(|all| !all.is_empty())
}

#[cfg(test)]
pub(crate) mod tests;
