//! Errors of a storage migration.

use std::time::Duration;

use crate::RequestError;

/// Reason why a [`StorageMigration`](super::StorageMigration) failed. Started again, it continues.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MigrationError {
    /// The CRD cannot be read.
    #[error("cannot read CRD {crd}")]
    Read {
        /// Name of the CRD.
        crd: String,
        /// Error of the request.
        #[source]
        cause: Box<RequestError>,
    },
    /// The CRD is not as expected.
    #[error("cannot decode CRD {crd}")]
    Decode {
        /// Name of the CRD.
        crd: String,
        /// Decoding error.
        #[source]
        cause: serde_json::Error,
    },
    /// No version of the CRD is served, so that its objects cannot be read.
    #[error("CRD {crd} serves no version")]
    NotServed {
        /// Name of the CRD.
        crd: String,
    },
    /// The objects cannot be listed.
    #[error("cannot list the objects of {crd}")]
    List {
        /// Name of the CRD.
        crd: String,
        /// Error of the request.
        #[source]
        cause: Box<RequestError>,
    },
    /// An object cannot be rewritten.
    #[error("cannot rewrite {object}")]
    Rewrite {
        /// Kind, namespace and name of the object.
        object: String,
        /// Error of the request.
        #[source]
        cause: Box<RequestError>,
    },
    /// The server refuses to rewrite some objects. The others were rewritten.
    #[error(
        "the server refuses to rewrite {count} objects of {crd} ({objects}): correct them and start again"
    )]
    Refused {
        /// Name of the CRD.
        crd: String,
        /// Names of some of the objects.
        objects: String,
        /// Number of the objects.
        count: usize,
        /// Error of the first request.
        #[source]
        cause: Option<Box<RequestError>>,
    },
    /// The storage version was changed during the migration.
    #[error("the storage version of {crd} is no longer {storage}: start again")]
    StorageChanged {
        /// Name of the CRD.
        crd: String,
        /// Storage version at the start of the migration.
        storage: String,
    },
    /// The API server does not yet use the storage version of the CRD.
    #[error("the API server does not store {crd} as {storage} within {timeout:?}")]
    NotInForce {
        /// Name of the CRD.
        crd: String,
        /// Storage version of the CRD.
        storage: String,
        /// Time that the migration waited.
        timeout: Duration,
    },
    /// The list of stored versions cannot be written.
    #[error("cannot write status.storedVersions of CRD {crd}")]
    Status {
        /// Name of the CRD.
        crd: String,
        /// Error of the request.
        #[source]
        cause: Box<RequestError>,
    },
    /// The cluster has no controller for StorageVersionMigrations.
    #[error("the cluster does not serve storageversionmigrations of storagemigration.k8s.io")]
    NoController,
    /// The API of StorageVersionMigrations cannot be used.
    #[error("cannot {what} StorageVersionMigration {name}")]
    Object {
        /// Operation, such as "create".
        what: &'static str,
        /// Name of the object.
        name: String,
        /// Error of the request.
        #[source]
        cause: Box<RequestError>,
    },
    /// The controller of the cluster reports a failure.
    #[error("StorageVersionMigration {name} failed: {message}")]
    Failed {
        /// Name of the object.
        name: String,
        /// Message of the condition.
        message: String,
    },
    /// The controller of the cluster does not finish.
    #[error("StorageVersionMigration {name} does not succeed within {timeout:?}")]
    Timeout {
        /// Name of the object.
        name: String,
        /// Time that the migration waited.
        timeout: Duration,
    },
}

impl MigrationError {
    pub(super) fn list(crd: &str, cause: RequestError) -> Self {
        Self::List {
            crd: crd.to_owned(),
            cause: Box::new(cause),
        }
    }

    pub(super) fn status(crd: &str, cause: RequestError) -> Self {
        Self::Status {
            crd: crd.to_owned(),
            cause: Box::new(cause),
        }
    }
}
