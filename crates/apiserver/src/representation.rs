//! The form in which a response shows objects: whole, only the metadata, or as a Table.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::kinds::Kind;
use crate::{object, table};

/// Value of the parameter `includeObject`: the part of each object that a row of a Table contains.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum IncludeObject {
    None,
    #[default]
    Metadata,
    Object,
}

/// The form in which a response shows objects.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Representation {
    /// The whole object or list.
    Object,
    Table {
        include: IncludeObject,
    },
    PartialObjectMetadata,
    PartialObjectMetadataList,
}

impl IncludeObject {
    /// Parses the value of the query parameter `includeObject`. Returns `None` if the value is not
    /// valid.
    pub(crate) fn parse(value: &str) -> Option<Self> {
        match value {
            "" | "Metadata" => Some(Self::Metadata),
            "None" => Some(Self::None),
            "Object" => Some(Self::Object),
            _ => None,
        }
    }
}

impl Representation {
    /// Returns this representation with `includeObject` set, if it is a Table. Other
    /// representations are returned unchanged.
    pub(crate) fn including(self, include: IncludeObject) -> Self {
        match self {
            Self::Table { .. } => Self::Table { include },
            other => other,
        }
    }
    /// Returns the body of a response with one object.
    pub(crate) fn of_object(self, kind: &Kind, object: Value, now: Timestamp) -> Value {
        match self {
            Self::Table { include } => table::table(kind, &[&object], None, include, now),
            Self::PartialObjectMetadata => table::partial_metadata(&object),
            Self::Object | Self::PartialObjectMetadataList => object,
        }
    }

    /// Returns the body of a response with a list that has this metadata.
    pub(crate) fn of_list(
        self,
        kind: &Kind,
        mut objects: Vec<Value>,
        mut metadata: Value,
        now: Timestamp,
    ) -> Value {
        match self {
            Self::Table { include } => {
                let rows: Vec<&Value> = objects.iter().collect();
                table::table(kind, &rows, Some(metadata), include, now)
            }
            Self::PartialObjectMetadata | Self::PartialObjectMetadataList => {
                let items: Vec<&Value> = objects.iter().collect();
                table::partial_metadata_list(&items, metadata)
            }
            Self::Object => {
                // As in Kubernetes, items in lists of built-in kinds have no apiVersion and kind.
                if !kind.is_custom() {
                    for object in objects.iter_mut().filter_map(Value::as_object_mut) {
                        object.remove("apiVersion");
                        object.remove("kind");
                    }
                }
                let is_last = metadata.get("continue").is_none();
                if is_last && kind.is_custom() {
                    object::set_field(&mut metadata, "continue", json!(""));
                }
                json!({
                    "kind": format!("{}List", kind.kind), "apiVersion": kind.api_version(),
                    "metadata": metadata, "items": objects,
                })
            }
        }
    }

    /// Returns the field `object` of a watch event. Only the first Table of a watch has column
    /// definitions.
    pub(crate) fn of_event(self, kind: &Kind, object: Value, first: bool, now: Timestamp) -> Value {
        let mut body = self.of_object(kind, object, now);
        if matches!(self, Self::Table { .. }) && !first {
            object::set_field(&mut body, "columnDefinitions", Value::Null);
        }
        body
    }

    /// Returns the field `object` of a bookmark event.
    pub(crate) fn of_bookmark(self, kind: &Kind, object: Value) -> Value {
        match self {
            Self::Table { .. } => {
                let metadata = object.get("metadata").cloned();
                let include = IncludeObject::None;
                let mut body = table::table(kind, &[], metadata, include, Timestamp::UNIX_EPOCH);
                object::set_field(&mut body, "columnDefinitions", Value::Null);
                body
            }
            Self::PartialObjectMetadata => table::partial_metadata(&object),
            Self::Object | Self::PartialObjectMetadataList => object,
        }
    }
}

#[cfg(test)]
mod tests;
