//! The identity of an object: group, kind, namespace and name.

use std::fmt;

use serde::Serialize;
use serde_json::Value;

/// Object of a release. Displayed as `deployment/robot-operator-controller-manager`.
///
/// # Examples
/// ```
/// use opkit_deploy::ObjectReference;
/// use serde_json::json;
/// let object = json!({"apiVersion": "apps/v1", "kind": "Deployment",
///     "metadata": {"name": "web", "namespace": "shops"}});
/// let reference = ObjectReference::of(&object);
/// assert_eq!(reference.to_string(), "deployment/web");
/// assert_eq!(reference.group, "apps");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct ObjectReference {
    /// API group; empty for the core group.
    pub group: String,
    /// Kind of the object.
    pub kind: String,
    /// Namespace; `None` for a cluster-scoped object.
    pub namespace: Option<String>,
    /// Name of the object.
    pub name: String,
}

impl ObjectReference {
    /// Returns the identity of an object.
    pub fn of(object: &Value) -> Self {
        let field = |pointer: &str| {
            let text = object.pointer(pointer).and_then(Value::as_str);
            text.map(str::to_owned)
        };
        let api_version = field("/apiVersion").unwrap_or_default();
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        Self {
            group: group.to_owned(),
            kind: field("/kind").unwrap_or_default(),
            namespace: field("/metadata/namespace"),
            name: field("/metadata/name").unwrap_or_default(),
        }
    }

    /// Returns kind and group as an ApplySet names them, such as `Deployment.apps` or `Secret`.
    pub(crate) fn group_kind(&self) -> String {
        match self.group.as_str() {
            "" => self.kind.clone(),
            group => format!("{}.{group}", self.kind),
        }
    }
}

impl fmt::Display for ObjectReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind.to_lowercase(), self.name)
    }
}
