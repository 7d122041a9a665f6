//! Controller of Deployments: one ReplicaSet for each pod template, and rolling updates between the
//! ReplicaSets.
//!
//! The numbers of replicas are the same as in Kubernetes' deployment controller. Proportional
//! scaling, pausing, `minReadySeconds` and progress deadlines are not supported.

use serde_json::{Value, json};

use super::{EventContent, claim, counter, owned_by, record_event, replicaset, set_status};
use crate::controllers::MANAGER;
use crate::registry::{DeleteOptions, Registry, Write};
use crate::status::ApiResult;
use crate::store::Key;
use crate::target::Target;
use crate::{object, random};

const REVISION: &str = "deployment.kubernetes.io/revision";
const HASH_LABEL: &str = "pod-template-hash";
const COMPONENT: &str = "deployment-controller";

/// The next changes to the ReplicaSets of a Deployment.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Plan {
    /// The ReplicaSet to create, if the current pod template has no ReplicaSet.
    pub(super) create: Option<Value>,
    /// ReplicaSets to scale: name, current number of replicas, and new number of replicas.
    pub(super) scale: Vec<(String, i64, i64)>,
    /// Names of the old ReplicaSets to delete, because there are more than `revisionHistoryLimit`.
    pub(super) delete: Vec<String>,
    /// The revision of the current pod template.
    pub(super) revision: i64,
    pub(super) new: Option<String>,
}

/// Plans the next changes to `replica_sets`, the ReplicaSets of a Deployment.
pub(super) fn plan(deployment: &Value, replica_sets: &[Value]) -> Plan {
    let (new, old) = divide(deployment, replica_sets);
    let numbers = Numbers::of(deployment, new, &old);
    let last = old.iter().map(|set| revision(set)).max().unwrap_or(0);
    let mut plan = Plan {
        revision: new.map_or(0, revision).max(last.saturating_add(1)),
        new: new.map(|set| object::name(set).to_owned()),
        ..Plan::default()
    };
    if numbers.recreate && (numbers.old_replicas > 0 || numbers.old_pods > 0) {
        for set in old.iter().filter(|set| replicas(set) > 0) {
            plan.scale
                .push((object::name(set).to_owned(), replicas(set), 0));
        }
        return plan;
    }
    let wanted = numbers.new_replicas_wanted();
    match new {
        None => {
            plan.create = Some(replica_set_of(deployment, wanted, plan.revision));
            return plan;
        }
        Some(set) if wanted != replicas(set) => {
            plan.scale
                .push((object::name(set).to_owned(), replicas(set), wanted));
            return plan;
        }
        Some(_) => {}
    }
    plan.scale = scale_down(&numbers, &old);
    if plan.scale.is_empty() && numbers.is_complete() {
        plan.delete = beyond_history(deployment, &old);
    }
    plan
}

/// Returns the status of a Deployment: counters and conditions.
pub(super) fn status(deployment: &Value, replica_sets: &[Value], now: &str) -> Value {
    let (new, old) = divide(deployment, replica_sets);
    let numbers = Numbers::of(deployment, new, &old);
    let sum = |field: &str| -> i64 {
        replica_sets
            .iter()
            .map(|set| object::int(set, &["status", field]))
            .sum()
    };
    let available = sum("availableReplicas");
    let all: i64 = replica_sets.iter().map(replicas).sum();
    let minimum = available >= numbers.desired - numbers.max_unavailable;
    let new_name = new.map(object::name).unwrap_or_default();
    let present = object::items(deployment, &["status", "conditions"]);
    let updated = new.map_or(0, |set| object::int(set, &["status", "replicas"]));
    let complete = updated == numbers.desired
        && sum("replicas") == numbers.desired
        && available == numbers.desired;
    let (progress, message) = if complete {
        ("NewReplicaSetAvailable", "has successfully progressed.")
    } else {
        ("ReplicaSetUpdated", "is progressing.")
    };
    let mut conditions = vec![
        condition(
            present,
            now,
            "Available",
            minimum,
            if minimum {
                (
                    "MinimumReplicasAvailable",
                    "Deployment has minimum availability.".to_owned(),
                )
            } else {
                (
                    "MinimumReplicasUnavailable",
                    "Deployment does not have minimum availability.".to_owned(),
                )
            },
        ),
        condition(
            present,
            now,
            "Progressing",
            true,
            (progress, format!("ReplicaSet {new_name:?} {message}")),
        ),
    ];
    conditions.extend(replica_failure(new, &old));
    json!({
        "observedGeneration": object::int(deployment, &["metadata", "generation"]),
        "replicas": counter(sum("replicas")), "updatedReplicas": counter(updated),
        "readyReplicas": counter(sum("readyReplicas")), "availableReplicas": counter(available),
        "unavailableReplicas": counter((all - available).max(0)),
        "terminatingReplicas": counter(sum("terminatingReplicas")),
        "conditions": conditions,
    })
}

/// Returns the condition of a Deployment whose pods cannot be created or deleted: that of the new
/// ReplicaSet, or else that of an old one.
fn replica_failure(new: Option<&Value>, old: &[&Value]) -> Option<Value> {
    let sets = new.into_iter().chain(old.iter().copied());
    let mut condition = sets.filter_map(replicaset::find_failure).next()?.clone();
    let time = object::at(&condition, &["lastTransitionTime"]).clone();
    object::set_field(&mut condition, "lastUpdateTime", time);
    Some(condition)
}

pub(crate) async fn step(registry: &Registry, key: &Key) -> ApiResult<()> {
    let Some(deployment) = registry.store.get("deployments.apps", key) else {
        return Ok(());
    };
    let sets = registry.builtin("apps", "replicasets")?;
    let plan = plan(
        &deployment,
        &claim(registry, &deployment, "replicasets.apps").await?,
    );
    let mut collisions = object::int(&deployment, &["status", "collisionCount"]);
    if !object::is_deleting(&deployment) {
        match carry_out(registry, &deployment, key, &plan).await {
            // Another ReplicaSet has the name: the next attempt has a name from another hash.
            Err(error) if plan.create.is_some() && error.code == 409 => collisions += 1,
            outcome => outcome?,
        }
        for name in &plan.delete {
            let target = Target::new(&sets, &key.namespace, name);
            registry
                .delete(&target, &DeleteOptions::default(), &Write::by(MANAGER))
                .await?;
        }
    }
    let owned = claim(registry, &deployment, "replicasets.apps").await?;
    let mut status = status(&deployment, &owned, &registry.clock.now_rfc3339());
    object::set_field(&mut status, "collisionCount", counter(collisions));
    set_status(registry, "apps", "deployments", key, MANAGER, &status).await
}

async fn carry_out(
    registry: &Registry,
    deployment: &Value,
    key: &Key,
    plan: &Plan,
) -> ApiResult<()> {
    let sets = registry.builtin("apps", "replicasets")?;
    let say = async |message: String| {
        let reason = "ScalingReplicaSet";
        record_event(
            registry,
            deployment,
            &EventContent {
                component: COMPONENT,
                reason,
                message,
            },
        )
        .await;
    };
    if let Some(set) = &plan.create {
        let target = Target::new(&sets, &key.namespace, "");
        registry
            .create(&target, set.clone(), &mut Write::by(MANAGER))
            .await?;
        say(format!(
            "Scaled up replica set {} from 0 to {}",
            object::name(set),
            replicas(set)
        ))
        .await;
    }
    for (name, from, to) in &plan.scale {
        let target = Target::new(&sets, &key.namespace, name);
        registry
            .modify(&target, &mut Write::by(MANAGER), |live| {
                let mut new = live.clone();
                object::set(&mut new, &["spec", "replicas"], json!(to));
                Ok(new)
            })
            .await?;
        let direction = if to > from { "up" } else { "down" };
        say(format!(
            "Scaled {direction} replica set {name} from {from} to {to}"
        ))
        .await;
    }
    // The revision of the template is an annotation of the ReplicaSet and of the Deployment.
    let deployments = registry.builtin("apps", "deployments")?;
    let marked = plan.new.iter().map(|name| (&sets, name.as_str()));
    for (kind, name) in marked.chain([(&deployments, key.name.as_str())]) {
        let target = Target::new(kind, &key.namespace, name);
        registry
            .modify(&target, &mut Write::by(MANAGER), |live| {
                let mut new = live.clone();
                let path = ["metadata", "annotations", REVISION];
                object::set(&mut new, &path, json!(plan.revision.to_string()));
                Ok(new)
            })
            .await?;
    }
    Ok(())
}

/// Returns the ReplicaSet of the current pod template, and all other ReplicaSets, oldest first.
fn divide<'a>(
    deployment: &Value,
    replica_sets: &'a [Value],
) -> (Option<&'a Value>, Vec<&'a Value>) {
    let template = |object: &Value| {
        let mut template = object::at(object, &["spec", "template"]).clone();
        object::set(
            &mut template,
            &["metadata", "labels", HASH_LABEL],
            Value::Null,
        );
        template
    };
    let wanted = template(deployment);
    let is_new = |set: &&Value| template(set) == wanted;
    let new = replica_sets.iter().find(is_new);
    let mut old: Vec<&Value> = replica_sets
        .iter()
        .filter(|set| new.is_none_or(|new| object::uid(new) != object::uid(set)))
        .collect();
    old.sort_by_key(|set| revision(set));
    (new, old)
}

/// The numbers of replicas on which a rolling update depends.
struct Numbers {
    desired: i64,
    max_surge: i64,
    max_unavailable: i64,
    recreate: bool,
    new_replicas: i64,
    new_available: i64,
    old_replicas: i64,
    old_available: i64,
    old_pods: i64,
}

impl Numbers {
    fn of(deployment: &Value, new: Option<&Value>, old: &[&Value]) -> Self {
        let desired = object::int(deployment, &["spec", "replicas"]);
        let strategy = object::at(deployment, &["spec", "strategy"]);
        let bound = |field: &str, round_up: bool| {
            let value = object::at(strategy, &["rollingUpdate", field]);
            int_or_percent(value, desired, round_up)
        };
        let recreate = object::text(strategy, &["type"]) == "Recreate";
        let (max_surge, mut max_unavailable) =
            (bound("maxSurge", true), bound("maxUnavailable", false));
        if max_surge == 0 && max_unavailable == 0 {
            max_unavailable = 1;
        }
        let available = |set: &Value| object::int(set, &["status", "availableReplicas"]);
        Self {
            desired,
            max_surge,
            max_unavailable: max_unavailable.min(desired),
            recreate,
            new_replicas: new.map_or(0, replicas),
            new_available: new.map_or(0, available),
            old_replicas: old.iter().map(|set| replicas(set)).sum(),
            old_available: old.iter().map(|set| available(set)).sum(),
            old_pods: old
                .iter()
                .map(|set| object::int(set, &["status", "replicas"]))
                .sum(),
        }
    }

    /// Returns the number of replicas to which the ReplicaSet of the current pod template can be
    /// scaled now.
    fn new_replicas_wanted(&self) -> i64 {
        if self.recreate || self.old_replicas == 0 || self.new_replicas > self.desired {
            return self.desired;
        }
        let most = self.desired.saturating_add(self.max_surge);
        let room = most
            .saturating_sub(self.new_replicas)
            .saturating_sub(self.old_replicas);
        self.new_replicas + room.clamp(0, self.desired - self.new_replicas)
    }

    fn is_complete(&self) -> bool {
        self.old_pods == 0 && self.old_replicas == 0 && self.new_available == self.desired
    }
}

/// Returns the old ReplicaSets to scale down, each with its name, current and new number of
/// replicas. Unavailable pods are removed first, then as many pods as `maxUnavailable` allows.
fn scale_down(numbers: &Numbers, old: &[&Value]) -> Vec<(String, i64, i64)> {
    let minimum = numbers.desired - numbers.max_unavailable;
    let new_unavailable = numbers.new_replicas - numbers.new_available;
    let all = numbers.new_replicas + numbers.old_replicas;
    let mut may_go = all - minimum - new_unavailable;
    let mut may_go_serving = numbers.new_available + numbers.old_available - minimum;
    let mut scale = Vec::new();
    for set in old {
        let (has, serving) = (
            replicas(set),
            object::int(set, &["status", "availableReplicas"]),
        );
        let idle = (has - serving).clamp(0, may_go.max(0));
        let more = (has - idle).min(may_go_serving).min(may_go - idle).max(0);
        if idle + more > 0 {
            may_go -= idle + more;
            may_go_serving -= more;
            scale.push((object::name(set).to_owned(), has, has - idle - more));
        }
    }
    scale
}

fn beyond_history(deployment: &Value, old: &[&Value]) -> Vec<String> {
    let limit = object::at(deployment, &["spec", "revisionHistoryLimit"])
        .as_u64()
        .unwrap_or(10);
    let surplus = old
        .len()
        .saturating_sub(usize::try_from(limit).unwrap_or(usize::MAX));
    let idle = old
        .iter()
        .filter(|set| replicas(set) == 0 && !object::is_deleting(set));
    idle.take(surplus)
        .map(|set| object::name(set).to_owned())
        .collect()
}

fn replica_set_of(deployment: &Value, replicas: i64, revision: i64) -> Value {
    let mut template = object::at(deployment, &["spec", "template"]).clone();
    let collisions = object::int(deployment, &["status", "collisionCount"]);
    let hash = random::encode(fnv(&format!("{template}{collisions}")), 10);
    object::set(
        &mut template,
        &["metadata", "labels", HASH_LABEL],
        json!(hash),
    );
    let mut selector = object::at(deployment, &["spec", "selector"]).clone();
    object::set(&mut selector, &["matchLabels", HASH_LABEL], json!(hash));
    let mut set = json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {
            "name": format!("{}-{hash}", object::name(deployment)),
            "labels": object::at(&template, &["metadata", "labels"]),
            "annotations": {REVISION: revision.to_string()},
            "ownerReferences": [owned_by(deployment)],
        },
        "spec": {"replicas": replicas, "selector": selector, "template": template},
    });
    let seconds = object::at(deployment, &["spec", "minReadySeconds"]).clone();
    object::set(&mut set, &["spec", "minReadySeconds"], seconds);
    set
}

fn condition(
    present: &[Value],
    now: &str,
    type_: &str,
    status: bool,
    (reason, message): (&str, String),
) -> Value {
    let status = if status { "True" } else { "False" };
    let before = present.iter().find(|c| object::text(c, &["type"]) == type_);
    let same_status = before.filter(|c| object::text(c, &["status"]) == status);
    let since = same_status.map_or(now, |c| object::text(c, &["lastTransitionTime"]));
    let same = same_status.filter(|c| {
        object::text(c, &["reason"]) == reason && object::text(c, &["message"]) == message
    });
    let updated = same.map_or(now, |c| object::text(c, &["lastUpdateTime"]));
    json!({
        "type": type_, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": since, "lastUpdateTime": updated,
    })
}

fn replicas(set: &Value) -> i64 {
    object::int(set, &["spec", "replicas"])
}

fn revision(set: &Value) -> i64 {
    object::text(set, &["metadata", "annotations", REVISION])
        .parse()
        .unwrap_or_default()
}

fn int_or_percent(value: &Value, of: i64, round_up: bool) -> i64 {
    if let Some(number) = value.as_i64() {
        return number;
    }
    let text = value.as_str().unwrap_or("25%");
    let percent: i64 = text.trim_end_matches('%').parse().unwrap_or_default();
    let hundredths = percent.saturating_mul(of);
    if round_up {
        hundredths.saturating_add(99) / 100
    } else {
        hundredths / 100
    }
}

/// Returns the 64-bit FNV-1a hash of a text.
fn fnv(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
