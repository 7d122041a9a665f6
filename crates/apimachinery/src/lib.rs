//! Kubernetes' object rules as pure functions: schemas, patches, apply, selectors, conditions.
//!
//! Everything here works on [`serde_json::Value`] and does no I/O: the embedded API server, the
//! clients and the manifest generator share one implementation of each rule.
//!
//! - [`identity`]: what kinds and resources are called, and where the API serves them.
//! - [`scheme`]: which Rust type is which kind, with defaults and conversion.
//! - [`schema`]: OpenAPI v3 and structural schemas, parsed once.
//! - [`structural`]: pruning, defaulting and validation of objects.
//! - [`patch`]: JSON patch, JSON merge patch, strategic merge patch.
//! - [`protobuf`]: built-in kinds as clients and servers send them, read and written.
//! - [`quantity`]: numbers with a unit, and their canonical form.
//! - [`random`]: numbers from a seed, which engines take as an input.
//! - [`redact`]: what is never shown of an object.
//! - [`selector`]: label and field selectors.
//! - [`shard`]: objects split by a hash, as a server and a client both do it.
//! - [`size`]: how long a value is when it is written.
//! - [`managedfields`]: server-side apply and field ownership.
//! - [`conditions`] and [`readiness`]: what an object says about its own state.

pub mod conditions;
mod error;
mod golang;
pub mod identity;
pub mod managedfields;
pub mod names;
pub mod patch;
pub mod protobuf;
pub mod quantity;
pub mod random;
pub mod readiness;
pub mod redact;
pub mod schema;
pub mod scheme;
pub mod selector;
pub mod shard;
pub mod size;
pub mod structural;
