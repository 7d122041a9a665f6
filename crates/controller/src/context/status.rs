//! `Context::update_status`: writing a status only when it changes, and never over another's.

pub(crate) mod conditions;
pub(crate) mod schema;

use std::sync::Arc;

use jiff::Timestamp;
use kube::core::object::HasStatus;
use opkit_client::{Kind, Object, ObjectKey, Patch, WriteOptions};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::context::Context;
use crate::context::status::conditions::{
    OwnConditions, keep_conditions, merge_patch, stamp_conditions, without_nulls,
};
use crate::error::WriteError;

/// How often a conflict is answered by reading again before it is an error.
const ATTEMPTS: usize = 10;

impl<S> Context<S> {
    /// Changes the status of `object` as `change` does, and answers the object as it now is.
    ///
    /// `change` starts from `object`, or from what the cache has if that is later: a second call of
    /// one reconcile sees the first. Nothing is written if nothing changes. The status is written
    /// at the version that was read; if somebody else was faster, `change` runs again on the fresh
    /// object, so it must set the status from what it knows, and not count. `observedGeneration`,
    /// if the status type has it, becomes the generation that this reconcile saw, of another object
    /// than the reconciled one the generation of `object`; a condition's `lastTransitionTime` moves
    /// only with its status; conditions that `change` leaves alone stay as they are, and those that
    /// another field manager wrote stay also if `change` drops them.
    ///
    /// # Errors
    /// When the object is gone, or a request fails.
    ///
    /// # Cancel safety
    /// Once the request is sent, the status may be written although the future is dropped.
    pub async fn update_status<K>(
        &self,
        object: &Arc<K>,
        mut change: impl FnMut(&mut K::Status),
    ) -> Result<Arc<K>, WriteError>
    where
        K: Object + HasStatus,
        K::Status: Clone + Default + Serialize + DeserializeOwned,
    {
        let (kind, key) = (Kind::of::<K>(), ObjectKey::of(object.meta()));
        let generation = match object.meta().uid.as_deref() == Some(&*self.owner.uid()) {
            // That of the object, if the owner was looked for only now.
            true => (self.owner.generation()).min(object.meta().generation.unwrap_or(0)),
            false => object.meta().generation.unwrap_or(0),
        };
        let lister = self.term.cluster.reads.lister::<K>().ok();
        let mut object = match &lister {
            Some(lister) => lister.newest(object),
            None => object.clone(),
        };
        let manager = self.field_manager();
        let mut attempts = 0;
        loop {
            let json = |cause| WriteError::Json {
                kind: Box::new(kind.clone()),
                key: key.clone(),
                cause,
            };
            let patch = status_patch(&*object, generation, manager, &mut change).map_err(json)?;
            let Some(patch) = patch else {
                return Ok(object);
            };
            let (patch, options) = (Patch::Merge(&patch), WriteOptions::for_manager(manager));
            match self
                .term
                .client
                .patch(&kind, &key, Some("status"), patch, &options)
                .await
            {
                Ok(answer) => {
                    self.trace.wrote("patch", &kind, &key, "status");
                    let written: Arc<K> = Arc::new(serde_json::from_slice(&answer).map_err(json)?);
                    if let Some(lister) = &lister {
                        lister.informer().observe_response(&answer);
                    }
                    return Ok(written);
                }
                Err(error) if error.is_conflict() && attempts < ATTEMPTS => attempts += 1,
                Err(error) => return Err(error.into()),
            }
            self.trace.read_live();
            let live = self.term.client.get(&kind, &key).await?;
            let live: K = serde_json::from_slice(&live).map_err(json)?;
            if live.meta().uid != object.meta().uid {
                return Err(WriteError::Replaced {
                    kind: Box::new(kind),
                    key,
                });
            }
            object = Arc::new(live);
        }
    }
}

/// The merge patch that makes the changed status; `None` if it does not change.
fn status_patch<K>(
    object: &K,
    generation: i64,
    manager: &str,
    change: &mut impl FnMut(&mut K::Status),
) -> Result<Option<Value>, serde_json::Error>
where
    K: Object + HasStatus,
    K::Status: Clone + Default + Serialize + DeserializeOwned,
{
    let mut status = object.status().cloned().unwrap_or_default();
    let previous = match object.status() {
        Some(status) => without_nulls(serde_json::to_value(status)?),
        None => json!({}),
    };
    change(&mut status);
    let mut new = without_nulls(serde_json::to_value(&status)?);
    keep_conditions(
        &previous,
        &mut new,
        &OwnConditions::of(object.meta(), manager),
    );
    observe_generation::<K::Status>(&mut new, generation);
    // Whole seconds, as metav1.Time has them.
    let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let mut stamped = new.clone();
    stamp_conditions(&previous, &mut stamped, &now, generation);
    // Through the type once more, so that a condition has only the fields that its type has.
    if let Ok(stamped) = serde_json::from_value::<K::Status>(stamped) {
        new = without_nulls(serde_json::to_value(&stamped)?);
    }
    Ok(merge_patch(&previous, &new).map(|status| {
        json!({
            "metadata": {"resourceVersion": object.meta().resource_version},
            "status": status,
        })
    }))
}

/// Sets `observedGeneration`, if the type has it: if the field survives being read and written.
fn observe_generation<T: Serialize + DeserializeOwned>(status: &mut Value, generation: i64) {
    let mut probe = status.clone();
    let Some(fields) = probe.as_object_mut() else {
        return;
    };
    fields.insert("observedGeneration".into(), generation.into());
    let read: Option<T> = serde_json::from_value(probe.clone()).ok();
    let written = read.and_then(|read| serde_json::to_value(read).ok());
    if written.is_some_and(|written| written.get("observedGeneration").is_some()) {
        *status = probe;
    }
}

#[cfg(test)]
mod tests;
