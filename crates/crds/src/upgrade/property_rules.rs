//! Rules about the keywords of one schema. Each rule removes its keywords from both schemas; a
//! difference that is left afterwards is unhandled.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Verdict;
use super::schema::Properties;

/// Name of a rule, its verdict, and the change in words.
type Judgement = (&'static str, Verdict, String);

/// Limits that must not be lowered.
const MAXIMA: &[&str] = &["maximum", "maxItems", "maxLength", "maxProperties"];
/// Limits that must not be raised.
const MINIMA: &[&str] = &["minimum", "minItems", "minLength", "minProperties"];
/// Keywords that do not affect which values are valid.
const ANNOTATIONS: &[&str] = &["description", "example", "externalDocs", "title"];

/// Returns the judgements about the change from one schema to another, without their properties and
/// items.
pub(super) fn judge(mut old: Properties, mut new: Properties) -> Vec<Judgement> {
    let mut judgements = Vec::new();
    let mut judge = |rule: &'static str, judged: Option<(Verdict, String)>| {
        judgements.extend(judged.map(|(verdict, message)| (rule, verdict, message)));
    };
    // OLM does not judge descriptions.
    let _ = (old.remove("description"), new.remove("description"));
    let mut take = |keyword: &str| (old.remove(keyword), new.remove(keyword));
    judge("default", default(take("default")));
    judge("enum", enumeration(take("enum")));
    for maximum in MAXIMA {
        judge(maximum, limit("maximum", take(maximum), Limit::Maximum));
    }
    for minimum in MINIMA {
        judge(minimum, limit("minimum", take(minimum), Limit::Minimum));
    }
    judge("nullable", nullable(take("nullable")));
    judge("oneOf", one_of(take("oneOf")));
    judge("pattern", pattern(take("pattern")));
    judge("required", required(take("required")));
    judge("type", type_(take("type")));
    judge("unhandled", unhandled(&old, &new));
    judgements
}

type Pair = (Option<Value>, Option<Value>);

fn breaking(message: String) -> Option<(Verdict, String)> {
    Some((Verdict::Breaking, message))
}

fn compatible(message: String) -> Option<(Verdict, String)> {
    Some((Verdict::Compatible, message))
}

fn default(pair: Pair) -> Option<(Verdict, String)> {
    match pair {
        (None, Some(new)) => breaking(format!("default added: {new}")),
        (Some(old), None) => breaking(format!("default removed: {old}")),
        (Some(old), Some(new)) if old != new => {
            breaking(format!("default changed: {old} -> {new}"))
        }
        _ => None,
    }
}

fn enumeration((old, new): Pair) -> Option<(Verdict, String)> {
    let (old, new) = (texts(old), texts(new));
    let difference = |left: &BTreeSet<String>, right: &BTreeSet<String>| {
        let texts: Vec<_> = left.difference(right).cloned().collect();
        texts.join(", ")
    };
    let (removed, added) = (difference(&old, &new), difference(&new, &old));
    match () {
        () if old.is_empty() && !new.is_empty() => {
            breaking(format!("enum added where there was none: {added}"))
        }
        () if !removed.is_empty() => breaking(format!("enum values removed: {removed}")),
        () if !added.is_empty() => compatible(format!("enum values added: {added}")),
        () => None,
    }
}

/// Returns the items of a list as JSON texts.
fn texts(list: Option<Value>) -> BTreeSet<String> {
    let items = list.as_ref().and_then(Value::as_array);
    items.into_iter().flatten().map(Value::to_string).collect()
}

#[derive(Clone, Copy, PartialEq)]
enum Limit {
    Maximum,
    Minimum,
}

fn limit(noun: &str, pair: Pair, limit: Limit) -> Option<(Verdict, String)> {
    match pair {
        (None, Some(new)) => breaking(format!("{noun} added where there was none: {new}")),
        (Some(old), None) => compatible(format!("{noun} removed: {old}")),
        (Some(old), Some(new)) => {
            let (before, after) = (old.as_f64()?, new.as_f64()?);
            let is_lower = after < before;
            match (after == before, is_lower) {
                (true, _) => None,
                (false, is_lower) => {
                    let verb = if is_lower { "decreased" } else { "increased" };
                    let message = format!("{noun} {verb}: {old} -> {new}");
                    let is_breaking = is_lower == (limit == Limit::Maximum);
                    match is_breaking {
                        true => breaking(message),
                        false => compatible(message),
                    }
                }
            }
        }
        (None, None) => None,
    }
}

fn nullable(pair: Pair) -> Option<(Verdict, String)> {
    match pair {
        (None, Some(_)) => breaking("nullable added".to_owned()),
        (Some(_), None) => breaking("nullable removed".to_owned()),
        _ => None,
    }
}

fn one_of((old, new): Pair) -> Option<(Verdict, String)> {
    let schemas = |list: Option<Value>| {
        let mut list = list.unwrap_or_default();
        for schema in list.as_array_mut().into_iter().flatten() {
            if let Value::Object(schema) = schema {
                for annotation in ANNOTATIONS {
                    schema.remove(*annotation);
                }
            }
        }
        texts(Some(list))
    };
    let (old, new) = (schemas(old), schemas(new));
    match () {
        () if old == new => None,
        () if old.is_empty() => breaking("oneOf added where there was none".to_owned()),
        () if old.difference(&new).next().is_some() => breaking("oneOf schemas removed".to_owned()),
        () => breaking("oneOf schemas added".to_owned()),
    }
}

fn pattern(pair: Pair) -> Option<(Verdict, String)> {
    match pair {
        (None, Some(new)) => breaking(format!("pattern added: {new}")),
        (Some(old), None) => breaking(format!("pattern removed: {old}")),
        (Some(old), Some(new)) if old != new => {
            breaking(format!("pattern changed: {old} -> {new}"))
        }
        _ => None,
    }
}

fn required((old, new): Pair) -> Option<(Verdict, String)> {
    let names = |list: Option<Value>| -> BTreeSet<String> {
        let names = list.as_ref().and_then(Value::as_array);
        let names = names.into_iter().flatten().filter_map(Value::as_str);
        names.map(str::to_owned).collect()
    };
    let (old, new) = (names(old), names(new));
    let join = |left: &BTreeSet<String>, right: &BTreeSet<String>| {
        let names: Vec<_> = left.difference(right).cloned().collect();
        names.join(", ")
    };
    let (added, removed) = (join(&new, &old), join(&old, &new));
    match (added.is_empty(), removed.is_empty()) {
        (false, _) => breaking(format!("new required fields: {added}")),
        (true, false) => compatible(format!("no longer required: {removed}")),
        (true, true) => None,
    }
}

fn type_((old, new): Pair) -> Option<(Verdict, String)> {
    let name = |value: Option<Value>| match value {
        Some(Value::String(name)) => name,
        _ => "any".to_owned(),
    };
    let (old, new) = (name(old), name(new));
    match old == new {
        true => None,
        false => breaking(format!("type changed: {old} -> {new}")),
    }
}

/// Judges what the other rules have left.
fn unhandled(old: &Properties, new: &Properties) -> Option<(Verdict, String)> {
    let keywords: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let different = keywords
        .into_iter()
        .filter(|it| old.get(*it) != new.get(*it));
    let changes: Vec<String> = different
        .map(|keyword| {
            let show = |value: Option<&Value>| value.map_or("none".to_owned(), Value::to_string);
            format!(
                "{keyword}: {} -> {}",
                show(old.get(keyword)),
                show(new.get(keyword))
            )
        })
        .collect();
    match changes.is_empty() {
        true => None,
        false => Some((
            Verdict::Unhandled,
            format!("no rule judges {}", changes.join("; ")),
        )),
    }
}
