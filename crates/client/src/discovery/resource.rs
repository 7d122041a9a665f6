//! The resources of a server.

use serde::{Deserialize, Serialize};

use super::GroupFailure;
use crate::Kind;

/// A resource in one version of its group.
///
/// # Examples
/// ```
/// use opkit_client::ApiResource;
/// let mut resource = ApiResource::default();
/// (resource.group, resource.version) = ("apps".into(), "v1".into());
/// (resource.plural, resource.kind) = ("deployments".into(), "Deployment".into());
/// assert_eq!(resource.to_string(), "deployments.v1.apps");
/// assert_eq!(resource.kind().to_string(), "Deployment (apps/v1)");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ApiResource {
    /// API group; empty for the core group.
    pub group: String,
    /// Version of the group.
    pub version: String,
    /// Kind of the objects.
    pub kind: String,
    /// Plural name, which is used in paths.
    pub plural: String,
    /// Singular name.
    pub singular: String,
    /// Short names, such as `deploy`.
    pub short_names: Vec<String>,
    /// Categories that contain the resource, such as `all`.
    pub categories: Vec<String>,
    /// Whether the objects are namespaced.
    pub namespaced: bool,
    /// Supported verbs, such as `list`.
    pub verbs: Vec<String>,
    /// Names of the subresources, such as `status`.
    pub subresources: Vec<String>,
}

impl ApiResource {
    /// Returns the kind, for use with a client.
    pub fn kind(&self) -> Kind {
        Kind {
            group: self.group.clone(),
            version: self.version.clone(),
            kind: self.kind.clone(),
            plural: self.plural.clone(),
            namespaced: self.namespaced,
        }
    }

    /// Returns the name with the group, such as `deployments.apps`, or the plural name alone for
    /// the core group.
    pub fn qualified(&self) -> String {
        match self.group.as_str() {
            "" => self.plural.clone(),
            group => format!("{}.{group}", self.plural),
        }
    }

    /// Returns whether the resource supports a verb.
    pub fn has_verb(&self, verb: &str) -> bool {
        self.verbs.iter().any(|it| it == verb)
    }

    /// Returns whether the resource has a subresource of this name.
    pub fn has_subresource(&self, name: &str) -> bool {
        self.subresources.iter().any(|it| it == name)
    }
}

impl From<ApiResource> for Kind {
    fn from(resource: ApiResource) -> Self {
        resource.kind()
    }
}

impl std::fmt::Display for ApiResource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (plural, version, group) = (&self.plural, &self.version, &self.group);
        match group.as_str() {
            "" => write!(f, "{plural}.{version}"),
            group => write!(f, "{plural}.{version}.{group}"),
        }
    }
}

/// The groups, versions and resources of a server.
///
/// # Examples
/// ```
/// use opkit_client::Discovered;
/// let nothing = Discovered::default();
/// assert!(!nothing.has_group("apps"));
/// assert!(nothing.resource("apps", "v1", "deployments").is_none());
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Discovered {
    /// All resources in all versions. The core group is first, the other groups are in the server's
    /// order; the preferred version is the first of its group.
    pub resources: Vec<ApiResource>,
    /// All groups and versions as `group/version`, in the same order as `resources`. For the core
    /// group, the version alone.
    pub group_versions: Vec<String>,
    /// Groups that could not be read.
    pub failures: Vec<GroupFailure>,
}

impl Discovered {
    /// Returns whether the server has this group.
    pub fn has_group(&self, group: &str) -> bool {
        self.group_versions
            .iter()
            .any(|it| match it.split_once('/') {
                Some((found, _)) => found == group,
                None => group.is_empty(),
            })
    }

    /// Returns the resource with exactly this group, version and plural name.
    pub fn resource(&self, group: &str, version: &str, plural: &str) -> Option<&ApiResource> {
        self.resources
            .iter()
            .find(|it| it.group == group && it.version == version && it.plural == plural)
    }
}
