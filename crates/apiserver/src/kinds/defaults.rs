//! Default values of fields of the built-in kinds, as far as no OpenAPI document publishes them.
//!
//! `data/defaults.txt` lists the defaults as rules, and documents the format of the rules. Defaults
//! that depend on several fields are [`functions`]. A rule sets only fields that are not set, so
//! applying the rules a second time has no effect.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::{Map, Value};

use super::{Kind, sections};

mod functions;
mod qos;
#[cfg(test)]
mod tests;

pub(crate) use qos::qos_class;

const TEXT: &str = include_str!("../../data/defaults.txt");

/// One rule: a line of `data/defaults.txt`.
#[derive(Debug)]
struct Rule {
    path: Vec<Step>,
    action: Action,
    condition: Option<Condition>,
}

#[derive(Debug)]
enum Step {
    Field(&'static str),
    /// All items of the list in the field with this name.
    Each(&'static str),
}

#[derive(Debug)]
enum Action {
    /// Sets the field with this name to this value, unless the field is set.
    Set(&'static str, Value),
    /// Applies the shared rules or the function with this name to the object at the path.
    Apply(&'static str),
}

/// A condition on another field of the object in which a rule sets a field.
#[derive(Debug)]
struct Condition {
    field: &'static str,
    /// The accepted values of the field. If the list is empty, any value is accepted, but the field
    /// must be set.
    values: Vec<&'static str>,
    negated: bool,
}

static RULES: LazyLock<BTreeMap<&'static str, Vec<Rule>>> = LazyLock::new(|| {
    let sections = sections(TEXT).into_iter();
    sections
        .map(|(name, lines)| (name, lines.into_iter().filter_map(Rule::parse).collect()))
        .collect()
});

/// Sets the defaults of an object of a built-in kind. The object must have its name, namespace and
/// UID already. Custom kinds are not handled by this function: their defaults are in the schema of
/// the CRD.
pub(crate) fn apply(kind: &Kind, object: &mut Value) {
    if !kind.is_custom() {
        apply_section(&kind.resource_line(), object);
    }
}

fn apply_section(name: &str, object: &mut Value) {
    for rule in RULES.get(name).into_iter().flatten() {
        rule.apply(&rule.path, object);
    }
}

impl Rule {
    /// Parses a line of `data/defaults.txt`. Returns `None` if the line is not a valid rule; a test
    /// checks that all lines are valid.
    fn parse(line: &'static str) -> Option<Self> {
        let (path, rest) = line.split_once(": ")?;
        let (rest, condition) = match (rest.rsplit_once(" if "), rest.rsplit_once(" unless ")) {
            (Some((rest, condition)), _) => (rest, Some(Condition::parse(condition, false))),
            (None, Some((rest, condition))) => (rest, Some(Condition::parse(condition, true))),
            (None, None) => (rest, None),
        };
        let mut path: Vec<Step> = match path {
            "." => Vec::new(),
            path => path.split('.').map(Step::parse).collect(),
        };
        let action = if rest.starts_with('@') {
            Action::Apply(rest)
        } else {
            let Some(Step::Field(field)) = path.pop() else {
                return None;
            };
            Action::Set(field, serde_json::from_str(rest).ok()?)
        };
        Some(Self {
            path,
            action,
            condition,
        })
    }

    /// Applies the rule to every object that `path` leads to, starting from `object`.
    fn apply(&self, path: &[Step], object: &mut Value) {
        match path.split_first() {
            None => self.act(object),
            Some((Step::Field(field), rest)) => {
                if let Some(value) = object.get_mut(*field) {
                    self.apply(rest, value);
                }
            }
            Some((Step::Each(field), rest)) => {
                let items = object.get_mut(*field).and_then(Value::as_array_mut);
                for item in items.into_iter().flatten() {
                    self.apply(rest, item);
                }
            }
        }
    }

    fn act(&self, object: &mut Value) {
        let Some(fields) = object.as_object_mut() else {
            return;
        };
        if self
            .condition
            .as_ref()
            .is_some_and(|condition| !condition.holds(fields))
        {
            return;
        }
        match &self.action {
            Action::Set(field, value) => {
                if fields.get(*field).is_none_or(Value::is_null) {
                    fields.insert((*field).to_owned(), value.clone());
                }
            }
            Action::Apply(name) if RULES.contains_key(name) => apply_section(name, object),
            Action::Apply(name) => {
                let function = functions::find(name);
                debug_assert!(function.is_some(), "no function {name}");
                if let Some(function) = function {
                    function(fields);
                }
            }
        }
    }
}

impl Step {
    fn parse(step: &'static str) -> Self {
        step.strip_suffix("[]")
            .map_or(Self::Field(step), Self::Each)
    }
}

impl Condition {
    fn parse(text: &'static str, negated: bool) -> Self {
        let (field, values) = text.split_once('=').unwrap_or((text, ""));
        let values = values
            .split('|')
            .filter(|value| !value.is_empty())
            .collect();
        Self {
            field,
            values,
            negated,
        }
    }

    fn holds(&self, fields: &Map<String, Value>) -> bool {
        let is_one = match fields.get(self.field) {
            None | Some(Value::Null) => false,
            Some(Value::Array(items)) if items.is_empty() => false,
            Some(_) if self.values.is_empty() => true,
            Some(value) => value
                .as_str()
                .is_some_and(|value| self.values.contains(&value)),
        };
        is_one != self.negated
    }
}
