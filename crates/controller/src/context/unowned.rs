//! `Context::apply_unowned`: children that cannot have an owner reference, because they are in
//! another namespace than their owner, or cluster-scoped.
//!
//! Kubernetes' garbage collector does not delete such children. So the owner has a finalizer and a
//! [record] of the children, which is an annotation, and each child has annotations with the
//! owner's UID and the field manager. Only an object that is recorded *and* annotated is deleted. A
//! user who may write the owner cannot cause the deletion of another object by adding that object
//! to the record. A user who may write an object elsewhere cannot make the object a child of this
//! owner by annotating it.

pub(crate) mod record;

use std::sync::Arc;

use bytes::Bytes;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use opkit_cache::Stored;
use opkit_client::{Deleted, Kind, Object, ObjectKey, RequestError};
use serde_json::{Map, Value, json};
use tracing::warn;

use self::record::{Recorded, record_name, recorded};
use crate::context::apply::annotation::{
    APPLIED, OWNER, has_annotations, is_applied_by, parse_owner,
};
use crate::context::apply::desired::{Desired, Relation};
use crate::context::finalizer::Changed;
use crate::context::prune::OwnedKind;
use crate::context::{Context, Term, delete, finalizer};
use crate::error::{ApplyError, RecordError, WriteError};
use crate::object::owner::{Head, Owner};
use crate::reads::{MapContext, cross_namespace};
use crate::record::trace::Trace;

/// Largest number of retries if another client changes the child between read and delete.
const ATTEMPTS: usize = 10;

impl<S> Context<S> {
    /// Creates or changes `child` like [`apply`](Context::apply), but without an owner reference.
    /// Use this method for children that are in another namespace than the reconciled object, or
    /// are cluster-scoped.
    ///
    /// Before the first apply, a finalizer and a record of the child (kind, namespace and name) are
    /// written to the reconciled object. The child gets the annotations `opkit.dev/owner`, with the
    /// UID of the owner, and `opkit.dev/applied`, with the field manager. Only an object that is
    /// recorded and has both annotations is ever changed or deleted.
    ///
    /// A change of such a child causes a reconcile of its owner. [`prune`](Context::prune) deletes
    /// recorded children that the reconcile did not apply. All children are deleted when the
    /// reconciled object is deleted. If the controller has a
    /// [finalizer](crate::Controller::finalizer), they are deleted after its function has returned
    /// `Done`.
    ///
    /// # Examples
    /// ```
    /// # use opkit_controller as opkit;
    /// use std::sync::Arc;
    /// use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
    /// use opkit::{Action, Context, Controller, Result};
    ///
    /// async fn reconcile(team: Arc<ConfigMap>, cx: Context) -> Result<Action> {
    ///     let mut namespace = Namespace::default();
    ///     namespace.metadata.name = team.metadata.name.clone();
    ///     cx.apply_unowned(namespace).await?;
    ///     cx.prune().await?;
    ///     Ok(Action::await_change())
    /// }
    /// let controller = Controller::new(reconcile).applies_unowned::<Namespace>();
    /// ```
    ///
    /// # Errors
    /// [`ApplyError::NotDeclared`] if the controller does not
    /// [declare](crate::Controller::applies_unowned) the kind. [`ApplyError::NotGranted`] if the
    /// child is in another namespace than the reconciled object, and the operator's
    /// `cross_namespace` does not grant that. [`ApplyError::NotOurs`] if an object with this name
    /// exists that does not have the annotations; it is not changed. [`ApplyError::OwnerDeleting`]
    /// if the reconciled object is being deleted. Otherwise same as `apply`.
    ///
    /// # Cancel safety
    /// If the future is dropped, the child may be recorded and not yet created or applied. The next
    /// call continues from there. If there is no next call, `prune` removes the child from the
    /// record.
    pub async fn apply_unowned<C: Object>(&self, child: C) -> Result<Arc<C>, ApplyError> {
        let desired = self.desired(child, Relation::Unowned)?;
        let (kind, key) = (&desired.kind, &desired.key);
        let reads = &self.term.cluster.reads;
        let granted = cross_namespace::check_granted(reads, &self.owner, kind, key, true);
        granted.map_err(|_| ApplyError::NotGranted {
            kind: Box::new(kind.clone()),
            key: key.clone(),
            owner: self.owner.to_string(),
        })?;
        // An object that is known to have another owner is not recorded.
        let lister = self.term.cluster.reads.lister::<C>().ok();
        let cached = lister.and_then(|lister| lister.get(key).ok().flatten());
        if cached.is_some_and(|cached| !self.is_child(&desired, cached.meta()))
            && let Some(live) = self.live_child::<C>(&desired).await?
        {
            self.check(&desired, live.meta())?;
        }
        let unowned = self.unowned();
        unowned.record(&desired, Recorded::new(kind, key)).await?;
        self.apply_desired(&desired).await
    }

    pub(crate) fn unowned(&self) -> Unowned<'_> {
        Unowned {
            term: &self.term,
            owner: &self.owner,
            trace: &self.trace,
        }
    }
}

/// Returns the owner of a child without an owner reference: the object that the child's annotation
/// names, if that object has recorded the child.
pub(crate) fn owner_of(object: &Stored, kind: &Kind, context: &MapContext) -> Option<ObjectKey> {
    let meta = object.meta();
    let annotation = meta.annotation(OWNER)?;
    let (key, uid) = parse_owner(&annotation)?;
    if !is_applied_by(
        &meta.annotation(APPLIED)?,
        &context.controller.field_manager,
    ) {
        return None;
    }
    let owner = context.primary.stored(&key)?;
    let meta = owner.meta();
    let record = meta.annotation(&record_name(&context.controller.field_manager));
    let children = record::parse(record.as_deref()).ok()?;
    let is_recorded = children.contains(&Recorded::new(kind, &object.key()));
    (meta.uid()? == uid && is_recorded).then_some(key)
}

/// Access to the children without owner references of one object.
pub(crate) struct Unowned<'a> {
    pub(crate) term: &'a Term,
    pub(crate) owner: &'a Owner,
    pub(crate) trace: &'a Trace,
}

/// Result of the deletion of one child.
enum ChildDeletion {
    /// The child does not exist any more, or belongs to another owner. `by_us` is whether this call
    /// deleted it.
    Done { by_us: bool },
    /// The child still exists until its finalizers are removed. `by_us` is whether this call
    /// requested the deletion.
    Pending { by_us: bool },
    /// The controller no longer declares the child's kind.
    Undeclared,
}

/// Result of the deletion of several children.
#[derive(Debug, Default)]
pub(crate) struct Deletions {
    /// Number of children whose deletion was requested by this call.
    pub(crate) count: usize,
    /// The children that still exist, except those that were to be kept.
    pub(crate) left: Vec<Recorded>,
}

impl Unowned<'_> {
    fn name(&self) -> String {
        record_name(self.term.field_manager())
    }

    /// Returns the metadata of the owner from the cache, which already includes this operator's
    /// writes.
    fn cached(&self) -> Option<ObjectMeta> {
        let stored = self
            .term
            .cluster
            .reads
            .primary
            .stored(self.owner.key.key())?;
        let meta = stored.meta();
        (meta.uid()? == self.owner.uid()).then(|| meta.to_object_meta())
    }

    /// Reads the metadata of the owner from the server, for two reasons: the cache may be
    /// configured to leave out annotations, and a new record must contain all children of the
    /// record that it replaces.
    async fn live(&self) -> Result<Option<ObjectMeta>, RequestError> {
        self.trace.read_live();
        let live = self.term.client.get(&self.owner.kind, self.owner.key.key());
        let live = match live.await {
            Err(error) if error.is_not_found() => return Ok(None),
            live => live?,
        };
        let head: Head = serde_json::from_slice(&live).unwrap_or_default();
        let is_it = head.metadata.uid.as_deref() == Some(&*self.owner.uid());
        Ok(is_it.then_some(head.metadata))
    }

    /// Records a child on the owner, together with the finalizer. Called before the child is
    /// applied.
    async fn record(&self, desired: &Desired, child: Recorded) -> Result<(), ApplyError> {
        let owner_error = |is_deleting: bool| {
            let (kind, key) = (Box::new(desired.kind.clone()), desired.key.clone());
            let owner = self.owner.to_string();
            match is_deleting {
                true => ApplyError::OwnerDeleting { kind, key, owner },
                false => ApplyError::OwnerGone { kind, key, owner },
            }
        };
        let failed = |cause| ApplyError::Request {
            kind: Box::new(desired.kind.clone()),
            key: desired.key.clone(),
            manager: self.term.field_manager().to_owned(),
            cause,
        };
        let name = self.name();
        let is_recorded = |meta: &ObjectMeta| {
            let children = recorded(meta, &name);
            finalizer::has(meta, &name) && children.is_ok_and(|it| it.contains(&child))
        };
        if self.cached().is_some_and(|meta| is_recorded(&meta)) {
            return Ok(());
        }
        let Some(meta) = self.live().await.map_err(failed)? else {
            return Err(owner_error(false));
        };
        let mut problem = None;
        let changed = self.change(&meta, |meta| {
            let mut children = match recorded(meta, &name) {
                Ok(children) => children,
                Err(cause) => {
                    problem = Some(self.unreadable(cause).into());
                    return None;
                }
            };
            if is_recorded(meta) {
                return None;
            }
            if !finalizer::has(meta, &name) && meta.deletion_timestamp.is_some() {
                problem = Some(owner_error(true));
                return None;
            }
            if !children.contains(&child) {
                children.push(child.clone());
            }
            Some(children)
        });
        let changed = changed.await.map_err(failed)?;
        match (problem, changed) {
            (Some(problem), _) => Err(problem),
            (None, Changed::Gone) => Err(owner_error(false)),
            (None, _) => Ok(()),
        }
    }

    /// Writes the record that `next` returns, together with the finalizer. If the returned record
    /// has no children, removes the record and the finalizer. Writes nothing if `next` returns
    /// `None`.
    async fn change(
        &self,
        meta: &ObjectMeta,
        mut next: impl FnMut(&ObjectMeta) -> Option<Vec<Recorded>>,
    ) -> Result<Changed, RequestError> {
        let (name, term) = (self.name(), self.term);
        let (client, manager) = (&term.client, term.field_manager());
        let changed = finalizer::change(client, self.owner, meta, manager, |meta| {
            let children = next(meta)?;
            let mut finalizers = meta.finalizers.clone().unwrap_or_default();
            finalizers.retain(|finalizer| *finalizer != name);
            let annotation = match children.is_empty() {
                true => Value::Null,
                false => {
                    finalizers.push(name.clone());
                    serde_json::to_string(&children).ok()?.into()
                }
            };
            let mut patch = Map::new();
            patch.insert("finalizers".into(), json!(finalizers));
            patch.insert("annotations".into(), json!({name.clone(): annotation}));
            Some(patch)
        });
        let changed = changed.await?;
        match &changed {
            Changed::Written(response) => {
                let (kind, key) = (&self.owner.kind, self.owner.key.key());
                self.trace.wrote("patch", kind, key, "children");
                term.cluster.reads.primary.observe_response(response);
            }
            Changed::Gone => {
                let (key, uid) = (self.owner.key.key(), self.owner.uid());
                let version = meta.resource_version.as_deref();
                term.cluster
                    .reads
                    .primary
                    .observe_deletion(key, &uid, version);
            }
            Changed::Not => {}
        }
        Ok(changed)
    }

    /// Deletes the recorded children that this reconcile did not apply. Returns the number of
    /// children whose deletion was requested.
    pub(crate) async fn prune(&self) -> Result<usize, WriteError> {
        let trace = self.trace;
        let is_applied =
            |child: &Recorded| trace.has_applied(&child.group, &child.kind, &child.key());
        Ok(self.delete(is_applied).await?.count)
    }

    /// Deletes all children of an owner that is being deleted, and then the record and the
    /// finalizer. Returns whether all children are deleted.
    pub(crate) async fn delete_all(&self) -> Result<bool, WriteError> {
        let deletions = self.delete(|_| false).await?;
        let mut left = deletions.left.iter();
        if let Some(child) = left.find(|child| self.kind_of(child).is_none()) {
            return Err(WriteError::UndeclaredChild {
                owner: self.owner.to_string(),
                kind: child.kind.clone(),
                key: child.key(),
                annotation: self.name(),
            });
        }
        Ok(deletions.left.is_empty())
    }

    /// Deletes the recorded children for which `keep` is false, and removes deleted children from
    /// the record.
    async fn delete(&self, keep: impl Fn(&Recorded) -> bool) -> Result<Deletions, WriteError> {
        let name = self.name();
        let is_held = |meta: &ObjectMeta| finalizer::has(meta, &name);
        let Some(cached) = self.cached().filter(is_held) else {
            return Ok(Deletions::default());
        };
        let has_record = |meta: &ObjectMeta| {
            let annotations = meta.annotations.as_ref();
            annotations.is_some_and(|all| all.contains_key(&name))
        };
        let meta = match has_record(&cached) {
            true => Some(cached),
            // The finalizer is present, so the record is present too.
            false => self.live().await?.filter(is_held),
        };
        let Some(meta) = meta else {
            return Ok(Deletions::default());
        };
        let mut deletions = Deletions::default();
        let mut deleted = Vec::new();
        let children = recorded(&meta, &name).map_err(|cause| self.unreadable(cause))?;
        for child in children {
            if keep(&child) {
                continue;
            }
            match self.delete_child(&child).await? {
                ChildDeletion::Done { by_us } => {
                    deletions.count += usize::from(by_us);
                    deleted.push(child);
                }
                ChildDeletion::Pending { by_us } => {
                    deletions.count += usize::from(by_us);
                    deletions.left.push(child);
                }
                ChildDeletion::Undeclared => {
                    warn!(kind = child.kind, key = %child.key(), "the kind of a recorded child is no longer declared");
                    deletions.left.push(child);
                }
            }
        }
        let is_deleting = meta.deletion_timestamp.is_some();
        if deleted.is_empty() && !(is_deleting && deletions.left.is_empty()) {
            return Ok(deletions);
        }
        let changed = self.change(&meta, |meta| {
            // The record became invalid meanwhile: the next reconcile reports it.
            let mut children = recorded(meta, &name).ok()?;
            children.retain(|child| !deleted.contains(child));
            finalizer::has(meta, &name).then_some(children)
        });
        changed.await?;
        Ok(deletions)
    }

    fn unreadable(&self, cause: serde_json::Error) -> RecordError {
        RecordError {
            owner: self.owner.to_string(),
            annotation: self.name(),
            cause,
        }
    }

    fn kind_of(&self, child: &Recorded) -> Option<&OwnedKind> {
        let mut kinds = self.term.cluster.unowned.iter();
        kinds.find(|kind| child.is_of(kind.informer.kind()))
    }

    /// Deletes one recorded child, if its annotations name this owner and the field manager.
    async fn delete_child(&self, child: &Recorded) -> Result<ChildDeletion, WriteError> {
        let Some(declared) = self.kind_of(child) else {
            return Ok(ChildDeletion::Undeclared);
        };
        let (informer, key) = (&declared.informer, child.key());
        let kind = informer.kind();
        let mut attempts = 0;
        loop {
            // Read from the server: only a child that is known to be deleted may leave the record.
            let Some(live) = self.read(declared, child).await? else {
                return Ok(ChildDeletion::Done { by_us: false });
            };
            let meta = live.meta();
            if !has_annotations(&meta, self.owner, self.term.field_manager()) {
                return Ok(ChildDeletion::Done { by_us: false });
            }
            if meta.is_deleting() {
                return Ok(ChildDeletion::Pending { by_us: false });
            }
            let uid = meta.uid().unwrap_or_default();
            let version = meta.resource_version().unwrap_or_default();
            let sent = delete::send(
                &self.term.client,
                self.trace,
                "prune",
                kind,
                &key,
                &uid,
                &version,
            );
            match sent.await {
                Ok(deleted) => {
                    let by_us = deleted.is_some();
                    let is_terminating = matches!(deleted, Some(Deleted::Terminating(_)));
                    delete::observe(informer, &key, &uid, &version, deleted);
                    if let Some(kind) = declared.type_id {
                        self.term.cluster.applied.forget(kind, &key);
                    }
                    return Ok(match is_terminating {
                        true => ChildDeletion::Pending { by_us },
                        false => ChildDeletion::Done { by_us },
                    });
                }
                Err(error) if error.is_conflict() && attempts < ATTEMPTS => attempts += 1,
                Err(error) => return Err(error.into()),
            }
        }
    }

    async fn read(
        &self,
        declared: &OwnedKind,
        child: &Recorded,
    ) -> Result<Option<Stored>, WriteError> {
        self.trace.read_live();
        let kind = declared.informer.kind();
        let live: Bytes = match self.term.client.get(kind, &child.key()).await {
            Err(error) if error.is_not_found() => return Ok(None),
            live => live?,
        };
        let stored = declared.informer.read(&live);
        stored.map(Some).map_err(|cause| WriteError::Child {
            kind: Box::new(kind.clone()),
            key: child.key(),
            cause,
        })
    }
}
