//! Namespaces whose deletion does not end.

use serde_json::Value;

use crate::value::{
    duration, has_condition, items, name, namespace, reference, seconds, short, text, texts, time,
};
use crate::{Facts, Finding};

/// Time that a deletion of a namespace may take, in seconds.
const DELETION_MAX: i64 = 5 * 60;

/// Conditions of a namespace that is being deleted, which are true for a problem.
const PROBLEMS: [&str; 5] = [
    "NamespaceDeletionDiscoveryFailure",
    "NamespaceDeletionGroupVersionParsingFailure",
    "NamespaceDeletionContentFailure",
    "NamespaceFinalizersRemaining",
    "NamespaceContentRemaining",
];

pub(super) fn check(facts: &Facts) -> Vec<Finding> {
    let deleted = facts.all("Namespace").filter_map(|namespace| {
        let since = time(namespace, "/metadata/deletionTimestamp")?;
        let spent = seconds(since, facts.now);
        let is_own = name(namespace) == facts.manifests.namespace;
        // Nothing can be created in the operator's own namespace from the start of its deletion.
        (is_own || spent > DELETION_MAX).then(|| finding(facts, namespace, is_own, spent))
    });
    super::limited("namespace", deleted.collect())
}

fn finding(facts: &Facts, of: &Value, is_own: bool, spent: i64) -> Finding {
    let name = name(of);
    let spent = duration(spent);
    let reasons = PROBLEMS
        .iter()
        .filter(|type_| has_condition(of, type_, "True"));
    let mut reasons: Vec<_> = reasons
        .filter_map(|type_| {
            let mut all = items(of, "/status/conditions").iter();
            let condition = all.find(|it| text(it, "/type") == *type_)?;
            Some(short(text(condition, "/message")))
        })
        .collect();
    let inside = facts.instances.iter();
    let mut inside = inside.filter(|it| namespace(it) == Some(name));
    let instance = inside.next();
    if let (true, Some(instance)) = (reasons.is_empty(), instance) {
        let finalizers = texts(instance, "/metadata/finalizers").join(", ");
        reasons.push(format!(
            "it contains {} ({finalizers})",
            reference(instance)
        ));
    }
    let reasons = match reasons.is_empty() {
        true => String::new(),
        false => format!(": {}", reasons.join("; ")),
    };
    let command = match has_condition(of, "NamespaceDeletionDiscoveryFailure", "True") {
        true => "kubectl get apiservices".to_owned(),
        false => format!("kubectl describe namespace {name}"),
    };
    let message = format!("namespace/{name} has been terminating for {spent}{reasons}");
    let finding = match (is_own, instance.is_some()) {
        (true, _) => Finding::fail(
            "namespace",
            format!("{message}; nothing can be created in the operator's namespace"),
        ),
        (false, true) => Finding::fail("namespace", message),
        (false, false) => Finding::warning("namespace", message),
    };
    finding.about(of).command(command)
}
