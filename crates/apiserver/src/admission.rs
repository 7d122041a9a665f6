//! Admission: plugins that change or refuse an object before it is validated and stored.
//!
//! The plugins run after the field manager of a write is known, so that no manager owns the fields
//! that a plugin sets.

mod default_toleration_seconds;
mod priority;
mod service_account;
mod storage_object_in_use;
#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

use serde_json::Value;

use crate::kinds::Kind;
use crate::object;
use crate::registry::Registry;
use crate::status::{ApiError, ApiResult};

pub(crate) use storage_object_in_use::{CLAIM_PROTECTION, VOLUME_PROTECTION};

/// An admission plugin, with its name in kube-apiserver's flag `--enable-admission-plugins`.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum AdmissionPlugin {
    /// Adds the ServiceAccount of a Pod and the volume with its token, and refuses a Pod whose
    /// ServiceAccount does not exist.
    ServiceAccount,
    /// Sets the priority of a Pod from its PriorityClass.
    Priority,
    /// Adds the finalizers that keep volumes and claims while they are in use.
    StorageObjectInUseProtection,
    /// Lets Pods tolerate for 5 minutes that their node is not ready or cannot be reached.
    DefaultTolerationSeconds,
}

impl AdmissionPlugin {
    /// All plugins, in the order in which they run.
    pub const ALL: &[Self] = &[
        Self::ServiceAccount,
        Self::Priority,
        Self::DefaultTolerationSeconds,
        Self::StorageObjectInUseProtection,
    ];

    /// Returns the name of the plugin.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ServiceAccount => "ServiceAccount",
            Self::Priority => "Priority",
            Self::StorageObjectInUseProtection => "StorageObjectInUseProtection",
            Self::DefaultTolerationSeconds => "DefaultTolerationSeconds",
        }
    }
}

impl fmt::Display for AdmissionPlugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The error for a name that is not the name of a modelled admission plugin.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("there is no admission plugin {0:?} in the embedded control plane")]
pub struct UnknownAdmissionPlugin(String);

impl FromStr for AdmissionPlugin {
    type Err = UnknownAdmissionPlugin;

    fn from_str(name: &str) -> Result<Self, UnknownAdmissionPlugin> {
        let mut all = Self::ALL.iter();
        let found = all.find(|plugin| plugin.as_str() == name).copied();
        found.ok_or_else(|| UnknownAdmissionPlugin(name.to_owned()))
    }
}

/// An object that is to be created.
#[derive(Debug)]
pub(crate) struct Creation<'a> {
    pub(crate) kind: &'a Kind,
    /// The name in errors: the name of the object, or its `generateName` if the client has set no
    /// name.
    pub(crate) name: &'a str,
    pub(crate) dry_run: bool,
}

impl Creation<'_> {
    fn forbid(&self, why: impl AsRef<str>) -> ApiError {
        ApiError::forbidden(self.kind, self.name, why.as_ref())
    }
}

/// Runs the enabled plugins on an object that is to be stored in place of `live`.
pub(crate) fn admit_update(registry: &Registry, kind: &Kind, live: &Value, new: &mut Value) {
    if !is_pod(kind) {
        return;
    }
    let is_enabled = |plugin| registry.admission_plugins.contains(&plugin);
    if is_enabled(AdmissionPlugin::Priority) {
        priority::keep(live, new);
    }
    if is_enabled(AdmissionPlugin::DefaultTolerationSeconds) {
        default_toleration_seconds::admit(new);
    }
}

fn is_pod(kind: &Kind) -> bool {
    kind.group.is_empty() && kind.plural == "pods"
}

/// Runs the enabled plugins on an object that is to be created.
pub(crate) fn admit(
    registry: &Registry,
    creation: &Creation<'_>,
    object: &mut Value,
) -> ApiResult<()> {
    let is_pod = is_pod(creation.kind) && object::at(object, &["spec"]).is_object();
    for plugin in AdmissionPlugin::ALL {
        if !registry.admission_plugins.contains(plugin) {
            continue;
        }
        match plugin {
            AdmissionPlugin::StorageObjectInUseProtection => {
                storage_object_in_use::admit(creation.kind, object);
            }
            _ if !is_pod => {}
            AdmissionPlugin::ServiceAccount => service_account::admit(registry, creation, object)?,
            AdmissionPlugin::Priority => priority::admit(registry, creation, object)?,
            AdmissionPlugin::DefaultTolerationSeconds => default_toleration_seconds::admit(object),
        }
    }
    Ok(())
}
