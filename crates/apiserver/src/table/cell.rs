//! The cells of a Table.
//!
//! `data/cells.txt` has a rule for each column, which computes the cells. A rule is one of:
//!
//! - a path (`.spec.nodeName`), or a name with arguments
//!   (`ratio .status.readyReplicas .spec.replicas`);
//! - `RULE else TEXT`: the text of the cell if the rule finds no value.
//!
//! If a rule without `else` finds no value, the cell is the zero value of the column's type: 0,
//! false or an empty string.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::path::jsonpath;
use super::{cluster, duration, event, network, pod, workload};
use crate::kinds::Column;

/// Returns the value of the cell for `object` in `column`.
pub(super) fn evaluate(column: &Column, object: &Value, now: Timestamp) -> Value {
    if let Some(path) = column.cell.strip_prefix("column ") {
        return custom(&column.type_, jsonpath(object, path).first().copied(), now);
    }
    let cell = match (column.cell.as_str(), column.name.as_str()) {
        ("", "Name") => ".metadata.name",
        ("", "Age") => "age",
        ("", "Created At") => ".metadata.creationTimestamp",
        ("", _) => return Value::Null,
        (cell, _) => cell,
    };
    let (rule, otherwise) = match cell.split_once(" else ") {
        Some((rule, otherwise)) => (rule, Some(otherwise)),
        None => (cell, None),
    };
    match (find(rule, object, now), otherwise) {
        (Some(value), _) if value != "" && !value.is_null() => value,
        (_, Some(otherwise)) => Value::from(otherwise),
        (_, None) => match column.type_.as_str() {
            "integer" => json!(0),
            "boolean" => json!(false),
            _ => json!(""),
        },
    }
}

/// Returns the value that a rule of `data/cells.txt` finds in `object`.
fn find(rule: &str, object: &Value, now: Timestamp) -> Option<Value> {
    let mut words = rule.split_whitespace();
    let name = words.next()?;
    let first = words.next().unwrap_or_default();
    let second = words.next().unwrap_or_default();
    let found = |path: &str| jsonpath(object, path).first().copied();
    let text = match name {
        path if path.starts_with('.') => return found(path).cloned(),
        "boolean" => return Some(json!(found(first).is_some_and(|value| *value == true))),
        "count" => {
            return Some(json!(
                count(object, first).saturating_add(count(object, second))
            ));
        }
        "event-count" => return Some(json!(event::count(object))),
        "int" => return Some(json!(integer(object, first))),
        "age" => since(object, ".metadata.creationTimestamp", now).or(Some("<unknown>".to_owned())),
        "boolean-text" => {
            found(first).map(|value| if *value == true { "True" } else { "False" }.to_owned())
        }
        "join" => {
            let all = jsonpath(object, first).into_iter().map(print);
            Some(all.collect::<Vec<_>>().join(","))
        }
        "labels" => found(first).map(format_labels),
        "pair" => found(first).map(|left| format!("{}/{}", print(left), string(object, second))),
        "ratio" => Some(format!(
            "{}/{}",
            integer(object, first),
            integer(object, second)
        )),
        "seconds" => {
            let seconds = found(first).and_then(Value::as_i64);
            seconds.map(duration::human_seconds)
        }
        "selector" => found(first).map(format_selector),
        "since" => since(object, first, now),
        "trimmed" => Some(string(object, first).trim().to_owned()),
        _ => computed(name, first, object, now),
    };
    text.map(Value::from)
}

/// Returns the text of a cell that the function with this name in `data/cells.txt` computes.
fn computed(name: &str, argument: &str, object: &Value, now: Timestamp) -> Option<String> {
    Some(match name {
        "access-modes" => cluster::access_modes(items(object, argument)),
        "api-service" => cluster::api_service(object),
        "api-service-available" => cluster::api_service_available(object),
        "controller" => return workload::controller(object),
        "csr-condition" => cluster::csr_condition(object),
        "default-class" => cluster::default_class(object, argument),
        "endpoint-addresses" => network::endpoint_addresses(object),
        "endpoint-ports" => network::endpoint_ports(object),
        "endpoints" => network::endpoints(object),
        "event-first-seen" => event::first_seen(object, now),
        "event-last-seen" => event::last_seen(object, now),
        "event-object" => event::object(object),
        "event-source" => event::source(object),
        "external-ip" => network::external_ip(object),
        "hpa-targets" => workload::hpa_targets(object),
        "ingress-hosts" => network::ingress_hosts(object),
        "ingress-parameters" => return network::ingress_parameters(object),
        "ingress-ports" => network::ingress_ports(object),
        "job-completions" => workload::job_completions(object),
        "job-duration" => return workload::job_duration(object, now),
        "job-status" => workload::job_status(object).to_owned(),
        "kernel" => cluster::kernel(object),
        "load-balancer" => network::load_balancer(object),
        "node-roles" => cluster::node_roles(object),
        "node-status" => cluster::node_status(object),
        "param-reference" => return cluster::param_reference(object),
        "parent-reference" => return network::parent_reference(object),
        "phase" => cluster::phase(object),
        "pod-readiness-gates" => return pod::readiness_gates(object),
        "pod-ready" => pod::Summary::of(object).ready,
        "pod-restarts" => pod::Summary::of(object).restarts(now),
        "pod-status" => pod::Summary::of(object).status,
        "quota" => cluster::quota(object, argument == "limits"),
        "resource-claim-state" => cluster::resource_claim_state(object),
        "service-ports" => network::service_ports(object),
        "subjects" => cluster::subjects(object, argument),
        _ => {
            debug_assert!(false, "no rule {name}");
            return None;
        }
    })
}

/// Returns the cell of a custom resource for a value. The cell is null if the value does not have
/// the type of the column.
fn custom(type_: &str, value: Option<&Value>, now: Timestamp) -> Value {
    let Some(value) = value.filter(|value| !value.is_null()) else {
        return Value::Null;
    };
    match (type_, value) {
        ("integer", Value::Number(number)) => match number.as_i64() {
            Some(number) => json!(number),
            #[allow(
                clippy::cast_possible_truncation,
                reason = "the API server truncates as well"
            )]
            None => number
                .as_f64()
                .map_or(Value::Null, |number| json!(number as i64)),
        },
        ("number", Value::Number(_)) | ("boolean", Value::Bool(_)) => value.clone(),
        ("string", value) => Value::from(print(value)),
        ("date", Value::String(text)) => match text.parse::<Timestamp>() {
            Ok(since) => Value::from(duration::human(since, now)),
            Err(_) => Value::from("<invalid>"),
        },
        _ => Value::Null,
    }
}

/// Returns a value as text: a string without quotes, other values as JSON.
pub(super) fn print(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

/// Returns the string at a JSONPath, or an empty string if the field is missing.
pub(super) fn string<'a>(object: &'a Value, path: &str) -> &'a str {
    jsonpath(object, path)
        .first()
        .and_then(|value| value.as_str())
        .unwrap_or_default()
}

/// Returns the integer at a JSONPath, or 0 if the field is missing.
pub(super) fn integer(object: &Value, path: &str) -> i64 {
    jsonpath(object, path)
        .first()
        .and_then(|value| value.as_i64())
        .unwrap_or_default()
}

/// Returns the items of the list at a JSONPath, or an empty list if the field is missing.
pub(super) fn items<'a>(object: &'a Value, path: &str) -> &'a [Value] {
    let found = jsonpath(object, path)
        .first()
        .and_then(|value| value.as_array());
    found.map(Vec::as_slice).unwrap_or_default()
}

/// Returns the time at a JSONPath.
pub(super) fn time(object: &Value, path: &str) -> Option<Timestamp> {
    string(object, path).parse().ok()
}

/// Returns the duration since the time at a JSONPath, in the format of kubectl.
pub(super) fn since(object: &Value, path: &str, now: Timestamp) -> Option<String> {
    time(object, path).map(|since| duration::human(since, now))
}

/// Returns the number of items of the list, or fields of the map, at a JSONPath.
fn count(object: &Value, path: &str) -> usize {
    match jsonpath(object, path).first() {
        Some(Value::Object(fields)) if !path.is_empty() => fields.len(),
        Some(Value::Array(items)) => items.len(),
        _ => 0,
    }
}

/// Returns labels as text, sorted by key, such as `a=b,c=d`.
fn format_labels(labels: &Value) -> String {
    let labels = labels.as_object().into_iter().flatten();
    labels
        .map(|(key, value)| format!("{key}={}", print(value)))
        .collect::<Vec<_>>()
        .join(",")
}

/// Returns a LabelSelector as text, sorted by key, such as `app=web,tier in (a,b),!gone`.
pub(super) fn format_selector(selector: &Value) -> String {
    let mut requirements: Vec<(String, String)> = Vec::new();
    for (key, value) in selector
        .get("matchLabels")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        requirements.push((key.clone(), format!("{key}={}", print(value))));
    }
    for expression in items(selector, ".matchExpressions") {
        let key = string(expression, ".key");
        let mut values: Vec<String> = items(expression, ".values").iter().map(print).collect();
        values.sort();
        let values = values.join(",");
        let text = match string(expression, ".operator") {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "Exists" => key.to_owned(),
            _ => format!("!{key}"),
        };
        requirements.push((key.to_owned(), text));
    }
    requirements.sort();
    requirements
        .into_iter()
        .map(|(_, text)| text)
        .collect::<Vec<_>>()
        .join(",")
}
