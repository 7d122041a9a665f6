//! The Lease of the leader election, and Leases that no process holds any more.

use serde_json::Value;

use crate::value::{duration, int, name, reference, seconds, text, time};
use crate::{Facts, Finding};

/// Time after which a Lease that no process renews is a leftover, in seconds.
const ORPHANED: i64 = 60 * 60;

pub(super) fn check(facts: &Facts) -> Vec<Finding> {
    let namespace = Some(facts.manifests.namespace.as_str());
    let leases = facts.all("Lease");
    let leases = leases.filter(|it| crate::value::namespace(it) == namespace);
    leases.filter_map(|lease| finding(facts, lease)).collect()
}

fn finding(facts: &Facts, lease: &Value) -> Option<Finding> {
    let holder = text(lease, "/spec/holderIdentity");
    if holder.is_empty() {
        return None;
    }
    let renewed = time(lease, "/spec/renewTime")?;
    let expired = seconds(renewed, facts.now) - int(lease, "/spec/leaseDurationSeconds").max(1);
    // As in client-go, an identity is the name of the Pod, and a UUID.
    let pod = holder.split('_').next().unwrap_or(holder);
    let namespace = &facts.manifests.namespace;
    let is_held = facts.find("Pod", Some(namespace), pod).is_some();
    let is_own = is_own(facts, lease);
    let what = reference(lease);
    let ago = duration(expired);
    let show = format!("kubectl -n {namespace} get lease {} -o yaml", name(lease));
    let finding = match (is_own, is_held, expired > 0) {
        (_, true, false) => return None,
        (false, _, _) if expired <= ORPHANED || is_held || !facts.is_read("Pod") => return None,
        (false, _, _) => Finding::warning(
            "lease",
            format!("{what} is orphaned: {holder}, which does not exist, held it until {ago} ago"),
        )
        .command(format!("kubectl -n {namespace} delete lease {}", name(lease))),
        (true, true, true) => Finding::fail(
            "lease",
            format!("{what} expired {ago} ago: pod/{pod} holds it and does not renew it, so nothing is reconciled"),
        )
        .command(format!("kubectl -n {namespace} logs {pod}")),
        (true, false, true) if !facts.is_read("Pod") => return None,
        (true, false, true) if facts.is_running() => Finding::fail(
            "lease",
            format!("{what} expired {ago} ago, held by {pod}, which does not exist, and no replica takes it: nothing is reconciled"),
        )
        .command(format!(
            "kubectl -n {namespace} logs -l app.kubernetes.io/name={}",
            facts.manifests.operator
        )),
        (true, false, true) => Finding::warning(
            "lease",
            format!("{what} expired {ago} ago, held by {pod}, which does not exist; no replica runs that could take it"),
        )
        .command(super::describe_operator(facts)),
        (true, false, false) if !facts.is_read("Pod") => return None,
        (true, false, false) => Finding::warning(
            "lease",
            format!("{what} is held by {holder}, which is not a Pod of the namespace: while that process renews it, the replicas in the cluster reconcile nothing"),
        )
        .command(show),
    };
    Some(finding.about(lease))
}

fn is_own(facts: &Facts, lease: &Value) -> bool {
    let mut runtime = facts.manifests.runtime_objects.iter();
    runtime.any(|it| text(it, "/kind") == "Lease" && name(it) == name(lease))
}
