//! From the tables that `#[opkit::kind(...)]`, `#[opkit::schema]` and `#[opkit::status]` write to a
//! CustomResourceDefinition. Named by generated code only.

mod schema;
mod structural;

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

pub use self::schema::{Keyword, Part, Property, Rule, SchemaTable, UnitEnum};

/// A kind without its schema: names, scope, subresources, columns.
#[derive(Debug, Clone, Copy)]
pub struct KindTable {
    /// The group.
    pub group: &'static str,
    /// The version.
    pub version: &'static str,
    /// The kind.
    pub kind: &'static str,
    /// The resource.
    pub plural: &'static str,
    /// The resource, of one object.
    pub singular: &'static str,
    /// Whether its objects are in namespaces.
    pub is_namespaced: bool,
    /// Further names of the resource for kubectl.
    pub short_names: &'static [&'static str],
    /// Names of groups of resources that kubectl gets together.
    pub categories: &'static [&'static str],
    /// The columns that `kubectl get` prints.
    pub columns: &'static [Column],
    /// Paths of the fields that field selectors may name.
    pub selectable: &'static [&'static str],
    /// The subresource `scale`.
    pub scale: Option<Scale>,
}

/// A printer column.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// Its title.
    pub name: &'static str,
    /// The JSON path of its value.
    pub path: &'static str,
    /// The type of its value; if it is not given, that of the schema at the path.
    pub type_: Option<&'static str>,
    /// The description of the column.
    pub description: Option<&'static str>,
    /// Above 0, it is shown with `-o wide` only.
    pub priority: i32,
}

/// The paths of the subresource `scale`.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    /// Of the number of replicas that is asked for.
    pub spec_replicas_path: &'static str,
    /// Of the number of replicas that there is.
    pub status_replicas_path: &'static str,
    /// Of the selector of the replicas' pods, as a string.
    pub label_selector_path: Option<&'static str>,
}

/// Returns the schema of a type; `SchemaGenerator::subschema_for::<T>`.
pub type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

impl KindTable {
    /// Returns the definition of the kind with the schemas of its spec and status.
    ///
    /// A schema that does not fit Kubernetes' own type, which only a hand-written `JsonSchema` can
    /// produce, becomes one that no server accepts, with the reason in the refusal.
    pub fn crd(&self, spec: SchemaOf, status: Option<SchemaOf>) -> CustomResourceDefinition {
        let schema = structural::root(spec, status);
        let columns = self.columns.iter().map(|column| column.definition(&schema));
        let version = CustomResourceDefinitionVersion {
            name: self.version.to_owned(),
            served: true,
            storage: true,
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
            ..Default::default()
        };
        let scope = match self.is_namespaced {
            true => "Namespaced",
            false => "Cluster",
        };
        CustomResourceDefinition {
            metadata: ObjectMeta {
                name: Some(format!("{}.{}", self.plural, self.group)),
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
            priority: (self.priority != 0).then_some(self.priority),
            ..Default::default()
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

/// Returns the type of column for the value that `path` leads to; a string if the path has more
/// than names.
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
        type_: Some(format!("opkit cannot write this schema: {error}")),
        ..Default::default()
    })
}

fn owned(names: &[&str]) -> Option<Vec<String>> {
    unless_empty(names.iter().map(|name| (*name).to_owned()).collect())
}

fn unless_empty<T>(values: Vec<T>) -> Option<Vec<T>> {
    (!values.is_empty()).then_some(values)
}

/// Returns whether a list or map is left out of what is written.
pub fn is_empty<T: Collection>(collection: &T) -> bool {
    collection.has_no_elements()
}

/// The types of fields that are left out when they are empty.
#[diagnostic::on_unimplemented(
    message = "`{Self}` looks like a list or a map, and opkit does not know it",
    label = "use one of the standard library, or give yours another name"
)]
pub trait Collection {
    /// Whether there is nothing in it.
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
