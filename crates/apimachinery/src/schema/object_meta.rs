//! Schema of object metadata, which custom resource definitions do not declare.

use std::sync::LazyLock;

use serde_json::json;

use super::{Schema, Typed};

impl<'a> Typed<'a> {
    /// Returns the schema of the field `name` of a whole resource. The field `metadata` has the
    /// schema of ObjectMeta, unless this schema declares `metadata` by a reference.
    pub(crate) fn resource_field(&self, name: &str) -> Option<Self> {
        let declared = self.field(name);
        match name {
            "metadata" if !declared.as_ref().is_some_and(Typed::is_referenced) => {
                Some(self.at(&OBJECT_META))
            }
            "apiVersion" | "kind" => declared.or_else(|| Some(self.at(&STRING))),
            _ => declared,
        }
    }
}

static STRING: LazyLock<Schema> =
    LazyLock::new(|| Schema::parse(&json!({"type": "string"})).unwrap_or_default());

static OBJECT_META: LazyLock<Schema> = LazyLock::new(|| {
    let strings = json!({"type": "object", "additionalProperties": {"type": "string"}});
    let time = json!({"type": "string", "format": "date-time", "nullable": true});
    let document = json!({
        "type": "object",
        "properties": {
            "annotations": strings,
            "creationTimestamp": time,
            "deletionGracePeriodSeconds": {"type": "integer", "format": "int64"},
            "deletionTimestamp": time,
            "finalizers": {
                "type": "array",
                "items": {"type": "string"},
                "x-kubernetes-list-type": "set",
                "x-kubernetes-patch-strategy": "merge",
            },
            "generateName": {"type": "string"},
            "generation": {"type": "integer", "format": "int64"},
            "labels": strings,
            "managedFields": {
                "type": "array",
                "x-kubernetes-list-type": "atomic",
                "items": {
                    "type": "object",
                    "properties": {
                        "apiVersion": {"type": "string"},
                        "fieldsType": {"type": "string"},
                        "fieldsV1": {
                            "type": "object",
                            "x-kubernetes-preserve-unknown-fields": true,
                        },
                        "manager": {"type": "string"},
                        "operation": {"type": "string"},
                        "subresource": {"type": "string"},
                        "time": time,
                    },
                },
            },
            "name": {"type": "string"},
            "namespace": {"type": "string"},
            "ownerReferences": {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["uid"],
                "x-kubernetes-patch-merge-key": "uid",
                "x-kubernetes-patch-strategy": "merge",
                "items": {
                    "type": "object",
                    "x-kubernetes-map-type": "atomic",
                    "properties": {
                        "apiVersion": {"type": "string"},
                        "blockOwnerDeletion": {"type": "boolean"},
                        "controller": {"type": "boolean"},
                        "kind": {"type": "string"},
                        "name": {"type": "string"},
                        "uid": {"type": "string"},
                    },
                },
            },
            "resourceVersion": {"type": "string"},
            "selfLink": {"type": "string"},
            "uid": {"type": "string"},
        },
    });
    // The document is a constant that the tests parse, so the empty schema is never used.
    Schema::parse(&document).unwrap_or_default()
});
