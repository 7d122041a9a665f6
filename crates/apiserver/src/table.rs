//! The responses `Table`, which `kubectl get` requests, and `PartialObjectMetadata`.
//!
//! The columns of a kind and the paths of the values in the cells are data ([`Kind::columns`]).
//! Cells without a path are computed by named functions in the modules below. The current time is a
//! parameter, so that ages can be tested.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::kinds::{Column, Definitions, Kind};
use crate::object;
use crate::representation::IncludeObject;

mod cell;
mod cluster;
mod duration;
mod event;
mod network;
mod path;
mod pod;
#[cfg(test)]
mod tests;
mod workload;

pub(crate) use path::jsonpath;

/// Returns the Table of `objects`, which are all of `kind`. Without `list_meta`, the Table has the
/// resource version of the first object. The columns of a custom kind are the name and the
/// `additionalPrinterColumns` of the CRD, or name and age if the CRD has none.
pub(crate) fn table(
    kind: &Kind,
    objects: &[&Value],
    list_meta: Option<Value>,
    include: IncludeObject,
    now: Timestamp,
) -> Value {
    let columns = Columns::new(kind, include, now);
    let metadata = list_meta.unwrap_or_else(|| {
        let version = objects
            .first()
            .and_then(|object| object.pointer("/metadata/resourceVersion"));
        version.map_or_else(|| json!({}), |version| json!({"resourceVersion": version}))
    });
    let mut table = columns.table_without_rows(metadata);
    let rows: Vec<Value> = objects.iter().map(|object| columns.row(object)).collect();
    object::set_field(&mut table, "rows", rows.into());
    table
}

/// The columns of a Table, and the parameters of its rows.
#[derive(Debug)]
pub(crate) struct Columns {
    columns: Vec<Column>,
    include: IncludeObject,
    now: Timestamp,
}

impl Columns {
    pub(crate) fn new(kind: &Kind, include: IncludeObject, now: Timestamp) -> Self {
        Self {
            columns: columns(kind),
            include,
            now,
        }
    }

    /// Returns a Table without the field `rows`.
    pub(crate) fn table_without_rows(&self, metadata: Value) -> Value {
        json!({
            "kind": "Table",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": metadata,
            "columnDefinitions": self.columns.iter().map(definition).collect::<Vec<_>>(),
        })
    }

    /// Returns the row of an object.
    pub(crate) fn row(&self, object: &Value) -> Value {
        row(&self.columns, object, self.include, self.now)
    }
}

/// Returns a `PartialObjectMetadata` of an object.
pub(crate) fn partial_metadata(object: &Value) -> Value {
    json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": object.get("metadata").cloned().unwrap_or_else(|| json!({})),
    })
}

/// Returns a `PartialObjectMetadataList` without its items.
pub(crate) fn partial_metadata_list(list_meta: Value) -> Value {
    json!({
        "kind": "PartialObjectMetadataList",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": list_meta,
    })
}

/// Returns the columns of a kind. For a custom kind, adds the columns that every custom kind has.
fn columns(kind: &Kind) -> Vec<Column> {
    if !kind.is_custom() {
        return kind.columns.clone();
    }
    let mut columns = vec![Column {
        name: "Name".to_owned(),
        type_: "string".to_owned(),
        format: "name".to_owned(),
        description: "#name".to_owned(),
        priority: 0,
        cell: ".metadata.name".to_owned(),
    }];
    columns.extend(kind.columns.iter().cloned());
    if kind.columns.is_empty() {
        columns.push(Column {
            name: "Age".to_owned(),
            type_: "date".to_owned(),
            format: String::new(),
            description: "#creationTimestamp".to_owned(),
            priority: 0,
            cell: ".metadata.creationTimestamp".to_owned(),
        });
    }
    for column in &mut columns {
        if column.description.is_empty() {
            column.description = format!(
                "Custom resource definition column (in JSONPath format): {}",
                column.cell
            );
        }
        column.cell = format!("column {}", column.cell);
    }
    columns
}

fn definition(column: &Column) -> Value {
    json!({
        "name": column.name,
        "type": column.type_,
        "format": column.format,
        "description": description(&column.description),
        "priority": column.priority,
    })
}

/// Returns the description of a column. A text such as `#name` stands for the description of the
/// property `name` of ObjectMeta.
fn description(text: &str) -> String {
    let property = text.strip_prefix('#').and_then(|property| {
        let metadata = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
        let descriptions = Definitions::builtin().descriptions(metadata);
        Some(descriptions.get(property)?.as_str()?.to_owned())
    });
    property.unwrap_or_else(|| text.to_owned())
}

fn row(columns: &[Column], object: &Value, include: IncludeObject, now: Timestamp) -> Value {
    let cells: Vec<Value> = columns
        .iter()
        .map(|column| cell::evaluate(column, object, now))
        .collect();
    let mut row = Map::new();
    row.insert("cells".to_owned(), Value::Array(cells));
    if let Some(conditions) = pod::row_conditions(object) {
        row.insert("conditions".to_owned(), conditions);
    }
    let object = match include {
        IncludeObject::None => Value::Null,
        IncludeObject::Metadata => {
            let mut object = partial_metadata(object);
            // The internal type of Kubernetes has a field instead of this annotation.
            let annotations = object.pointer_mut("/metadata/annotations");
            if let Some(annotations) = annotations.and_then(Value::as_object_mut) {
                annotations.remove("deprecated.daemonset.template.generation");
                if annotations.is_empty() {
                    object::set_meta(&mut object, "annotations", Value::Null);
                }
            }
            object
        }
        IncludeObject::Object => object.clone(),
    };
    row.insert("object".to_owned(), object);
    Value::Object(row)
}
