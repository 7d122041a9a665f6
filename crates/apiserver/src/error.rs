//! Errors that occur when a server starts or listens.

use std::io;
use std::net::SocketAddr;

/// The reason why a server does not start or listen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// Another process listens on the address.
    #[error("cannot listen on {address}: it is in use by another process")]
    AddressInUse {
        /// The requested address.
        address: SocketAddr,
    },
    /// The address cannot be used.
    #[error("cannot listen on {address}")]
    Listen {
        /// The requested address.
        address: SocketAddr,
        /// The error of the operating system.
        #[source]
        cause: io::Error,
    },
    /// A certificate cannot be created.
    #[error("cannot create a certificate for {subject}")]
    Certificate {
        /// The subject of the certificate.
        subject: &'static str,
        /// The cause.
        #[source]
        cause: rcgen::Error,
    },
    /// TLS cannot be configured with the certificates.
    #[error("cannot set up TLS")]
    Tls {
        /// The cause.
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
    /// An object that the server creates at its start, such as the namespace `default`, is not
    /// valid.
    #[error("cannot create the {resource} that every cluster has: {cause}")]
    InitialObject {
        /// The resource of the object.
        resource: &'static str,
        /// The message of the API server's error for the object.
        cause: String,
    },
}
