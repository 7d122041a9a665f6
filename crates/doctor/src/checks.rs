//! The checks: pure functions from facts to findings.

mod access;
mod api_services;
mod certificates;
mod crds;
mod deployment;
mod finalizers;
mod leases;
mod leftovers;
mod loops;
mod namespaces;
mod rbac;
mod status;
mod webhooks;

use serde_json::Value;

use crate::{Facts, Finding, value};

/// Number of findings that a check returns about single objects; the last one has the number of the
/// others.
const OBJECTS_MAX: usize = 10;

/// Runs all checks, those of causes before those of effects.
pub(crate) fn all(facts: &Facts) -> Vec<Finding> {
    const CHECKS: [fn(&Facts) -> Vec<Finding>; 13] = [
        access::check,
        deployment::check,
        rbac::check,
        crds::check,
        webhooks::check,
        certificates::check,
        leases::check,
        finalizers::check,
        namespaces::check,
        api_services::check,
        loops::check,
        status::check,
        leftovers::check,
    ];
    CHECKS.iter().flat_map(|check| check(facts)).collect()
}

/// Keeps the first findings, and adds one with the number of the others.
fn limited(check: &'static str, mut findings: Vec<Finding>) -> Vec<Finding> {
    let more = findings.len().saturating_sub(OBJECTS_MAX);
    if more > 0 {
        findings.sort_by_key(|finding| finding.severity);
        findings.truncate(OBJECTS_MAX);
        let others = format!("{more} other objects have the same problem");
        findings.push(Finding::warning(check, others));
    }
    findings
}

/// Returns the command that shows the operator's Deployment and its Pods.
fn describe_operator(facts: &Facts) -> String {
    let namespace = &facts.manifests.namespace;
    let name = &facts.manifests.operator;
    format!("kubectl -n {namespace} describe deployments,pods -l app.kubernetes.io/name={name}")
}

/// Returns the command that shows what the operator logs about one of its objects.
fn logs_about(facts: &Facts, object: &Value) -> String {
    let (namespace, operator) = (&facts.manifests.namespace, &facts.manifests.operator);
    let place = value::namespace(object).map(|namespace| format!("{namespace}/"));
    let key = place.unwrap_or_default() + value::name(object);
    // By default, kubectl prints only the last ten lines of Pods that a selector chooses.
    format!(
        "kubectl -n {namespace} logs -l app.kubernetes.io/name={operator} --tail=-1 | grep -w {key}"
    )
}

#[cfg(test)]
mod tests;
