//! Validation of what decides about the node of a Pod: affinity, node selectors, tolerations and
//! topology spread constraints.

use serde_json::json;

use super::field::{Errors, Field};
use super::format;
use super::selectors;

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
const WEIGHT: &str = "must be in the range 1-100";
const BOTH_SELECTORS: &str = "exists in both matchLabelKeys and labelSelector";
const TAINT_EFFECTS: &[&str] = &["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// Adds the errors in the affinity of a Pod.
pub(super) fn affinity(affinity: &Field<'_>, errors: &mut Errors) {
    let nodes = affinity.get("nodeAffinity");
    let required = nodes.get(REQUIRED);
    if required.is_set() {
        node_selector(&required, errors);
    }
    for term in nodes.get(PREFERRED).items() {
        weight(&term, errors);
        node_selector_term(&term.get("preference"), false, errors);
    }
    for name in ["podAffinity", "podAntiAffinity"] {
        let pods = affinity.get(name);
        for term in pods.get(REQUIRED).items() {
            pod_affinity_term(&term, errors);
        }
        for term in pods.get(PREFERRED).items() {
            weight(&term, errors);
            pod_affinity_term(&term.get("podAffinityTerm"), errors);
        }
    }
}

fn weight(term: &Field<'_>, errors: &mut Errors) {
    let weight = term.get("weight");
    if !(1..=100).contains(&weight.int()) {
        errors.invalid_int(&weight, WEIGHT);
    }
}

/// Adds the errors in a selector of nodes.
pub(super) fn node_selector(selector: &Field<'_>, errors: &mut Errors) {
    let terms = selector.get("nodeSelectorTerms");
    if terms.is_empty() {
        return errors.required(&terms, "must have at least one node selector term");
    }
    for term in terms.items() {
        node_selector_term(&term, true, errors);
    }
}

fn node_selector_term(term: &Field<'_>, with_values: bool, errors: &mut Errors) {
    for requirement in term.get("matchExpressions").items() {
        let (operator, values) = (requirement.get("operator"), requirement.get("values"));
        match operator.text() {
            "In" | "NotIn" if values.is_empty() => {
                let detail = "must be specified when `operator` is 'In' or 'NotIn'";
                errors.required(&values, detail);
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                errors.forbidden(&values, detail);
            }
            "Gt" | "Lt" if values.len() != 1 => {
                let detail = "must be specified single value when `operator` is 'Lt' or 'Gt'";
                errors.required(&values, detail);
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
            _ => errors.invalid_text(&operator, "not a valid selector operator"),
        }
        let key = requirement.get("key");
        errors.rules(&key, format::qualified_name(key.text()));
        for value in values.items().filter(|_| with_values) {
            errors.rules(&value, format::label_value(value.text()));
        }
    }
    for requirement in term.get("matchFields").items() {
        let (operator, values) = (requirement.get("operator"), requirement.get("values"));
        match operator.text() {
            "In" | "NotIn" if values.len() == 1 => {}
            "In" | "NotIn" => {
                let detail = "must be only one value when `operator` is 'In' or 'NotIn' for node \
                              field selector";
                errors.required(&values, detail);
            }
            _ => errors.invalid_text(&operator, "not a valid selector operator"),
        }
        let key = requirement.get("key");
        if key.text() != "metadata.name" {
            errors.invalid_text(&key, "not a valid field selector key");
            continue;
        }
        for value in values.items() {
            errors.rules(&value, format::dns_subdomain(value.text()));
        }
    }
}

fn pod_affinity_term(term: &Field<'_>, errors: &mut Errors) {
    selectors::selector(&term.get("labelSelector"), errors);
    selectors::selector(&term.get("namespaceSelector"), errors);
    for name in term.get("namespaces").items() {
        let name = name.renamed(term.join("namespace"));
        errors.rules(&name, format::dns_label(name.text()));
    }
    label_keys(term, errors);
    let key = term.get("topologyKey");
    if key.text().is_empty() {
        errors.required(&key, "can not be empty");
    }
    errors.rules(&key, format::qualified_name(key.text()));
}

/// Adds the errors in `matchLabelKeys` and `mismatchLabelKeys` of a term or constraint.
fn label_keys(term: &Field<'_>, errors: &mut Errors) {
    let selector = term.get("labelSelector");
    let (matched, mismatched) = (term.get("matchLabelKeys"), term.get("mismatchLabelKeys"));
    for keys in [&matched, &mismatched] {
        if !keys.is_empty() && !selector.is_set() {
            errors.forbidden(keys, "must not be specified when labelSelector is not set");
            continue;
        }
        for key in keys.items() {
            errors.rules(&key, format::qualified_name(key.text()));
        }
    }
    let labels = selector.get("matchLabels");
    let mut selected: Vec<&str> = labels.entries().map(|(key, _)| key).collect();
    for expression in selector.get("matchExpressions").items() {
        let key = expression.get("key").text();
        let position = matched.items().position(|matched| matched.text() == key);
        if let Some(index) = position.filter(|_| selected.contains(&key)) {
            errors.invalid_value(term.index(index), json!(key), BOTH_SELECTORS);
        }
        selected.push(key);
    }
    for key in matched.items() {
        if mismatched.items().any(|other| other.text() == key.text()) {
            errors.invalid(&key, "exists in both matchLabelKeys and mismatchLabelKeys");
        }
    }
}

/// Adds the errors in a list of tolerations.
pub(super) fn tolerations(list: &Field<'_>, errors: &mut Errors) {
    for toleration in list.items() {
        let (key, operator) = (toleration.get("key"), toleration.get("operator"));
        let (value, effect) = (toleration.get("value"), toleration.get("effect"));
        if !key.is_empty() {
            errors.rules(&key, format::qualified_name(key.text()));
        } else if operator.text() != "Exists" {
            let detail = "operator must be Exists when `key` is empty, which means \"match all \
                          values and all keys\"";
            errors.invalid_text(&operator, detail);
        }
        if toleration.get("tolerationSeconds").is_set() && effect.text() != "NoExecute" {
            let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            errors.invalid_text(&effect, detail);
        }
        match operator.text() {
            "Equal" | "" => {
                let rules = format::label_value(value.text());
                if !rules.is_empty() {
                    let text = json!(value.text());
                    errors.invalid_value(&operator.path, text, &rules.join(";"));
                }
            }
            "Exists" if !value.is_empty() => {
                let detail = "value must be empty when `operator` is 'Exists'";
                errors.invalid_value(&operator.path, json!(value.text()), detail);
            }
            "Exists" => {}
            "Lt" | "Gt" => errors.not_supported(&operator, &["Equal", "Exists", "Lt", "Gt"]),
            _ => errors.not_supported(&operator, &["Equal", "Exists"]),
        }
        if !effect.is_empty() {
            errors.supported(&effect, TAINT_EFFECTS);
        }
    }
}

/// Adds the errors in the effect of a taint.
pub(super) fn taint_effect(effect: &Field<'_>, errors: &mut Errors) {
    errors.required_of(effect, TAINT_EFFECTS);
}

/// Adds the errors in the topology spread constraints of a Pod.
pub(super) fn topology_spread_constraints(list: &Field<'_>, errors: &mut Errors) {
    let constraints: Vec<Field<'_>> = list.items().collect();
    for (index, constraint) in constraints.iter().enumerate() {
        let (skew, key) = (constraint.get("maxSkew"), constraint.get("topologyKey"));
        let action = constraint.get("whenUnsatisfiable");
        if skew.int() <= 0 {
            errors.invalid_int(&skew, "must be greater than zero");
        }
        if key.text().is_empty() {
            errors.required(&key, "can not be empty");
        }
        errors.supported(&action, &["DoNotSchedule", "ScheduleAnyway"]);
        let mut others = constraints.iter().skip(index + 1);
        let is_repeated = others.any(|other| {
            other.get("topologyKey").text() == key.text()
                && other.get("whenUnsatisfiable").text() == action.text()
        });
        if is_repeated {
            let path = constraint.join("{topologyKey, whenUnsatisfiable}");
            errors.duplicate(path, &format!("{{{}, {}}}", key.text(), action.text()));
        }
        let domains = constraint.get("minDomains");
        if domains.is_set() {
            if domains.int() <= 0 {
                errors.invalid_int(&domains, "must be greater than zero");
            }
            if action.text() != "DoNotSchedule" {
                let detail = format!(
                    "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {}",
                    action.text()
                );
                errors.invalid(&domains, &detail);
            }
        }
        for policy in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            errors.supported_if_set(&constraint.get(policy), &["Honor", "Ignore"]);
        }
        label_keys(constraint, errors);
        selectors::selector(&constraint.get("labelSelector"), errors);
    }
}
