//! Limits of the retries of an object: after too many failures in a row, the object is not retried
//! until it changes.
//!
//! A controller without a limit does not contain this code: only the builder refers to it.

use std::collections::HashMap;
use std::fmt::Debug;

use futures::FutureExt;
use futures::future::BoxFuture;
use opkit_apimachinery::conditions::Condition;
use opkit_cache::Stored;
use opkit_client::RequestError;
use opkit_events::{EventType, ObjectReference};
use parking_lot::Mutex;
use serde_json::Value;
use tracing::warn;

use crate::context::status::change::{Change, StatusWriter};
use crate::object::Request;

/// Reason of the condition and of the event.
const REASON: &str = "RetriesExhausted";
/// Longest message of the condition, in bytes: an error may be long, and the API server limits the
/// message of a condition to 32 KiB.
const MESSAGE_MAX: usize = 1_024;
/// Largest number of own writes that are remembered. For a write that is not, the object is retried
/// once more.
const ECHOES_MAX: usize = 10_000;

/// A limit of the retries, as the worker sees it.
pub(crate) trait RetryLimit: Debug + Send + Sync {
    /// Reports whether an object that has failed this many times in a row is not retried.
    fn is_exceeded(&self, failures: u32) -> bool;

    /// Reports whether the limit writes conditions.
    fn sets_condition(&self) -> bool;

    /// Reports whether a reconcile has no cause but the condition that this limit has written.
    /// `is_own_change` is whether its only cause is a change of the object itself.
    fn is_echo(&self, request: &Request, is_own_change: bool, stored: Option<&Stored>) -> bool;

    /// Sets the condition and records the event. `Err` if the condition could not be written now:
    /// then the object should be retried.
    fn exhausted<'a>(
        &'a self,
        object: StatusWriter<'a>,
        error: &'a str,
    ) -> BoxFuture<'a, Result<(), RequestError>>;

    /// Removes the condition of an object that was reconciled successfully, unless the reconcile
    /// has set it itself.
    fn recovered<'a>(&'a self, object: StatusWriter<'a>) -> BoxFuture<'a, ()>;
}

/// The limit of [`Controller::max_retries`](crate::Controller::max_retries).
#[derive(Debug)]
pub(crate) struct MaxRetries {
    max: u32,
    condition: Option<Condition>,
    /// Version of each object after the condition was written, until its next reconcile.
    echoes: Mutex<HashMap<Request, String>>,
}

impl MaxRetries {
    pub(crate) fn new(max: u32, condition: Option<Condition>) -> Self {
        let condition = condition.map(|condition| {
            // The reason that `Condition::new` derives says nothing.
            let derived = Condition::new(condition.type_.clone(), condition.status);
            match condition.reason == derived.reason {
                true => condition.reason(REASON),
                false => condition,
            }
        });
        Self {
            max,
            condition,
            echoes: Mutex::default(),
        }
    }

    /// Writes the condition, if the object still exists.
    async fn write(
        &self,
        object: StatusWriter<'_>,
        condition: &Condition,
        error: &str,
    ) -> Result<(), RequestError> {
        let mut condition = condition.clone();
        if condition.message.is_empty() {
            condition.message = shortened(error).to_owned();
        }
        let type_ = condition.type_.clone();
        let Ok(condition) = serde_json::to_value(condition) else {
            return Ok(());
        };
        let written = object.change_conditions(|conditions| {
            let same = conditions
                .iter_mut()
                .find(|it| it.get("type") == Some(&type_.clone().into()));
            match same {
                Some(same) => *same = condition.clone(),
                None => conditions.push(condition.clone()),
            }
        });
        match written.await {
            Ok(Change::Written { from, to }) => {
                let seen = object
                    .before
                    .and_then(|before| before.meta().resource_version());
                let mut echoes = self.echoes.lock();
                // If the object has changed since, it is reconciled again.
                if seen.is_some_and(|seen| seen == from) && echoes.len() < ECHOES_MAX {
                    echoes.insert(object.request.clone(), to);
                }
                Ok(())
            }
            Ok(Change::None) => Ok(()),
            // A retry cannot write it either.
            Err(error) if error.is_not_found() || error.is_invalid() || error.is_forbidden() => {
                warn!(%error, "cannot set the condition of an object that is not retried");
                Ok(())
            }
            Err(error) => Err(error),
        }
    }
}

impl RetryLimit for MaxRetries {
    fn is_exceeded(&self, failures: u32) -> bool {
        failures > self.max
    }

    fn sets_condition(&self) -> bool {
        self.condition.is_some()
    }

    fn is_echo(&self, request: &Request, is_own_change: bool, stored: Option<&Stored>) -> bool {
        let Some(written) = self.echoes.lock().remove(request) else {
            return false;
        };
        let version = stored.and_then(|stored| stored.meta().resource_version());
        is_own_change && version.is_some_and(|version| version == written)
    }

    fn exhausted<'a>(
        &'a self,
        object: StatusWriter<'a>,
        error: &'a str,
    ) -> BoxFuture<'a, Result<(), RequestError>> {
        async move {
            if let Some(condition) = &self.condition {
                self.write(object, condition, error).await?;
            }
            let note = format!("gave up after {} retries: {}", self.max, shortened(error));
            let StatusWriter {
                term,
                request,
                before,
                ..
            } = object;
            if let Some(meta) = before.map(Stored::meta) {
                let regarding = ObjectReference {
                    kind: term.cluster.reads.controller.kind.clone(),
                    key: request.key().clone(),
                    uid: meta.uid().map(|uid| uid.into_owned()).unwrap_or_default(),
                    resource_version: meta.resource_version().map(|it| it.into_owned()),
                };
                let events = &term.cluster.events;
                events.record(regarding, EventType::Warning, REASON.to_owned(), note);
            }
            Ok(())
        }
        .boxed()
    }

    fn recovered<'a>(&'a self, object: StatusWriter<'a>) -> BoxFuture<'a, ()> {
        async move {
            let Some(own) = &self.condition else { return };
            let status = own.status.to_string();
            let is_own = |condition: &Value| {
                let has = |field: &str, value: &str| {
                    condition.get(field).and_then(Value::as_str) == Some(value)
                };
                has("type", &own.type_) && has("status", &status) && has("reason", &own.reason)
            };
            // The cache includes what the reconcile has written.
            let stored = object
                .term
                .cluster
                .reads
                .primary
                .stored(object.request.key());
            let conditions = stored.and_then(|stored| stored.value("status.conditions"));
            let conditions = conditions.as_ref().and_then(Value::as_array);
            if !conditions.is_some_and(|conditions| conditions.iter().any(is_own)) {
                return;
            }
            let removed = object.change_conditions(|conditions| {
                conditions.retain(|condition| !is_own(condition));
            });
            if let Err(error) = removed.await {
                warn!(%error, "cannot remove the condition of an object that has recovered");
            }
        }
        .boxed()
    }
}

/// Returns the start of a text that is too long.
fn shortened(text: &str) -> &str {
    let mut end = text.len().min(MESSAGE_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or(text)
}
