//! YAML documents that the operator needs in a cluster: its CRDs, permissions, webhooks and
//! policies.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use opkit_manifests::{Rbac, yaml};
use serde_json::Value;

use crate::OperatorError;

/// Returns the CRDs, then the permissions, then the other objects, one YAML document each.
pub(crate) fn print(
    crds: &[CustomResourceDefinition],
    rbac: &Rbac,
    others: Vec<Value>,
) -> Result<String, OperatorError> {
    let mut documents = Vec::new();
    for crd in crds {
        documents.push(serde_json::to_value(crd).map_err(printing)?);
    }
    documents.extend(rbac.documents());
    documents.extend(others);
    yaml(&documents).map_err(printing)
}

fn printing(cause: impl std::error::Error + Send + Sync + 'static) -> OperatorError {
    OperatorError::Print {
        what: "the manifests",
        cause: cause.into(),
    }
}

#[cfg(test)]
mod tests;
