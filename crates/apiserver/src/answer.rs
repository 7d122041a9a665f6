//! The bodies of answers, in the form the client accepts.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    kinds::{Kind, SchemaSource},
    object,
    table::{self, IncludeObject, Representation},
};

impl Representation {
    /// The body for one object.
    pub(crate) fn of_object(self, kind: &Kind, object: Value, now: Timestamp) -> Value {
        match self {
            Self::Table { include } => table::table(kind, &[&object], None, include, now),
            Self::PartialObjectMetadata => table::partial_metadata(&object),
            Self::Object | Self::PartialObjectMetadataList => object,
        }
    }

    /// The body for a list with this metadata.
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
                // The items of built-in lists do not repeat what the list says of them.
                if matches!(kind.schema, SchemaSource::Definition(_)) {
                    for object in objects.iter_mut().filter_map(Value::as_object_mut) {
                        object.remove("apiVersion");
                        object.remove("kind");
                    }
                }
                let is_last = metadata.get("continue").is_none();
                if is_last && matches!(kind.schema, SchemaSource::Custom(_)) {
                    object::set_field(&mut metadata, "continue", json!(""));
                }
                json!({
                    "kind": format!("{}List", kind.kind), "apiVersion": kind.api_version(),
                    "metadata": metadata, "items": objects,
                })
            }
        }
    }

    /// The object of a watch event. Only the first Table of a watch says what its columns are.
    pub(crate) fn of_event(self, kind: &Kind, object: Value, first: bool, now: Timestamp) -> Value {
        let mut body = self.of_object(kind, object, now);
        if matches!(self, Self::Table { .. }) && !first {
            object::set_field(&mut body, "columnDefinitions", Value::Null);
        }
        body
    }

    /// The object of a bookmark.
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
