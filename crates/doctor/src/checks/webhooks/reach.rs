//! The Service behind a webhook, its endpoints, and the `caBundle`.

use serde_json::Value;

use super::is_required;
use crate::value::{int, items, name, namespace, text, texts};
use crate::{Facts, Finding, Severity};

/// Checks the way from the API server to an admission webhook.
pub(super) fn admission(facts: &Facts, configuration: &Value, webhook: &Value) -> Option<Finding> {
    let resources: Vec<_> = items(webhook, "/rules")
        .iter()
        .flat_map(|rule| texts(rule, "/resources"))
        .collect();
    let resources = resources.join(", ");
    let (severity, effect) = match is_required(webhook) {
        true => (
            Severity::Fail,
            format!("every write of {resources} is refused (failurePolicy Fail)"),
        ),
        false => (
            Severity::Warning,
            format!("{resources} are not checked (failurePolicy Ignore)"),
        ),
    };
    let client = webhook.get("clientConfig")?;
    let (problem, command) = problem(facts, client)?;
    let message = format!("{} {problem}: {effect}", name(configuration));
    let finding = Finding::fail("webhook", message).severity(severity);
    Some(finding.command(command))
}

/// Checks the way from the API server to a conversion webhook.
pub(super) fn conversion(facts: &Facts, crd: &Value) -> Option<Finding> {
    let client = crd.pointer("/spec/conversion/webhook/clientConfig")?;
    let (problem, command) = problem(facts, client)?;
    let message = format!(
        "the conversion of {} {problem}: objects cannot be read in other versions than the stored one",
        name(crd)
    );
    Some(Finding::fail("conversion", message).command(command))
}

/// Returns why the API server cannot call a client configuration, and the command.
fn problem(facts: &Facts, client: &Value) -> Option<(String, String)> {
    let service = client.get("service")?;
    let (service_namespace, service_name) = (text(service, "/namespace"), text(service, "/name"));
    if service_namespace != facts.manifests.namespace || !facts.is_read("Service") {
        return None;
    }
    let Some(found) = facts.find("Service", Some(service_namespace), service_name) else {
        let problem = format!("calls service/{service_name}, which does not exist");
        return Some((problem, "opkit deploy".to_owned()));
    };
    let port = service.get("port").and_then(Value::as_i64).unwrap_or(443);
    let ports = items(found, "/spec/ports");
    if !ports.iter().any(|it| int(it, "/port") == port) {
        let problem =
            format!("calls port {port} of service/{service_name}, which has no such port");
        return Some((problem, "opkit deploy".to_owned()));
    }
    if facts.is_read("EndpointSlice") && !has_endpoint(facts, found) {
        let problem = "has no ready endpoint".to_owned();
        let reason = super::super::deployment::reason(facts);
        let reason = reason.map(|it| format!("   # {it}")).unwrap_or_default();
        return Some((problem, super::super::describe_operator(facts) + &reason));
    }
    if text(client, "/caBundle").is_empty() {
        let problem = "has no caBundle, so the API server cannot verify the operator's certificate";
        let command = format!(
            "kubectl -n {} logs -l app.kubernetes.io/name={}   # the operator, or cert-manager, writes it",
            facts.manifests.namespace, facts.manifests.operator
        );
        return Some((problem.to_owned(), command));
    }
    None
}

/// Reports whether a Service has a ready endpoint.
fn has_endpoint(facts: &Facts, service: &Value) -> bool {
    let slices = facts.all("EndpointSlice").filter(|slice| {
        namespace(slice) == namespace(service)
            && text(slice, "/metadata/labels/kubernetes.io~1service-name") == name(service)
    });
    let mut endpoints = slices.flat_map(|slice| items(slice, "/endpoints"));
    // An unknown state counts as ready, as in kube-proxy.
    endpoints.any(|it| it.pointer("/conditions/ready") != Some(&Value::Bool(false)))
}
