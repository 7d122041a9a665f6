//! The names of CRDs: each name belongs to one CRD of its group.
//!
//! The rules are those of Kubernetes' naming controller. A CRD whose names are used by another CRD
//! of its group gets the condition `NamesAccepted` with the status `False`, and is not served until
//! the other CRD gives up the names.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::conditions::{self, Condition};
use crate::object;

/// The accepted names of the CRDs of a group.
#[derive(Debug, Default)]
pub(super) struct UsedNames {
    resources: BTreeSet<String>,
    kinds: BTreeSet<String>,
}

impl UsedNames {
    /// Returns the accepted names of these CRDs.
    pub(super) fn of<'a>(crds: impl Iterator<Item = &'a Value>) -> Self {
        let mut used = Self::default();
        for crd in crds {
            let names = object::at(crd, &["status", "acceptedNames"]);
            let text = |name: &str| object::text(names, &[name]).to_owned();
            let short_names = object::items(names, &["shortNames"]).iter();
            let short_names = short_names.filter_map(Value::as_str).map(str::to_owned);
            used.resources.extend([text("plural"), text("singular")]);
            used.resources.extend(short_names);
            used.kinds.extend([text("kind"), text("listKind")]);
        }
        used
    }
}

/// Reports whether the names in the spec of a CRD are the accepted names.
pub(super) fn is_accepted(crd: &Value) -> bool {
    object::at(crd, &["spec", "names"]) == object::at(crd, &["status", "acceptedNames"])
}

/// Accepts the names in the spec of a CRD that no other CRD uses, and sets the conditions
/// `NamesAccepted` and `Established` accordingly.
pub(super) fn accept(crd: &mut Value, used: &UsedNames, now: &str) {
    if is_accepted(crd) {
        return;
    }
    let requested = object::at(crd, &["spec", "names"]).clone();
    let accepted = object::at(crd, &["status", "acceptedNames"]).clone();
    let mut new = accepted.clone();
    let mut conflict = None;
    let mut check = |name: &str, reason: &'static str, used: &BTreeSet<String>| {
        let wanted = object::text(&requested, &[name]);
        if wanted != object::text(&accepted, &[name]) && used.contains(wanted) {
            conflict = Some((reason, in_use(wanted)));
        } else {
            object::set(&mut new, &[name], json!(wanted));
        }
    };
    check("plural", "PluralConflict", &used.resources);
    check("singular", "SingularConflict", &used.resources);
    let short_names = object::items(&requested, &["shortNames"]);
    let own = object::items(&accepted, &["shortNames"]);
    let mut taken: Vec<String> = Vec::new();
    for name in short_names.iter().filter(|name| !own.contains(name)) {
        let name = name.as_str().unwrap_or_default();
        if used.resources.contains(name) && !taken.contains(&in_use(name)) {
            taken.push(in_use(name));
        }
    }
    let is_taken = !taken.is_empty();
    if is_taken {
        conflict = Some(("ShortNamesConflict", aggregate(&taken)));
    } else {
        let short_names = object::at(&requested, &["shortNames"]).clone();
        object::set(&mut new, &["shortNames"], short_names);
    }
    let mut check = |name: &str, reason: &'static str| {
        let wanted = object::text(&requested, &[name]);
        if wanted != object::text(&accepted, &[name]) && used.kinds.contains(wanted) {
            conflict = Some((reason, in_use(wanted)));
        } else {
            object::set(&mut new, &[name], json!(wanted));
        }
    };
    check("kind", "KindConflict");
    check("listKind", "ListKindConflict");
    let categories = object::at(&requested, &["categories"]).clone();
    object::set(&mut new, &["categories"], categories);
    let names = match &conflict {
        Some((reason, message)) => Condition {
            type_: "NamesAccepted",
            status: "False",
            reason,
            message,
        },
        None => Condition {
            type_: "NamesAccepted",
            status: "True",
            reason: "NoConflicts",
            message: "no conflicts found",
        },
    };
    if new == accepted && conditions::has(crd, &names) {
        return;
    }
    object::set(crd, &["status", "acceptedNames"], new);
    conditions::set(crd, &names, now);
    if conditions::is_true(crd, "Established") {
        return;
    }
    let (reason, message) = match conflict {
        None => ("Installing", "the initial names have been accepted"),
        Some(_) if conditions::find(crd, "Established").is_some() => return,
        Some(_) => ("NotAccepted", "not all names are accepted"),
    };
    let established = Condition {
        type_: "Established",
        status: "False",
        reason,
        message,
    };
    conditions::set(crd, &established, now);
}

/// Sets the condition `Established` of a CRD whose names are accepted.
pub(super) fn establish(crd: &mut Value, has_valid_ca_bundle: bool, now: &str) {
    if !conditions::is_true(crd, "NamesAccepted") || conditions::is_true(crd, "Established") {
        return;
    }
    let condition = match has_valid_ca_bundle {
        true => Condition {
            type_: "Established",
            status: "True",
            reason: "InitialNamesAccepted",
            message: "the initial names have been accepted",
        },
        false => Condition {
            type_: "Established",
            status: "False",
            reason: "InvalidCABundle",
            message: "The conversion webhook CABundle is invalid",
        },
    };
    conditions::set(crd, &condition, now);
}

fn in_use(name: &str) -> String {
    format!("{name:?} is already in use")
}

/// Returns the message of several errors, as Kubernetes prints them.
fn aggregate(messages: &[String]) -> String {
    match messages {
        [message] => message.clone(),
        messages => format!("[{}]", messages.join(", ")),
    }
}

#[cfg(test)]
mod tests;
