//! Warnings about written objects that are valid, but rely on a deprecated field or have limits
//! that are probably a mistake.

use opkit_apimachinery::quantity::Quantity;
use serde_json::Value;

use crate::kinds::Kind;
use crate::object;

const STORAGE_CLASS: &str = "volume.beta.kubernetes.io/storage-class";
const INGRESS_CLASS: &str = "kubernetes.io/ingress.class";

/// Returns the warnings about an object that was created or changed.
pub(super) fn of(kind: &Kind, object: &Value, is_created: bool) -> Vec<String> {
    match (kind.group.as_str(), kind.plural.as_str()) {
        ("", "persistentvolumeclaims") => of_claim(object),
        ("networking.k8s.io", "ingresses") if is_created => of_ingress(object),
        ("", "resourcequotas") if is_created => of_quota(object),
        _ => Vec::new(),
    }
}

fn of_claim(claim: &Value) -> Vec<String> {
    let annotation = object::at(claim, &["metadata", "annotations", STORAGE_CLASS]);
    let mut warnings = Vec::new();
    if !annotation.is_null() {
        warnings.push(format!(
            "metadata.annotations[{STORAGE_CLASS}]: deprecated since v1.8; use \
             \"storageClassName\" attribute instead"
        ));
    }
    for list in ["requests", "limits"] {
        let text = object::text(claim, &["spec", "resources", list, "storage"]);
        let milli = Quantity::parse(text).and_then(Quantity::milli_value);
        if milli.is_some_and(|milli| milli % 1000 != 0) {
            warnings.push(format!(
                "spec.resources.{list}[storage]: fractional byte value {text:?} is invalid, must \
                 be an integer"
            ));
        }
    }
    warnings
}

fn of_ingress(ingress: &Value) -> Vec<String> {
    let annotation = object::at(ingress, &["metadata", "annotations", INGRESS_CLASS]);
    let class = object::at(ingress, &["spec", "ingressClassName"]);
    match annotation.is_null() || !class.is_null() {
        true => Vec::new(),
        false => vec![format!(
            "annotation {INGRESS_CLASS:?} is deprecated, please use 'spec.ingressClassName' instead"
        )],
    }
}

fn of_quota(quota: &Value) -> Vec<String> {
    let hard = |name: &str| {
        let text = object::at(quota, &["spec", "hard", name]).as_str()?;
        Quantity::parse(text)
    };
    let mut warnings = Vec::new();
    for resource in ["cpu", "memory", "storage", "ephemeral-storage"] {
        let name = format!("requests.{resource}");
        let plain = matches!(resource, "cpu" | "memory").then_some(resource);
        let named = |name: &str| Some((name.to_owned(), hard(name)?));
        let request = named(&name).or_else(|| named(plain?));
        let limit = named(&format!("limits.{resource}"));
        if let (Some((name, request)), Some((of, limit))) = (request, limit)
            && request > limit
        {
            warnings.push(format!(
                "ResourceQuota {name} ({request}) should be less than {of} ({limit})"
            ));
        }
    }
    warnings
}
