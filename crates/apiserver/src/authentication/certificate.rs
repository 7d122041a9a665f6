//! Client certificates: the common name is the user, and each organization is a group.

use std::fmt;
use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateSigningRequestDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, RootCertStore, SignatureScheme};

use super::Identity;
use super::der::{self, Reader, tag};
use crate::authority::Authority;
use crate::error::StartError;

const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
const ORGANIZATION: &[u8] = &[0x55, 0x04, 0x0a];

/// The client certificate of a connection.
#[derive(Clone, Debug)]
pub(crate) enum PeerCertificate {
    /// The client has sent no certificate, or one without a common name.
    Missing,
    /// No known authority has signed the certificate, or it has expired.
    Invalid(Arc<str>),
    Valid(Arc<Identity>),
}

/// The verifier of client certificates.
#[derive(Clone)]
pub(crate) struct ClientCertificates {
    verifier: Arc<dyn ClientCertVerifier>,
}

impl ClientCertificates {
    /// Creates a verifier for certificates of `authority` and of the authorities whose certificates
    /// are in the PEM text `client_ca`.
    pub(super) fn new(authority: &Authority, client_ca: Option<&str>) -> Result<Self, StartError> {
        let option = "client CA";
        let mut roots = match client_ca {
            Some(client_ca) => roots(option, client_ca)?,
            None => RootCertStore::empty(),
        };
        let added = roots.add(authority.certificate().clone());
        added.map_err(|error| StartError::Option {
            option,
            cause: error.to_string(),
        })?;
        Self::of_roots(option, roots)
    }

    /// Creates a verifier for certificates of the authorities whose certificates are in the PEM
    /// text `client_ca`, the value of the option with the name `option`.
    pub(super) fn of_authorities(
        option: &'static str,
        client_ca: &str,
    ) -> Result<Self, StartError> {
        Self::of_roots(option, roots(option, client_ca)?)
    }

    fn of_roots(option: &'static str, roots: RootCertStore) -> Result<Self, StartError> {
        let refuse = |cause: String| StartError::Option { option, cause };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider)
            .allow_unauthenticated()
            .build()
            .map_err(|error| refuse(error.to_string()))?;
        Ok(Self { verifier })
    }

    /// Returns the verifier for the TLS configuration of the server. As in Kubernetes, every
    /// certificate is accepted in the handshake. [`ClientCertificates::identify`] checks who has
    /// signed the certificate, so that a client with a certificate of another authority gets 401.
    pub(crate) fn handshake_verifier(&self) -> Arc<dyn ClientCertVerifier> {
        Arc::new(AnySigner(self.verifier.clone()))
    }

    /// Returns the common name in the certificate that a client has sent. Returns `None` if the
    /// certificate is missing, has no common name, or is not of one of the authorities.
    pub(super) fn common_name(
        &self,
        certificates: Option<&[CertificateDer<'_>]>,
    ) -> Option<String> {
        match self.identify(certificates) {
            PeerCertificate::Valid(identity) => Some(identity.user.clone()),
            PeerCertificate::Missing | PeerCertificate::Invalid(_) => None,
        }
    }

    /// Returns the user of the certificates that a client has sent.
    pub(crate) fn identify(&self, certificates: Option<&[CertificateDer<'_>]>) -> PeerCertificate {
        let Some([certificate, intermediates @ ..]) = certificates else {
            return PeerCertificate::Missing;
        };
        let now = UnixTime::now();
        let verified = self
            .verifier
            .verify_client_cert(certificate, intermediates, now);
        match verified {
            Err(error) => PeerCertificate::Invalid(error.to_string().into()),
            Ok(_) => match subject(certificate) {
                Some(identity) => PeerCertificate::Valid(Arc::new(identity)),
                None => PeerCertificate::Missing,
            },
        }
    }
}

impl fmt::Debug for ClientCertificates {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ClientCertificates")
            .finish_non_exhaustive()
    }
}

/// Returns the certificates in the PEM text of an option.
fn roots(option: &'static str, pem: &str) -> Result<RootCertStore, StartError> {
    let refuse = |cause: String| StartError::Option { option, cause };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
        let certificate = certificate.map_err(|error| refuse(error.to_string()))?;
        let added = roots.add(certificate);
        added.map_err(|error| refuse(error.to_string()))?;
    }
    match roots.is_empty() {
        true => Err(refuse("there is no certificate in the text".to_owned())),
        false => Ok(roots),
    }
}

/// Returns a reader of the fields of a certificate from its subject on.
fn from_subject(certificate: &[u8]) -> Option<Reader<'_>> {
    let mut certificate = Reader(Reader(certificate).expect(tag::SEQUENCE)?);
    let mut body = Reader(certificate.expect(tag::SEQUENCE)?);
    body.skip(tag::CONTEXT_0);
    // Serial number, signature algorithm, issuer and validity.
    for _ in 0..4 {
        body.next()?;
    }
    Some(body)
}

/// Returns the public key in a certificate, as the DER of a SubjectPublicKeyInfo.
pub(super) fn public_key(certificate: &[u8]) -> Option<Vec<u8>> {
    let mut body = from_subject(certificate)?;
    body.next()?;
    Some(der::value(tag::SEQUENCE, body.expect(tag::SEQUENCE)?))
}

/// Returns the user whom a certificate names, or `None` if the certificate has no common name.
fn subject(certificate: &[u8]) -> Option<Identity> {
    let mut body = from_subject(certificate)?;
    let (user, groups) = user_and_groups(body.expect(tag::SEQUENCE)?)?;
    (!user.is_empty()).then(|| Identity::authenticated(user, groups))
}

/// Returns the organizations of the subject in a certificate signing request in PEM, or an empty
/// list if the text is not such a request.
pub(crate) fn organizations_of_request(pem: &[u8]) -> Vec<String> {
    let organizations = || {
        let der = CertificateSigningRequestDer::from_pem_slice(pem).ok()?;
        let mut request = Reader(&der);
        let mut body = Reader(request.expect(tag::SEQUENCE)?);
        let mut information = Reader(body.expect(tag::SEQUENCE)?);
        information.expect(tag::INTEGER)?;
        let (_, groups) = user_and_groups(information.expect(tag::SEQUENCE)?)?;
        Some(groups)
    };
    organizations().unwrap_or_default()
}

/// Returns the common name and the organizations in a subject.
fn user_and_groups(subject: &[u8]) -> Option<(String, Vec<String>)> {
    let mut names = Reader(subject);
    let (mut user, mut groups) = (String::new(), Vec::new());
    while let Some(name) = names.expect(tag::SET) {
        let mut attributes = Reader(name);
        while let Some(attribute) = attributes.expect(tag::SEQUENCE) {
            let mut attribute = Reader(attribute);
            let type_ = attribute.expect(tag::OBJECT_IDENTIFIER)?;
            let (_, value) = attribute.next()?;
            let value = String::from_utf8_lossy(value).into_owned();
            match type_ {
                COMMON_NAME => user = value,
                ORGANIZATION => groups.push(value),
                _ => {}
            }
        }
    }
    Some((user, groups))
}

/// A verifier that accepts every client certificate, and verifies only that the client has the key.
#[derive(Debug)]
struct AnySigner(Arc<dyn ClientCertVerifier>);

impl ClientCertVerifier for AnySigner {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.0.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}
