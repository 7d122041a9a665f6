//! What is deployed: the objects of one version of an operator.

use serde_json::Value;

use crate::{DeployError, ObjectReference};

/// Objects of one version of an operator, for one cluster.
///
/// # Examples
/// ```
/// use opkit_deploy::Release;
/// use serde_json::json;
/// let mut release = Release::new("robot-operator", "1.0.0", "robots");
/// release.add(json!({"apiVersion": "v1", "kind": "ServiceAccount",
///     "metadata": {"name": "robot-operator", "namespace": "robots"}}));
/// assert_eq!(release.objects.len(), 1);
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Release {
    /// Name of the operator.
    pub operator: String,
    /// Version of the operator.
    pub version: String,
    /// Namespace of the operator, which has the inventory and the revisions.
    pub namespace: String,
    /// CRDs.
    pub crds: Vec<Value>,
    /// All other objects, in the order in which they are applied.
    pub objects: Vec<Value>,
    /// Objects that the operator itself creates when it runs, such as its Lease, each with
    /// `apiVersion`, `kind`, name and namespace. They are deleted with the operator.
    pub runtime_objects: Vec<Value>,
}

impl Release {
    /// Creates a release without objects.
    pub fn new(
        operator: impl Into<String>,
        version: impl Into<String>,
        namespace: impl Into<String>,
    ) -> Self {
        Self {
            operator: operator.into(),
            version: version.into(),
            namespace: namespace.into(),
            crds: Vec::new(),
            objects: Vec::new(),
            runtime_objects: Vec::new(),
        }
    }

    /// Adds an object.
    pub fn add(&mut self, object: Value) {
        match object.get("kind").and_then(Value::as_str) {
            Some("CustomResourceDefinition") => self.crds.push(object),
            _ => self.objects.push(object),
        }
    }

    /// Returns the names of the CRDs.
    pub(crate) fn crd_names(&self) -> Vec<String> {
        self.crds.iter().map(name).collect()
    }

    /// Reports whether a CRD of the release defines the kind of an object.
    pub(crate) fn defines_kind_of(&self, object: &Value) -> bool {
        let reference = ObjectReference::of(object);
        let field = |crd: &Value, pointer: &str| {
            let text = crd.pointer(pointer).and_then(Value::as_str);
            text.unwrap_or_default().to_owned()
        };
        let mut crds = self.crds.iter();
        crds.any(|crd| {
            field(crd, "/spec/group") == reference.group
                && field(crd, "/spec/names/kind") == reference.kind
        })
    }

    /// Checks that each object can be identified.
    pub(crate) fn check(&self) -> Result<(), DeployError> {
        let crds = self.crds.iter().chain(&self.objects);
        for (position, object) in crds.chain(&self.runtime_objects).enumerate() {
            for field in ["/apiVersion", "/kind", "/metadata/name"] {
                let text = object.pointer(field).and_then(Value::as_str);
                if text.is_none_or(str::is_empty) {
                    return Err(DeployError::Incomplete {
                        position,
                        field: field.trim_start_matches('/').replace('/', "."),
                    });
                }
            }
        }
        Ok(())
    }
}

pub(crate) fn name(object: &Value) -> String {
    let name = object.pointer("/metadata/name").and_then(Value::as_str);
    name.unwrap_or_default().to_owned()
}
