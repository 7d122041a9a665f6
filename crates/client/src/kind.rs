//! Which kind, as a value: the type-erased twin of a Rust type.

use std::any::TypeId;
use std::fmt;

use opkit_apimachinery::identity::{GroupVersionKind, GroupVersionResource, ResourcePath};

use crate::Object;

/// A kind and where the API serves it.
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
    /// The API group; empty for the core group.
    pub group: String,
    /// The version within the group.
    pub version: String,
    /// The name of the kind, such as `Deployment`; empty if only the resource is known.
    pub kind: String,
    /// The name of its resource, such as `deployments`.
    pub plural: String,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
}

impl Kind {
    /// The kind of a Rust type.
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

    /// What is served as `resource`. The name of the kind stays unknown; objects that are written
    /// have to say it themselves.
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

    /// Group, version and kind.
    pub fn group_version_kind(&self) -> GroupVersionKind {
        GroupVersionKind::new(&self.group, &self.version, &self.kind)
    }

    /// Group, version and resource.
    pub fn group_version_resource(&self) -> GroupVersionResource {
        GroupVersionResource::new(&self.group, &self.version, &self.plural)
    }

    /// What to call an object of it: the kind, or the resource where that is all there is.
    pub fn noun(&self) -> &str {
        if self.kind.is_empty() {
            &self.plural
        } else {
            &self.kind
        }
    }

    /// `group/version`, or the version alone in the core group.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// Returns the path of the collection: of one namespace, or of all without one. The namespace
    /// is ignored for kinds of the cluster scope.
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
