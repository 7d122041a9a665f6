//! Rules about a CRD as a whole: scope, stored versions, removed fields.

use std::collections::BTreeSet;

use super::crd::Crd;
use super::flatten::flatten;
use super::{Change, Verdict};

/// Returns the changes of a CRD that are not changes of one field.
pub(super) fn check(old: &Crd, new: &Crd) -> Vec<Change> {
    let mut changes = Vec::new();
    if old.scope != new.scope {
        let message = format!("scope changed: {} -> {}", old.scope, new.scope);
        changes.push(of_crd("scope", Verdict::Breaking, message));
    }
    let is_removed = |name: &&String| new.version(name).is_none();
    let removed: Vec<&String> = old.stored.iter().filter(is_removed).collect();
    if !removed.is_empty() {
        let names: Vec<&str> = removed.iter().map(|name| name.as_str()).collect();
        let message = format!("stored versions removed: {}", names.join(", "));
        changes.push(of_crd("storedVersionRemoval", Verdict::Breaking, message));
    }
    let versions = old.versions.iter().map(|version| &version.name);
    for name in versions.filter(is_removed) {
        if !removed.contains(&name) {
            let message = format!("version {name} removed, in which no object is stored");
            changes.push(of_crd("version", Verdict::Compatible, message));
        }
    }
    for version in &new.versions {
        let Some(before) = old.version(&version.name) else {
            let message = format!("version {} added", version.name);
            changes.push(of_crd("version", Verdict::Compatible, message));
            continue;
        };
        let paths = |schema| flatten(schema).into_keys().collect::<BTreeSet<String>>();
        let (before, after) = (paths(&before.schema), paths(&version.schema));
        for field in before.difference(&after) {
            changes.push(Change {
                version: Some(version.name.clone()),
                field: field.clone(),
                verdict: Verdict::Breaking,
                rule: "existingFieldRemoval",
                message: "field removed".to_owned(),
            });
        }
        for field in after.difference(&before) {
            changes.push(Change {
                version: Some(version.name.clone()),
                field: field.clone(),
                verdict: Verdict::Compatible,
                rule: "field",
                message: "field added".to_owned(),
            });
        }
    }
    changes
}

fn of_crd(rule: &'static str, verdict: Verdict, message: String) -> Change {
    Change {
        version: None,
        field: String::new(),
        verdict,
        rule,
        message,
    }
}
