//! Controller of ResourceQuotas: copies the limits of each quota into its status, and measures the
//! use of the limited resources.

use serde_json::Value;

use super::MANAGER;
use crate::admission::resource_list;
use crate::admission::resource_quota::{Evaluator, QUOTAS, calculate};
use crate::object;
use crate::registry::{Registry, Write};
use crate::status::ApiResult;
use crate::store::{Change, Event, Key};
use crate::target::Target;

/// Returns the keys of the quotas that must be checked after an event: a quota that is new or has
/// new limits, and the quotas that count an object that was deleted or uses other resources now.
/// The use by a new object is charged when the object is created.
pub(super) fn affected(registry: &Registry, event: &Event) -> Vec<Key> {
    let stored = &event.object;
    let mut keys = Vec::new();
    if stored.resource().as_ref() == QUOTAS && event.change != Change::Deleted {
        let spec = |quota: &Value| object::at(quota, &["spec"]).clone();
        let before = event.previous.as_ref().map(|quota| spec(&quota.decode()));
        if before != Some(spec(&stored.decode())) {
            keys.push(stored.key());
        }
        return keys;
    }
    if event.change == Change::Added || stored.namespace().is_empty() {
        return keys;
    }
    let (quotas, _) = registry.store.list(QUOTAS, Some(stored.namespace()));
    if quotas.is_empty() {
        return keys;
    }
    let kind = registry.kind_stored(stored.resource());
    let Some(evaluator) = kind.and_then(|kind| Evaluator::of(&kind)) else {
        return keys;
    };
    let is_deleted = event.change == Change::Deleted;
    if !is_deleted && !changes_use(registry, event, &evaluator) {
        return keys;
    }
    let counting = quotas.iter().filter(|quota| {
        let hard = object::at(quota, &["status", "hard"]).as_object();
        let mut names = hard.into_iter().flatten();
        names.any(|(name, _)| evaluator.counts(name))
    });
    keys.extend(counting.map(|quota| Key::of(quota)));
    keys
}

/// Reports whether an object uses other resources than before the event, or belongs to other
/// scopes.
fn changes_use(registry: &Registry, event: &Event, evaluator: &Evaluator) -> bool {
    if matches!(evaluator, Evaluator::Count(_)) {
        return false;
    }
    let Some(before) = &event.previous else {
        return true;
    };
    let (before, after) = (before.decode(), event.object.decode());
    let now = registry.clock.now();
    evaluator.usage(&before, now) != evaluator.usage(&after, now)
        || evaluator.handles("", &after, Some(&before)) && *evaluator == Evaluator::Pods
}

/// Writes the status of a quota.
pub(super) async fn step(registry: &Registry, key: &Key) -> ApiResult<()> {
    // No request is between the charge of a quota and the store of its object meanwhile.
    let _lock = registry.quotas.lock(&key.namespace).await;
    let Some(quota) = registry.store.get(QUOTAS, key) else {
        return Ok(());
    };
    let list = |path: &[&str]| resource_list::parse(object::at(&quota, path));
    let (hard, known_hard) = (list(&["spec", "hard"]), list(&["status", "hard"]));
    let known = list(&["status", "used"]);
    let mut used = known.clone();
    used.extend(calculate(registry, &quota, &hard));
    used.retain(|name, _| hard.contains_key(name));
    let is_new = object::at(&quota, &["status", "hard"]).is_null()
        || object::at(&quota, &["status", "used"]).is_null();
    if !is_new && known_hard == hard && known == used {
        return Ok(());
    }
    let mut new = Value::clone(&quota);
    let hard = object::at(&quota, &["spec", "hard"]).clone();
    object::set(&mut new, &["status", "hard"], hard);
    object::set(
        &mut new,
        &["status", "used"],
        resource_list::to_value(&used),
    );
    let kind = registry.builtin("", QUOTAS)?;
    let target = Target::new(&kind, &key.namespace, &key.name).subresource("status");
    let mut write = Write::by(MANAGER);
    registry
        .modify(&target, &mut write, |_| Ok(new.clone()))
        .await?;
    Ok(())
}
