//! Whether the user may do what a deployment does, and whether the cluster could be read.

use crate::{Facts, Finding, Severity};

pub(super) fn check(facts: &Facts) -> Vec<Finding> {
    // An operator that runs does not need the permissions of its user.
    let severity = match facts.deployment() {
        Some(_) => Severity::Warning,
        None => Severity::Fail,
    };
    let denied = facts.denied.iter().map(|denied| {
        let place = match &denied.namespace {
            Some(namespace) => format!(" in the namespace {namespace}"),
            None => String::new(),
        };
        let verbs = denied.verbs.join(", ");
        let first = denied.verbs.first().map_or("*", String::as_str);
        let flag = denied.namespace.as_ref();
        let flag = flag.map(|it| format!(" -n {it}")).unwrap_or_default();
        let resource = &denied.resource;
        Finding::warning(
            "permission",
            format!("you may not {verbs} {resource}{place}, which a deployment does"),
        )
        .severity(severity)
        .command(format!("kubectl auth can-i {first} {resource}{flag}"))
    });
    let unread = facts.unread.iter().map(|(kind, reason)| {
        let message = format!("the objects of the kind {kind} were not checked: {reason}");
        Finding::warning("cluster", message)
    });
    denied.chain(unread).collect()
}
