//! Rules for keys and values of labels.

use crate::golang;
use crate::names::check_dns_subdomain;

const NAME_RULE: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and \
    must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', \
    regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const PREFIX_RULE: &str = "prefix part a lowercase RFC 1123 subdomain must consist of lower case \
    alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character \
    (e.g. 'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const VALUE_RULE: &str = "a valid label must be an empty string or consist of alphanumeric \
    characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. \
    'MyValue',  or 'my_value',  or '12345', regex used for validation is \
    '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const SHAPE_RULE: &str = "a valid label key must consist of alphanumeric characters, '-', '_' or \
    '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or \
    '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an \
    optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";

/// Checks the key of a label. The error message lists all violated rules.
pub(super) fn check_key(key: &str) -> Result<(), String> {
    match label_key_errors(key).as_slice() {
        [] => Ok(()),
        errors => Err(invalid_value("<nil>", key, errors)),
    }
}

/// Returns the rules that the key of a label violates, in Kubernetes' words. The same rules apply
/// to the keys of annotations and to finalizers.
pub fn label_key_errors(key: &str) -> Vec<String> {
    let mut errors = Vec::new();
    let parts: Vec<&str> = key.split('/').collect();
    let name = match parts.as_slice() {
        [name] => name,
        [prefix, name] => {
            if prefix.is_empty() {
                errors.push("prefix part must be non-empty".to_owned());
            } else if check_dns_subdomain(prefix).is_err() {
                errors.push(PREFIX_RULE.to_owned());
            }
            name
        }
        _ => return vec![SHAPE_RULE.to_owned()],
    };
    if name.is_empty() {
        errors.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        errors.push("name part must be no more than 63 bytes".to_owned());
    }
    if name.is_empty() || !is_name(name) {
        errors.push(NAME_RULE.to_owned());
    }
    errors
}

/// Checks the value of a label. The error message lists all violated rules. `index` is the position
/// of the value in the requirement on `key`.
pub(super) fn check_value(key: &str, value: &str, index: usize) -> Result<(), String> {
    match label_value_errors(value).as_slice() {
        [] => Ok(()),
        errors => Err(invalid_value(
            &format!("values[{index}][{key}]"),
            value,
            errors,
        )),
    }
}

/// Returns the rules that the value of a label violates, in Kubernetes' words.
pub fn label_value_errors(value: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if value.len() > 63 {
        errors.push("must be no more than 63 bytes".to_owned());
    }
    if !value.is_empty() && !is_name(value) {
        errors.push(VALUE_RULE.to_owned());
    }
    errors
}

fn invalid_value(field: &str, value: &str, errors: &[String]) -> String {
    format!(
        "{field}: Invalid value: {}: {}",
        golang::quote(value),
        errors.join("; ")
    )
}

fn is_name(text: &str) -> bool {
    let edge = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    edge(bytes.first())
        && edge(bytes.last())
        && bytes
            .iter()
            .all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(b))
}
