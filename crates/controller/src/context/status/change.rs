//! Changes of an object's conditions without the object's Rust type.

use opkit_cache::Stored;
use opkit_client::{Patch, RequestError, WriteOptions};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::conditions::{merge_patch, now, stamp_conditions};
use crate::context::Term;
use crate::object::Request;
use crate::object::owner::Head;
use crate::record::trace::Trace;

/// Largest number of retries if another client changes the object between read and write.
const ATTEMPTS: usize = 10;

/// Writes the conditions of the reconciled object.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StatusWriter<'a> {
    pub(crate) term: &'a Term,
    pub(crate) trace: &'a Trace,
    pub(crate) request: &'a Request,
    /// The object as it was before the reconcile; `None` if it did not exist.
    pub(crate) before: Option<&'a Stored>,
}

/// Result of a change.
#[derive(Debug)]
pub(crate) enum Change {
    /// The change was written, from one version of the object to another.
    Written { from: String, to: String },
    /// Nothing differs, or the object does not exist any more.
    None,
}

/// An object with any status; other fields are not decoded.
#[derive(Debug, Default, Deserialize)]
struct WithStatus {
    status: Option<Map<String, Value>>,
}

impl StatusWriter<'_> {
    /// Reads the object, and writes the conditions that `change` has changed, at the version that
    /// was read.
    pub(crate) async fn change_conditions(
        self,
        change: impl Fn(&mut Vec<Value>),
    ) -> Result<Change, RequestError> {
        let reads = &self.term.cluster.reads;
        let (kind, client) = (&*reads.controller.kind, &self.term.client);
        let key = self.request.key();
        let mut attempts = 0;
        loop {
            let live = match client.get(kind, key).await {
                Err(error) if error.is_not_found() => return Ok(Change::None),
                live => live?,
            };
            self.trace.read_live();
            let head: Head = serde_json::from_slice(&live).unwrap_or_default();
            let found: WithStatus = serde_json::from_slice(&live).unwrap_or_default();
            let meta = head.metadata;
            let before = self.before.map(Stored::meta);
            let uid = before.as_ref().and_then(|before| before.uid());
            if meta.uid.as_deref() != uid.as_deref() {
                return Ok(Change::None);
            }
            // The condition is about the generation that was reconciled.
            let generation = before.and_then(|before| before.generation()).unwrap_or(0);
            let previous = Value::from(found.status.unwrap_or_default());
            let changed = with_conditions(&previous, generation, &change);
            let Some(status) = merge_patch(&previous, &changed) else {
                return Ok(Change::None);
            };
            let patch = json!({
                "metadata": {"resourceVersion": meta.resource_version},
                "status": status,
            });
            let (patch, options) = (
                Patch::Merge(&patch),
                WriteOptions::for_manager(self.term.field_manager()),
            );
            let patched = client.patch(kind, key, Some("status"), patch, &options);
            match patched.await {
                Ok(response) => {
                    self.trace.wrote("patch", kind, key, "status");
                    reads.primary.observe_response(&response);
                    let head: Head = serde_json::from_slice(&response).unwrap_or_default();
                    return Ok(Change::Written {
                        from: meta.resource_version.unwrap_or_default(),
                        to: head.metadata.resource_version.unwrap_or_default(),
                    });
                }
                Err(error) if error.is_conflict() && attempts < ATTEMPTS => attempts += 1,
                Err(error) => return Err(error),
            }
        }
    }
}

/// Returns the status with changed conditions, with the times and generations of those that differ.
fn with_conditions(previous: &Value, generation: i64, change: &impl Fn(&mut Vec<Value>)) -> Value {
    let mut status = previous.clone();
    let Some(fields) = status.as_object_mut() else {
        return status;
    };
    let conditions = fields.entry("conditions").or_insert_with(|| json!([]));
    if let Some(conditions) = conditions.as_array_mut() {
        change(conditions);
    }
    stamp_conditions(previous, &mut status, &now(), generation);
    status
}
