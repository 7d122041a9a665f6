//! The approval of CRDs in the groups of Kubernetes itself (`*.k8s.io`, `*.kubernetes.io`).

use serde_json::Value;

use crate::object;

/// The annotation that a CRD in a group of Kubernetes needs: the URL of the approval, or a text
/// that begins with `unapproved`.
pub(crate) const ANNOTATION: &str = "api-approved.kubernetes.io";

/// The state of an approval.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Approval {
    Approved,
    /// The annotation states that there is no approval.
    Bypassed,
    Invalid,
    Missing,
}

/// Returns the approval of a CRD and the reason, or `None` if its group needs no approval.
pub(crate) fn of(crd: &Value) -> Option<(Approval, String)> {
    let group = object::text(crd, &["spec", "group"]);
    let is_protected = matches!(group, "k8s.io" | "kubernetes.io")
        || group.ends_with(".k8s.io")
        || group.ends_with(".kubernetes.io");
    if !is_protected {
        return None;
    }
    let annotation = annotation(crd);
    let state = state(crd);
    let reason = match state {
        Approval::Approved => format!("approved in {annotation}"),
        Approval::Bypassed => format!("not approved: {annotation:?}"),
        Approval::Missing => format!(
            "protected groups must have approval annotation \"{ANNOTATION}\", see \
             https://github.com/kubernetes/enhancements/pull/1111"
        ),
        Approval::Invalid => format!(
            "protected groups must have approval annotation \"{ANNOTATION}\" with either a URL or \
             a reason starting with \"unapproved\", see \
             https://github.com/kubernetes/enhancements/pull/1111"
        ),
    };
    Some((state, reason))
}

/// Returns the state of the approval annotation of a CRD in any group.
pub(crate) fn state(crd: &Value) -> Approval {
    match annotation(crd) {
        "" => Approval::Missing,
        text if text.starts_with("unapproved") => Approval::Bypassed,
        text if is_url(text) => Approval::Approved,
        _ => Approval::Invalid,
    }
}

/// Returns the value of the approval annotation.
pub(crate) fn annotation(crd: &Value) -> &str {
    object::text(crd, &["metadata", "annotations", ANNOTATION])
}

/// Reports whether `text` is an absolute URL with a host.
fn is_url(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else {
        return false;
    };
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    let host = rest.split(['/', '?']).next().unwrap_or_default();
    is_scheme && !host.is_empty() && !text.contains(|c: char| c.is_ascii_control() || c == ' ')
}

/// Returns the condition `KubernetesAPIApprovalPolicyConformant` as status, reason and message.
pub(crate) fn condition(crd: &Value) -> Option<(&'static str, &'static str, String)> {
    let (state, message) = of(crd)?;
    let (status, reason) = match state {
        Approval::Approved => ("True", "ApprovedAnnotation"),
        Approval::Bypassed => ("False", "UnapprovedAnnotation"),
        Approval::Invalid => ("False", "InvalidAnnotation"),
        Approval::Missing => ("False", "MissingAnnotation"),
    };
    Some((status, reason, message))
}
