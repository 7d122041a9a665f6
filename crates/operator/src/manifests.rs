//! What the operator needs in a cluster, as YAML documents. CRDs for now.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use crate::OperatorError;

/// The CRDs, one YAML document each.
pub(crate) fn yaml(crds: &[CustomResourceDefinition]) -> Result<String, OperatorError> {
    let mut documents = String::new();
    for crd in crds {
        let document = serde_saphyr::to_string(crd).map_err(|cause| OperatorError::Print {
            what: "the manifests",
            cause: cause.into(),
        })?;
        documents.push_str("---\n");
        documents.push_str(document.trim_end());
        documents.push('\n');
    }
    Ok(documents)
}

#[cfg(test)]
mod tests;
