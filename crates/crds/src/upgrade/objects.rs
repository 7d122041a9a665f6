//! Validation of stored objects against the schema of a new CRD.

use opkit_apimachinery::identity::compare_versions;
use opkit_apimachinery::schema::{NoDefinitions, Schema, Typed};
use opkit_apimachinery::structural::{self, FieldError};
use opkit_cel::{Budget, RUNTIME_COST_BUDGET, Rules};
use serde::Serialize;
use serde_json::Value;

use super::crd;
use crate::CrdError;

/// Number of errors that are kept for each object.
const ERRORS_MAX: usize = 5;

/// Validation of objects by the schema and the CEL rules of one version of a CRD, as an API server
/// does when the whole object is written: unknown fields are removed, defaults are set, and then
/// everything is validated. An API server accepts an update that leaves an invalid value as it was,
/// but no other client can write the object then.
///
/// # Examples
/// ```
/// use opkit_crds::ObjectCheck;
/// use serde_json::json;
///
/// let crd = json!({
///     "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
///     "metadata": {"name": "robots.example.com"},
///     "spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": {
///         "type": "object",
///         "properties": {"spec": {"type": "object", "required": ["image"], "properties": {
///             "image": {"type": "string"},
///         }}},
///     }}}]},
/// });
/// let check = ObjectCheck::new(&crd, "v1")?;
/// assert!(check.errors(&json!({"spec": {"image": "nginx"}})).is_empty());
/// assert_eq!(check.errors(&json!({"spec": {}}))[0].to_string(), "spec.image: Required value");
/// # Ok::<(), opkit_crds::CrdError>(())
/// ```
#[derive(Debug)]
pub struct ObjectCheck {
    schema: Schema,
    rules: Rules,
}

/// Result of the validation of all objects of a kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct StoredObjects {
    /// Version in which the objects were validated.
    pub version: String,
    /// Number of objects.
    pub total: usize,
    /// Objects that would no longer validate.
    pub invalid: Vec<InvalidObject>,
}

/// An object that would no longer validate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct InvalidObject {
    /// Namespace of the object; `None` if the kind is cluster-scoped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Name of the object.
    pub name: String,
    /// First errors, in Kubernetes' words.
    pub errors: Vec<String>,
}

impl ObjectCheck {
    /// Prepares the check for one version of a CRD. A version without a schema accepts all objects.
    ///
    /// # Errors
    /// If the document is not a CRD, or does not have the version, or the schema cannot be read.
    pub fn new(document: &Value, version: &str) -> Result<Self, CrdError> {
        let name = crd::name(document)?;
        let versions = document.pointer("/spec/versions").and_then(Value::as_array);
        let mut versions = versions.into_iter().flatten();
        let found = versions.find(|it| it.get("name").and_then(Value::as_str) == Some(version));
        let Some(found) = found else {
            let version = version.to_owned();
            return Err(CrdError::NoVersion { name, version });
        };
        let schema = match found.pointer("/schema/openAPIV3Schema") {
            Some(schema) => Schema::parse(schema).map_err(|cause| CrdError::Schema {
                name,
                version: version.to_owned(),
                cause,
            })?,
            None => {
                let mut schema = Schema::default();
                schema.preserve_unknown_fields = true;
                schema
            }
        };
        Ok(Self {
            rules: Rules::new(&schema),
            schema,
        })
    }

    /// Returns the errors of an object. Transition rules, which compare an object with the one
    /// before, are not evaluated.
    pub fn errors(&self, object: &Value) -> Vec<FieldError> {
        let mut object = object.clone();
        let typed = Typed::new(&self.schema, &NoDefinitions);
        structural::prune(&mut object, &typed);
        structural::apply_defaults(&mut object, &typed);
        let mut errors = structural::validate(&object, &typed);
        // As in an API server, rules are evaluated only for values of the right types.
        if errors.is_empty() {
            let mut budget = Budget::new(RUNTIME_COST_BUDGET);
            let outcome = self.rules.validate(&object, None, &mut budget);
            errors.extend(outcome.errors);
        }
        errors
    }

    /// Validates one object and adds the result to those of the others. An object that was invalid
    /// by the check of the installed CRD, `old`, counts as one that does not become invalid.
    pub fn add(&self, object: &Value, old: Option<&Self>, objects: &mut StoredObjects) {
        objects.total = objects.total.saturating_add(1);
        let errors = self.errors(object);
        let was_invalid = || old.is_some_and(|old| !old.errors(object).is_empty());
        if errors.is_empty() || was_invalid() {
            return;
        }
        let text = |pointer: &str| {
            let found = object.pointer(pointer).and_then(Value::as_str);
            found.map(str::to_owned)
        };
        let errors = errors.iter().take(ERRORS_MAX).map(ToString::to_string);
        objects.invalid.push(InvalidObject {
            namespace: text("/metadata/namespace"),
            name: text("/metadata/name").unwrap_or_default(),
            errors: errors.collect(),
        });
    }
}

impl StoredObjects {
    /// Creates the result for no objects.
    pub fn new(version: impl Into<String>) -> Self {
        Self {
            version: version.into(),
            ..Self::default()
        }
    }
}

/// Returns the version in which the objects of an installed CRD can be read and validated against
/// the new CRD: the storage version of the new CRD if the old CRD serves it, otherwise the
/// preferred version that the old CRD serves and the new CRD has.
pub fn common_version(old: &Value, new: &Value) -> Option<String> {
    let versions = |crd: &Value, field: Option<&str>| -> Vec<String> {
        let versions = crd.pointer("/spec/versions").and_then(Value::as_array);
        let versions = versions.into_iter().flatten();
        let is = |version: &Value, field: &str| {
            let value = version.get(field).and_then(Value::as_bool);
            value.unwrap_or_default()
        };
        let versions = versions.filter(|version| field.is_none_or(|field| is(version, field)));
        let names = versions.filter_map(|version| version.get("name")?.as_str());
        names.map(str::to_owned).collect()
    };
    let served = versions(old, Some("served"));
    let storage = versions(new, Some("storage"));
    let known = versions(new, None);
    let mut common: Vec<String> = known.into_iter().filter(|it| served.contains(it)).collect();
    common.sort_by(|left, right| compare_versions(right, left));
    let best = common.iter().find(|version| storage.contains(version));
    best.or(common.first()).cloned()
}
