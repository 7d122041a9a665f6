//! `Context::update_status`: writes a status only if it changes, and never overwrites another
//! client's change.

pub(crate) mod change;
pub(crate) mod conditions;
pub(crate) mod schema;

use std::sync::Arc;

use kube::core::object::HasStatus;
use opkit_client::{Kind, Object, ObjectKey, Patch, WriteOptions};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::context::Context;
use crate::context::status::conditions::{
    OwnConditions, keep_conditions, merge_patch, now, stamp_conditions, without_nulls,
};
use crate::error::WriteError;

/// Largest number of retries if another client changes the object between read and write.
const ATTEMPTS: usize = 10;

impl<S> Context<S> {
    /// Changes the status of `object` with `change` and returns the object as the server has stored
    /// it.
    ///
    /// `change` receives the status of `object`, or of the object in the cache if that is newer, so
    /// that a second call in one reconcile sees the result of the first. No request is sent if
    /// nothing changes. The status is written only if the object still has the version that was
    /// read. If another client changed the object meanwhile, `change` is called again with the new
    /// status. So `change` must set values, not increment them.
    ///
    /// If the status type has `observedGeneration`, this field is set to the generation that this
    /// reconcile saw. If `object` is not the reconciled object, the field is set to the generation
    /// of `object`. A condition's `lastTransitionTime` changes only with the condition's status.
    /// Conditions that `change` does not touch stay as they are, and conditions of other field
    /// managers stay even if `change` removes them.
    ///
    /// # Errors
    /// When the object does not exist, or a request fails.
    ///
    /// # Cancel safety
    /// If the future is dropped after the request is sent, the status may be written.
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
            // The generation of `object`, if the owner is read from the cache only now.
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
                Ok(response) => {
                    self.trace.wrote("patch", &kind, &key, "status");
                    let written: Arc<K> =
                        Arc::new(serde_json::from_slice(&response).map_err(json)?);
                    if let Some(lister) = &lister {
                        lister.informer().observe_response(&response);
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

/// Returns the merge patch from the current to the changed status; `None` if they are equal.
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
    let mut stamped = new.clone();
    stamp_conditions(&previous, &mut stamped, &now(), generation);
    // Decode and encode once more, so that a condition has only the fields of its type.
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

/// Sets `observedGeneration` if the type `T` has that field. To find out, a status with the field
/// is decoded as `T` and encoded again.
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
