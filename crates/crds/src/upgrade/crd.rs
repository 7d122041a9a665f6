//! The parts of a CRD that the rules need.

use serde_json::Value;

use super::schema::{self, Properties};
use crate::CrdError;

/// A CRD, with the schemas of its versions in a form that can be compared.
#[derive(Debug)]
pub(super) struct Crd {
    pub(super) name: String,
    pub(super) scope: String,
    pub(super) versions: Vec<Version>,
    /// Versions in which objects may be stored.
    pub(super) stored: Vec<String>,
    /// Whether a webhook converts between the versions.
    pub(super) has_conversion_webhook: bool,
}

/// A version of a CRD.
#[derive(Debug)]
pub(super) struct Version {
    pub(super) name: String,
    pub(super) is_served: bool,
    /// Schema; empty if the version has none.
    pub(super) schema: Properties,
}

impl Crd {
    pub(super) fn parse(document: &Value) -> Result<Self, CrdError> {
        let text = |value: &Value, pointer: &str| {
            let found = value.pointer(pointer).and_then(Value::as_str);
            found.unwrap_or_default().to_owned()
        };
        let name = name(document)?;
        let versions = document.pointer("/spec/versions").and_then(Value::as_array);
        let versions = versions.filter(|versions| !versions.is_empty());
        let Some(documents) = versions else {
            let field = "spec.versions";
            return Err(CrdError::Incomplete { name, field });
        };
        let is = |version: &Value, field: &str| {
            let value = version.get(field).and_then(Value::as_bool);
            value.unwrap_or_default()
        };
        let version = |version: &Value| Version {
            name: text(version, "/name"),
            is_served: is(version, "served"),
            schema: schema::normalize(version.pointer("/schema/openAPIV3Schema")),
        };
        let stored = document.pointer("/status/storedVersions");
        let stored = match stored.and_then(Value::as_array) {
            Some(stored) => {
                let names = stored.iter().filter_map(Value::as_str);
                names.map(str::to_owned).collect()
            }
            None => {
                let storage = documents.iter().filter(|version| is(version, "storage"));
                storage.map(|version| text(version, "/name")).collect()
            }
        };
        Ok(Self {
            scope: text(document, "/spec/scope"),
            stored,
            versions: documents.iter().map(version).collect(),
            has_conversion_webhook: has_conversion_webhook(document),
            name,
        })
    }

    pub(super) fn version(&self, name: &str) -> Option<&Version> {
        self.versions.iter().find(|version| version.name == name)
    }
}

/// Returns the name of a CRD.
pub(super) fn name(document: &Value) -> Result<String, CrdError> {
    let text = |pointer: &str| {
        let found = document.pointer(pointer).and_then(Value::as_str);
        found.unwrap_or_default()
    };
    let (kind, name) = (text("/kind"), text("/metadata/name"));
    let is_crd =
        kind == "CustomResourceDefinition" && text("/apiVersion") == "apiextensions.k8s.io/v1";
    if !is_crd {
        let document = match (kind, name) {
            ("", "") => "a document".to_owned(),
            _ => format!("the document {kind} {name}").trim_end().to_owned(),
        };
        return Err(CrdError::NotACrd { document });
    }
    if name.is_empty() {
        return Err(CrdError::Incomplete {
            name: text("/spec/names/plural").to_owned(),
            field: "metadata.name",
        });
    }
    Ok(name.to_owned())
}

fn has_conversion_webhook(document: &Value) -> bool {
    let strategy = document.pointer("/spec/conversion/strategy");
    strategy.and_then(Value::as_str) == Some("Webhook")
}
