//! Formatting of manifests as YAML.

use serde_json::Value;

/// The error for a manifest that cannot be formatted as YAML.
#[derive(Debug, thiserror::Error)]
#[error("cannot print {kind} {name} as YAML")]
#[non_exhaustive]
pub struct YamlError {
    /// Kind of the object in the manifest.
    pub kind: String,
    /// Name of the object in the manifest.
    pub name: String,
    /// Error of the YAML serializer.
    #[source]
    pub cause: serde_saphyr::ser_error::Error,
}

/// Returns the manifests as YAML, each preceded by a line `---`.
///
/// # Examples
/// ```
/// use serde_json::json;
/// let documents = [json!({"kind": "Namespace", "metadata": {"name": "shops"}})];
/// let yaml = opkit_manifests::yaml(&documents)?;
/// assert_eq!(yaml, "---\nkind: Namespace\nmetadata:\n  name: shops\n");
/// # Ok::<(), opkit_manifests::YamlError>(())
/// ```
///
/// # Errors
/// [`YamlError`] if a manifest cannot be formatted as YAML.
pub fn yaml(documents: &[Value]) -> Result<String, YamlError> {
    let mut text = String::new();
    for document in documents {
        let field = |pointer: &str| {
            let found = document.pointer(pointer).and_then(Value::as_str);
            found.unwrap_or_default().to_owned()
        };
        let printed = serde_saphyr::to_string(document).map_err(|cause| YamlError {
            kind: field("/kind"),
            name: field("/metadata/name"),
            cause,
        })?;
        text.push_str("---\n");
        text.push_str(printed.trim_end());
        text.push('\n');
    }
    Ok(text)
}
