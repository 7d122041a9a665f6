//! Objects that are written again and again: two clients that change a field back, or a status that
//! changes with each reconcile.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::looks::Seen;
use crate::value::{items, located, text};
use crate::{Facts, Finding, Look};

/// Number of looks in which an object must have changed each time.
const LOOKS_MIN: usize = 4;

pub(super) fn check(facts: &Facts) -> Vec<Finding> {
    let loops = facts.instances.iter().filter_map(|object| {
        let uid = text(object, "/metadata/uid");
        let seen = |look: &Look| look.objects.get(uid).cloned();
        // An object that was created between two looks is not in all of them.
        let looks: Option<Vec<Seen>> = facts.looks.iter().map(seen).collect();
        let looks = looks?;
        let finding = contested(object, &looks).or_else(|| busy(object, &looks))?;
        let logs = super::logs_about(facts, object);
        Some(finding.about(object).command(logs))
    });
    super::limited("loop", loops.collect())
}

/// Finds a field whose owner changes and changes back.
fn contested(object: &Value, looks: &[Seen]) -> Option<Finding> {
    let paths: BTreeSet<&String> = looks.iter().flat_map(|look| look.owners.keys()).collect();
    paths.into_iter().find_map(|path| {
        let mut owners: Vec<_> = looks.iter().filter_map(|it| it.owners.get(path)).collect();
        owners.dedup();
        // The first manager that owns the field again, and those that took it meanwhile.
        let turn = owners.iter().enumerate().find_map(|(start, first)| {
            let end = owners.iter().skip(start + 1).position(|it| it == first)?;
            owners.get(start..=start + end)
        });
        turn.map(|turn| {
            let managers: BTreeSet<_> = turn.iter().flat_map(|it| it.iter()).collect();
            let managers: Vec<_> = managers.into_iter().map(String::as_str).collect();
            let managers = managers.join(" and ");
            let object = located(object);
            Finding::warning(
                "loop",
                format!("{object}: {path} is set in turn by {managers}"),
            )
        })
    })
}

/// Finds an object that has changed between all looks.
fn busy(object: &Value, looks: &[Seen]) -> Option<Finding> {
    let changes = looks
        .windows(2)
        .filter(|pair| matches!(pair, [a, b] if a.resource_version != b.resource_version))
        .count();
    if looks.len() < LOOKS_MIN || changes < looks.len().saturating_sub(1) {
        return None;
    }
    let entries = items(object, "/metadata/managedFields").iter();
    let last = entries.max_by_key(|entry| text(entry, "/time"));
    let writer = last.map(|entry| {
        let subresource = text(entry, "/subresource");
        let what = if subresource.is_empty() {
            "object"
        } else {
            subresource
        };
        format!("; the last writer is {} ({what})", text(entry, "/manager"))
    });
    let message = format!(
        "{} has changed {changes} times in {} looks{}",
        located(object),
        looks.len(),
        writer.unwrap_or_default()
    );
    Some(Finding::warning("loop", message))
}
