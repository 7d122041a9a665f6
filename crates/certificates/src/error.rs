//! Errors of this crate.

/// Error in the certificates of webhooks.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CertificateError {
    /// A certificate cannot be created.
    #[error("cannot create the certificate of {subject}")]
    Create {
        /// What the certificate is for.
        subject: String,
        /// The cause.
        #[source]
        cause: rcgen::Error,
    },
    /// The Secret belongs to another operator.
    #[error(
        "Secret {secret} holds the webhook certificates of {owner}, not of {operator}: \
         give each operator a Secret of its own (--webhook-secret)"
    )]
    ForeignSecret {
        /// Namespace and name of the Secret.
        secret: String,
        /// Operator that created the Secret.
        owner: String,
        /// This operator.
        operator: String,
    },
    /// The Secret exists, but opkit did not create it.
    #[error(
        "Secret {secret} was not created by opkit and is left unchanged: \
         delete it, or choose another name (--webhook-secret)"
    )]
    UnknownSecret {
        /// Namespace and name of the Secret.
        secret: String,
    },
    /// A request failed.
    #[error(transparent)]
    Request(#[from] opkit_client::RequestError),
    /// The response of the API server has no valid JSON.
    #[error("the API server returned an invalid object")]
    Response(#[from] serde_json::Error),
    /// The clock of the API server could not be read. Nothing is decided by the clock of this
    /// machine, which may be wrong.
    #[error(
        "cannot read the clock of the API server: other replicas wrote Secret {secret} \
         at each attempt"
    )]
    ClockUnknown {
        /// Namespace and name of the Secret.
        secret: String,
    },
    /// A private key or a certificate cannot be used for TLS.
    #[error("the certificate in Secret {secret} cannot be served")]
    Tls {
        /// Namespace and name of the Secret.
        secret: String,
        /// The cause.
        #[source]
        cause: rustls::Error,
    },
}
