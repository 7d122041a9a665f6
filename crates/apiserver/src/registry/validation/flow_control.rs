//! Validation of FlowSchemas and PriorityLevelConfigurations.

use serde_json::json;

use super::field::{Errors, Field};
use super::format;

const VERBS: &[&str] = &[
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "proxy",
    "update",
    "watch",
];
const PRECEDENCE_MAX: i64 = 10_000;
const QUEUES_MAX: i64 = 10_000_000;

/// Adds the errors in a FlowSchema.
pub(super) fn flow_schema(object: &Field<'_>, errors: &mut Errors) {
    let spec = object.get("spec");
    let precedence = spec.get("matchingPrecedence");
    if precedence.int() <= 0 {
        errors.invalid_int(&precedence, "must be a positive value");
    }
    if precedence.int() > PRECEDENCE_MAX {
        let detail = format!("must not be greater than {PRECEDENCE_MAX}");
        errors.invalid(&precedence, &detail);
    }
    if precedence.int() == 1 && object.at(&["metadata", "name"]).text() != "exempt" {
        let detail = "only the schema named 'exempt' may have matchingPrecedence 1";
        errors.invalid(&precedence, detail);
    }
    let method = spec.get("distinguisherMethod");
    let type_ = method.get("type");
    if method.is_set() && !type_.is_one_of(&["ByNamespace", "ByUser"]) {
        errors.not_supported(&type_.renamed(&type_.path), &["ByNamespace", "ByUser"]);
        if let Some(error) = errors.0.last_mut() {
            let text = json!(type_.text()).to_string();
            let printed = format!("{{\"Type\":{text}}}");
            error.detail = error.detail.replacen(&text, &printed, 1);
        }
    }
    let level = spec.at(&["priorityLevelConfiguration", "name"]);
    match level.text() {
        "" => errors.required(&level, "must reference a priority level"),
        text => errors.rules(&level, format::dns_subdomain(text)),
    }
    for rule in spec.get("rules").items() {
        let subjects = rule.get("subjects");
        for subject in subjects.items() {
            self::subject(&subject, errors);
        }
        if subjects.is_empty() {
            errors.required(&subjects, "subjects must contain at least one value");
        }
        let (resources, others) = (rule.get("resourceRules"), rule.get("nonResourceRules"));
        if resources.is_empty() && others.is_empty() {
            let detail = "at least one of resourceRules and nonResourceRules has to be non-empty";
            errors.required(&rule, detail);
        }
        for rule in resources.items() {
            resource_rule(&rule, errors);
        }
        for rule in others.items() {
            verbs(&rule.get("verbs"), errors);
            let paths = rule.get("nonResourceURLs");
            if paths.is_empty() {
                let detail = "nonResourceURLs must contain at least one value";
                errors.required(&paths, detail);
            }
            wildcard(&paths, "non-resource URLs", errors);
        }
    }
}

fn subject(subject: &Field<'_>, errors: &mut Errors) {
    let kinds = [
        ("ServiceAccount", "serviceAccount"),
        ("User", "user"),
        ("Group", "group"),
    ];
    let kind = subject.get("kind");
    let Some((_, own)) = kinds.iter().find(|(known, _)| *known == kind.text()) else {
        return errors.not_supported(&kind, &["Group", "ServiceAccount", "User"]);
    };
    let field = subject.get(own);
    if !field.is_set() {
        let detail = format!("{own} is required when subject kind is '{}'", kind.text());
        errors.required(&field, &detail);
    } else {
        let name = field.get("name");
        errors.not_empty(&name);
        if *own == "serviceAccount" {
            if !matches!(name.text(), "" | "*") {
                errors.rules(&name, format::dns_subdomain(name.text()));
            }
            let namespace = field.get("namespace");
            match namespace.text() {
                "" => errors.required(&namespace, "must specify namespace for service account"),
                text => errors.rules(&namespace, format::dns_label(text)),
            }
        }
    }
    for (other, name) in kinds.iter().filter(|(_, name)| name != own) {
        if subject.get(name).is_set() {
            let detail = format!("{name} is forbidden when subject kind is not '{other}'");
            errors.forbidden(&subject.get(name), &detail);
        }
    }
}

fn verbs(verbs: &Field<'_>, errors: &mut Errors) {
    if verbs.is_empty() {
        errors.required(verbs, "verbs must contain at least one value");
    } else if verbs.items().any(|verb| verb.text() == "*") {
        wildcard(verbs, "verbs", errors);
    } else if !verbs.items().all(|verb| verb.is_one_of(VERBS)) {
        let error = opkit_apimachinery::structural::FieldError::not_supported(
            &verbs.path,
            verbs.value,
            VERBS,
        );
        errors.0.push(error);
    }
}

/// Adds an error if a list has other items beside the wildcard.
fn wildcard(list: &Field<'_>, what: &str, errors: &mut Errors) {
    if list.len() > 1 && list.items().any(|item| item.text() == "*") {
        let detail = format!("if '*' is present, must not specify other {what}");
        errors.invalid(list, &detail);
    }
}

fn resource_rule(rule: &Field<'_>, errors: &mut Errors) {
    verbs(&rule.get("verbs"), errors);
    for (name, one, many) in [
        ("apiGroups", "api group", "api groups"),
        ("resources", "resource", "resources"),
    ] {
        let list = rule.get(name);
        if list.is_empty() {
            let detail = format!("resource rules must supply at least one {one}");
            errors.required(&list, &detail);
        }
        wildcard(&list, many, errors);
    }
    let namespaces = rule.get("namespaces");
    if namespaces.is_empty() && !rule.get("clusterScope").is_true() {
        let detail =
            "resource rules that are not cluster scoped must supply at least one namespace";
        errors.required(&namespaces, detail);
    } else if namespaces.items().any(|name| name.text() == "*") {
        wildcard(&namespaces, "namespaces", errors);
    } else {
        for name in namespaces.items() {
            for rule in format::dns_label(name.text()) {
                let detail =
                    format!("each member of this list must be '*' or a DNS-1123 label; {rule}");
                errors.invalid_text(&name, &detail);
            }
        }
    }
}

/// Adds the errors in a PriorityLevelConfiguration.
pub(super) fn priority_level(object: &Field<'_>, errors: &mut Errors) {
    let spec = object.get("spec");
    let (type_, limited, exempt) = (spec.get("type"), spec.get("limited"), spec.get("exempt"));
    let is_exempt = object.at(&["metadata", "name"]).text() == "exempt";
    if is_exempt != (type_.text() == "Exempt") {
        let detail = "must be 'Exempt' if and only if `name` is 'exempt'";
        errors.invalid_text(&type_, detail);
    }
    match type_.text() {
        "Exempt" => {
            if limited.is_set() {
                errors.forbidden(&limited, "must be nil if the type is not Limited");
            }
            shares(&exempt, errors);
        }
        "Limited" => {
            if exempt.is_set() {
                errors.forbidden(&exempt, "must be nil if the type is Limited");
            }
            match limited.is_set() {
                true => limits(&limited, errors),
                false => errors.required(&limited, "must not be empty when type is Limited"),
            }
        }
        _ => errors.required_of(&type_, &["Exempt", "Limited"]),
    }
}

fn shares(level: &Field<'_>, errors: &mut Errors) {
    let shares = level.get("nominalConcurrencyShares");
    if shares.int() < 0 {
        errors.invalid(&shares, "must be a non-negative integer");
    }
    let lendable = level.get("lendablePercent");
    if !(0..=100).contains(&lendable.int()) {
        errors.invalid(&lendable, "must be between 0 and 100, inclusive");
    }
}

fn limits(limited: &Field<'_>, errors: &mut Errors) {
    let shares = limited.get("nominalConcurrencyShares");
    if shares.int() < 0 {
        errors.invalid(&shares, "must be a non-negative integer");
    }
    let response = limited.get("limitResponse");
    let (type_, queuing) = (response.get("type"), response.get("queuing"));
    match type_.text() {
        "Reject" => {
            if queuing.is_set() {
                let detail = "must be nil if limited.limitResponse.type is not Limited";
                errors.forbidden(&queuing, detail);
            }
        }
        "Queue" => match queuing.is_set() {
            true => queues(&queuing, errors),
            false => {
                let detail = "must not be empty if limited.limitResponse.type is Limited";
                errors.required(&queuing, detail);
            }
        },
        _ => errors.required_of(&type_, &["Queue", "Reject"]),
    }
    let lendable = limited.get("lendablePercent");
    if !(0..=100).contains(&lendable.int()) {
        errors.invalid(&lendable, "must be between 0 and 100, inclusive");
    }
    let borrowing = limited.get("borrowingLimitPercent");
    if borrowing.int() < 0 {
        let detail = "if specified, must be a non-negative integer";
        errors.invalid(&borrowing, detail);
    }
}

fn queues(queuing: &Field<'_>, errors: &mut Errors) {
    let (length, queues, hand) = (
        queuing.get("queueLengthLimit"),
        queuing.get("queues"),
        queuing.get("handSize"),
    );
    if length.int() <= 0 {
        errors.invalid_int(&length, "must be positive");
    }
    if queues.int() <= 0 {
        errors.invalid_int(&queues, "must be positive");
    } else if queues.int() > QUEUES_MAX {
        errors.invalid(&queues, &format!("must not be greater than {QUEUES_MAX}"));
    }
    if hand.int() <= 0 {
        errors.invalid_int(&hand, "must be positive");
    } else if hand.int() > queues.int() {
        let detail = format!("should not be greater than queues ({})", queues.int());
        errors.invalid(&hand, &detail);
    }
}
