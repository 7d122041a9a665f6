//! Admission: plugins that change or refuse an object before it is validated and stored.
//!
//! The plugins run after the field manager of a write is known, so that no manager owns the fields
//! that a plugin sets.

mod attributes;
mod default_toleration_seconds;
mod notes;
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
use crate::status::ApiResult;

pub(crate) use attributes::{Attributes, Operation};
pub(crate) use notes::Notes;
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

/// Runs the mutating phase of admission on an object that is to be stored.
pub(crate) async fn mutate(
    registry: &Registry,
    attributes: &Attributes<'_>,
    object: &mut Value,
) -> ApiResult<()> {
    for plugin in AdmissionPlugin::ALL {
        if registry.admission_plugins.contains(plugin) {
            run(*plugin, registry, attributes, object).await?;
        }
    }
    Ok(())
}

/// Runs the validating phase of admission. `object` is `None` for a delete.
pub(crate) async fn validate(
    _registry: &Registry,
    _attributes: &Attributes<'_>,
    _object: Option<&Value>,
) -> ApiResult<()> {
    Ok(())
}

/// Runs the mutating phase of one plugin.
async fn run(
    plugin: AdmissionPlugin,
    registry: &Registry,
    attributes: &Attributes<'_>,
    object: &mut Value,
) -> ApiResult<()> {
    if !attributes.target.subresource.is_empty() {
        return Ok(());
    }
    let is_pod = is_pod(attributes.kind()) && object::at(object, &["spec"]).is_object();
    match (plugin, attributes.operation, attributes.old) {
        (AdmissionPlugin::StorageObjectInUseProtection, Operation::Create, _) => {
            storage_object_in_use::admit(attributes.kind(), object);
        }
        _ if !is_pod => {}
        (AdmissionPlugin::ServiceAccount, Operation::Create, _) => {
            service_account::admit(registry, attributes, object).await?;
        }
        (AdmissionPlugin::Priority, Operation::Create, _) => {
            priority::admit(registry, attributes, object)?;
        }
        (AdmissionPlugin::Priority, Operation::Update, Some(old)) => priority::keep(old, object),
        (AdmissionPlugin::DefaultTolerationSeconds, _, _) => {
            default_toleration_seconds::admit(object);
        }
        _ => {}
    }
    Ok(())
}

fn is_pod(kind: &Kind) -> bool {
    kind.group.is_empty() && kind.plural == "pods"
}
