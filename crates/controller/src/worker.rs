//! One reconcile: from a key to the next entry in the queue.

use std::any::Any;
use std::collections::HashSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use jiff::Timestamp;
use opkit_cache::{AnyObject, FetchError, Informer, ObjectError};
use opkit_client::ObjectKey;
use opkit_workqueue::{Item, Queue, Reasons};
use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, debug, error, info_span, warn};

use crate::context::Shared;
use crate::controller::ControllerSpec;
use crate::error::Retry;
use crate::finalizer::Changed;
use crate::owner::Owner;
use crate::record::{Cause, Outcome};
use crate::{Action, Cleanup, Context, Error, ReconcileLog, ReconcileRecord, Result, finalizer};

/// A controller that runs.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) spec: ControllerSpec,
    pub(crate) queue: Queue<ObjectKey, Reasons<Cause>>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) informer: Informer,
    pub(crate) log: ReconcileLog,
    /// What is being reconciled, to name it if it is late at the stop.
    pub(crate) in_work: Mutex<HashSet<ObjectKey>>,
}

impl Running {
    /// Works until `stop`; a reconcile that has begun is finished.
    pub(crate) async fn work(self: Arc<Self>, stop: CancellationToken) {
        loop {
            let item = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                item = self.queue.get() => item,
            };
            let Some(item) = item else { break };
            let span = info_span!("reconcile", controller = self.spec.name, object = %item.key());
            self.reconcile(&item).instrument(span).await;
            drop(item);
            // A reconcile that only reads the cache never waits: others get their turn here.
            tokio::task::yield_now().await;
        }
    }

    async fn reconcile(&self, item: &Item<ObjectKey, Reasons<Cause>>) {
        let key = item.key();
        let (started, at) = (Instant::now(), Timestamp::now());
        self.in_work.lock().insert(key.clone());
        let result = self.reconcile_key(key).await;
        self.in_work.lock().remove(key);
        let Some(result) = result else {
            debug!("the object is gone");
            self.queue.forget(key);
            self.log.forget(&self.spec.name, key);
            return;
        };
        let duration = started.elapsed();
        let result = self.requeue(key, result);
        let mut causes: Vec<_> = item.payload().iter().map(ToString::to_string).collect();
        if item.payload().more() > 0 {
            causes.push(format!("{} more", item.payload().more()));
        }
        match &result {
            Outcome::Error {
                message,
                retry_after,
            } => {
                warn!(error = message, retry_in = ?retry_after, ?duration, "reconcile failed");
            }
            _ => debug!(causes = causes.join(", "), ?duration, "reconciled"),
        }
        self.log.push(ReconcileRecord {
            controller: self.spec.name.clone(),
            kind: self.spec.kind.kind.clone(),
            namespace: key.namespace.clone(),
            name: key.name.clone(),
            causes,
            started: at,
            duration,
            result,
        });
    }

    /// Runs the user's function for one object; `None` if there is no such object any more.
    async fn reconcile_key(&self, key: &ObjectKey) -> Option<Result<Action>> {
        let object = match self.informer.fetch(key).await {
            Ok(object) => object?,
            // Retrying cannot help before it changes.
            Err(FetchError::Object(unreadable))
                if matches!(&*unreadable, ObjectError::Unreadable { .. }) =>
            {
                return Some(Err(Error::terminal(unreadable)));
            }
            Err(error) => return Some(Err(error.into())),
        };
        // Polled by this worker, so that a panic is caught here and nothing outlives the key.
        let run = AssertUnwindSafe(self.reconcile_object(object)).catch_unwind();
        Some(run.await.unwrap_or_else(|panic| {
            let message = panic_message(&*panic);
            error!(panic = message, "reconcile panicked");
            Err(Error::msg(format!("reconcile panicked: {message}")))
        }))
    }

    async fn reconcile_object(&self, object: AnyObject) -> Result<Action> {
        let meta = object.object_meta();
        let owner = Owner::new(self.spec.kind.clone(), meta);
        let Some(declared) = &self.spec.finalizer else {
            if meta.deletion_timestamp.is_some() {
                return Ok(Action::await_change());
            }
            let context = Context::new(self.shared.clone(), owner);
            return self.spec.reconcile.call(object, context).await;
        };
        let (client, manager) = (&self.shared.client, &self.shared.field_manager);
        if meta.deletion_timestamp.is_some() {
            if !finalizer::has(meta, &declared.name) {
                return Ok(Action::await_change());
            }
            let context = Context::new(self.shared.clone(), owner.clone());
            return match declared.function.call(object.clone(), context).await? {
                Cleanup::Pending(delay) => Ok(Action::requeue(delay)),
                Cleanup::Done => {
                    let removed = finalizer::remove(client, &owner, meta, &declared.name, manager);
                    self.observe_removal(&owner, removed.await?);
                    Ok(Action::await_change())
                }
            };
        }
        let object = if finalizer::has(meta, &declared.name) {
            object
        } else {
            match finalizer::add(client, &owner, meta, &declared.name, manager).await? {
                Changed::Written(answer) => {
                    let stored = self.informer.read(&answer)?;
                    self.informer.observe(&stored);
                    stored.any()?
                }
                // Deleted meanwhile: its event is on the way.
                Changed::Not | Changed::Gone => return Ok(Action::await_change()),
            }
        };
        let owner = Owner::new(self.spec.kind.clone(), object.object_meta());
        let context = Context::new(self.shared.clone(), owner);
        self.spec.reconcile.call(object, context).await
    }

    /// Lets reads see at once that the finalizer is gone, and with the last one the object, so that
    /// no event on its way leads to a second clean-up.
    fn observe_removal(&self, owner: &Owner, removed: Changed) {
        let object = match removed {
            Changed::Written(answer) => match self.informer.read(&answer) {
                Ok(object) => object,
                // The watch will tell.
                Err(_) => return,
            },
            Changed::Not => return,
            Changed::Gone => return self.informer.observe_deletion(&owner.key, &owner.uid),
        };
        let meta = object.meta().to_object_meta();
        let finalizers = meta.finalizers.iter().flatten().count();
        // The server keeps an object on, such as a pod that is ending, for its grace period.
        if finalizers == 0 && meta.deletion_grace_period_seconds.unwrap_or(0) == 0 {
            self.informer.observe_deletion(&owner.key, &owner.uid);
        } else {
            self.informer.observe(&object);
        }
    }

    /// Queues the key again as the result asks for.
    fn requeue(&self, key: &ObjectKey, result: Result<Action>) -> Outcome {
        let after = |delay: Duration, cause: Cause| {
            self.queue
                .add_after(key.clone(), Reasons::from(cause), delay);
        };
        let error = match result {
            Ok(action) => {
                self.queue.forget(key);
                let Some(delay) = action.requeue_after() else {
                    return Outcome::Ok;
                };
                after(delay, Cause::Requeued);
                return Outcome::Requeue { after: delay };
            }
            Err(error) => error,
        };
        let failures = self.queue.num_requeues(key).saturating_add(1);
        let retry_after = match error.retry() {
            Retry::Backoff => {
                let cause = Reasons::from(Cause::Retry(failures));
                Some(self.queue.add_rate_limited(key.clone(), cause))
            }
            Retry::After(delay) => {
                self.queue.forget(key);
                after(delay, Cause::Retry(1));
                Some(delay)
            }
            Retry::AtNextChange => {
                self.queue.forget(key);
                None
            }
        };
        Outcome::Error {
            message: error.to_string(),
            retry_after,
        }
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "no message".to_owned())
}
