//! Validation of the environment variables of a container, and of references to fields of the Pod.

use serde_json::json;

use super::field::{Errors, Field};
use super::format;
use super::resources;

/// Fields of a Pod that an environment variable can have as its value.
const VARIABLE_FIELDS: &[&str] = &[
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
/// Fields of a Pod that a file of a volume can have as its content.
pub(super) const FILE_FIELDS: &[&str] = &[
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
];
/// All fields of a Pod that can be referenced, without those of labels and annotations.
const KNOWN_FIELDS: &[&str] = &[
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.serviceAccountName",
    "spec.schedulerName",
    "status.phase",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
    "spec.host",
];
const RESOURCES: &[&str] = &[
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];
/// Divisors of resources that are measured in bytes.
const BYTES: &[&str] = &[
    "1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei",
];

/// Adds the errors in `env` and `envFrom` of a container.
pub(super) fn environment(container: &Field<'_>, errors: &mut Errors) {
    for variable in container.get("env").items() {
        let name = variable.get("name");
        match name.text() {
            "" => errors.required(&name, ""),
            text => errors.rules(&name, format::variable_name(text)),
        }
        let source = variable.get("valueFrom");
        if source.is_set() {
            value_source(&source, !variable.get("value").is_empty(), errors);
        }
    }
    let sources = container.get("envFrom");
    for source in sources.items() {
        let prefix = source.get("prefix");
        if !prefix.is_empty() {
            errors.rules(&prefix, format::variable_name(prefix.text()));
        }
        let names = ["configMapRef", "secretRef"];
        let present = names.iter().map(|name| source.get(name));
        let present: Vec<Field<'_>> = present.filter(Field::is_set).collect();
        for reference in &present {
            let name = reference.get("name");
            match name.text() {
                "" => errors.required(&name, ""),
                text => errors.rules(&name, format::dns_subdomain(text)),
            }
        }
        let detail = match present.len() {
            0 => "must specify one of: `configMapRef` or `secretRef`",
            1 => continue,
            _ => "may not have more than one field specified at a time",
        };
        errors.invalid_value(&sources.path, json!(""), detail);
    }
}

fn value_source(source: &Field<'_>, has_value: bool, errors: &mut Errors) {
    let mut count = 0;
    let field = source.get("fieldRef");
    if field.is_set() {
        count += 1;
        field_reference(&field, VARIABLE_FIELDS, errors);
    }
    let resource = source.get("resourceFieldRef");
    if resource.is_set() {
        count += 1;
        resource_reference(&resource, false, errors);
    }
    for name in ["configMapKeyRef", "secretKeyRef"] {
        let reference = source.get(name);
        if reference.is_set() {
            count += 1;
            let (name, key) = (reference.get("name"), reference.get("key"));
            errors.rules(&name, format::dns_subdomain(name.text()));
            match key.text() {
                "" => errors.required(&key, ""),
                text => errors.rules(&key, format::config_key(text)),
            }
        }
    }
    let file = source.get("fileKeyRef");
    if file.is_set() {
        count += 1;
        let (key, volume, path) = (file.get("key"), file.get("volumeName"), file.get("path"));
        match key.text() {
            "" => errors.required(&key, ""),
            text => errors.rules(&key, format::variable_name(text)),
        }
        match volume.text() {
            "" => errors.required(&volume, ""),
            text => errors.rules(&volume, format::dns_label(text)),
        }
        match path.text() {
            "" => errors.required(&path, ""),
            _ => format::no_backsteps(&path, errors),
        }
    }
    let detail = match count {
        0 => {
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, \
             `secretKeyRef` or `fileKeyRef`"
        }
        _ if has_value => "may not be specified when `value` is not empty",
        1 => return,
        _ => "may not have more than one field specified at a time",
    };
    errors.invalid_value(&source.path, json!(""), detail);
}

/// Adds the errors in a reference to a field of the Pod.
pub(super) fn field_reference(reference: &Field<'_>, known: &[&str], errors: &mut Errors) {
    let (version, path) = (reference.get("apiVersion"), reference.get("fieldPath"));
    if version.is_empty() {
        return errors.required(&version, "");
    }
    if path.is_empty() {
        return errors.required(&path, "");
    }
    let text = path.text();
    let subscripted = text
        .strip_suffix("']")
        .and_then(|rest| rest.split_once("['"));
    let is_map = |name: &str| matches!(name, "metadata.annotations" | "metadata.labels");
    let failure = match subscripted {
        _ if version.text() != "v1" => format!("unsupported pod version: {}", version.text()),
        Some((name, _)) if !is_map(name) => {
            format!("field label does not support subscript: {text}")
        }
        None if !KNOWN_FIELDS.contains(&text) => format!("field label not supported: {text}"),
        _ => String::new(),
    };
    if !failure.is_empty() {
        return errors.invalid(&path, &format!("error converting fieldPath: {failure}"));
    }
    if let Some((name, key)) = subscripted {
        let key = match name {
            "metadata.annotations" => key.to_lowercase(),
            _ => key.to_owned(),
        };
        for rule in format::qualified_name(&key) {
            errors.invalid_value(&reference.path, json!(key), &rule);
        }
    } else {
        errors.supported(&path, known);
    }
}

/// Adds the errors in a reference to a resource of a container. In a volume the reference must have
/// the name of the container.
pub(super) fn resource_reference(reference: &Field<'_>, in_volume: bool, errors: &mut Errors) {
    let (container, resource) = (reference.get("containerName"), reference.get("resource"));
    let text = resource.text();
    let is_huge_pages = ["requests.hugepages-", "limits.hugepages-"]
        .iter()
        .any(|prefix| text.starts_with(prefix));
    if in_volume && container.is_empty() {
        errors.required(&container, "");
    } else if text.is_empty() {
        errors.required(&resource, "");
    } else if !is_huge_pages {
        errors.supported(&resource, RESOURCES);
    }
    let divisor = reference.get("divisor");
    let amount = resources::quantity(&divisor);
    if amount.is_zero() {
        return;
    }
    let amount = amount.to_string();
    let list = "1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei";
    let is_bytes = BYTES.contains(&amount.as_str());
    let detail = match text {
        "limits.cpu" | "requests.cpu" if !matches!(amount.as_str(), "1m" | "1") => {
            "only divisor's values 1m and 1 are supported with the cpu resource".to_owned()
        }
        "limits.memory" | "requests.memory" if !is_bytes => {
            format!("only divisor's values {list} are supported with the memory resource")
        }
        "limits.ephemeral-storage" | "requests.ephemeral-storage" if !is_bytes => format!(
            "only divisor's values {list} are supported with the local ephemeral storage resource"
        ),
        _ if is_huge_pages && !is_bytes => {
            format!("only divisor's values {list} are supported with the hugepages resource")
        }
        _ => return,
    };
    errors.invalid_value(&divisor.path, json!(text), &detail);
}
