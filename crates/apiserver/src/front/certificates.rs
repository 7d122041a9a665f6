//! A certificate authority for one server, and the certificates of the server and its
//! administrator.

use std::net::IpAddr;

use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD as URL_SAFE_NO_PAD};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};

use crate::error::StartError;

/// The certificates, keys and token of one server, created when the server starts to listen and
/// kept in memory.
#[derive(Debug)]
pub(crate) struct Certificates {
    authority: Pair,
    server: Pair,
    admin: Pair,
    token: String,
}

#[derive(Debug)]
struct Pair {
    certificate: CertificateDer<'static>,
    pem: String,
    key_pem: String,
    key: Vec<u8>,
}

impl Certificates {
    /// Creates the certificates of a server at `address`.
    pub(crate) fn create(address: IpAddr) -> Result<Self, StartError> {
        let fail = |subject| move |cause| StartError::Certificate { subject, cause };
        let mut params = named("opkit-ca", None);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![
            KeyUsagePurpose::KeyCertSign,
            KeyUsagePurpose::DigitalSignature,
        ];
        let authority_key = KeyPair::generate().map_err(fail("the authority"))?;
        let certificate = params
            .self_signed(&authority_key)
            .map_err(fail("the authority"))?;
        let authority = pair(&certificate, &authority_key);
        let issuer = Issuer::new(params, authority_key);

        let mut params = named("kube-apiserver", None);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.subject_alt_names = vec![SanType::IpAddress(address)];
        for name in [
            "localhost",
            "kubernetes",
            "kubernetes.default",
            "kubernetes.default.svc",
        ] {
            let name = name.try_into().map_err(fail("the server"))?;
            params.subject_alt_names.push(SanType::DnsName(name));
        }
        let key = KeyPair::generate().map_err(fail("the server"))?;
        let certificate = params
            .signed_by(&key, &issuer)
            .map_err(fail("the server"))?;
        let server = pair(&certificate, &key);

        let mut params = named("kubernetes-admin", Some("system:masters"));
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().map_err(fail("the administrator"))?;
        let certificate = params
            .signed_by(&key, &issuer)
            .map_err(fail("the administrator"))?;
        let admin = pair(&certificate, &key);

        Ok(Self {
            authority,
            server,
            admin,
            token: token()?,
        })
    }

    /// Returns the TLS configuration of the server. Client certificates are optional.
    pub(crate) fn server_config(&self) -> Result<ServerConfig, StartError> {
        fn fail<E: Into<Box<dyn std::error::Error + Send + Sync>>>(cause: E) -> StartError {
            StartError::Tls {
                cause: cause.into(),
            }
        }
        let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
        let mut roots = RootCertStore::empty();
        roots
            .add(self.authority.certificate.clone())
            .map_err(fail)?;
        let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider.clone())
            .allow_unauthenticated()
            .build()
            .map_err(fail)?;
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(self.server.key.clone()));
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(fail)?
            .with_client_cert_verifier(verifier)
            .with_single_cert(vec![self.server.certificate.clone()], key)
            .map_err(fail)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }

    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    pub(crate) fn authority_base64(&self) -> String {
        BASE64_STANDARD.encode(&self.authority.pem)
    }

    pub(crate) fn admin_certificate_base64(&self) -> String {
        BASE64_STANDARD.encode(&self.admin.pem)
    }

    pub(crate) fn admin_key_base64(&self) -> String {
        BASE64_STANDARD.encode(&self.admin.key_pem)
    }
}

/// Returns a random bearer token.
fn token() -> Result<String, StartError> {
    let mut bytes = [0; 24];
    let random = rustls::crypto::ring::default_provider().secure_random;
    let filled = random.fill(&mut bytes);
    filled.map_err(|_| StartError::Tls {
        cause: "the system gives no random numbers".into(),
    })?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

fn named(name: &str, organization: Option<&str>) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    if let Some(organization) = organization {
        params
            .distinguished_name
            .push(DnType::OrganizationName, organization);
    }
    params
}

fn pair(certificate: &rcgen::Certificate, key: &KeyPair) -> Pair {
    Pair {
        certificate: certificate.der().clone(),
        pem: certificate.pem(),
        key_pem: key.serialize_pem(),
        key: key.serialize_der(),
    }
}
