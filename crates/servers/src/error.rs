//! Why a server does not serve.

use std::net::SocketAddr;
use std::path::PathBuf;

/// Why a server does not serve.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The address is in use, or not of this machine.
    #[error("cannot listen on {address} for {what}")]
    Listen {
        /// The server.
        what: &'static str,
        /// What was asked for.
        address: SocketAddr,
        /// Why.
        #[source]
        cause: std::io::Error,
    },
    /// A file of the certificate is not there, or not readable.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        cause: std::io::Error,
    },
    /// A file holds no certificate, or no key.
    #[error("cannot read a {what} from {}", path.display())]
    Pem {
        /// What was looked for.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        cause: rustls::pki_types::pem::Error,
    },
    /// Certificate and key do not belong together, or are of a kind that TLS does not know.
    #[error("cannot use {}", path.display())]
    Use {
        /// The file of the certificate.
        path: PathBuf,
        /// Why.
        #[source]
        cause: rustls::Error,
    },
    /// TLS cannot be set up with the certificate.
    #[error("cannot set up TLS")]
    Tls(#[source] rustls::Error),
    /// No certificate of one's own can be made.
    #[error("cannot make a certificate for {what}")]
    SelfSigned {
        /// The server.
        what: &'static str,
        /// Why.
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
}
