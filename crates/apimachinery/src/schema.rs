//! OpenAPI v3 schemas as Kubernetes uses them, parsed once and shared.
//!
//! One type represents two kinds of schemas: the *structural schema* of a custom resource, which
//! has no references, and the schema of a built-in kind, whose parts refer to each other by name
//! (see [`Definitions`]). Functions that walk over an object take a [`Typed`]: a schema with the
//! definitions that resolve its references.
//!
//! This module does not check whether a schema is a valid structural schema. Unknown keywords are
//! ignored.

mod object_meta;
mod parse;
mod pattern;
mod typed;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde_json::Value;

pub use crate::error::SchemaError;
pub use pattern::{Pattern, pattern_error};
pub use typed::Typed;

/// A shared schema, as used in properties, items and definitions.
pub type SchemaRef = Arc<Schema>;

/// Parsed schema of one type: an OpenAPI v3 schema or a structural schema.
///
/// # Examples
///
/// ```
/// use opkit_apimachinery::schema::{Schema, SchemaType};
/// use serde_json::json;
///
/// let schema = Schema::parse(&json!({
///     "type": "object",
///     "properties": {"replicas": {"type": "integer", "minimum": 1}},
/// }))?;
/// let replicas = schema.properties.get("replicas").unwrap();
/// assert_eq!(replicas.type_, Some(SchemaType::Integer));
/// assert_eq!(replicas.minimum, Some(1.0));
/// # Ok::<(), opkit_apimachinery::schema::SchemaError>(())
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Schema {
    /// Name of the definition to which the keyword `$ref` refers. Kubernetes may wrap the `$ref` in
    /// an `allOf` with one element. Keywords beside the `$ref` stay in this schema and take
    /// precedence over those of the definition.
    pub reference: Option<String>,
    /// The keyword `type`.
    pub type_: Option<SchemaType>,
    /// The keyword `properties`.
    pub properties: BTreeMap<String, SchemaRef>,
    /// The keyword `additionalProperties`.
    pub additional_properties: Option<AdditionalProperties>,
    /// The keyword `items`.
    pub items: Option<SchemaRef>,
    /// The keyword `required`.
    pub required: Vec<String>,
    /// The keyword `enum`.
    pub enum_: Option<Vec<Value>>,
    /// The keyword `pattern`.
    pub pattern: Option<Pattern>,
    /// The keyword `format`.
    pub format: Option<String>,
    /// The keyword `minimum`.
    pub minimum: Option<f64>,
    /// The keyword `maximum`.
    pub maximum: Option<f64>,
    /// The keyword `exclusiveMinimum`.
    pub exclusive_minimum: bool,
    /// The keyword `exclusiveMaximum`.
    pub exclusive_maximum: bool,
    /// The keyword `multipleOf`.
    pub multiple_of: Option<f64>,
    /// The keyword `minLength`.
    pub min_length: Option<u64>,
    /// The keyword `maxLength`.
    pub max_length: Option<u64>,
    /// The keyword `minItems`.
    pub min_items: Option<u64>,
    /// The keyword `maxItems`.
    pub max_items: Option<u64>,
    /// The keyword `minProperties`.
    pub min_properties: Option<u64>,
    /// The keyword `maxProperties`.
    pub max_properties: Option<u64>,
    /// The keyword `uniqueItems`.
    pub unique_items: bool,
    /// The keyword `default`. A default of null is ignored, as in Kubernetes.
    pub default: Option<Value>,
    /// The keyword `nullable`.
    pub nullable: bool,
    /// The keyword `allOf`.
    pub all_of: Vec<SchemaRef>,
    /// The keyword `anyOf`.
    pub any_of: Vec<SchemaRef>,
    /// The keyword `oneOf`.
    pub one_of: Vec<SchemaRef>,
    /// The keyword `not`.
    pub not: Option<SchemaRef>,
    /// The keyword `x-kubernetes-int-or-string`.
    pub int_or_string: bool,
    /// The keyword `x-kubernetes-preserve-unknown-fields`.
    pub preserve_unknown_fields: bool,
    /// The keyword `x-kubernetes-embedded-resource`.
    pub embedded_resource: bool,
    /// The keyword `x-kubernetes-list-type`.
    pub list_type: Option<ListType>,
    /// The keyword `x-kubernetes-list-map-keys`.
    pub list_map_keys: Vec<String>,
    /// The keyword `x-kubernetes-map-type`.
    pub map_type: Option<MapType>,
    /// The keyword `x-kubernetes-patch-merge-key`.
    pub patch_merge_key: Option<String>,
    /// The keyword `x-kubernetes-patch-strategy`, which may list several strategies:
    /// `merge,retainKeys`.
    pub patch_strategy: Vec<PatchStrategy>,
    /// The keyword `x-kubernetes-validations`: the CEL rules as written. This crate does not
    /// evaluate CEL.
    pub validations: Vec<Value>,
}

/// The JSON type that a schema requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SchemaType {
    /// The type `array`.
    Array,
    /// The type `boolean`.
    Boolean,
    /// The type `integer`.
    Integer,
    /// The type `number`.
    Number,
    /// The type `object`.
    Object,
    /// The type `string`.
    String,
}

impl SchemaType {
    /// Returns the name of the type in a schema document, such as `array`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Array => "array",
            Self::Boolean => "boolean",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Object => "object",
            Self::String => "string",
        }
    }
}

impl fmt::Display for SchemaType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Rule for fields that are not listed in `properties`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum AdditionalProperties {
    /// Any value is allowed (`true`), or no field but those in `properties` (`false`).
    Allowed(bool),
    /// Values must match this schema.
    Schema(SchemaRef),
}

/// Merge strategy of a list: `x-kubernetes-list-type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ListType {
    /// The list is replaced as a whole.
    Atomic,
    /// The list is a set, merged by the values of its items.
    Set,
    /// Items are merged by the fields in `x-kubernetes-list-map-keys`.
    Map,
}

/// Merge strategy of a map: `x-kubernetes-map-type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum MapType {
    /// The map is replaced as a whole.
    Atomic,
    /// The map is merged field by field.
    Granular,
}

/// Strategy of strategic merge patch for a field: `x-kubernetes-patch-strategy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PatchStrategy {
    /// Lists are merged by the merge key, or by the values of their items if the schema has no
    /// merge key.
    Merge,
    /// The field is replaced as a whole.
    Replace,
    /// Fields that `$retainKeys` does not list are removed.
    RetainKeys,
}

/// Lookup of the named schemas of built-in kinds.
pub trait Definitions: Send + Sync {
    /// Returns the schema called `name`, for example `io.k8s.api.core.v1.PodSpec`.
    fn definition(&self, name: &str) -> Option<Arc<Schema>>;
}

/// An empty set of definitions, for the schemas of custom resources, which have no references.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoDefinitions;

impl Definitions for NoDefinitions {
    fn definition(&self, _name: &str) -> Option<Arc<Schema>> {
        None
    }
}

impl Definitions for BTreeMap<String, Arc<Schema>> {
    fn definition(&self, name: &str) -> Option<Arc<Schema>> {
        self.get(name).cloned()
    }
}

impl Definitions for std::collections::HashMap<String, Arc<Schema>> {
    fn definition(&self, name: &str) -> Option<Arc<Schema>> {
        self.get(name).cloned()
    }
}

#[cfg(test)]
mod tests;
