//! Why a server does not start.

use std::io;
use std::net::SocketAddr;

/// Why a server does not start or listen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The address is another process's.
    #[error("cannot listen on {address}: it is in use by another process")]
    AddressInUse {
        /// Where we wanted to listen.
        address: SocketAddr,
    },
    /// The address cannot be used.
    #[error("cannot listen on {address}")]
    Listen {
        /// Where we wanted to listen.
        address: SocketAddr,
        /// What the system says.
        #[source]
        cause: io::Error,
    },
    /// The certificates cannot be made.
    #[error("cannot make a certificate for {subject}")]
    Certificate {
        /// Whose certificate.
        subject: &'static str,
        /// What went wrong.
        #[source]
        cause: rcgen::Error,
    },
    /// The certificates cannot be used.
    #[error("cannot set up TLS")]
    Tls {
        /// What went wrong.
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
    /// An object that every cluster has is refused.
    #[error("cannot create the {resource} that every cluster has: {cause}")]
    Furnish {
        /// The resource.
        resource: &'static str,
        /// What the registry says.
        cause: String,
    },
}
