//! The form in which a response shows objects: whole, only the metadata, or as a Table.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::kinds::Kind;
use crate::object;
use crate::table::{self, Columns};

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

    /// Returns the body of a response with a list that has this metadata, without its items. Also
    /// returns the name of the field for the items.
    pub(crate) fn list_without_items(
        self,
        kind: &Kind,
        mut metadata: Value,
        now: Timestamp,
    ) -> (Value, &'static str) {
        match self {
            Self::Table { include } => {
                let columns = Columns::new(kind, include, now);
                (columns.table_without_rows(metadata), "rows")
            }
            Self::PartialObjectMetadata | Self::PartialObjectMetadataList => {
                (table::partial_metadata_list(metadata), "items")
            }
            Self::Object => {
                let is_last = metadata.get("continue").is_none();
                if is_last && kind.is_custom() {
                    object::set_field(&mut metadata, "continue", json!(""));
                }
                let list = json!({
                    "kind": kind.list_kind(), "apiVersion": kind.api_version(),
                    "metadata": metadata,
                });
                (list, "items")
            }
        }
    }

    /// Returns an item of a list that is not a Table.
    pub(crate) fn of_item(self, kind: &Kind, mut object: Value) -> Value {
        match self {
            Self::PartialObjectMetadata | Self::PartialObjectMetadataList => {
                table::partial_metadata(&object)
            }
            Self::Object | Self::Table { .. } => {
                // As in Kubernetes, items in lists of built-in kinds have no apiVersion and kind.
                if let Some(fields) = object.as_object_mut().filter(|_| !kind.is_custom()) {
                    fields.remove("apiVersion");
                    fields.remove("kind");
                }
                object
            }
        }
    }

    /// Returns the field `object` of a bookmark event.
    pub(crate) fn of_bookmark(self, kind: &Kind, object: Value) -> Value {
        match self {
            Self::Table { .. } => {
                // As in Kubernetes, the row is that of an object without name and content.
                let include = IncludeObject::Metadata;
                let now = Timestamp::UNIX_EPOCH;
                let mut body = table::table(kind, &[&object], None, include, now);
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
