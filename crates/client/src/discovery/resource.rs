//! A resource, and all of them.

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
    /// The API group; empty for the core group.
    pub group: String,
    /// The version within the group.
    pub version: String,
    /// The kind of its objects.
    pub kind: String,
    /// Its name in paths.
    pub plural: String,
    /// Its name for one object.
    pub singular: String,
    /// Short forms of its name, such as `deploy`.
    pub short_names: Vec<String>,
    /// Groups of resources that it belongs to, such as `all`.
    pub categories: Vec<String>,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
    /// What can be done with it.
    pub verbs: Vec<String>,
    /// The names of its parts with paths of their own, such as `status`.
    pub subresources: Vec<String>,
}

impl ApiResource {
    /// Its kind, for the clients.
    pub fn kind(&self) -> Kind {
        Kind {
            group: self.group.clone(),
            version: self.version.clone(),
            kind: self.kind.clone(),
            plural: self.plural.clone(),
            namespaced: self.namespaced,
        }
    }

    /// Its name with the group: `deployments.apps`; `pods` in the core group.
    pub fn qualified(&self) -> String {
        match self.group.as_str() {
            "" => self.plural.clone(),
            group => format!("{}.{group}", self.plural),
        }
    }

    /// Whether it can be done with it.
    pub fn has_verb(&self, verb: &str) -> bool {
        self.verbs.iter().any(|it| it == verb)
    }

    /// Whether it has this part.
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

/// All that a server serves.
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
    /// Every resource in every version: groups in the server's order, the core group first; within
    /// a group the preferred version first.
    pub resources: Vec<ApiResource>,
    /// Every `group/version`, in the same order; the core group's is the version alone.
    pub group_versions: Vec<String>,
    /// What could not be read.
    pub failures: Vec<GroupFailure>,
}

impl Discovered {
    /// Whether the server has this group.
    pub fn has_group(&self, group: &str) -> bool {
        self.group_versions
            .iter()
            .any(|it| match it.split_once('/') {
                Some((found, _)) => found == group,
                None => group.is_empty(),
            })
    }

    /// The resource of an exact group, version and name.
    pub fn resource(&self, group: &str, version: &str, plural: &str) -> Option<&ApiResource> {
        self.resources
            .iter()
            .find(|it| it.group == group && it.version == version && it.plural == plural)
    }
}
