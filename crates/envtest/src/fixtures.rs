//! Objects from YAML files.

use std::fs;
use std::path::Path;

use opkit_apimachinery::identity::{GroupVersion, GroupVersionKind};
use opkit_apimachinery::scheme::{Decoded, Format, Scheme, SchemeError};
use opkit_client::{Kind, Object, add_built_in_kinds};
use opkit_controller::{Error, Result};
use serde_json::Value;

use crate::TestError;

#[cfg(test)]
mod tests;

/// Reads the objects of kind `K` from a YAML file, such as one of `config/samples`.
///
/// All documents of the file are decoded strictly: a field that its kind does not have is an error.
/// A document of another kind than `K` must be of a built-in kind. The path is relative to the
/// package of the test, where cargo runs the test.
///
/// # Errors
/// If the file is missing, a document cannot be decoded, or no document is a `K`.
///
/// # Examples
/// ```
/// # fn main() -> opkit_controller::Result {
/// use k8s_openapi::api::core::v1::ConfigMap;
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("settings.yaml");
/// # std::fs::write(&path, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n")?;
/// let settings: Vec<ConfigMap> = opkit_envtest::fixtures(path)?;
/// assert_eq!(settings[0].metadata.name.as_deref(), Some("settings"));
/// # Ok(())
/// # }
/// ```
pub fn fixtures<K: Object>(path: impl AsRef<Path>) -> Result<Vec<K>> {
    let kind = Kind::of::<K>();
    let mut scheme = scheme()?;
    scheme.register::<K>(kind.group_version_kind())?;
    let objects = read(path.as_ref(), &scheme)?.into_iter();
    let found: Vec<K> = objects.filter_map(|it| it.downcast().ok()).collect();
    match found.is_empty() {
        false => Ok(found),
        true => Err(failed(path.as_ref(), format!("it has no {kind}"))),
    }
}

/// Returns a scheme with all built-in kinds.
// This and its callers are inlined, so that only a test that reads fixtures or golden files
// compiles the decoders of all these kinds, and not every test that uses this crate.
#[inline]
fn scheme() -> Result<Scheme, SchemeError> {
    let mut scheme = Scheme::new();
    add_built_in_kinds(&mut scheme)?;
    Ok(scheme)
}

#[inline]
fn read(path: &Path, scheme: &Scheme) -> Result<Vec<Decoded>> {
    let yaml = fs::read_to_string(path).map_err(|cause| failed(path, cause.to_string()))?;
    let decode = |document: Value| scheme.decode(document.to_string().as_bytes());
    let documents = serde_saphyr::from_multiple::<Value>(&yaml);
    let documents = documents.map_err(|cause| failed(path, cause.to_string()))?;
    let objects = documents.into_iter().map(decode).collect::<Result<_, _>>();
    objects.map_err(|cause| failed(path, opkit_client::one_line(&cause)))
}

fn failed(path: &Path, report: String) -> Error {
    let path = path.to_owned();
    TestError::Fixture { path, report }.into()
}

/// Returns the documents of a YAML text as values that can be compared. An object of a built-in
/// kind is decoded strictly and encoded again; any other value is returned unchanged.
#[inline]
pub(crate) fn normalized(yaml: &str) -> Result<Vec<Value>> {
    let scheme = scheme()?;
    let documents = serde_saphyr::from_multiple::<Value>(yaml)?;
    let normalize = |document: Value| match built_in(&scheme, &document) {
        false => Ok(document),
        true => {
            let object = scheme.decode(document.to_string().as_bytes())?;
            let encoded = scheme.encode_decoded(&object, Format::Json)?;
            Ok(serde_json::from_slice(&encoded)?)
        }
    };
    documents.into_iter().map(normalize).collect()
}

fn built_in(scheme: &Scheme, document: &Value) -> bool {
    let text = |field: &str| document.get(field).and_then(Value::as_str);
    let version = text("apiVersion").and_then(|text| text.parse().ok());
    let (Some(GroupVersion { group, version }), Some(kind)) = (version, text("kind")) else {
        return false;
    };
    scheme.recognizes(&GroupVersionKind::new(group, version, kind))
}
