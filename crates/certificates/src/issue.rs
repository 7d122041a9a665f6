//! Creates the certificates of authorities and servers.

use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use ring::digest;

use crate::CertificateError;

#[cfg(test)]
mod tests;

/// Time by which certificates are valid before they are created, because clocks differ.
pub(crate) const BACKDATED: i64 = 60 * 60;

/// A certificate and its private key, both as PEM.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Pair {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl std::fmt::Debug for Pair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pair")
            .field("certificate", &fingerprint(&self.certificate))
            .finish_non_exhaustive()
    }
}

/// Creates an authority with this common name. Times are in seconds since 1970.
pub(crate) fn authority(name: &str, from: i64, until: i64) -> Result<Pair, CertificateError> {
    let fail = |cause| failed(name, cause);
    let params = authority_params(name, from, until);
    let key = KeyPair::generate().map_err(fail)?;
    let certificate = params.self_signed(&key).map_err(fail)?;
    Ok(Pair {
        certificate: certificate.pem(),
        key: key.serialize_pem(),
    })
}

/// Creates a serving certificate for these DNS names and IP addresses, signed by the authority
/// `name` with the private key `key`.
pub(crate) fn serving(
    name: &str,
    key: &str,
    names: &[String],
    from: i64,
    until: i64,
) -> Result<Pair, CertificateError> {
    let subject = names.first().map_or("webhook", String::as_str);
    let fail = |cause| failed(subject, cause);
    let key = KeyPair::from_pem(key).map_err(fail)?;
    let issuer = Issuer::new(authority_params(name, from, until), key);
    let mut params = CertificateParams::new(names.to_vec()).map_err(fail)?;
    set_validity(&mut params, from, until);
    // The common name has at most 64 bytes. Clients verify the DNS names, not this name.
    let common_name = subject.get(..64).unwrap_or(subject);
    params
        .distinguished_name
        .push(DnType::CommonName, common_name);
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    let key = KeyPair::generate().map_err(fail)?;
    let certificate = params.signed_by(&key, &issuer).map_err(fail)?;
    Ok(Pair {
        certificate: certificate.pem(),
        key: key.serialize_pem(),
    })
}

fn authority_params(name: &str, from: i64, until: i64) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    set_validity(&mut params, from, until);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::DigitalSignature,
    ];
    params
}

/// Returns the SHA-256 digest of a text in hexadecimal digits.
pub(crate) fn fingerprint(text: &str) -> String {
    let digest = digest::digest(&digest::SHA256, text.as_bytes());
    digest
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Sets the time in which a certificate is valid.
fn set_validity(params: &mut CertificateParams, from: i64, until: i64) {
    let after_1970 = |seconds: i64| Duration::from_secs(seconds.max(0).unsigned_abs());
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    params.not_before = epoch + after_1970(from - BACKDATED);
    params.not_after = epoch + after_1970(until);
}

fn failed(subject: &str, cause: rcgen::Error) -> CertificateError {
    CertificateError::Create {
        subject: subject.to_owned(),
        cause,
    }
}
