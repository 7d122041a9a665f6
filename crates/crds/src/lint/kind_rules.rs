//! Rules about a kind as a whole: names, size, columns, subresources.

use serde_json::Value;

use super::Findings;
use crate::fields::{Version, text};

/// Size from which etcd refuses a request, in bytes: its default of 1.5 MiB.
const ETCD_BYTES_MAX: usize = 1_572_864;
/// Size of all annotations of an object together, in bytes.
const ANNOTATIONS_BYTES_MAX: usize = 262_144;

/// Checks what all versions have in common.
pub(super) fn check(crd: &Value, findings: &mut Findings) {
    let name = |field: &str| {
        let value = crd.pointer(&format!("/spec/names/{field}"));
        value.and_then(Value::as_str).unwrap_or_default()
    };
    let kind = name("kind");
    if !is_camel_case(kind, true) {
        let message = format!("the kind {kind:?} is not in CamelCase");
        findings.report("kind-name", ".spec.names.kind", message);
    }
    if kind.len() > 4 && kind.ends_with("List") {
        let message = format!("the kind {kind} has the name of a list of objects");
        findings.report("kind-name", ".spec.names.kind", message);
    }
    let list = name("listKind");
    if !list.is_empty() && list != format!("{kind}List") {
        let message = format!("the list of the kind {kind} is named {list}: write {kind}List");
        findings.report("kind-name", ".spec.names.listKind", message);
    }
    let group = crd.pointer("/spec/group").and_then(Value::as_str);
    let group = group.unwrap_or_default();
    if !group.contains('.') {
        let message =
            format!("the group {group:?} has no domain: write such as robots.example.com");
        findings.report("group-name", ".spec.group", message);
    }
    check_size(crd, findings);
}

fn check_size(crd: &Value, findings: &mut Findings) {
    let bytes = crd.to_string().len();
    let advice = "cut the descriptions with `--max-description`, or split the kind";
    if bytes > ETCD_BYTES_MAX {
        let message = format!("the CRD has {bytes} bytes, more than {ETCD_BYTES_MAX}: {advice}");
        findings.report("etcd-size", ".", message);
    } else if bytes > ANNOTATIONS_BYTES_MAX {
        let message = format!(
            "the CRD has {bytes} bytes, more than {ANNOTATIONS_BYTES_MAX}: {advice}, or apply it with --server-side"
        );
        findings.report("apply-size", ".", message);
    }
}

/// Checks a version, without its schema.
pub(super) fn check_version(version: &Version<'_>, findings: &mut Findings) {
    if !is_kubernetes_version(version.name) {
        let message = format!(
            "the version {:?} is not such as v1, v1beta1 or v1alpha1",
            version.name
        );
        findings.report("version-name", ".", message);
    }
    let columns = version.document.get("additionalPrinterColumns");
    let columns = columns.and_then(Value::as_array);
    match columns.filter(|columns| !columns.is_empty()) {
        None => findings.report(
            "printer-columns",
            ".",
            "there are no printer columns: add those that a user looks for",
        ),
        Some(columns) => {
            let has_age = columns
                .iter()
                .any(|column| text(column, "jsonPath") == ".metadata.creationTimestamp");
            if !has_age {
                findings.report(
                    "printer-columns",
                    ".",
                    "there is no column Age: add one of .metadata.creationTimestamp",
                );
            }
        }
    }
}

/// Reports whether a name has only letters and digits, and starts with a letter of this case.
pub(super) fn is_camel_case(name: &str, is_upper: bool) -> bool {
    let starts = name.starts_with(|char: char| match is_upper {
        true => char.is_ascii_uppercase(),
        false => char.is_ascii_lowercase(),
    });
    starts && name.chars().all(|char| char.is_ascii_alphanumeric())
}

/// Reports whether a version is such as `v1`, `v2beta1` or `v1alpha10`.
fn is_kubernetes_version(version: &str) -> bool {
    let is_number = |text: &str| {
        text.starts_with(|char: char| ('1'..='9').contains(&char))
            && text.chars().all(|char| char.is_ascii_digit())
    };
    let Some(rest) = version.strip_prefix('v') else {
        return false;
    };
    let parts = rest.split_once("alpha").or_else(|| rest.split_once("beta"));
    match parts {
        Some((major, minor)) => is_number(major) && is_number(minor),
        None => is_number(rest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_camel_case() {
        assert!(is_camel_case("HTTPRoute", true) && is_camel_case("clusterIPs", false));
        assert!(!is_camel_case("robot", true) && !is_camel_case("Robot", false));
        for wrong in ["", "max_speed", "max-speed", "1st", "größe"] {
            assert!(!is_camel_case(wrong, false), "{wrong}");
        }
    }

    #[test]
    fn versions_of_kubernetes() {
        for right in ["v1", "v12", "v1beta1", "v2alpha10"] {
            assert!(is_kubernetes_version(right), "{right}");
        }
        for wrong in [
            "1",
            "v",
            "v0",
            "v1.0",
            "v1rc1",
            "v1beta",
            "vbeta1",
            "v1beta01x",
        ] {
            assert!(!is_kubernetes_version(wrong), "{wrong}");
        }
    }
}
