//! Validation of the configurations of admission webhooks.

use serde_json::json;

use super::admission_policies::{self, Variables};
use super::field::{Errors, Field};
use super::{format, selectors};

const OPERATIONS: &[&str] = &["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
pub(super) const FAILURE_POLICIES: &[&str] = &["Fail", "Ignore"];
pub(super) const MATCH_POLICIES: &[&str] = &["Equivalent", "Exact"];
pub(super) const REINVOCATION_POLICIES: &[&str] = &["IfNeeded", "Never"];
const URL_FORM: &str = "; desired format: https://host[/path]";

/// Adds the errors in a ValidatingWebhookConfiguration or MutatingWebhookConfiguration.
pub(super) fn configuration(object: &Field<'_>, errors: &mut Errors) {
    let mut names: Vec<&str> = Vec::new();
    for hook in object.get("webhooks").items() {
        webhook(&hook, errors);
        review_versions(&hook.get("admissionReviewVersions"), errors);
        let name = hook.get("name");
        if !name.is_empty() {
            if names.contains(&name.text()) {
                errors.duplicate(&name.path, name.text());
            }
            names.push(name.text());
        }
    }
}

fn review_versions(versions: &Field<'_>, errors: &mut Errors) {
    if versions.is_empty() {
        return errors.required(versions, "must specify one of v1, v1beta1");
    }
    let mut seen: Vec<&str> = Vec::new();
    for version in versions.items() {
        if seen.contains(&version.text()) {
            errors.invalid_text(&version, "duplicate version");
            continue;
        }
        seen.push(version.text());
        errors.rules(&version, format::rfc_1035_label(version.text()));
    }
    if !seen.iter().any(|seen| matches!(*seen, "v1" | "v1beta1")) {
        errors.invalid(versions, "must include at least one of v1, v1beta1");
    }
}

fn webhook(hook: &Field<'_>, errors: &mut Errors) {
    format::fully_qualified_name(&hook.get("name"), errors);
    for rule in hook.get("rules").items() {
        self::rule(&rule, errors);
    }
    errors.supported_if_set(&hook.get("failurePolicy"), FAILURE_POLICIES);
    errors.supported_if_set(&hook.get("matchPolicy"), MATCH_POLICIES);
    let effects = hook.get("sideEffects");
    match effects.is_set() {
        true => errors.supported(&effects, &["None", "NoneOnDryRun"]),
        false => errors.required(&effects, "must specify one of None, NoneOnDryRun"),
    }
    let timeout = hook.get("timeoutSeconds");
    if timeout.is_set() && !(1..=30).contains(&timeout.int()) {
        let detail = "the timeout value must be between 1 and 30 seconds";
        errors.invalid(&timeout, detail);
    }
    selectors::selector(&hook.get("namespaceSelector"), errors);
    selectors::selector(&hook.get("objectSelector"), errors);
    errors.supported_if_set(&hook.get("reinvocationPolicy"), REINVOCATION_POLICIES);
    let client = hook.get("clientConfig");
    let (url, service) = (client.get("url"), client.get("service"));
    match (url.is_set(), service.is_set()) {
        (true, false) => self::url(&url, errors),
        (false, true) => self::service(&service, errors),
        _ => errors.required(&client, "exactly one of url or service is required"),
    }
    let conditions = hook.get("matchConditions");
    let variables = Variables {
        has_params: false,
        has_authorizer: true,
        has_variables: false,
    };
    admission_policies::match_conditions(&conditions, variables, errors);
}

/// Adds the errors in a rule that selects requests.
pub(super) fn rule(rule: &Field<'_>, errors: &mut Errors) {
    let operations = rule.get("operations");
    if operations.is_empty() {
        errors.required(&operations, "");
    }
    wildcard(&operations, "operations", errors);
    for operation in operations.items() {
        errors.supported(&operation, OPERATIONS);
    }
    let (groups, versions) = (rule.get("apiGroups"), rule.get("apiVersions"));
    for (list, what) in [(&groups, "API groups"), (&versions, "API versions")] {
        if list.is_empty() {
            errors.required(list, "");
        }
        wildcard(list, what, errors);
    }
    for version in versions.items() {
        errors.not_empty(&version);
    }
    resources(&rule.get("resources"), errors);
    errors.supported_if_set(&rule.get("scope"), &["*", "Cluster", "Namespaced"]);
}

fn wildcard(list: &Field<'_>, what: &str, errors: &mut Errors) {
    if list.len() > 1 && list.items().any(|item| item.text() == "*") {
        let detail = format!("if '*' is present, must not specify other {what}");
        errors.invalid(list, &detail);
    }
}

fn resources(list: &Field<'_>, errors: &mut Errors) {
    if list.is_empty() {
        errors.required(list, "");
    }
    let (mut whole, mut every): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    let mut has_plain = false;
    for item in list.items() {
        let text = item.text();
        if text.is_empty() {
            errors.required(&item, "");
            continue;
        }
        let Some((resource, subresource)) = text.split_once('/') else {
            has_plain = text != "*";
            continue;
        };
        if whole.contains(&resource) {
            let detail = format!("if '{resource}/*' is present, must not specify {text}");
            errors.invalid(&item, &detail);
        }
        if every.contains(&subresource) {
            let detail = format!("if '*/{subresource}' is present, must not specify {text}");
            errors.invalid(&item, &detail);
        }
        if subresource == "*" {
            whole.push(resource);
        }
        if resource == "*" {
            every.push(subresource);
        }
    }
    let has = |text: &str| list.items().any(|item| item.text() == text);
    if list.len() > 1 && has("*/*") {
        let detail = "if '*/*' is present, must not specify other resources";
        errors.invalid(list, detail);
    }
    if has("*") && has_plain {
        let detail = "if '*' is present, must not specify other resources without subresources";
        errors.invalid(list, detail);
    }
}

/// Adds the errors in the URL of a webhook.
fn url(url: &Field<'_>, errors: &mut Errors) {
    let text = url.text();
    let (text, fragment) = text.split_once('#').unwrap_or((text, ""));
    let (text, query) = text.split_once('?').unwrap_or((text, ""));
    let (scheme, rest) = match text.split_once("://") {
        Some((scheme, rest)) => (scheme, rest),
        None => ("", ""),
    };
    let authority = rest.split('/').next().unwrap_or_default();
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    let mut invalid = |value: &str, detail: &str| {
        errors.invalid_value(&url.path, json!(value), detail);
    };
    if scheme != "https" {
        let detail = format!("'https' is the only allowed URL scheme{URL_FORM}");
        invalid(scheme, &detail);
    }
    if host.is_empty() {
        invalid(host, &format!("host must be specified{URL_FORM}"));
    }
    if let Some(user) = user {
        invalid(user, "user information is not permitted in the URL");
    }
    if !fragment.is_empty() {
        invalid(fragment, "fragments are not permitted in the URL");
    }
    if !query.is_empty() {
        invalid(query, "query parameters are not permitted in the URL");
    }
}

/// Adds the errors in the Service of a webhook. Kubernetes confuses the name of the Service with
/// its namespace in this rule.
fn service(service: &Field<'_>, errors: &mut Errors) {
    if service.get("namespace").is_empty() {
        errors.required(&service.get("name"), "");
    }
    if service.get("name").is_empty() {
        errors.required(&service.get("namespace"), "");
    }
    let port = service.get("port");
    let number = match port.is_set() {
        true => port.int(),
        false => 443,
    };
    for rule in format::port_number(number) {
        errors.invalid(&port, &format!("port is not valid: {rule}"));
    }
    let path = service.get("path");
    let text = path.text();
    if matches!(text, "" | "/") {
        return;
    }
    if text == "//" {
        return errors.invalid(&path, "segment[0] may not be empty");
    }
    if !text.starts_with('/') {
        errors.invalid(&path, "must start with a '/'");
    }
    let steps = text.get(1..).unwrap_or_default();
    let steps = steps.strip_suffix('/').unwrap_or(steps);
    for (index, step) in steps.split('/').enumerate() {
        if step.is_empty() {
            let detail = format!("segment[{index}] may not be empty");
            errors.invalid(&path, &detail);
            continue;
        }
        for rule in format::dns_subdomain(step) {
            errors.invalid(&path, &format!("segment[{index}]: {rule}"));
        }
    }
}
