//! Kubernetes' object rules as pure functions: schemas, patches, apply, selectors, conditions.
//!
//! The functions work on [`serde_json::Value`] and do no I/O. The embedded API server, the clients
//! and the manifest generator share one implementation of each rule.
//!
//! - [`identity`]: names of kinds and resources, and the paths at which the API serves them.
//! - [`scheme`]: registry of Rust types and their kinds, with defaults and conversion.
//! - [`conversion`]: conversion between the versions of a kind, without loss.
//! - [`differences`]: the fields that differ between two states of an object.
//! - [`schema`]: OpenAPI v3 and structural schemas, parsed once.
//! - [`structural`]: pruning, defaulting and validation of objects.
//! - [`patch`]: JSON patch, JSON merge patch, strategic merge patch.
//! - [`protobuf`]: the protobuf encoding of built-in kinds.
//! - [`quantity`]: numbers with a unit suffix, and their canonical form.
//! - [`redact`]: removal of secret values from objects before they are shown.
//! - [`selector`]: label and field selectors.
//! - [`shard`]: shard selectors, which split the objects of a kind by a hash.
//! - [`size`]: number of bytes of a value as JSON.
//! - [`managedfields`]: server-side apply and field ownership.
//! - [`conditions`] and [`readiness`]: conditions of an object, and whether the object is ready.

pub mod conditions;
pub mod conversion;
pub mod differences;
mod error;
mod golang;
pub mod identity;
pub mod managedfields;
pub mod names;
pub mod patch;
pub mod protobuf;
pub mod quantity;
pub mod readiness;
pub mod redact;
pub mod schema;
pub mod scheme;
pub mod selector;
pub mod shard;
pub mod size;
pub mod structural;
