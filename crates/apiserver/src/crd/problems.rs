//! Errors of the CRDs of an operator as text: each names the CRD, its version and the field of the
//! object.

use opkit_apimachinery::structural::FieldError;
use serde_json::Value;

/// Returns the errors for which an API server refuses one of these new CRDs, one text each, such as
/// `robots.example.com/v1 .spec.size: default: must be of type integer`.
///
/// # Examples
/// ```
/// use serde_json::json;
///
/// let crd = json!({
///     "metadata": {"name": "robots.example.com"},
///     "spec": {
///         "group": "example.com", "scope": "Namespaced",
///         "names": {"kind": "Robot", "plural": "robots"},
///         "versions": [{"name": "v1", "served": true, "storage": true, "schema": {
///             "openAPIV3Schema": {"type": "object", "properties": {
///                 "size": {"type": "integer", "default": "large"},
///             }},
///         }}],
///     },
/// });
/// let problems = opkit_apiserver::crd_problems(&[crd]);
/// assert!(problems[0].starts_with("robots.example.com/v1 .size: default: "), "{problems:?}");
/// ```
pub fn crd_problems(crds: &[Value]) -> Vec<String> {
    let mut problems = Vec::new();
    for (at, crd) in crds.iter().enumerate() {
        let name = name(crd);
        if crds
            .iter()
            .take(at)
            .any(|before| self::name(before) == name)
        {
            problems.push(format!("{name}: two kinds of the operator have this CRD"));
        }
        let errors = super::crd_errors(crd);
        problems.extend(errors.iter().map(|error| problem(crd, error)));
    }
    problems
}

fn name(crd: &Value) -> &str {
    let name = crd.pointer("/metadata/name").and_then(Value::as_str);
    name.unwrap_or_default()
}

/// Returns an error as text: the CRD with its version, the field of the object, and the error.
fn problem(crd: &Value, error: &FieldError) -> String {
    let name = name(crd);
    let Some((version, path)) = schema_path(crd, &error.field) else {
        return format!("{name} {}: {}", error.field, error.detail);
    };
    let (field, keyword) = object_path(path);
    let keyword = match keyword.is_empty() {
        true => String::new(),
        false => format!("{keyword}: "),
    };
    format!("{name}/{version} {field}: {keyword}{}", error.detail)
}

/// Splits the path of a field in a CRD into the version and the path below the schema. The errors
/// of a CRD whose versions all have the same schema have no version in their paths.
fn schema_path<'a>(crd: &'a Value, path: &'a str) -> Option<(&'a str, &'a str)> {
    let versions = crd.pointer("/spec/versions")?.as_array()?;
    let version_name = |at: usize| versions.get(at)?.get("name")?.as_str();
    if let Some(rest) = path.strip_prefix("spec.validation.openAPIV3Schema") {
        return Some((version_name(0)?, rest));
    }
    let (at, rest) = path.strip_prefix("spec.versions[")?.split_once(']')?;
    let rest = rest.strip_prefix(".schema.openAPIV3Schema")?;
    Some((version_name(at.parse().ok()?)?, rest))
}

/// Splits a path in a schema into the path of the field in an object, such as
/// `.spec.tools[*].name`, and the schema keyword.
fn object_path(path: &str) -> (String, &str) {
    let (mut field, mut rest) = (String::new(), path);
    loop {
        if let Some((name, after)) = rest
            .strip_prefix(".properties[")
            .and_then(|rest| rest.split_once(']'))
        {
            field.push('.');
            field.push_str(name);
            rest = after;
        } else if let Some(after) = rest.strip_prefix(".items") {
            field.push_str("[*]");
            rest = after;
        } else if let Some(after) = rest.strip_prefix(".additionalProperties") {
            field.push_str(".*");
            rest = after;
        } else {
            break;
        }
    }
    if field.is_empty() {
        field.push('.');
    }
    (field, rest.trim_start_matches('.'))
}
