//! Conversion between the versions of a kind, by way of one version, the hub.

use std::any::{Any, TypeId, type_name};
use std::collections::HashMap;

use super::{Boxed, Decoded, Scheme, SchemeError};
use crate::identity::{GroupKind, GroupVersionKind};

type BoxError = Box<dyn std::error::Error + Send + Sync>;
type Conversion = Box<dyn Fn(&(dyn Any + Send + Sync)) -> Result<Boxed, BoxError> + Send + Sync>;

/// The registered conversion functions, and the hub of each kind: the version through which all
/// other versions are converted.
#[derive(Default)]
pub(super) struct Conversions {
    functions: HashMap<(TypeId, TypeId), Conversion>,
    hubs: HashMap<GroupKind, GroupVersionKind>,
}

impl Scheme {
    /// Adds a function that converts one version of a kind to another.
    ///
    /// # Examples
    ///
    /// ```
    /// use opkit_apimachinery::identity::GroupVersionKind;
    /// use opkit_apimachinery::scheme::{Decoded, Scheme};
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Serialize, Deserialize)]
    /// struct OldRobot { arms: String }
    /// #[derive(Serialize, Deserialize)]
    /// struct Robot { arms: u32 }
    ///
    /// let old = GroupVersionKind::new("example.com", "v1alpha1", "Robot");
    /// let new = GroupVersionKind::new("example.com", "v1", "Robot");
    /// let mut scheme = Scheme::new();
    /// scheme.register::<OldRobot>(old)?;
    /// scheme.register::<Robot>(new.clone())?;
    /// scheme.set_hub(&new)?;
    /// scheme.add_conversion(|old: &OldRobot| old.arms.parse().map(|arms| Robot { arms }));
    ///
    /// let old = scheme.decode(b"{apiVersion: example.com/v1alpha1, kind: Robot, arms: '2'}")?;
    /// assert_eq!(scheme.convert::<Robot>(old)?.arms, 2);
    /// # Ok::<(), opkit_apimachinery::scheme::SchemeError>(())
    /// ```
    pub fn add_conversion<A, B, E>(
        &mut self,
        convert: impl Fn(&A) -> Result<B, E> + Send + Sync + 'static,
    ) where
        A: Any + Send + Sync,
        B: Any + Send + Sync,
        E: Into<BoxError>,
    {
        let erased: Conversion = Box::new(move |object| {
            let object = object.downcast_ref::<A>();
            let object = object.ok_or_else(|| format!("not a {}", type_name::<A>()))?;
            match convert(object) {
                Ok(converted) => Ok(Box::new(converted)),
                Err(cause) => Err(cause.into()),
            }
        });
        let types = (TypeId::of::<A>(), TypeId::of::<B>());
        self.conversions.functions.insert(types, erased);
    }

    /// Sets the hub of a kind: the version through which all other versions are converted.
    ///
    /// # Errors
    ///
    /// [`SchemeError::UnknownKind`] if the kind is not registered in this version.
    pub fn set_hub(&mut self, gvk: &GroupVersionKind) -> Result<(), SchemeError> {
        self.entry(gvk)?;
        self.conversions.hubs.insert(gvk.group_kind(), gvk.clone());
        Ok(())
    }

    /// Returns the hub of a kind: the version through which all other versions are converted.
    pub fn hub(&self, kind: &GroupKind) -> Option<&GroupVersionKind> {
        self.conversions.hubs.get(kind)
    }

    /// Converts an object to another version of its kind. A function that converts between the two
    /// versions directly is used if there is one; otherwise the object is converted to the hub
    /// first.
    ///
    /// # Errors
    ///
    /// If a kind is not registered, a conversion function is missing, or a conversion function
    /// fails.
    pub fn convert_to(
        &self,
        decoded: Decoded,
        gvk: &GroupVersionKind,
    ) -> Result<Decoded, SchemeError> {
        if decoded.gvk == *gvk {
            return Ok(decoded);
        }
        self.entry(gvk)?;
        if self.has_function(&decoded.gvk, gvk)? {
            return self.step(&decoded, gvk);
        }
        let no_conversion = || SchemeError::NoConversion {
            from: Box::new(decoded.gvk.clone()),
            to: Box::new(gvk.clone()),
        };
        let hub = self.hub(&gvk.group_kind()).ok_or_else(no_conversion)?;
        // If one of the two versions is the hub, only the direct function could have converted.
        if *hub == *gvk || decoded.gvk.group_kind() != gvk.group_kind() {
            return Err(no_conversion());
        }
        if decoded.gvk == *hub {
            return Err(no_conversion());
        }
        let at_hub = self.step(&decoded, hub)?;
        self.step(&at_hub, gvk)
    }

    /// Converts an object to the version of its kind whose Rust type is `B`.
    ///
    /// # Errors
    ///
    /// The errors of [`convert_to`](Self::convert_to), and an error if no version of the kind has
    /// the type `B`.
    pub fn convert<B: Any + Send + Sync>(&self, decoded: Decoded) -> Result<B, SchemeError> {
        let expected = type_name::<B>();
        let kind = decoded.gvk.group_kind();
        let kinds = self.kinds_of::<B>();
        let gvk = kinds.iter().find(|gvk| gvk.group_kind() == kind);
        let Some(gvk) = gvk else {
            return Err(SchemeError::OtherType {
                gvk: decoded.gvk,
                expected,
            });
        };
        let converted = self.convert_to(decoded, gvk)?;
        converted
            .downcast()
            .map_err(|decoded| SchemeError::OtherType {
                gvk: decoded.gvk,
                expected,
            })
    }

    fn has_function(
        &self,
        from: &GroupVersionKind,
        to: &GroupVersionKind,
    ) -> Result<bool, SchemeError> {
        let types = (self.entry(from)?.type_id, self.entry(to)?.type_id);
        Ok(self.conversions.functions.contains_key(&types))
    }

    fn step(&self, decoded: &Decoded, to: &GroupVersionKind) -> Result<Decoded, SchemeError> {
        let types = (self.entry(&decoded.gvk)?.type_id, self.entry(to)?.type_id);
        let from = || Box::new(decoded.gvk.clone());
        let Some(function) = self.conversions.functions.get(&types) else {
            return Err(SchemeError::NoConversion {
                from: from(),
                to: Box::new(to.clone()),
            });
        };
        match function(&*decoded.object) {
            Ok(object) => Ok(Decoded {
                gvk: to.clone(),
                object,
            }),
            Err(cause) => Err(SchemeError::Conversion {
                from: from(),
                to: Box::new(to.clone()),
                cause,
            }),
        }
    }
}
