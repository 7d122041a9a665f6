//! HTTP/1.1 connections over TLS, without a check of the server's certificate: the servers have
//! certificates of their own authorities.

mod prepared;

use std::sync::Arc;

use anyhow::{Context, Result};
use bytes::Bytes;
use http::{Method, Request, header};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, SignatureScheme};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;

pub use self::prepared::{PollingConnection, PreparedRequest};

/// Address of a server, and the token of its administrator.
#[derive(Clone, Debug)]
pub struct Address {
    /// Host and port.
    pub host: String,
    pub token: String,
}

/// One connection.
pub struct Connection {
    sender: SendRequest<Full<Bytes>>,
    /// The task of the connection, which is stopped when this is dropped.
    _task: JoinSet<()>,
    authorization: String,
    host: String,
}

/// The requested form of a response.
#[derive(Clone, Copy)]
pub struct Accept {
    pub media: &'static str,
    pub gzip: bool,
}

pub const JSON: Accept = Accept {
    media: "application/json",
    gzip: false,
};
pub const JSON_GZIP: Accept = Accept {
    media: "application/json",
    gzip: true,
};
pub const PROTOBUF: Accept = Accept {
    media: "application/vnd.kubernetes.protobuf",
    gzip: false,
};

impl Connection {
    pub async fn open(address: &Address) -> Result<Self> {
        let config = client_config()?;
        let stream = TcpStream::connect(&address.host).await?;
        stream.set_nodelay(true)?;
        let name = ServerName::try_from("localhost")?;
        let stream = TlsConnector::from(Arc::new(config))
            .connect(name, stream)
            .await?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        let mut task = JoinSet::new();
        task.spawn(async move {
            // An error of the connection is an error of the next request.
            let _ = connection.await;
        });
        Ok(Self {
            sender,
            _task: task,
            authorization: format!("Bearer {}", address.token),
            host: address.host.clone(),
        })
    }

    /// Sends a request, and returns the status code and the length of the body in bytes.
    pub async fn send(
        &mut self,
        method: Method,
        path: &str,
        accept: Accept,
        body: String,
    ) -> Result<(u16, usize)> {
        let mut length = 0;
        let code = self
            .request(method, path, accept, body, |chunk| length += chunk.len())
            .await?;
        Ok((code, length))
    }

    /// Sends a GET request, and returns the body.
    pub async fn get(&mut self, path: &str, accept: Accept) -> Result<(u16, Vec<u8>)> {
        let mut body = Vec::new();
        let code = self
            .request(Method::GET, path, accept, String::new(), |chunk| {
                body.extend_from_slice(&chunk);
            })
            .await?;
        Ok((code, body))
    }

    async fn request(
        &mut self,
        method: Method,
        path: &str,
        accept: Accept,
        body: String,
        mut chunk: impl FnMut(Bytes),
    ) -> Result<u16> {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, &self.host)
            .header(header::AUTHORIZATION, &self.authorization)
            .header(header::ACCEPT, accept.media)
            .header(header::USER_AGENT, "bench/1")
            .header(header::CONTENT_TYPE, "application/json");
        if accept.gzip {
            request = request.header(header::ACCEPT_ENCODING, "gzip");
        }
        let request = request.body(Full::new(Bytes::from(body)))?;
        self.sender.ready().await?;
        let response = self.sender.send_request(request).await;
        let response = response.with_context(|| format!("no response at {path}"))?;
        let code = response.status().as_u16();
        let mut body = response.into_body();
        while let Some(frame) = body.frame().await {
            if let Ok(data) = frame?.into_data() {
                chunk(data);
            }
        }
        Ok(code)
    }
}

fn client_config() -> Result<ClientConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = Arc::new(AnyServer(provider.clone()));
    Ok(ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth())
}

/// Accepts the certificate of any server.
#[derive(Debug)]
struct AnyServer(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyServer {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
