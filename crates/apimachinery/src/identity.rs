//! Names of kinds and resources, and the paths at which the API serves resources.
//!
//! A *kind* is a type (`Deployment`); a *resource* is the collection that serves objects of this
//! type (`deployments`). Kinds and resources belong to a group and have versions. The text forms
//! are those that Kubernetes prints and parses.

mod path;
mod verb;
mod version;

use std::fmt;
use std::str::FromStr;

pub use crate::error::IdentityError;
pub use path::{ResourcePath, segment_flaw};
pub use verb::Verb;
pub use version::compare_versions;

/// A group and one of its versions. The text form, such as `apps/v1`, is the `apiVersion` of
/// objects.
///
/// # Examples
///
/// ```
/// use opkit_apimachinery::identity::GroupVersion;
///
/// let apps: GroupVersion = "apps/v1".parse()?;
/// assert_eq!((apps.group.as_str(), apps.version.as_str()), ("apps", "v1"));
/// assert_eq!(GroupVersion::new("", "v1").to_string(), "v1");
/// # Ok::<(), opkit_apimachinery::identity::IdentityError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupVersion {
    /// The group; empty for the core group.
    pub group: String,
    /// The version, such as `v1`.
    pub version: String,
}

impl GroupVersion {
    /// Creates a `GroupVersion` from a group and a version.
    pub fn new(group: impl Into<String>, version: impl Into<String>) -> Self {
        Self {
            group: group.into(),
            version: version.into(),
        }
    }

    /// Returns the kind with this name in the group and version.
    pub fn with_kind(&self, kind: impl Into<String>) -> GroupVersionKind {
        GroupVersionKind::new(&self.group, &self.version, kind)
    }

    /// Returns the resource with this name in the group and version.
    pub fn with_resource(&self, resource: impl Into<String>) -> GroupVersionResource {
        GroupVersionResource::new(&self.group, &self.version, resource)
    }
}

impl fmt::Display for GroupVersion {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.group.is_empty() {
            return out.write_str(&self.version);
        }
        write!(out, "{}/{}", self.group, self.version)
    }
}

impl FromStr for GroupVersion {
    type Err = IdentityError;

    fn from_str(text: &str) -> Result<Self, IdentityError> {
        let invalid = || IdentityError::GroupVersion {
            text: text.to_owned(),
        };
        match text.split_once('/') {
            None if text.is_empty() => Err(invalid()),
            None => Ok(Self::new("", text)),
            Some((_, version)) if version.is_empty() || version.contains('/') => Err(invalid()),
            Some((group, version)) => Ok(Self::new(group, version)),
        }
    }
}

/// A group and a kind, without a version.
///
/// # Examples
///
/// ```
/// use opkit_apimachinery::identity::GroupKind;
///
/// let kind: GroupKind = "Deployment.apps".parse()?;
/// assert_eq!(kind, GroupKind::new("apps", "Deployment"));
/// # Ok::<(), opkit_apimachinery::identity::IdentityError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupKind {
    /// The group; empty for the core group.
    pub group: String,
    /// The kind, such as `Deployment`.
    pub kind: String,
}

impl GroupKind {
    /// Creates a `GroupKind` from a group and a kind.
    pub fn new(group: impl Into<String>, kind: impl Into<String>) -> Self {
        Self {
            group: group.into(),
            kind: kind.into(),
        }
    }

    /// Returns this kind with the version added.
    pub fn with_version(&self, version: impl Into<String>) -> GroupVersionKind {
        GroupVersionKind::new(&self.group, version, &self.kind)
    }
}

impl fmt::Display for GroupKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        dotted(out, &self.kind, &self.group)
    }
}

impl FromStr for GroupKind {
    type Err = IdentityError;

    fn from_str(text: &str) -> Result<Self, IdentityError> {
        let (kind, group) = parse_dotted(text)?;
        Ok(Self::new(group, kind))
    }
}

/// A group and a resource, without a version.
///
/// # Examples
///
/// ```
/// use opkit_apimachinery::identity::GroupResource;
///
/// let resource: GroupResource = "pods".parse()?;
/// assert_eq!(resource, GroupResource::new("", "pods"));
/// # Ok::<(), opkit_apimachinery::identity::IdentityError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupResource {
    /// The group; empty for the core group.
    pub group: String,
    /// The resource, such as `deployments`.
    pub resource: String,
}

impl GroupResource {
    /// Creates a `GroupResource` from a group and a resource.
    pub fn new(group: impl Into<String>, resource: impl Into<String>) -> Self {
        Self {
            group: group.into(),
            resource: resource.into(),
        }
    }

    /// Returns this resource with the version added.
    pub fn with_version(&self, version: impl Into<String>) -> GroupVersionResource {
        GroupVersionResource::new(&self.group, version, &self.resource)
    }
}

impl fmt::Display for GroupResource {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        dotted(out, &self.resource, &self.group)
    }
}

impl FromStr for GroupResource {
    type Err = IdentityError;

    fn from_str(text: &str) -> Result<Self, IdentityError> {
        let (resource, group) = parse_dotted(text)?;
        Ok(Self::new(group, resource))
    }
}

/// A group, a version and a kind.
///
/// # Examples
///
/// ```
/// use opkit_apimachinery::identity::GroupVersionKind;
///
/// let kind = GroupVersionKind::from_api_version("apps/v1", "Deployment")?;
/// assert_eq!(kind.api_version(), "apps/v1");
/// assert_eq!(kind.to_string(), "apps/v1, Kind=Deployment");
/// # Ok::<(), opkit_apimachinery::identity::IdentityError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupVersionKind {
    /// The group; empty for the core group.
    pub group: String,
    /// The version, such as `v1`.
    pub version: String,
    /// The kind, such as `Deployment`.
    pub kind: String,
}

impl GroupVersionKind {
    /// Creates a `GroupVersionKind` from a group, a version and a kind.
    pub fn new(
        group: impl Into<String>,
        version: impl Into<String>,
        kind: impl Into<String>,
    ) -> Self {
        Self {
            group: group.into(),
            version: version.into(),
            kind: kind.into(),
        }
    }

    /// Creates a `GroupVersionKind` from the `apiVersion` and the `kind` of an object.
    ///
    /// # Errors
    ///
    /// [`IdentityError::GroupVersion`] if `api_version` is neither `version` nor `group/version`.
    pub fn from_api_version(
        api_version: &str,
        kind: impl Into<String>,
    ) -> Result<Self, IdentityError> {
        Ok(api_version.parse::<GroupVersion>()?.with_kind(kind))
    }

    /// Returns the `apiVersion` of objects of this kind, such as `apps/v1`.
    pub fn api_version(&self) -> String {
        self.group_version().to_string()
    }

    /// Returns the group and version of the kind.
    pub fn group_version(&self) -> GroupVersion {
        GroupVersion::new(&self.group, &self.version)
    }

    /// Returns the group and kind, without the version.
    pub fn group_kind(&self) -> GroupKind {
        GroupKind::new(&self.group, &self.kind)
    }
}

impl fmt::Display for GroupVersionKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            group,
            version,
            kind,
        } = self;
        write!(out, "{group}/{version}, Kind={kind}")
    }
}

impl FromStr for GroupVersionKind {
    type Err = IdentityError;

    fn from_str(text: &str) -> Result<Self, IdentityError> {
        let (group_version, kind) = parse_pair(text, ", Kind=")?;
        Ok(group_version.with_kind(kind))
    }
}

/// A group, a version and a resource.
///
/// # Examples
///
/// ```
/// use opkit_apimachinery::identity::GroupVersionResource;
///
/// let deployments: GroupVersionResource = "apps/v1, Resource=deployments".parse()?;
/// let path = deployments.path().namespace("web").name("shop").subresource("scale");
/// assert_eq!(path.build()?, "/apis/apps/v1/namespaces/web/deployments/shop/scale");
/// # Ok::<(), opkit_apimachinery::identity::IdentityError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupVersionResource {
    /// The group; empty for the core group.
    pub group: String,
    /// The version, such as `v1`.
    pub version: String,
    /// The resource, such as `deployments`.
    pub resource: String,
}

impl GroupVersionResource {
    /// Creates a `GroupVersionResource` from a group, a version and a resource.
    pub fn new(
        group: impl Into<String>,
        version: impl Into<String>,
        resource: impl Into<String>,
    ) -> Self {
        Self {
            group: group.into(),
            version: version.into(),
            resource: resource.into(),
        }
    }

    /// Returns the `apiVersion` of objects of this resource, such as `apps/v1`.
    pub fn api_version(&self) -> String {
        self.group_version().to_string()
    }

    /// Returns the group and version of the resource.
    pub fn group_version(&self) -> GroupVersion {
        GroupVersion::new(&self.group, &self.version)
    }

    /// Returns the group and resource, without the version.
    pub fn group_resource(&self) -> GroupResource {
        GroupResource::new(&self.group, &self.resource)
    }

    /// Returns the path of all objects of the resource in all namespaces.
    pub fn path(&self) -> ResourcePath<'_> {
        ResourcePath::new(&self.group, &self.version, &self.resource)
    }
}

impl fmt::Display for GroupVersionResource {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            group,
            version,
            resource,
        } = self;
        write!(out, "{group}/{version}, Resource={resource}")
    }
}

impl FromStr for GroupVersionResource {
    type Err = IdentityError;

    fn from_str(text: &str) -> Result<Self, IdentityError> {
        let (group_version, resource) = parse_pair(text, ", Resource=")?;
        Ok(group_version.with_resource(resource))
    }
}

fn dotted(out: &mut fmt::Formatter<'_>, name: &str, group: &str) -> fmt::Result {
    if group.is_empty() {
        return out.write_str(name);
    }
    write!(out, "{name}.{group}")
}

fn parse_dotted(text: &str) -> Result<(&str, &str), IdentityError> {
    let (name, group) = text.split_once('.').unwrap_or((text, ""));
    if name.is_empty() || text.contains('/') {
        return Err(IdentityError::GroupName {
            text: text.to_owned(),
        });
    }
    Ok((name, group))
}

fn parse_pair<'a>(
    text: &'a str,
    separator: &'static str,
) -> Result<(GroupVersion, &'a str), IdentityError> {
    let invalid = || IdentityError::GroupVersionName {
        text: text.to_owned(),
        separator,
    };
    let (group_version, name) = text.split_once(separator).ok_or_else(invalid)?;
    if name.is_empty() {
        return Err(invalid());
    }
    Ok((group_version.parse()?, name))
}

#[cfg(test)]
mod tests;
