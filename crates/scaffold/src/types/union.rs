//! Objects of which exactly one alternative is set, by the rules of their schema.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::names;
use super::schema::Schema;

/// Union that a schema describes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Union<'a> {
    /// Field that names the alternative.
    pub(super) tag: Option<&'a str>,
    /// Alternatives: the value of the tag, and the field with the data. Without a tag, both are the
    /// name of the field.
    pub(super) members: Vec<(&'a str, Option<&'a str>)>,
    /// Rules that are not about the alternatives.
    pub(super) rest: Vec<&'a Value>,
    /// Whether the macro writes the rules about the alternatives in another form.
    pub(super) is_reworded: bool,
}

/// Returns the rules that the macro writes for the alternatives.
fn written(tag: Option<&str>, members: &[(&str, Option<&str>)]) -> Vec<Value> {
    let Some(tag) = tag else {
        let names: Vec<&str> = members.iter().map(|(name, _)| *name).collect();
        let tests: Vec<String> = names.iter().map(|it| format!("has(self.{it})")).collect();
        let rule = format!("[{}].filter(x,x==true).size() == 1", tests.join(","));
        let fields = names.join(" ");
        let message = format!("exactly one of the fields in [{fields}] must be set");
        return vec![json!({ "rule": rule, "message": message })];
    };
    let rule = |(value, field): &(&str, Option<&str>)| {
        let field = (*field)?;
        Some(json!({
            "rule": format!("(self.{tag} == '{value}') == has(self.{field})"),
            "message": format!("{field} must be set if {tag} is {value}, and only then"),
            "fieldPath": format!(".{field}"),
        }))
    };
    members.iter().filter_map(rule).collect()
}

/// Returns the union that a schema describes, or `None` if it describes none.
pub(super) fn find(schema: Schema<'_>) -> Option<Union<'_>> {
    let properties = schema.properties()?;
    if properties.len() < 2 {
        return None;
    }
    let is_plain = |name: &str| {
        let field = schema.property(name);
        field.is_some_and(|it| it.get("default").is_none() && !it.is("nullable"))
    };
    if !properties.keys().all(|name| is_plain(name)) {
        return None;
    }
    untagged(schema).or_else(|| tagged(schema))
}

/// Returns the union without a tag of a schema: one rule, or `oneOf`, is about all fields.
fn untagged(schema: Schema<'_>) -> Option<Union<'_>> {
    if !schema.required().is_empty() {
        return None;
    }
    let all: Vec<&str> = schema.properties()?.keys().map(String::as_str).collect();
    let members: Vec<_> = all.iter().map(|name| (*name, Some(*name))).collect();
    let written = written(None, &members);
    let rules = schema.list("x-kubernetes-validations");
    let is_about_all = |rule: &&Value| {
        let text = rule.get("rule").and_then(Value::as_str).unwrap_or_default();
        fields_of_one_of(text).is_some_and(|fields| same(&fields, &all))
    };
    let union = |rest, is_reworded| Union {
        tag: None,
        members,
        rest,
        is_reworded,
    };
    if let Some(found) = rules.iter().find(is_about_all) {
        let rest = rules.iter().filter(|rule| !std::ptr::eq(*rule, found));
        return Some(union(rest.collect(), written != [found.clone()]));
    }
    let alternatives = schema.list("oneOf").iter().map(|alternative| {
        let required = Schema(alternative).texts("required");
        match (
            alternative.as_object().map(serde_json::Map::len),
            required.as_slice(),
        ) {
            (Some(1), [field]) => Some((*field).to_owned()),
            _ => None,
        }
    });
    let fields: Option<Vec<String>> = alternatives.collect();
    let fields = fields.filter(|fields| same(fields, &all))?;
    (!fields.is_empty()).then(|| union(rules.iter().collect(), true))
}

fn same(fields: &[String], all: &[&str]) -> bool {
    let fields: BTreeSet<&str> = fields.iter().map(String::as_str).collect();
    fields == all.iter().copied().collect()
}

/// Returns the fields of a rule that exactly one of them is set, in the form of controller-gen.
fn fields_of_one_of(rule: &str) -> Option<Vec<String>> {
    let tests = rule.strip_prefix('[')?;
    let tests = tests.strip_suffix("].filter(x,x==true).size() == 1")?;
    let field = |test: &str| {
        let name = test.trim().strip_prefix("has(self.")?.strip_suffix(')')?;
        let is_name = |letter: char| letter.is_ascii_alphanumeric();
        name.chars().all(is_name).then(|| name.to_owned())
    };
    tests.split(',').map(field).collect()
}

/// Returns the union with a tag of a schema: the tag is a required enum, and for each other field
/// a rule states for which value it is set.
fn tagged(schema: Schema<'_>) -> Option<Union<'_>> {
    let properties = schema.properties()?;
    let required = schema.required();
    let mut required = required.iter();
    let (Some(tag), None) = (required.next(), required.next()) else {
        return None;
    };
    let values = schema.property(tag)?.enum_values()?;
    let rules = schema.list("x-kubernetes-validations");
    let (mut used, mut members) = (BTreeSet::new(), Vec::new());
    for value in &values {
        let field = names::in_case(&names::pascal(value), "camelCase");
        let field = properties.keys().find(|name| **name == field);
        let field = field.map(String::as_str).filter(|field| field != tag);
        if let Some(field) = field {
            let found = rules_of(rules, tag, value, field)?;
            used.extend(found);
        }
        members.push((*value, field));
    }
    let fields = members.iter().filter(|(_, field)| field.is_some()).count();
    if fields == 0 || fields.saturating_add(1) != properties.len() {
        return None;
    }
    let (replaced, rest): (Vec<_>, Vec<_>) =
        (rules.iter().enumerate()).partition(|(at, _)| used.contains(at));
    let written = written(Some(tag), &members);
    let is_same =
        replaced.len() == written.len() && replaced.iter().all(|(_, rule)| written.contains(rule));
    Some(Union {
        tag: Some(tag),
        members,
        rest: rest.into_iter().map(|(_, rule)| rule).collect(),
        is_reworded: !is_same,
    })
}

/// Returns the positions of the rules which state that `field` is set if the tag has this value,
/// and only then.
fn rules_of(rules: &[Value], tag: &str, value: &str, field: &str) -> Option<Vec<usize>> {
    let find = |forms: &[String]| {
        rules.iter().position(|rule| {
            let text = rule.get("rule").and_then(Value::as_str).unwrap_or_default();
            let plain: String = text.split_whitespace().collect();
            forms.contains(&plain.replace('"', "'"))
        })
    };
    let (is, has) = (
        format!("self.{tag}=='{value}'"),
        format!("has(self.{field})"),
    );
    let is_not = format!("self.{tag}!='{value}'");
    let both = find(&[
        format!("({is})=={has}"),
        format!("{has}==({is})"),
        format!("{is}?{has}:!{has}"),
        format!("has(self.{tag})&&{is}?{has}:!{has}"),
    ]);
    if let Some(both) = both {
        return Some(vec![both]);
    }
    let only = find(&[format!("!({has}&&{is_not})"), format!("!{has}||{is}")])?;
    let always = find(&[
        format!("!(!{has}&&{is})"),
        format!("{is_not}||{has}"),
        format!("{has}||{is_not}"),
    ])?;
    Some(vec![only, always])
}
