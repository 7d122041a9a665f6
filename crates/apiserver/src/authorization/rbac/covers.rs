//! Comparison of rules: a user can grant only rules that the user's own rules cover.

use std::collections::BTreeSet;

use super::Rule;
use super::rule::{covers_url, has};
use crate::gotext::quoted_list;

/// Returns the parts of `granted` that no rule in `owned` covers. Each part has one verb, and one
/// resource or URL.
pub(crate) fn uncovered(owned: &[Rule], granted: &[Rule]) -> Vec<Rule> {
    let parts = granted.iter().flat_map(break_down);
    parts
        .filter(|part| !owned.iter().any(|rule| covers(rule, part)))
        .collect()
}

/// Returns the missing rules as Kubernetes lists them in the error for an escalation: one rule per
/// line, sorted.
pub(crate) fn describe_missing(missing: &[Rule]) -> String {
    let lines: BTreeSet<String> = compact(missing).iter().map(text).collect();
    let lines: Vec<String> = lines.into_iter().collect();
    lines.join("\n")
}

/// Splits a rule into rules with one verb, one group, one resource and one name, or one verb and
/// one URL.
fn break_down(rule: &Rule) -> Vec<Rule> {
    let one = |text: &String| vec![text.clone()];
    let mut parts = Vec::new();
    for group in &rule.api_groups {
        for resource in &rule.resources {
            for verb in &rule.verbs {
                let part = Rule {
                    api_groups: one(group),
                    resources: one(resource),
                    verbs: one(verb),
                    ..Rule::default()
                };
                if rule.resource_names.is_empty() {
                    parts.push(part);
                    continue;
                }
                parts.extend(rule.resource_names.iter().map(|name| Rule {
                    resource_names: one(name),
                    ..part.clone()
                }));
            }
        }
    }
    for url in &rule.non_resource_urls {
        parts.extend(rule.verbs.iter().map(|verb| Rule {
            non_resource_urls: one(url),
            verbs: one(verb),
            ..Rule::default()
        }));
    }
    parts
}

/// Reports whether `rule` covers `part`, a result of [`break_down`].
fn covers(rule: &Rule, part: &Rule) -> bool {
    let has_all = |owned: &[String], wanted: &[String]| {
        has(owned, "*") || wanted.iter().all(|text| has(owned, text))
    };
    let names = &rule.resource_names;
    has_all(&rule.verbs, &part.verbs)
        && has_all(&rule.api_groups, &part.api_groups)
        && part
            .resources
            .iter()
            .all(|resource| covers_resource(rule, resource))
        && part.non_resource_urls.iter().all(|path| {
            let mut urls = rule.non_resource_urls.iter();
            urls.any(|url| covers_url(url, path))
        })
        && match part.resource_names.as_slice() {
            [] => names.is_empty(),
            wanted => names.is_empty() || wanted.iter().all(|name| has(names, name)),
        }
}

fn covers_resource(rule: &Rule, resource: &str) -> bool {
    let owned = &rule.resources;
    if has(owned, "*") || has(owned, resource) {
        return true;
    }
    let subresource = resource.split_once('/').map(|(_, subresource)| subresource);
    subresource.is_some_and(|subresource| {
        owned
            .iter()
            .any(|owned| owned.strip_prefix("*/") == Some(subresource))
    })
}

/// Combines rules for one resource that differ only in their verbs.
fn compact(rules: &[Rule]) -> Vec<Rule> {
    let mut compacted: Vec<Rule> = Vec::with_capacity(rules.len());
    for rule in rules {
        let is_simple = rule.non_resource_urls.is_empty();
        let same = compacted.iter_mut().find(|known| {
            is_simple
                && known.non_resource_urls.is_empty()
                && known.api_groups == rule.api_groups
                && known.resources == rule.resources
                && known.resource_names == rule.resource_names
        });
        match same {
            Some(same) => same.verbs.extend(rule.verbs.iter().cloned()),
            None => compacted.push(rule.clone()),
        }
    }
    compacted
}

/// Formats a rule as Kubernetes does in the error for an escalation.
fn text(rule: &Rule) -> String {
    let fields = [
        ("APIGroups", &rule.api_groups),
        ("Resources", &rule.resources),
        ("NonResourceURLs", &rule.non_resource_urls),
        ("ResourceNames", &rule.resource_names),
        ("Verbs", &rule.verbs),
    ];
    let parts: Vec<String> = fields
        .iter()
        .filter(|(_, values)| !values.is_empty())
        .map(|(name, values)| format!("{name}:{}", quoted_list(values)))
        .collect();
    format!("{{{}}}", parts.join(", "))
}
