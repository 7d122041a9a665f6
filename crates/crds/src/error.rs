//! Errors of this crate.

use opkit_apimachinery::schema::SchemaError;

/// Reason why a CRD cannot be checked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CrdError {
    /// A document is not a CRD.
    #[error("{document} is not a CustomResourceDefinition of apiextensions.k8s.io/v1")]
    NotACrd {
        /// Kind and name of the document, as far as it has them.
        document: String,
    },
    /// A CRD lacks a field.
    #[error("the CRD {name} has no {field}")]
    Incomplete {
        /// Name of the CRD.
        name: String,
        /// Missing field, such as `spec.versions`.
        field: &'static str,
    },
    /// A CRD does not have a version.
    #[error("the CRD {name} has no version {version}")]
    NoVersion {
        /// Name of the CRD.
        name: String,
        /// The version.
        version: String,
    },
    /// The schema of a version cannot be read.
    #[error("cannot read the schema of version {version} of the CRD {name}")]
    Schema {
        /// Name of the CRD.
        name: String,
        /// The version.
        version: String,
        /// Cause.
        #[source]
        cause: SchemaError,
    },
}
