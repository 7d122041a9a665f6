//! The subresource `eviction`: deletes a Pod if its PodDisruptionBudget allows it.

use opkit_apimachinery::selector::LabelSelector;
use serde_json::{Value, json};

use super::{is_ready, set_condition};
use crate::object;
use crate::registry::{DeleteOptions, Preconditions, Registry, Write, budgets};
use crate::status::{ApiError, ApiResult};
use crate::target::Target;

/// The field manager of the API server itself.
const MANAGER: &str = "kube-apiserver";
/// Maximum number of evicted Pods that a budget lists until its controller confirms the evictions.
const DISRUPTED_PODS_MAX: usize = 2000;
/// Maximum number of attempts while other clients write the Pod or the budget.
const ATTEMPTS: usize = 20;

/// The budget's decision about an eviction.
enum Decision {
    /// The Pod can be deleted.
    Allowed,
    /// The Pod can be deleted while it has this resource version, in which it is not ready.
    AllowedUnready(String),
}

impl Registry {
    /// Evicts the Pod that `pod` names, as the Eviction object `eviction` requests. Returns the
    /// `Status` for the response.
    pub(crate) async fn evict(
        &self,
        pod: &Target,
        eviction: &Value,
        dry_run: bool,
    ) -> ApiResult<Value> {
        if object::name(eviction) != pod.name {
            let message = "name in URL does not match name in Eviction object";
            return Err(ApiError::bad_request(message));
        }
        let (options, dry_run) = delete_options(eviction, dry_run)?;
        for attempt in 1.. {
            let live = self.stored(pod)?.decode();
            let evicted = match can_ignore_budgets(&live) {
                true => {
                    self.delete_evicted(pod, &finished_options(&options, &live), dry_run)
                        .await
                }
                false => match self.disrupt(pod, &live, dry_run).await? {
                    None => return Err(several_budgets()),
                    Some((_, Decision::Allowed)) => {
                        self.delete_evicted(pod, &options, dry_run).await
                    }
                    Some((budget, Decision::AllowedUnready(version))) => {
                        let mut unready = options.clone();
                        let given = version_of(&options).is_some();
                        set_version(&mut unready, version);
                        let deleted = self.delete_evicted(pod, &unready, dry_run).await;
                        deleted.map_err(|error| match error.code == 409 && !given {
                            true => still_processed(&budget),
                            false => error,
                        })
                    }
                },
            };
            match evicted {
                Err(error)
                    if error.code == 409
                        && attempt < ATTEMPTS
                        && can_ignore_budgets(&live)
                        && version_of(&options).is_none() => {}
                evicted => return evicted.map(|()| success()),
            }
        }
        Err(ApiError::internal("the pod was not evicted"))
    }

    /// Checks that the budget of a Pod allows the eviction, and counts the eviction in it. Returns
    /// the name of the budget and its decision, or `None` if the Pod has several budgets.
    async fn disrupt(
        &self,
        pod: &Target,
        live: &Value,
        dry_run: bool,
    ) -> ApiResult<Option<(String, Decision)>> {
        let (all, _) = self.store.list(budgets::RESOURCE, Some(&pod.namespace));
        let selecting = all.iter().filter(|budget| {
            let selector = LabelSelector::from_object(object::at(budget, &["spec", "selector"]));
            selector.is_ok_and(|selector| selector.matches(object::labels(live)))
        });
        let selecting: Vec<_> = selecting.collect();
        let budget = match selecting.as_slice() {
            [] => return Ok(Some((String::new(), Decision::Allowed))),
            [budget] => budget,
            _ => return Ok(None),
        };
        let name = object::name(budget).to_owned();
        if !is_ready(live) && allows_unready(budget) {
            let version = object::meta(live, "resourceVersion").to_owned();
            return Ok(Some((name, Decision::AllowedUnready(version))));
        }
        let kind = self.builtin("policy", "poddisruptionbudgets")?;
        let target = Target::new(&kind, &pod.namespace, &name).subresource("status");
        let now = self.clock.now_rfc3339();
        let mut write = Write {
            dry_run,
            ..Write::directly_by(MANAGER)
        };
        self.modify(&target, &mut write, |budget| {
            check_budget(&target, budget)?;
            let mut new = budget.clone();
            let allowed = object::int(budget, &["status", "disruptionsAllowed"]) - 1;
            object::set(&mut new, &["status", "disruptionsAllowed"], json!(allowed));
            if allowed == 0 {
                budgets::set_condition(&mut new, &now);
            }
            let path = ["status", "disruptedPods", pod.name.as_str()];
            object::set(&mut new, &path, json!(now));
            Ok(new)
        })
        .await?;
        Ok(Some((name, Decision::Allowed)))
    }

    /// Adds the condition `DisruptionTarget` to a Pod, and deletes it.
    async fn delete_evicted(
        &self,
        pod: &Target,
        options: &DeleteOptions,
        dry_run: bool,
    ) -> ApiResult<()> {
        let write = Write {
            dry_run,
            ..Write::directly_by(MANAGER)
        };
        let mut options = options.clone();
        if !dry_run {
            let now = self.clock.now_rfc3339();
            let status = pod.clone().subresource("status");
            let mark = |live: &Value| {
                self.check_preconditions(pod, &options, live)?;
                let mut new = live.clone();
                let condition = json!({
                    "type": "DisruptionTarget", "status": "True",
                    "reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting",
                });
                set_condition(&mut new, condition, &now);
                Ok(new)
            };
            let marked = self.modify_unmanaged(&status, &write, mark).await?;
            // The condition has given the Pod a new version.
            if version_of(&options).is_some() {
                let version = object::meta(&marked, "resourceVersion").to_owned();
                set_version(&mut options, version);
            }
        }
        self.delete(pod, &options, &write).await.map(|_| ())
    }
}

/// Returns the delete options of an Eviction, and whether the eviction is a dry run.
fn delete_options(eviction: &Value, dry_run: bool) -> ApiResult<(DeleteOptions, bool)> {
    let options = object::at(eviction, &["deleteOptions"]);
    if options.is_null() {
        return Ok((DeleteOptions::default(), dry_run));
    }
    let options: DeleteOptions = serde_json::from_value(options.clone())
        .map_err(|error| ApiError::bad_request(format!("delete options: {error}")))?;
    let wanted = options.dry_run.as_deref().unwrap_or_default();
    if dry_run && !wanted.is_empty() && wanted != ["All"] {
        let message = format!(
            "Non-matching dry-run options in request and content: [All] and [{}]",
            wanted.join(" ")
        );
        return Err(ApiError::without_reason(500, message));
    }
    let dry_run = dry_run || !wanted.is_empty();
    Ok((options, dry_run))
}

/// Reports whether a Pod can be deleted whatever its budgets allow, because it does not run.
fn can_ignore_budgets(pod: &Value) -> bool {
    let phase = object::text(pod, &["status", "phase"]);
    matches!(phase, "Succeeded" | "Failed" | "Pending") || object::is_deleting(pod)
}

/// Returns the options for the deletion of a Pod that does not run. A Pod that may start to run
/// meanwhile is deleted only in its present version.
fn finished_options(options: &DeleteOptions, pod: &Value) -> DeleteOptions {
    let mut options = options.clone();
    let phase = object::text(pod, &["status", "phase"]);
    let is_final = matches!(phase, "Succeeded" | "Failed") || object::is_deleting(pod);
    if !is_final && version_of(&options).is_none() {
        set_version(
            &mut options,
            object::meta(pod, "resourceVersion").to_owned(),
        );
    }
    options
}

fn version_of(options: &DeleteOptions) -> Option<&str> {
    options.preconditions.as_ref()?.resource_version.as_deref()
}

fn set_version(options: &mut DeleteOptions, version: String) {
    let preconditions = options
        .preconditions
        .get_or_insert_with(Preconditions::default);
    preconditions.resource_version = Some(version);
}

/// Reports whether a budget allows the eviction of a Pod that is not ready.
fn allows_unready(budget: &Value) -> bool {
    let number = |field: &str| object::int(budget, &["status", field]);
    let (healthy, desired) = (number("currentHealthy"), number("desiredHealthy"));
    object::text(budget, &["spec", "unhealthyPodEvictionPolicy"]) == "AlwaysAllow"
        || (healthy >= desired && desired > 0)
}

/// Checks that a budget allows one more disruption.
fn check_budget(target: &Target, budget: &Value) -> ApiResult<()> {
    let name = object::name(budget);
    let number = |field: &str| object::int(budget, &["status", field]);
    if number("observedGeneration") < object::int(budget, &["metadata", "generation"]) {
        return Err(still_processed(name));
    }
    let allowed = number("disruptionsAllowed");
    let disrupted = object::at(budget, &["status", "disruptedPods"]).as_object();
    let forbid = |why: &str| {
        let message = format!("poddisruptionbudget.policy {name:?} is forbidden: {why}");
        Err(ApiError::forbidden(&target.kind, name, why).with_message(message))
    };
    if allowed < 0 {
        return forbid("pdb disruptions allowed is negative");
    }
    if disrupted.is_some_and(|disrupted| disrupted.len() > DISRUPTED_PODS_MAX) {
        return forbid(
            "DisruptedPods map too big - too many evictions not confirmed by PDB controller",
        );
    }
    if allowed > 0 {
        return Ok(());
    }
    let condition = object::items(budget, &["status", "conditions"])
        .iter()
        .find(|condition| object::text(condition, &["type"]) == budgets::DISRUPTION_ALLOWED)
        .filter(|condition| {
            object::text(condition, &["status"]) == "False"
                && !object::text(condition, &["message"]).is_empty()
        });
    let (reason, message) = condition.map_or(("", ""), |condition| {
        (
            object::text(condition, &["reason"]),
            object::text(condition, &["message"]),
        )
    });
    let (healthy, desired) = (number("currentHealthy"), number("desiredHealthy"));
    let why = if reason == "SyncFailed" {
        format!(
            "The disruption budget {name} does not allow evicting pods currently because it failed \
             sync: {message}"
        )
    } else if healthy <= desired {
        format!(
            "The disruption budget {name} needs {desired} healthy pods and has {healthy} currently"
        )
    } else if !message.is_empty() {
        format!(
            "The disruption budget {name} does not allow evicting pods currently ({reason}): \
             {message}"
        )
    } else {
        format!("The disruption budget {name} does not allow evicting pods currently")
    };
    Err(violation(0, &why))
}

/// Returns the error for an eviction that the budget does not allow at the moment.
fn violation(retry_after_seconds: u32, why: &str) -> ApiError {
    let message = "Cannot evict pod as it would violate the pod's disruption budget.";
    ApiError::too_many_requests(message, retry_after_seconds, "DisruptionBudget", why)
}

fn still_processed(budget: &str) -> ApiError {
    let why = format!("The disruption budget {budget} is still being processed by the server.");
    violation(10, &why)
}

fn success() -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201})
}

/// Returns the error for a Pod with several budgets.
fn several_budgets() -> ApiError {
    let message = "This pod has more than one PodDisruptionBudget, which the eviction subresource \
                   does not support.";
    ApiError::without_reason(500, message)
}
