//! Validation of Secrets and ConfigMaps.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::field::{Errors, Field};
use super::format;
use crate::registry::decoding;

/// Maximum total length of the values of a Secret or ConfigMap in bytes.
const SIZE_MAX: usize = 1024 * 1024;
const ACCOUNT: &str = "kubernetes.io/service-account.name";

/// Adds the errors in a Secret.
pub(super) fn secret(secret: &Field<'_>, errors: &mut Errors) {
    let data = secret.get("data");
    let mut size = 0;
    for (key, value) in data.entries() {
        for rule in format::config_key(key) {
            errors.invalid_value(&value.path, json!(key), &rule);
        }
        size += value.text().len() / 4 * 3;
    }
    if size > SIZE_MAX {
        too_long(&data.path, errors);
    }
    let has = |key: &str| data.get(key).is_set();
    let path = |key: &str| data.get(key).renamed(data.key(key));
    match secret.get("type").text() {
        "kubernetes.io/service-account-token" => {
            let annotations = secret.at(&["metadata", "annotations"]);
            if annotations.get(ACCOUNT).is_empty() {
                errors.required(&annotations.renamed(annotations.key(ACCOUNT)), "");
            }
        }
        "kubernetes.io/dockercfg" => docker_config(&path(".dockercfg"), errors),
        "kubernetes.io/dockerconfigjson" => docker_config(&path(".dockerconfigjson"), errors),
        "kubernetes.io/basic-auth" if !has("username") && !has("password") => {
            errors.required(&path("username"), "");
            errors.required(&path("password"), "");
        }
        "kubernetes.io/ssh-auth" if data.get("ssh-privatekey").is_empty() => {
            errors.required(&path("ssh-privatekey"), "");
        }
        "kubernetes.io/tls" => {
            for key in ["tls.crt", "tls.key"].into_iter().filter(|key| !has(key)) {
                errors.required(&path(key), "");
            }
        }
        _ => {}
    }
}

fn too_long(path: &str, errors: &mut Errors) {
    let max = u64::try_from(SIZE_MAX).unwrap_or(u64::MAX);
    let error = opkit_apimachinery::structural::FieldError::too_long(path, max);
    errors.0.push(error);
}

/// Adds an error if a file with the credentials of registries is not a JSON object.
fn docker_config(file: &Field<'_>, errors: &mut Errors) {
    if !file.is_set() {
        return errors.required(file, "");
    }
    let bytes = STANDARD.decode(file.text()).unwrap_or_default();
    let problem = match serde_json::from_slice::<Value>(&bytes) {
        Ok(Value::Object(_) | Value::Null) => return,
        Ok(value) => {
            let kind = decoding::json_kind(&value);
            format!("json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}")
        }
        Err(_) => decoding::syntax_error(&bytes),
    };
    let value = json!("<secret contents redacted>");
    errors.invalid_value(&file.path, value, &problem);
}

/// Adds the errors in a ConfigMap.
pub(super) fn config_map(map: &Field<'_>, errors: &mut Errors) {
    let (data, binary) = (map.get("data"), map.get("binaryData"));
    let mut size = 0;
    for (key, value) in data.entries() {
        for rule in format::config_key(key) {
            errors.invalid_value(&value.path, json!(key), &rule);
        }
        if binary.get(key).is_set() {
            let detail = "duplicate of key present in binaryData";
            errors.invalid_value(&value.path, json!(key), detail);
        }
        size += value.text().len();
    }
    for (key, value) in binary.entries() {
        for rule in format::config_key(key) {
            errors.invalid_value(&value.path, json!(key), &rule);
        }
        size += value.text().len() / 4 * 3;
    }
    if size > SIZE_MAX {
        too_long("[]", errors);
    }
}
