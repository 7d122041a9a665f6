//! Apply configurations: the part of an object that a field manager applies.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use opkit_apimachinery::managedfields::extract;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Kind, Object};

/// Part of an object for server-side apply. `#[opkit::kind(..., apply)]` generates it: all of its
/// fields are optional, so that fields of other managers can be left out.
///
/// # Examples
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
/// use opkit_client::ApplyConfiguration;
/// use serde::{Deserialize, Serialize};
/// use serde_json::json;
///
/// // Built-in types whose fields are optional are their own configurations.
/// #[derive(Serialize, Deserialize)]
/// #[serde(transparent)]
/// struct ConfigMapApply(ConfigMap);
///
/// impl ApplyConfiguration for ConfigMapApply {
///     type Object = ConfigMap;
///     fn metadata(&self) -> &ObjectMeta {
///         &self.0.metadata
///     }
/// }
///
/// let map: ConfigMap = serde_json::from_value(json!({
///     "metadata": {"name": "one", "managedFields": [
///         {"manager": "me", "operation": "Apply", "fieldsV1": {"f:data": {"f:a": {}}}},
///     ]},
///     "data": {"a": "1", "b": "2"},
/// }))?;
/// let mine = ConfigMapApply::extract(&map, "me")?;
/// assert_eq!(mine.0.data, Some([("a".to_owned(), "1".to_owned())].into()));
/// # Ok::<(), serde_json::Error>(())
/// ```
pub trait ApplyConfiguration: Serialize + DeserializeOwned {
    /// Kind of the object.
    type Object: Object;

    /// Returns the metadata of the object: at least its name.
    fn metadata(&self) -> &ObjectMeta;

    /// Returns the fields that a field manager applied, as client-go's `Extract` functions do.
    /// The configuration has only the name and the namespace if the manager applied nothing.
    ///
    /// # Errors
    /// If the extracted fields are not a valid configuration.
    fn extract(object: &Self::Object, field_manager: &str) -> Result<Self, serde_json::Error> {
        Self::extract_subresource(object, field_manager, "")
    }

    /// Returns the fields that a field manager applied to a subresource, such as `status`.
    ///
    /// # Errors
    /// If the extracted fields are not a valid configuration.
    fn extract_subresource(
        object: &Self::Object,
        field_manager: &str,
        subresource: &str,
    ) -> Result<Self, serde_json::Error> {
        let mut value = serde_json::to_value(object)?;
        if let Some(fields) = value.as_object_mut() {
            let kind = Kind::of::<Self::Object>();
            fields.insert("apiVersion".to_owned(), kind.api_version().into());
            fields.insert("kind".to_owned(), kind.kind.into());
        }
        serde_json::from_value(extract(&value, field_manager, subresource))
    }
}
