//! The error type of the servers.

use std::net::SocketAddr;
use std::path::PathBuf;

/// Reason why a server could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The address is in use, or does not belong to this machine.
    #[error("cannot listen on {address} for {server}")]
    Listen {
        /// Name of the server.
        server: &'static str,
        /// Requested address.
        address: SocketAddr,
        /// Error of the operating system.
        #[source]
        cause: std::io::Error,
    },
    /// A file of the certificate is missing or not readable.
    #[error("cannot read {}", path.display())]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        #[source]
        cause: std::io::Error,
    },
    /// A file contains no certificate, or no private key, in PEM format.
    #[error("cannot read a {item} from {}", path.display())]
    Pem {
        /// Missing item: `certificate` or `private key`.
        item: &'static str,
        /// Path of the file.
        path: PathBuf,
        /// Error of the PEM parser.
        #[source]
        cause: rustls::pki_types::pem::Error,
    },
    /// The certificate does not match the private key, or has an algorithm that is not supported.
    #[error("cannot use the certificate in {}", path.display())]
    InvalidCertificate {
        /// Path of the certificate file.
        path: PathBuf,
        /// Error of the TLS library.
        #[source]
        cause: rustls::Error,
    },
    /// TLS cannot be set up with the certificate.
    #[error("cannot set up TLS")]
    Tls(#[source] rustls::Error),
    /// A self-signed certificate could not be created.
    #[error("cannot create a self-signed certificate for {server}")]
    SelfSigned {
        /// Name of the server.
        server: &'static str,
        /// Error of the certificate generator.
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
}
