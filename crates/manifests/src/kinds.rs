//! Builds a CustomResourceDefinition from the constants that `#[opkit::kind(...)]`,
//! `#[opkit::schema]` and `#[opkit::status]` generate. Only generated code uses this module.

mod fields;
mod schema;
mod structural;
mod union;
pub mod versions;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceColumnDefinition, CustomResourceDefinition, CustomResourceDefinitionNames,
    CustomResourceDefinitionSpec, CustomResourceDefinitionVersion, CustomResourceSubresourceScale,
    CustomResourceSubresourceStatus, CustomResourceSubresources, CustomResourceValidation,
    JSONSchemaProps, SelectableField,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use opkit_apimachinery::conditions::Conditions;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Value, json};

pub use self::fields::{
    FieldInfo, Fields, Probe, Shape, UnknownFields, has_key, has_path, require,
};
pub use self::schema::{Keyword, Part, Property, Rule, SchemaTable, UnitEnum};
pub use self::union::{Empty, Member, Union};

/// Definition of a kind without its schema: names, scope, printer columns and subresource `scale`.
#[derive(Debug, Clone, Copy)]
pub struct KindTable {
    /// API group.
    pub group: &'static str,
    /// API version, such as `v1`.
    pub version: &'static str,
    /// Kind.
    pub kind: &'static str,
    /// Plural name of the resource.
    pub plural: &'static str,
    /// Singular name of the resource.
    pub singular: &'static str,
    /// Whether the kind is namespaced.
    pub is_namespaced: bool,
    /// Short names of the resource for kubectl.
    pub short_names: &'static [&'static str],
    /// Categories of resources that `kubectl get` lists together, such as `all`.
    pub categories: &'static [&'static str],
    /// Columns that `kubectl get` prints.
    pub columns: &'static [Column],
    /// Paths of the fields that field selectors can use.
    pub selectable: &'static [&'static str],
    /// Field paths of the subresource `scale`, if the kind has this subresource.
    pub scale: Option<Scale>,
    /// Labels of the CRD.
    pub labels: &'static [(&'static str, &'static str)],
    /// Annotations of the CRD.
    pub annotations: &'static [(&'static str, &'static str)],
    /// Whether objects need a spec.
    pub is_spec_required: bool,
    /// Description of the object, if it is not that of the spec.
    pub description: Option<&'static str>,
    /// Whether API servers serve the version.
    pub is_served: bool,
    /// Whether the version is deprecated.
    pub is_deprecated: bool,
    /// Warning for clients of a deprecated version, instead of the API server's own text.
    pub deprecation_warning: Option<&'static str>,
    /// CEL rules of the whole object.
    pub rules: &'static [Rule],
}

/// Printer column.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// Title of the column.
    pub name: &'static str,
    /// JSON path of the value.
    pub path: &'static str,
    /// Type of the value; `None` takes the type from the schema at the path.
    pub type_: Option<&'static str>,
    /// Description of the column.
    pub description: Option<&'static str>,
    /// Format of the value, such as `int32`.
    pub format: Option<&'static str>,
    /// Priority. A column with a priority above 0 is shown only with `kubectl get -o wide`.
    pub priority: i32,
}

/// Field paths of the subresource `scale`.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    /// Path of the desired number of replicas.
    pub spec_replicas_path: &'static str,
    /// Path of the current number of replicas.
    pub status_replicas_path: &'static str,
    /// Path of the string field that contains the label selector of the pods.
    pub label_selector_path: Option<&'static str>,
}

/// Function that returns the schema of a type, such as `SchemaGenerator::subschema_for::<T>`.
pub type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

impl KindTable {
    /// Returns the CustomResourceDefinition of the kind, with the schemas of its spec and status.
    ///
    /// A schema that cannot be converted to Kubernetes' schema type is replaced by a schema that
    /// every API server rejects. The type in the replacement is the error message. Only a
    /// hand-written `JsonSchema` can produce such a schema.
    pub fn crd(&self, spec: SchemaOf, status: Option<SchemaOf>) -> CustomResourceDefinition {
        let mut schema = structural::root(spec, status, self.rules);
        if let Some(schema) = schema.as_object_mut() {
            if let Some(description) = self.description {
                schema.insert("description".to_owned(), json!(description));
            }
            if !self.is_spec_required {
                schema.remove("required");
            }
        }
        let columns = self.columns.iter().map(|column| column.definition(&schema));
        let version = CustomResourceDefinitionVersion {
            name: self.version.to_owned(),
            served: self.is_served,
            storage: true,
            deprecated: self.is_deprecated.then_some(true),
            deprecation_warning: self.deprecation_warning.map(str::to_owned),
            additional_printer_columns: unless_empty(columns.collect()),
            selectable_fields: unless_empty(
                self.selectable
                    .iter()
                    .map(|path| SelectableField {
                        json_path: (*path).to_owned(),
                    })
                    .collect(),
            ),
            subresources: status.map(|_| CustomResourceSubresources {
                scale: self.scale.map(Scale::definition),
                status: Some(CustomResourceSubresourceStatus(json!({}))),
            }),
            schema: Some(CustomResourceValidation {
                open_api_v3_schema: Some(properties(schema)),
            }),
        };
        let scope = match self.is_namespaced {
            true => "Namespaced",
            false => "Cluster",
        };
        CustomResourceDefinition {
            metadata: ObjectMeta {
                name: Some(format!("{}.{}", self.plural, self.group)),
                labels: owned_map(self.labels),
                annotations: owned_map(self.annotations),
                ..Default::default()
            },
            spec: CustomResourceDefinitionSpec {
                group: self.group.to_owned(),
                names: CustomResourceDefinitionNames {
                    kind: self.kind.to_owned(),
                    plural: self.plural.to_owned(),
                    singular: Some(self.singular.to_owned()),
                    short_names: owned(self.short_names),
                    categories: owned(self.categories),
                    ..Default::default()
                },
                scope: scope.to_owned(),
                versions: vec![version],
                ..Default::default()
            },
            ..Default::default()
        }
    }
}

impl Column {
    fn definition(&self, schema: &Value) -> CustomResourceColumnDefinition {
        let type_ = self.type_.unwrap_or_else(|| type_at(schema, self.path));
        CustomResourceColumnDefinition {
            name: self.name.to_owned(),
            json_path: self.path.to_owned(),
            type_: type_.to_owned(),
            description: self.description.map(str::to_owned),
            format: self.format.map(str::to_owned),
            priority: (self.priority != 0).then_some(self.priority),
        }
    }
}

impl Scale {
    fn definition(self) -> CustomResourceSubresourceScale {
        CustomResourceSubresourceScale {
            spec_replicas_path: self.spec_replicas_path.to_owned(),
            status_replicas_path: self.status_replicas_path.to_owned(),
            label_selector_path: self.label_selector_path.map(str::to_owned),
        }
    }
}

/// Returns the printer column type of the value at `path`, from the schema. Returns `string` if the
/// path contains anything but field names.
fn type_at(schema: &Value, path: &str) -> &'static str {
    if path == ".metadata.creationTimestamp" || path == ".metadata.deletionTimestamp" {
        return "date";
    }
    let mut at = schema;
    for name in path.split('.').skip(1) {
        match at.get("properties").and_then(|fields| fields.get(name)) {
            Some(field) => at = field,
            None => return "string",
        }
    }
    let keyword = |name: &str| at.get(name).and_then(Value::as_str);
    match (keyword("type"), keyword("format")) {
        (Some("integer"), _) => "integer",
        (Some("number"), _) => "number",
        (Some("boolean"), _) => "boolean",
        (Some("string"), Some("date-time" | "date")) => "date",
        _ => "string",
    }
}

fn properties(schema: Value) -> JSONSchemaProps {
    serde_json::from_value(schema).unwrap_or_else(|error| JSONSchemaProps {
        type_: Some(format!("opkit cannot convert this schema: {error}")),
        ..Default::default()
    })
}

fn owned_map(pairs: &[(&str, &str)]) -> Option<BTreeMap<String, String>> {
    let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    (!pairs.is_empty()).then(|| pairs.iter().map(owned).collect())
}

fn owned(names: &[&str]) -> Option<Vec<String>> {
    unless_empty(names.iter().map(|name| (*name).to_owned()).collect())
}

fn unless_empty<T>(values: Vec<T>) -> Option<Vec<T>> {
    (!values.is_empty()).then_some(values)
}

/// Reports whether a list or map is empty. Serde calls this function to leave empty fields out of
/// the JSON.
pub fn is_empty<T: Collection>(collection: &T) -> bool {
    collection.has_no_elements()
}

/// List or map type of a field that is left out of the JSON when it is empty.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has the name of a list or map but is not the standard library's",
    label = "use the type of the standard library, or rename this one"
)]
pub trait Collection {
    /// Reports whether the collection is empty.
    fn has_no_elements(&self) -> bool;
}

macro_rules! collections {
    ($($type:ty [$($parameter:ident),*],)*) => {
        $(impl<$($parameter),*> Collection for $type {
            fn has_no_elements(&self) -> bool {
                self.is_empty()
            }
        })*
    };
}

collections! {
    Vec<T> [T],
    VecDeque<T> [T],
    BTreeSet<T> [T],
    HashSet<T, S> [T, S],
    BTreeMap<K, V> [K, V],
    HashMap<K, V, S> [K, V, S],
    Conditions [],
}

#[cfg(test)]
mod tests;
