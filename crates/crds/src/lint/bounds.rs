//! Lists, maps and texts without a limit that the cost of a CEL rule depends on.

use super::Findings;
use super::field_rules::rules;
use crate::fields::{Field, text};

/// Checks the fields of a version: those around a rule, which is evaluated for each of their items,
/// and those below a rule, whose size the rule may depend on.
pub(super) fn check(fields: &[Field<'_>], findings: &mut Findings) {
    let ruled: Vec<_> = fields
        .iter()
        .filter(|field| rules(field.schema).next().is_some())
        .collect();
    for field in fields {
        let Some(missing) = missing_bound(field) else {
            continue;
        };
        let around = ruled
            .iter()
            .find(|rule| rule.path != field.path && rule.is_below(&field.path));
        if let Some(rule) = around {
            let message = format!(
                "there is no {missing}, and the rule of {} is evaluated for each item",
                rule.path
            );
            findings.report("unbounded", &field.path, message);
            continue;
        }
        let below = ruled
            .iter()
            .filter(|rule| field.is_below(&rule.path))
            .find(|rule| mentions(rule, field));
        if let Some(rule) = below {
            let place = match rule.path.as_str() {
                "" => "the object",
                path => path,
            };
            let message = format!("there is no {missing}, and a rule of {place} reads it");
            findings.report("unbounded", &field.path, message);
        }
    }
}

/// Returns the keyword that limits the size of a value and is not there.
fn missing_bound(field: &Field<'_>) -> Option<&'static str> {
    let schema = field.schema;
    let without = |keyword: &'static str| schema.get(keyword).is_none().then_some(keyword);
    match field.type_() {
        "array" => without("maxItems"),
        "object" if schema.get("additionalProperties").is_some() => without("maxProperties"),
        // The length of these is known.
        "string" if schema.get("enum").is_some() || !text(schema, "format").is_empty() => None,
        "string" => without("maxLength"),
        _ => None,
    }
}

/// Reports whether a rule of one field contains the name of another, or is its own.
fn mentions(rule: &Field<'_>, field: &Field<'_>) -> bool {
    if rule.path == field.path {
        return true;
    }
    let rest = field.path.strip_prefix(&rule.path).unwrap_or_default();
    let name = rest.trim_start_matches("[*]").trim_start_matches('.');
    let name: String = name
        .chars()
        .take_while(|char| char.is_ascii_alphanumeric() || *char == '_')
        .collect();
    // Items of a list with a rule of its own.
    if name.is_empty() {
        return true;
    }
    rules(rule.schema).any(|it| {
        let expression = text(it, "rule");
        expression
            .split(|char: char| !(char.is_ascii_alphanumeric() || char == '_'))
            .any(|word| word == name)
    })
}
