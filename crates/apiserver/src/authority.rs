//! The certificate authority of a server. The authority is created with the server, and signs the
//! certificates of the HTTPS front and of clients.

use std::fmt;
use std::net::IpAddr;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};
use rustls::pki_types::CertificateDer;

use crate::error::StartError;

/// Names of the server in its certificate, besides its IP address.
const SERVER_NAMES: [&str; 4] = [
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
];

/// A certificate authority, kept in memory.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: CertificateDer<'static>,
    pem: String,
}

/// A certificate and its private key.
#[derive(Debug)]
pub(crate) struct Pair {
    pub(crate) certificate: CertificateDer<'static>,
    /// Certificate as PEM.
    pub(crate) pem: String,
    /// Private key as PEM.
    pub(crate) key_pem: String,
    /// Private key as DER, in the format PKCS #8.
    pub(crate) key: Vec<u8>,
}

impl Authority {
    /// Creates an authority with this common name and a new key.
    pub(crate) fn create(name: &str) -> Result<Self, StartError> {
        let fail = |cause| StartError::Certificate {
            subject: "the authority".to_owned(),
            cause,
        };
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![
            KeyUsagePurpose::KeyCertSign,
            KeyUsagePurpose::DigitalSignature,
        ];
        let key = KeyPair::generate().map_err(fail)?;
        let certificate = params.self_signed(&key).map_err(fail)?;
        Ok(Self {
            certificate: certificate.der().clone(),
            pem: certificate.pem(),
            issuer: Issuer::new(params, key),
        })
    }

    /// Returns the certificate of the authority as PEM.
    pub(crate) fn pem(&self) -> &str {
        &self.pem
    }

    /// Returns the certificate of the authority.
    pub(crate) fn certificate(&self) -> &CertificateDer<'static> {
        &self.certificate
    }

    /// Creates a certificate for a server that listens at `address`.
    pub(crate) fn issue_for_server(&self, address: IpAddr) -> Result<Pair, StartError> {
        let mut params = CertificateParams::default();
        let name = &mut params.distinguished_name;
        name.push(DnType::CommonName, "kube-apiserver");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.subject_alt_names = vec![SanType::IpAddress(address)];
        for name in SERVER_NAMES {
            let name = name.try_into().map_err(|cause| StartError::Certificate {
                subject: "the server".to_owned(),
                cause,
            })?;
            params.subject_alt_names.push(SanType::DnsName(name));
        }
        self.sign(&params, "the server")
    }

    /// Creates a client certificate for `user`, who is a member of `group`, or of no group if
    /// `group` is empty.
    pub(crate) fn issue_for_client(&self, user: &str, group: &str) -> Result<Pair, StartError> {
        let mut params = CertificateParams::default();
        let name = &mut params.distinguished_name;
        name.push(DnType::CommonName, user);
        if !group.is_empty() {
            name.push(DnType::OrganizationName, group);
        }
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(&params, user)
    }

    fn sign(&self, params: &CertificateParams, subject: &str) -> Result<Pair, StartError> {
        let fail = |cause| StartError::Certificate {
            subject: subject.to_owned(),
            cause,
        };
        let key = KeyPair::generate().map_err(fail)?;
        let certificate = params.signed_by(&key, &self.issuer).map_err(fail)?;
        Ok(Pair {
            certificate: certificate.der().clone(),
            pem: certificate.pem(),
            key_pem: key.serialize_pem(),
            key: key.serialize_der(),
        })
    }
}

impl fmt::Debug for Authority {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Authority").finish_non_exhaustive()
    }
}
