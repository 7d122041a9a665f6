//! Calls the user's function for an object, and handles finalizers and deletion.

use std::sync::Arc;
use std::time::Duration;

use opkit_cache::{AnyObject, FetchError, ObjectError};

use super::RunningController;
use super::controller::ClusterTerm;
use super::slots::Permit;
use crate::context::finalizer::Changed;
use crate::context::unowned::Unowned;
use crate::context::{Stateless, finalizer};
use crate::error::{Error, Result};
use crate::object::Request;
use crate::object::owner::Owner;
use crate::reconcile::function::Reconciler;
use crate::reconcile::{Action, Cleanup};
use crate::record::trace::Trace;

/// Delay of the next reconcile of an owner whose children are being deleted, in case the event of a
/// child's deletion is missed.
const DELETION_INTERVAL: Duration = Duration::from_secs(10);

impl RunningController {
    /// Calls the user's function for the object of a request. Returns `None` if the object does not
    /// exist.
    pub(super) async fn reconcile_request(
        &self,
        request: &Request,
        permit: Option<&Permit>,
        trace: &Arc<Trace>,
    ) -> Option<Result<Action>> {
        // The request of a trigger may name any cluster.
        let Some(cluster) = &self.cluster_in(request, permit) else {
            let unknown = format!("there is no cluster {:?}", request.cluster());
            return Some(Err(Error::terminal(Error::msg(unknown))));
        };
        // A function that takes a key needs no decoded object: its metadata is enough and read on
        // demand.
        if let (Reconciler::Key(function), None) = (&self.reconciler, &self.finalizer)
            && !self.has_unowned
        {
            let (kind, informer) = (self.identity().kind.clone(), cluster.primary().clone());
            let owner = Owner::of_key(kind, request.clone(), informer);
            let context = Stateless::new(cluster.term(), owner, trace.clone());
            let called = function.call(request.clone(), context).await;
            if called.is_ok() || self.error_policy.is_none() {
                return Some(called);
            }
            return Some(Box::pin(self.decided_by_key(request, cluster, trace, called)).await);
        }
        let found = match cluster.primary().fetch(request.key()).await {
            Ok(found) => found,
            // A retry before the object changes cannot succeed.
            Err(FetchError::Object(unreadable))
                if matches!(&*unreadable, ObjectError::Unreadable { .. }) =>
            {
                return Some(Err(Error::terminal(unreadable)));
            }
            Err(error) => return Some(Err(error.into())),
        };
        match (found, &self.reconciler) {
            (Some(object), _) => Some(self.reconcile_object(request, cluster, object, trace).await),
            (None, Reconciler::Key(function)) => {
                let owner = Owner::deleted(self.identity().kind.clone(), request.clone());
                let context = Stateless::new(cluster.term(), owner, trace.clone());
                Some(function.call(request.clone(), context).await)
            }
            (None, Reconciler::Object { .. }) => None,
        }
    }

    async fn reconcile_object(
        &self,
        request: &Request,
        cluster: &ClusterTerm,
        object: AnyObject,
        trace: &Arc<Trace>,
    ) -> Result<Action> {
        let meta = object.object_meta();
        if meta.deletion_timestamp.is_some() {
            // Boxed, so that the future of every other reconcile stays small.
            return Box::pin(self.reconcile_deleting(request, cluster, object, trace)).await;
        }
        let Some(declared) = self.finalizer.as_ref() else {
            return self.call(request, cluster, object, trace).await;
        };
        if finalizer::has(meta, &declared.name) {
            return self.call(request, cluster, object, trace).await;
        }
        let term = cluster.term();
        let owner = self.owner(request, object.clone());
        let (client, manager) = (&term.client, term.field_manager());
        match finalizer::add(client, &owner, meta, &declared.name, manager).await? {
            Changed::Written(response) => {
                trace.wrote("patch", &owner.kind, &owner.key, "finalizers");
                let stored = cluster.primary().read(&response)?;
                cluster.primary().observe(&stored);
                self.call(request, cluster, stored.any()?, trace).await
            }
            // The object was deleted meanwhile; the event of its deletion follows.
            Changed::Not | Changed::Gone => Ok(Action::await_change()),
        }
    }

    /// Cleans up after an object that is being deleted: first calls the function of the user's
    /// finalizer, then deletes the children without owner references.
    async fn reconcile_deleting(
        &self,
        request: &Request,
        cluster: &ClusterTerm,
        object: AnyObject,
        trace: &Arc<Trace>,
    ) -> Result<Action> {
        let meta = object.object_meta();
        let term = cluster.term();
        let owner = self.owner(request, object.clone());
        let action = match &self.finalizer {
            Some(declared) if finalizer::has(meta, &declared.name) => {
                let context = Stateless::new(term.clone(), owner.clone(), trace.clone());
                let called = declared.function.call(object.clone(), context).await;
                match self.decided(request, cluster, &object, trace, called)? {
                    Cleanup::Pending(delay) => return Ok(Action::requeue(delay)),
                    Cleanup::AwaitChange => return Ok(Action::await_change()),
                    Cleanup::Done => {
                        let (client, manager) = (&term.client, term.field_manager());
                        let removed =
                            finalizer::remove(client, &owner, meta, &declared.name, manager);
                        let removed = removed.await?;
                        trace.wrote("patch", &owner.kind, &owner.key, "finalizers");
                        cluster.observe_removal(&owner, meta.resource_version.as_deref(), removed);
                        Action::await_change()
                    }
                }
            }
            None if self.reconciler.sees_deletion() => {
                self.call(request, cluster, object.clone(), trace).await?
            }
            _ => Action::await_change(),
        };
        let unowned = Unowned {
            term: &term,
            owner: &owner,
            trace,
        };
        match unowned.delete_all().await? {
            true => Ok(action),
            // The deletion of the children causes a reconcile; the requeue is for the case that its
            // event is missed.
            false => Ok(Action::requeue(DELETION_INTERVAL)),
        }
    }

    fn owner(&self, request: &Request, object: AnyObject) -> Owner {
        Owner::new(self.identity().kind.clone(), request.clone(), object)
    }

    async fn call(
        &self,
        request: &Request,
        cluster: &ClusterTerm,
        object: AnyObject,
        trace: &Arc<Trace>,
    ) -> Result<Action> {
        let owner = self.owner(request, object.clone());
        let context = Stateless::new(cluster.term(), owner, trace.clone());
        let called = match &self.reconciler {
            Reconciler::Object { function, .. } => function.call(object.clone(), context).await,
            Reconciler::Key(function) => function.call(request.clone(), context).await,
        };
        self.decided(request, cluster, &object, trace, called)
    }

    /// Returns the result of the user's function. If the result is an error, the controller's error
    /// policy decides when the object is retried.
    fn decided<T>(
        &self,
        request: &Request,
        cluster: &ClusterTerm,
        object: &AnyObject,
        trace: &Arc<Trace>,
        called: Result<T>,
    ) -> Result<T> {
        let Some(policy) = &self.error_policy else {
            return called;
        };
        called.map_err(|error| {
            let owner = self.owner(request, object.clone());
            let context = Stateless::new(cluster.term(), owner, trace.clone());
            policy.decide(object.clone(), error, context)
        })
    }

    /// Same as `decided`, for a function that was called with a key. An error policy takes an
    /// object, so the error for a deleted object is returned unchanged.
    async fn decided_by_key(
        &self,
        request: &Request,
        cluster: &ClusterTerm,
        trace: &Arc<Trace>,
        called: Result<Action>,
    ) -> Result<Action> {
        match cluster.primary().fetch(request.key()).await {
            Ok(Some(object)) => self.decided(request, cluster, &object, trace, called),
            _ => called,
        }
    }
}

impl ClusterTerm {
    /// Updates the cache after the removal of a finalizer, so that an event that is still queued
    /// does not cause a second cleanup. Stores the object without the finalizer, or removes the
    /// object from the cache if it no longer exists.
    fn observe_removal(&self, owner: &Owner, version: Option<&str>, removed: Changed) {
        match removed {
            Changed::Written(response) => self.primary().observe_response(&response),
            Changed::Gone => {
                let uid = owner.uid();
                self.primary().observe_deletion(&owner.key, &uid, version);
            }
            Changed::Not => {}
        }
    }
}
