//! The key of an object: its namespace and name.

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};

/// Namespace and name of an object. Identifies one object of a kind.
///
/// # Examples
/// ```
/// use opkit_client::ObjectKey;
/// assert_eq!(ObjectKey::from(("shops", "web")).to_string(), "shops/web");
/// assert_eq!(ObjectKey::from("node-one").to_string(), "node-one");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ObjectKey {
    /// Namespace; `None` for cluster-scoped kinds.
    pub namespace: Option<String>,
    /// Name of the object.
    pub name: String,
}

impl ObjectKey {
    /// Returns the key in the metadata of an object.
    pub fn of(meta: &ObjectMeta) -> Self {
        Self {
            namespace: meta.namespace.clone(),
            name: meta.name.clone().unwrap_or_default(),
        }
    }

    /// Returns this key, with `namespace` added if the key has no namespace.
    pub fn or_namespace(mut self, namespace: Option<&str>) -> Self {
        if self.namespace.is_none() {
            self.namespace = namespace.map(str::to_owned);
        }
        self
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{namespace}/{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

impl From<&str> for ObjectKey {
    fn from(name: &str) -> Self {
        Self {
            namespace: None,
            name: name.to_owned(),
        }
    }
}

impl From<String> for ObjectKey {
    fn from(name: String) -> Self {
        Self {
            namespace: None,
            name,
        }
    }
}

impl From<&String> for ObjectKey {
    fn from(name: &String) -> Self {
        Self::from(name.as_str())
    }
}

impl<N: Into<String>, M: Into<String>> From<(N, M)> for ObjectKey {
    fn from((namespace, name): (N, M)) -> Self {
        Self {
            namespace: Some(namespace.into()),
            name: name.into(),
        }
    }
}
