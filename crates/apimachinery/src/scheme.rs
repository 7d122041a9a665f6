//! Registry of the Rust types of Kubernetes kinds.
//!
//! A [`Scheme`] decodes an object whose kind is not known beforehand, encodes any registered type
//! with its `apiVersion` and `kind`, sets defaults, and converts between the versions of a kind.
//! Conversion goes through one version of the kind, the *hub*, so that N versions need 2N functions
//! rather than N squared.
//!
//! A scheme does not know which resource serves a kind: that information comes from discovery.

mod convert;
mod decoded;
mod format;
mod strict;

use std::any::{Any, TypeId, type_name};
use std::collections::HashMap;
use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub use crate::error::SchemeError;
use crate::identity::{GroupKind, GroupVersionKind, compare_versions};
use convert::Conversions;
pub use decoded::Decoded;
pub use format::Format;

/// A registry of Rust types and the kinds that they represent.
///
/// # Examples
///
/// ```
/// use opkit_apimachinery::identity::GroupVersionKind;
/// use opkit_apimachinery::scheme::Scheme;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// struct Robot {
///     spec: RobotSpec,
/// }
/// #[derive(Serialize, Deserialize)]
/// struct RobotSpec {
///     arms: u32,
/// }
///
/// let mut scheme = Scheme::new();
/// scheme.register::<Robot>(GroupVersionKind::new("example.com", "v1", "Robot"))?;
/// scheme.add_defaulting(|robot: &mut Robot| robot.spec.arms = robot.spec.arms.max(2));
///
/// let yaml = b"{apiVersion: example.com/v1, kind: Robot, spec: {arms: 0}}";
/// let decoded = scheme.decode_with_defaults(yaml)?;
/// assert_eq!(decoded.downcast_ref::<Robot>().map(|robot| robot.spec.arms), Some(2));
///
/// let error = scheme.decode(b"{apiVersion: example.com/v1, kind: Robot, spec: {arms: 1, legs: 2}}");
/// assert_eq!(
///     error.map(|_| ()).map_err(|error| error.to_string()),
///     Err("example.com/v1, Kind=Robot has no field spec.legs".to_owned())
/// );
/// # Ok::<(), opkit_apimachinery::scheme::SchemeError>(())
/// ```
#[derive(Default)]
pub struct Scheme {
    kinds: HashMap<GroupVersionKind, KindEntry>,
    /// Kinds of each type, in the order of registration.
    types: HashMap<TypeId, Vec<GroupVersionKind>>,
    preferred: HashMap<GroupKind, String>,
    defaulting: HashMap<TypeId, Vec<Defaulting>>,
    conversions: Conversions,
}

type Boxed = Box<dyn Any + Send + Sync>;
type Defaulting = Box<dyn Fn(&mut (dyn Any + Send + Sync)) + Send + Sync>;

/// The Rust type of a kind, with the functions that decode and encode the type.
#[derive(Clone, Copy)]
struct KindEntry {
    type_id: TypeId,
    type_name: &'static str,
    decode: fn(&Value, &strict::Findings) -> Result<Boxed, serde_json::Error>,
    encode: fn(&(dyn Any + Send + Sync)) -> Option<Result<Value, serde_json::Error>>,
}

impl Scheme {
    /// Creates a scheme without types.
    pub fn new() -> Self {
        Self::default()
    }

    /// Registers `T` as the type of a kind. A type may have several kinds. Registering the same
    /// type for the same kind again has no effect.
    ///
    /// # Errors
    ///
    /// [`SchemeError::TwoTypes`] if the kind is already registered with another type.
    pub fn register<T>(&mut self, gvk: GroupVersionKind) -> Result<(), SchemeError>
    where
        T: Serialize + DeserializeOwned + Any + Send + Sync,
    {
        let entry = KindEntry {
            type_id: TypeId::of::<T>(),
            type_name: type_name::<T>(),
            decode: |value, findings| {
                let object = T::deserialize(strict::Strict::new(value, findings))?;
                Ok(Box::new(object))
            },
            encode: |object| object.downcast_ref::<T>().map(serde_json::to_value),
        };
        if let Some(registered) = self.kinds.get(&gvk) {
            return match registered.type_id == entry.type_id {
                true => Ok(()),
                false => Err(SchemeError::TwoTypes {
                    gvk,
                    registered: registered.type_name,
                    refused: entry.type_name,
                }),
            };
        }
        self.types
            .entry(entry.type_id)
            .or_default()
            .push(gvk.clone());
        self.kinds.insert(gvk, entry);
        Ok(())
    }

    /// Reports whether a kind is registered.
    pub fn recognizes(&self, gvk: &GroupVersionKind) -> bool {
        self.kinds.contains_key(gvk)
    }

    /// Returns the kinds of a type, in the order of registration.
    pub fn kinds_of<T: Any>(&self) -> &[GroupVersionKind] {
        self.types
            .get(&TypeId::of::<T>())
            .map(Vec::as_slice)
            .unwrap_or_default()
    }

    /// Returns the registered versions of a kind: the preferred version first, then the others in
    /// Kubernetes' order of versions.
    pub fn versions(&self, kind: &GroupKind) -> Vec<GroupVersionKind> {
        let mut versions: Vec<GroupVersionKind> = self
            .kinds
            .keys()
            .filter(|gvk| gvk.group == kind.group && gvk.kind == kind.kind)
            .cloned()
            .collect();
        let preferred = self.preferred.get(kind);
        versions.sort_by(|left, right| {
            let is_preferred = |gvk: &GroupVersionKind| preferred == Some(&gvk.version);
            is_preferred(right)
                .cmp(&is_preferred(left))
                .then_with(|| compare_versions(&right.version, &left.version))
        });
        versions
    }

    /// Returns the version of a kind to use by default: the version that [`prefer`](Self::prefer)
    /// has set, or else the first in Kubernetes' order of versions.
    pub fn preferred(&self, kind: &GroupKind) -> Option<GroupVersionKind> {
        self.versions(kind).into_iter().next()
    }

    /// Sets the preferred version of a kind.
    ///
    /// # Errors
    ///
    /// [`SchemeError::UnknownKind`] if the kind is not registered in this version.
    pub fn prefer(&mut self, gvk: &GroupVersionKind) -> Result<(), SchemeError> {
        self.entry(gvk)?;
        self.preferred.insert(gvk.group_kind(), gvk.version.clone());
        Ok(())
    }

    /// Adds a function that sets default values in objects of the type `T`. The functions run in
    /// the order in which they were added.
    pub fn add_defaulting<T: Any + Send + Sync>(
        &mut self,
        defaulting: impl Fn(&mut T) + Send + Sync + 'static,
    ) {
        let erased: Defaulting = Box::new(move |object| {
            if let Some(object) = object.downcast_mut::<T>() {
                defaulting(object);
            }
        });
        self.defaulting
            .entry(TypeId::of::<T>())
            .or_default()
            .push(erased);
    }

    /// Runs the defaulting functions of the object's type.
    fn default_object(&self, decoded: &mut Decoded) {
        let type_id = (*decoded.object).type_id();
        for defaulting in self.defaulting.get(&type_id).into_iter().flatten() {
            defaulting(&mut *decoded.object);
        }
    }

    fn entry(&self, gvk: &GroupVersionKind) -> Result<&KindEntry, SchemeError> {
        self.kinds
            .get(gvk)
            .ok_or_else(|| SchemeError::UnknownKind { gvk: gvk.clone() })
    }
}

impl fmt::Debug for Scheme {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds = self
            .kinds
            .iter()
            .map(|(gvk, entry)| (gvk.to_string(), entry.type_name));
        out.debug_map().entries(kinds).finish()
    }
}

#[cfg(test)]
mod tests;
