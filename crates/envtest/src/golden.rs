//! Comparison of objects with reviewed golden files.

use std::fs;
use std::path::Path;

use opkit_controller::Result;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::{TestError, fixtures};

#[cfg(test)]
mod tests;

/// Environment variable that, if set, makes tests write the golden files instead of reading them.
const BLESS: &str = "OPKIT_BLESS";
/// Fields of `metadata` that differ from run to run.
const VOLATILE: &[&str] = &[
    "creationTimestamp",
    "deletionTimestamp",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// Compares `object` with the YAML in the file `path`, without the fields that differ from run to
/// run: UIDs, versions, times and managed fields. With `OPKIT_BLESS=1` in the environment, writes
/// the file instead.
///
/// The file may have comments and any order of fields. Objects of built-in kinds in the file are
/// decoded strictly: a field that the kind does not have is an error. The path is relative to the
/// package of the test, where cargo runs the test.
///
/// # Examples
/// ```
/// # fn main() -> opkit_controller::Result {
/// use k8s_openapi::api::core::v1::ConfigMap;
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("settings.yaml");
/// # std::fs::write(&path, "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\n")?;
/// let mut settings = ConfigMap::default();
/// settings.metadata.name = Some("settings".into());
/// settings.metadata.uid = Some("another-each-time".into());
/// opkit_envtest::golden(path, &settings)?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// If the file is missing, cannot be decoded, or differs. The error contains the expected and the
/// actual text.
pub fn golden(path: impl AsRef<Path>, object: &impl Serialize) -> Result {
    let path = path.as_ref();
    let found = yaml(object)?;
    if std::env::var_os(BLESS).is_some_and(|value| !value.is_empty()) {
        return Ok(fs::write(path, found).map_err(|cause| TestError::Golden {
            path: path.to_owned(),
            report: cause.to_string(),
        })?);
    }
    let expected = fs::read_to_string(path).unwrap_or_default();
    let report = match (
        fixtures::normalized(&expected),
        fixtures::normalized(&found),
    ) {
        (Ok(expected), Ok(found)) if expected == found => return Ok(()),
        (Err(error), _) | (_, Err(error)) => format!("{error}\n"),
        _ => String::new(),
    };
    let report = format!(
        "{report}--- expected\n{expected}--- found\n{found}--- {BLESS}=1 rewrites the file"
    );
    Err(TestError::Golden {
        path: path.to_owned(),
        report,
    }
    .into())
}

fn yaml(object: &impl Serialize) -> Result<String> {
    let mut value = serde_json::to_value(object)?;
    strip(&mut value);
    Ok(serde_saphyr::to_string(&value)?)
}

/// Removes fields that differ from run to run, also in list items and owner references.
fn strip(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
                strip_metadata(metadata);
            }
            fields.values_mut().for_each(strip);
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}

fn strip_metadata(metadata: &mut Map<String, Value>) {
    metadata.retain(|field, _| !VOLATILE.contains(&field.as_str()));
    let owners = metadata
        .get_mut("ownerReferences")
        .and_then(Value::as_array_mut);
    for owner in owners
        .into_iter()
        .flatten()
        .filter_map(Value::as_object_mut)
    {
        owner.remove("uid");
    }
}
