//! Objects without a Rust type.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, OwnerReference};
use opkit_apimachinery::managedfields::extract;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{Kind, ObjectKey};

/// Object of any kind, as JSON, with accessors for the fields that every object has.
///
/// # Examples
/// ```
/// use opkit_client::Unstructured;
/// use serde_json::json;
///
/// let mut robot = Unstructured::from(json!({
///     "apiVersion": "robot.opkit.dev/v1", "kind": "Robot", "metadata": {"name": "one"},
/// }));
/// robot.set(&["spec", "replicas"], 3)?;
/// robot.set_label("team", "red");
/// assert_eq!(robot.get(&["spec", "replicas"]), Some(&json!(3)));
/// assert_eq!(robot.labels()["team"], "red");
/// assert_eq!(robot.name(), "one");
/// # Ok::<(), opkit_client::NotAnObject>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Unstructured {
    fields: Map<String, Value>,
}

/// Error of setting a field whose parent is not a JSON object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot set the field {path:?}: {at:?} is not an object")]
#[non_exhaustive]
pub struct NotAnObject {
    /// Path of the field that was to be set.
    pub path: String,
    /// Path of the value that is not an object.
    pub at: String,
}

impl From<Value> for Unstructured {
    fn from(value: Value) -> Self {
        match value {
            Value::Object(fields) => Self { fields },
            _ => Self::default(),
        }
    }
}

impl From<Unstructured> for Value {
    fn from(object: Unstructured) -> Self {
        Self::Object(object.fields)
    }
}

impl Unstructured {
    /// Creates an object with `apiVersion`, `kind`, name and namespace, and no other fields.
    pub fn new(kind: &Kind, key: impl Into<ObjectKey>) -> Self {
        let key = key.into();
        let mut object = Self::default();
        object.set_kind_if_missing(kind);
        let mut metadata = Map::new();
        metadata.insert("name".to_owned(), key.name.into());
        if let Some(namespace) = key.namespace {
            metadata.insert("namespace".to_owned(), namespace.into());
        }
        let fields = &mut object.fields;
        fields.insert("metadata".to_owned(), metadata.into());
        object
    }

    /// Returns the top-level fields.
    pub fn fields(&self) -> &Map<String, Value> {
        &self.fields
    }

    /// Returns the value at a path of field names, or `None` if the path does not exist.
    pub fn get(&self, path: &[&str]) -> Option<&Value> {
        let (first, rest) = path.split_first()?;
        let start = self.fields.get(*first)?;
        rest.iter().try_fold(start, |value, name| value.get(*name))
    }

    /// Returns the string at a path, or `None` if there is no string.
    pub fn get_str(&self, path: &[&str]) -> Option<&str> {
        self.get(path)?.as_str()
    }

    /// Returns the integer at a path, or `None` if there is no integer.
    pub fn get_i64(&self, path: &[&str]) -> Option<i64> {
        self.get(path)?.as_i64()
    }

    /// Sets the value at a path and creates missing parent objects.
    ///
    /// # Errors
    /// If a parent exists and is not an object. Nothing is changed in that case.
    pub fn set(&mut self, path: &[&str], value: impl Into<Value>) -> Result<(), NotAnObject> {
        let Some((last, parents)) = path.split_last() else {
            return Ok(());
        };
        // All parents are checked before the first change.
        for end in 1..=parents.len() {
            let parent = parents.get(..end).unwrap_or_default();
            if self
                .get(parent)
                .is_some_and(|value| !value.is_object() && !value.is_null())
            {
                return Err(NotAnObject {
                    path: path.join("."),
                    at: parent.join("."),
                });
            }
        }
        let mut fields = &mut self.fields;
        for name in parents {
            let next = fields.entry(*name).or_insert(Value::Null);
            if next.is_null() {
                *next = Value::Object(Map::new());
            }
            match next {
                Value::Object(next) => fields = next,
                _ => return Ok(()),
            }
        }
        fields.insert((*last).to_owned(), value.into());
        Ok(())
    }

    /// Removes the value at a path and returns it, or `None` if the path does not exist.
    pub fn remove(&mut self, path: &[&str]) -> Option<Value> {
        let (last, parents) = path.split_last()?;
        let mut fields = &mut self.fields;
        for name in parents {
            fields = fields.get_mut(*name)?.as_object_mut()?;
        }
        fields.remove(*last)
    }

    /// Returns the fields that a field manager applied, with `apiVersion`, `kind`, name and
    /// namespace. The subresource is empty for the object itself. A manager that applies the
    /// returned object again changes nothing.
    ///
    /// # Examples
    /// ```
    /// use opkit_client::Unstructured;
    /// use serde_json::json;
    ///
    /// let web = Unstructured::from(json!({
    ///     "apiVersion": "apps/v1",
    ///     "kind": "Deployment",
    ///     "metadata": {"name": "web", "managedFields": [
    ///         {"manager": "me", "operation": "Apply", "fieldsV1": {"f:spec": {"f:replicas": {}}}},
    ///     ]},
    ///     "spec": {"replicas": 3, "paused": true},
    /// }));
    /// let mine = web.extract("me", "");
    /// assert_eq!(mine.get(&["spec"]), Some(&json!({"replicas": 3})));
    /// ```
    pub fn extract(&self, field_manager: &str, subresource: &str) -> Self {
        let object = Value::Object(self.fields.clone());
        Self::from(extract(&object, field_manager, subresource))
    }

    /// Returns the API version: `group/version`, or only the version for the core group.
    pub fn api_version(&self) -> &str {
        self.get_str(&["apiVersion"]).unwrap_or_default()
    }

    /// Returns the kind.
    pub fn kind(&self) -> &str {
        self.get_str(&["kind"]).unwrap_or_default()
    }

    /// Returns the name, or an empty string if the object has no name.
    pub fn name(&self) -> &str {
        self.meta("name")
    }

    /// Returns the namespace, or `None` for cluster-scoped kinds.
    pub fn namespace(&self) -> Option<&str> {
        Some(self.meta("namespace")).filter(|namespace| !namespace.is_empty())
    }

    /// Returns the key: namespace and name.
    pub fn key(&self) -> ObjectKey {
        ObjectKey {
            namespace: self.namespace().map(str::to_owned),
            name: self.name().to_owned(),
        }
    }

    /// Returns the UID, or an empty string if the server has not set one yet.
    pub fn uid(&self) -> &str {
        self.meta("uid")
    }

    /// Returns the resourceVersion, or an empty string if the server has not set one yet.
    pub fn resource_version(&self) -> &str {
        self.meta("resourceVersion")
    }

    /// Returns the generation, which the server increments with each change of the spec.
    pub fn generation(&self) -> Option<i64> {
        self.get_i64(&["metadata", "generation"])
    }

    /// Reports whether the object has a deletion timestamp.
    pub fn is_deleting(&self) -> bool {
        self.get(&["metadata", "deletionTimestamp"])
            .is_some_and(|it| !it.is_null())
    }

    /// Returns the labels.
    pub fn labels(&self) -> BTreeMap<&str, &str> {
        self.texts("labels")
    }

    /// Returns the annotations.
    pub fn annotations(&self) -> BTreeMap<&str, &str> {
        self.texts("annotations")
    }

    /// Sets a label.
    pub fn set_label(&mut self, key: &str, value: &str) {
        self.set_text("labels", key, value);
    }

    /// Returns the finalizers.
    pub fn finalizers(&self) -> Vec<&str> {
        let list = self.get(&["metadata", "finalizers"]);
        let list = list.and_then(Value::as_array).into_iter().flatten();
        list.filter_map(Value::as_str).collect()
    }

    /// Returns the owner references. Entries that cannot be decoded are left out.
    pub fn owner_references(&self) -> Vec<OwnerReference> {
        self.items(&["metadata", "ownerReferences"])
    }

    /// Returns the conditions of the status. Entries that cannot be decoded are left out.
    pub fn conditions(&self) -> Vec<Condition> {
        self.items(&["status", "conditions"])
    }

    /// Returns the status of a condition (`True`, `False` or `Unknown`), or `None` if there is no
    /// such condition.
    pub fn condition(&self, type_: &str) -> Option<&str> {
        let list = self.get(&["status", "conditions"])?.as_array()?;
        let is = |condition: &&Value| condition.get("type").and_then(Value::as_str) == Some(type_);
        list.iter().find(is)?.get("status")?.as_str()
    }

    /// Sets `apiVersion` and `kind` if they are missing.
    pub(super) fn set_kind_if_missing(&mut self, kind: &Kind) {
        let fields = &mut self.fields;
        let api_version = || kind.api_version().into();
        fields.entry("apiVersion").or_insert_with(api_version);
        if !kind.kind.is_empty() {
            let kind = || kind.kind.clone().into();
            fields.entry("kind").or_insert_with(kind);
        }
    }

    pub(super) fn with_kind(&self, kind: &Kind) -> Self {
        let mut object = self.clone();
        object.set_kind_if_missing(kind);
        object
    }

    fn items<T: serde::de::DeserializeOwned>(&self, path: &[&str]) -> Vec<T> {
        let list = self.get(path).and_then(Value::as_array);
        let items = list.into_iter().flatten();
        items.filter_map(|item| T::deserialize(item).ok()).collect()
    }

    fn meta(&self, name: &str) -> &str {
        self.get_str(&["metadata", name]).unwrap_or_default()
    }

    fn texts(&self, name: &str) -> BTreeMap<&str, &str> {
        let fields = self.get(&["metadata", name]).and_then(Value::as_object);
        let pairs = fields.into_iter().flatten();
        pairs
            .filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
            .collect()
    }

    fn set_text(&mut self, name: &str, key: &str, value: &str) {
        let metadata = object_in(&mut self.fields, "metadata");
        if let Some(texts) = metadata.and_then(|metadata| object_in(metadata, name)) {
            texts.insert(key.to_owned(), value.into());
        }
    }
}

/// Returns the object at a field. Replaces a missing value, or one that is not an object, with an
/// empty object.
fn object_in<'a>(
    fields: &'a mut Map<String, Value>,
    name: &str,
) -> Option<&'a mut Map<String, Value>> {
    let field = fields.entry(name).or_insert(Value::Null);
    if !field.is_object() {
        *field = Value::Object(Map::new());
    }
    field.as_object_mut()
}

#[cfg(test)]
mod tests;
