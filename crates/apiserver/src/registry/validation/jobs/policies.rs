//! Validation of the policies of a Job for failed and succeeded Pods.

use serde_json::{Value, json};

use super::super::field::{Errors, Field};
use super::super::format;

const ACTIONS: &[&str] = &["Count", "FailIndex", "FailJob", "Ignore"];
const STATUSES: &[&str] = &["False", "True", "Unknown"];
const OPERATORS: &[&str] = &["In", "NotIn"];
/// Maximum number of rules in a policy.
const RULES_MAX: usize = 20;
/// Maximum number of exit codes in a rule.
const EXIT_CODES_MAX: usize = 255;
const INDEXES_MAX: usize = 64 * 1024;

fn valid_values(values: &[&str]) -> String {
    let quoted: Vec<String> = values.iter().map(|value| format!("{value:?}")).collect();
    format!("valid values: [{}]", quoted.join(" "))
}

/// Adds the errors in the policy for failed Pods.
pub(super) fn pod_failure_policy(spec: &Field<'_>, policy: &Field<'_>, errors: &mut Errors) {
    let rules = policy.get("rules");
    errors.not_more(&rules, RULES_MAX);
    let pod = spec.at(&["template", "spec"]);
    let lists = ["containers", "initContainers"].into_iter();
    let names = lists.flat_map(|list| pod.get(list).items());
    let names: Vec<&str> = names
        .map(|container| container.get("name").text())
        .collect();
    for rule in rules.items() {
        let action = rule.get("action");
        match action.text() {
            "" => errors.required(&action, &valid_values(ACTIONS)),
            "FailIndex" if !spec.get("backoffLimitPerIndex").is_set() => {
                let detail = "requires the backoffLimitPerIndex to be set";
                errors.invalid(&action, detail);
            }
            _ => errors.supported(&action, ACTIONS),
        }
        let (codes, conditions) = (rule.get("onExitCodes"), rule.get("onPodConditions"));
        if codes.is_set() {
            exit_codes(&codes, &names, errors);
        }
        errors.not_more(&conditions, RULES_MAX);
        for condition in conditions.items() {
            let (type_, status) = (condition.get("type"), condition.get("status"));
            errors.rules(&type_, format::qualified_name(type_.text()));
            match status.text() {
                "" => errors.required(&status, &valid_values(STATUSES)),
                _ => errors.supported(&status, STATUSES),
            }
        }
        let detail = match (codes.is_set(), !conditions.is_empty()) {
            (true, true) => "specifying both OnExitCodes and OnPodConditions is not supported",
            (false, false) => "specifying one of OnExitCodes and OnPodConditions is required",
            _ => continue,
        };
        errors.invalid_printed(&rule.path, "", detail);
    }
}

fn exit_codes(codes: &Field<'_>, containers: &[&str], errors: &mut Errors) {
    let operator = codes.get("operator");
    match operator.text() {
        "" => errors.required(&operator, &valid_values(OPERATORS)),
        _ => errors.supported(&operator, OPERATORS),
    }
    let container = codes.get("containerName");
    if container.is_set() && !containers.contains(&container.text()) {
        let detail = "must be one of the container or initContainer names in the pod template";
        errors.invalid(&container, detail);
    }
    let values = codes.get("values");
    if values.is_empty() {
        errors.invalid(&values, "at least one value is required");
    }
    errors.not_more(&values, EXIT_CODES_MAX);
    let mut seen: Vec<i64> = Vec::new();
    let mut is_ordered = true;
    for value in values.items() {
        let code = value.int();
        if operator.text() == "In" && code == 0 {
            errors.invalid(&value, "must not be 0 for the In operator");
        }
        if seen.contains(&code) {
            let error = opkit_apimachinery::structural::FieldError::duplicate(
                value.path.clone(),
                value.value,
            );
            errors.0.push(error);
        }
        is_ordered &= seen.last().is_none_or(|last| *last <= code);
        seen.push(code);
    }
    if !is_ordered {
        errors.invalid(&values, "must be ordered");
    }
}

/// Adds the errors in the policy for succeeded Pods.
pub(super) fn success_policy(spec: &Field<'_>, policy: &Field<'_>, errors: &mut Errors) {
    let rules = policy.get("rules");
    if rules.is_empty() {
        let detail = "at least one rules must be specified when the successPolicy is specified";
        errors.required(&rules, detail);
    }
    errors.not_more(&rules, RULES_MAX);
    let completions = spec.get("completions").int();
    for rule in rules.items() {
        let (count, indexes) = (rule.get("succeededCount"), rule.get("succeededIndexes"));
        if !count.is_set() && !indexes.is_set() {
            let detail = "at least one of succeededCount or succeededIndexes must be specified";
            errors.required(&rule, detail);
        }
        errors.not_longer(&indexes, INDEXES_MAX);
        let total = match total_indexes(indexes.text(), completions) {
            Ok(total) => total,
            Err(error) => {
                let detail = format!("error parsing succeededIndexes: {error}");
                errors.invalid(&indexes, &detail);
                0
            }
        };
        errors.not_negative(&count);
        if count.int() > completions {
            let detail = format!(
                "must be less than or equal to {completions} (the number of specified completions)"
            );
            errors.invalid(&count, &detail);
        }
        if indexes.is_set() && count.int() > total {
            let detail = format!(
                "must be less than or equal to {total} (the number of indexes in the specified \
                 succeededIndexes field)"
            );
            errors.invalid(&count, &detail);
        }
    }
}

/// Prints a success policy as Kubernetes prints its internal type.
pub(super) fn printed_success_policy(policy: &Field<'_>) -> String {
    let rules = policy.get("rules");
    if rules.value == &Value::Null {
        return "{\"Rules\":null}".to_owned();
    }
    let rules = rules.items().map(|rule| {
        format!(
            "{{\"SucceededIndexes\":{},\"SucceededCount\":{}}}",
            json!(rule.get("succeededIndexes").value),
            rule.get("succeededCount").value
        )
    });
    let rules: Vec<String> = rules.collect();
    format!("{{\"Rules\":[{}]}}", rules.join(","))
}

/// Returns the number of indexes in a list of intervals such as `0,2-4`.
fn total_indexes(text: &str, completions: i64) -> Result<i64, String> {
    let mut last: Option<i64> = None;
    let mut total = 0;
    for interval in text.split(',').filter(|_| !text.is_empty()) {
        let (first, end) = index_interval(interval, completions)?;
        if let Some(last) = last.filter(|last| *last >= first) {
            let detail = format!("non-increasing order, previous: {last}, current: {first}");
            return Err(detail);
        }
        total += end - first + 1;
        last = Some(end);
    }
    Ok(total)
}

fn index_interval(interval: &str, completions: i64) -> Result<(i64, i64), String> {
    let mut parts = interval.split('-');
    let (first, second) = (parts.next().unwrap_or_default(), parts.next());
    if parts.next().is_some() {
        return Err(format!(
            "the fragment {interval:?} violates the requirement that an index interval can have \
             at most two parts separated by '-'"
        ));
    }
    let index = |text: &str| {
        let number: i64 = text
            .parse()
            .map_err(|_| format!("cannot convert string to integer for index: {text:?}"))?;
        match number >= completions {
            true => Err(format!("too large index: {text:?}")),
            false => Ok(number),
        }
    };
    let first = index(first)?;
    let Some(second) = second else {
        return Ok((first, first));
    };
    let second = index(second)?;
    match first >= second {
        true => Err(format!(
            "non-increasing order, previous: {first}, current: {second}"
        )),
        false => Ok((first, second)),
    }
}
