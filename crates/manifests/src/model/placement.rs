//! Moves objects to another namespace, and renames the operator's role, with all references.

use serde_json::Value;

use crate::object::text;
use crate::webhooks::NAMESPACE_LABEL;

/// Moves an object from the namespace `from` to the namespace `to`. Objects in other namespaces
/// stay there; references to the namespace `from` change in all objects.
pub(super) fn place(object: &mut Value, from: &str, to: &str) {
    if from == to {
        return;
    }
    let kind = text(object, "/kind").to_owned();
    if kind == "Namespace" {
        replace(object.pointer_mut("/metadata/name"), from, to);
    }
    replace(object.pointer_mut("/metadata/namespace"), from, to);
    if let Some(subjects) = object.get_mut("subjects").and_then(Value::as_array_mut) {
        for subject in subjects {
            replace(subject.get_mut("namespace"), from, to);
        }
    }
    let conversion = "/spec/conversion/webhook/clientConfig/service/namespace";
    replace(object.pointer_mut(conversion), from, to);
    let webhooks = object.get_mut("webhooks").and_then(Value::as_array_mut);
    for webhook in webhooks.into_iter().flatten() {
        let service = "/clientConfig/service/namespace";
        replace(webhook.pointer_mut(service), from, to);
        let expressions = webhook.pointer_mut("/namespaceSelector/matchExpressions");
        let expressions = expressions.and_then(Value::as_array_mut);
        for expression in expressions.into_iter().flatten() {
            if text(expression, "/key") == NAMESPACE_LABEL {
                let values = expression.get_mut("values").and_then(Value::as_array_mut);
                for value in values.into_iter().flatten() {
                    replace(Some(value), from, to);
                }
            }
        }
    }
    let annotation = object.pointer_mut("/metadata/annotations/cert-manager.io~1inject-ca-from");
    if let Some(Value::String(certificate)) = annotation
        && let Some(name) = certificate.strip_prefix(&format!("{from}/"))
    {
        *certificate = format!("{to}/{name}");
    }
    if kind == "Certificate" {
        let names = object.pointer_mut("/spec/dnsNames");
        let names = names.and_then(Value::as_array_mut);
        for name in names.into_iter().flatten() {
            if let Value::String(text) = name {
                *text = text.replace(&format!(".{from}.svc"), &format!(".{to}.svc"));
            }
        }
    }
    if kind == "ServiceMonitor" {
        let names = object.pointer_mut("/spec/namespaceSelector/matchNames");
        let names = names.and_then(Value::as_array_mut);
        for name in names.into_iter().flatten() {
            replace(Some(name), from, to);
        }
    }
}

/// Renames the operator's role, its binding and the reference of the binding to the role.
pub(super) fn rename_role(object: &mut Value, from: &str, to: &str) {
    match text(object, "/kind") {
        "Role" | "ClusterRole" => replace(object.pointer_mut("/metadata/name"), from, to),
        "RoleBinding" | "ClusterRoleBinding" => {
            let (old, new) = (format!("{from}binding"), format!("{to}binding"));
            replace(object.pointer_mut("/metadata/name"), &old, &new);
            replace(object.pointer_mut("/roleRef/name"), from, to);
        }
        _ => {}
    }
}

/// Replaces the text `from` with `to`.
fn replace(value: Option<&mut Value>, from: &str, to: &str) {
    if let Some(Value::String(text)) = value
        && text == from
    {
        *text = to.to_owned();
    }
}
