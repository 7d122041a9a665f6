//! Objects of the operator's kinds whose deletion does not end.

use serde_json::Value;

use crate::value::{
    duration, items, located, namespace, reference, seconds, short, text, texts, time,
};
use crate::{Facts, Finding};

/// Time that a deletion may take, in seconds.
const DELETION_MAX: i64 = 5 * 60;

pub(super) fn check(facts: &Facts) -> Vec<Finding> {
    let stuck = facts.instances.iter().filter_map(|object| {
        let since = time(object, "/metadata/deletionTimestamp")?;
        let spent = seconds(since, facts.now);
        let finalizers = texts(object, "/metadata/finalizers");
        (spent > DELETION_MAX && !finalizers.is_empty())
            .then(|| finding(facts, object, &finalizers, spent))
    });
    super::limited("finalizer", stuck.collect())
}

fn finding(facts: &Facts, object: &Value, finalizers: &[&str], spent: i64) -> Finding {
    let spent = duration(spent);
    let what = format!(
        "{} has been terminating for {spent}: {}",
        located(object),
        finalizers.join(", ")
    );
    // A finalizer of the operator's own groups is removed by the operator.
    let is_own = |finalizer: &&str| {
        let domain = finalizer.split('/').next().unwrap_or_default();
        facts
            .manifests
            .all("CustomResourceDefinition")
            .any(|crd| is_domain_of(domain, text(crd, "/spec/group")))
    };
    let finding = match (finalizers.iter().any(is_own), facts.is_running()) {
        (true, false) => Finding::fail(
            "finalizer",
            format!("{what}, and the operator that removes it does not run"),
        )
        .command(super::describe_operator(facts)),
        (is_own, _) => {
            let command = match is_own {
                true => super::logs_about(facts, object),
                false => describe(object),
            };
            Finding::warning("finalizer", what + &last_error(object)).command(command)
        }
    };
    finding.about(object)
}

/// Returns the command that shows the object with its finalizers and events.
fn describe(object: &Value) -> String {
    let namespace = namespace(object).map(|namespace| format!("-n {namespace} "));
    format!(
        "kubectl {}describe {}",
        namespace.unwrap_or_default(),
        reference(object)
    )
}

/// Reports whether a finalizer with this domain belongs to an operator of the group.
fn is_domain_of(domain: &str, group: &str) -> bool {
    domain == group
        || domain.ends_with(&format!(".{group}"))
        || group.ends_with(&format!(".{domain}"))
}

/// Returns the message of the first condition that reports a problem.
fn last_error(object: &Value) -> String {
    let mut conditions = items(object, "/status/conditions").iter();
    let problem = conditions.find(|condition| {
        let is = |type_, status| {
            text(condition, "/type") == type_ && text(condition, "/status") == status
        };
        is("Ready", "False") || is("Stalled", "True") || is("Degraded", "True")
    });
    let message = problem.map_or("", |condition| text(condition, "/message"));
    match message {
        "" => String::new(),
        message => format!(", last error {:?}", short(message)),
    }
}
