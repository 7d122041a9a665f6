//! Errors that occur when a server starts or listens, or creates a token.

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
        subject: String,
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
    /// A file or text in the options is not valid.
    #[error("the {option} of the server is not valid: {cause}")]
    Option {
        /// The name of the option.
        option: &'static str,
        /// The reason why the option is not valid.
        cause: String,
    },
    /// A range of cluster IPs or node ports for Services is not valid.
    #[error("cannot give Services addresses from {range:?}: the range {cause}")]
    ServiceRange {
        /// The requested range of cluster IPs.
        range: String,
        /// The reason why the range is not valid.
        cause: String,
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

/// The reason why no token is created for a ServiceAccount.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[error("cannot create a token for ServiceAccount {namespace}/{name}: {cause}")]
pub struct TokenError {
    /// Namespace of the ServiceAccount.
    pub namespace: String,
    /// Name of the ServiceAccount.
    pub name: String,
    /// The message of the API server's error.
    pub cause: String,
}
