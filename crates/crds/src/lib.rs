//! Custom resource definitions (CRDs) as data: checks, documentation and schemas, as pure functions
//! of their documents.
//!
//! [`compare`] returns the changes between two sets of CRDs, each with a verdict by the rules that
//! OLM v1 applies before it upgrades a CRD. [`ObjectCheck`] validates stored objects against the
//! schema of a new CRD. [`lint`](fn@lint) checks CRDs by the conventions of Kubernetes' API,
//! [`cut_descriptions`] makes them smaller, [`reference`](fn@reference) describes their kinds in
//! Markdown, and [`json_schemas`] returns schemas for editors and kubeconform.
//!
//! CRDs are [`serde_json::Value`]s, as they are read from a file or from a cluster. This crate does
//! not check whether a CRD is valid, which is the task of an API server.

mod descriptions;
mod error;
mod fields;
mod json_schema;
mod lint;
mod reference;
mod upgrade;

pub use descriptions::cut_descriptions;
pub use error::CrdError;
pub use json_schema::{SchemaFile, json_schemas};
pub use lint::{Finding, RULES, Rule, Severity, lint, render_findings};
pub use reference::{Page, reference};
pub use upgrade::{
    Change, InvalidObject, ObjectCheck, StoredObjects, Upgrade, Verdict, common_version, compare,
    render,
};

/// Returns the name of a CRD.
fn name_of(crd: &serde_json::Value) -> Result<&str, CrdError> {
    let text = |pointer: &str| crd.pointer(pointer).and_then(serde_json::Value::as_str);
    let (kind, name) = (text("/kind").unwrap_or_default(), text("/metadata/name"));
    match name {
        Some(name) if kind == "CustomResourceDefinition" => Ok(name),
        _ => Err(CrdError::NotACrd {
            document: format!("{kind} {}", name.unwrap_or_default())
                .trim()
                .to_owned(),
        }),
    }
}
