//! A kind as a value, for code that is not generic over a Rust type.

use std::any::TypeId;
use std::fmt;

use opkit_apimachinery::identity::{GroupVersionKind, GroupVersionResource, ResourcePath};

use crate::Object;

/// A kind, with the names that form the API paths of its objects.
///
/// # Examples
/// ```
/// use k8s_openapi::api::apps::v1::Deployment;
/// use opkit_client::Kind;
/// let kind = Kind::of::<Deployment>();
/// assert_eq!(kind.to_string(), "Deployment (apps/v1)");
/// let path = kind.path(Some("shops")).name("web").build()?;
/// assert_eq!(path, "/apis/apps/v1/namespaces/shops/deployments/web");
/// # Ok::<(), opkit_apimachinery::identity::IdentityError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Kind {
    /// API group; empty for the core group.
    pub group: String,
    /// Version of the group.
    pub version: String,
    /// Name of the kind, such as `Deployment`; empty if only the resource is known.
    pub kind: String,
    /// Plural name of the resource, such as `deployments`.
    pub plural: String,
    /// Whether objects of this kind are namespaced.
    pub namespaced: bool,
}

impl Kind {
    /// Returns the kind of a Rust type.
    pub fn of<K: Object>() -> Self {
        Self {
            group: K::group(&()).into_owned(),
            version: K::version(&()).into_owned(),
            kind: K::kind(&()).into_owned(),
            plural: K::plural(&()).into_owned(),
            namespaced: TypeId::of::<K::Scope>()
                == TypeId::of::<k8s_openapi::NamespaceResourceScope>(),
        }
    }

    /// Creates a kind from its resource. The name of the kind stays empty. Objects that are written
    /// with this kind must therefore contain the field `kind`.
    ///
    /// # Examples
    /// ```
    /// use opkit_client::{GroupVersionResource, Kind};
    /// let kind = Kind::at(&GroupVersionResource::new("apps", "v1", "deployments"), true);
    /// assert_eq!(kind.path(None).build()?, "/apis/apps/v1/deployments");
    /// # Ok::<(), opkit_apimachinery::identity::IdentityError>(())
    /// ```
    pub fn at(resource: &GroupVersionResource, namespaced: bool) -> Self {
        Self {
            group: resource.group.clone(),
            version: resource.version.clone(),
            kind: String::new(),
            plural: resource.resource.clone(),
            namespaced,
        }
    }

    /// Returns group, version and kind.
    pub fn group_version_kind(&self) -> GroupVersionKind {
        GroupVersionKind::new(&self.group, &self.version, &self.kind)
    }

    /// Returns group, version and resource.
    pub fn group_version_resource(&self) -> GroupVersionResource {
        GroupVersionResource::new(&self.group, &self.version, &self.plural)
    }

    /// Returns the name of the kind for messages, or the plural name of the resource if the kind is
    /// not known.
    pub fn noun(&self) -> &str {
        if self.kind.is_empty() {
            &self.plural
        } else {
            &self.kind
        }
    }

    /// Returns `group/version`, or the version alone for the core group.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// Returns the path of the collection in `namespace`, or in all namespaces if `namespace` is
    /// `None`. The namespace is ignored for cluster-scoped kinds.
    pub fn path<'a>(&'a self, namespace: Option<&'a str>) -> ResourcePath<'a> {
        let path = ResourcePath::new(&self.group, &self.version, &self.plural);
        match namespace.filter(|_| self.namespaced) {
            Some(namespace) => path.namespace(namespace),
            None => path,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.noun(), self.api_version())
    }
}

#[cfg(test)]
mod tests;
