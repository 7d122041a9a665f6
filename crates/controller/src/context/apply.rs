//! `Context::apply`: decides whether a child is created, applied or already up to date.

pub(crate) mod annotation;
pub(crate) mod applied;
pub(crate) mod desired;
mod hash;
pub(crate) mod send;

use std::any::TypeId;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use opkit_client::{Kind, Object, ObjectKey};
use serde_json::Value;

use self::annotation::has_annotations;
use self::applied::is_recognized;
use self::desired::{Desired, Relation};
use self::send::{Created, Current};
use crate::context::Context;
use crate::error::ApplyError;
use crate::object::owner::{Head, controller_of};
use crate::reads::cross_namespace::resource_of;

impl<S> Context<S> {
    /// Creates or changes `child` by forced server-side apply, with the reconciled object as its
    /// controlling owner, and returns the child as the server has stored it.
    ///
    /// No request is sent while the child is unchanged since the last apply of the same content,
    /// even if another process of this operator applied it. The comparison uses the annotation
    /// `opkit.dev/applied` of the child, which contains the field manager and a hash of the names
    /// of the applied fields.
    ///
    /// A field that is no longer in `child` is removed, fields that another client changed are set
    /// again, and fields that only other managers have set stay. A child that does not exist is
    /// created by a plain POST, so that an object that another client creates at the same moment is
    /// not taken over. If `resourceVersion` is set, the child is applied only if it has that
    /// version.
    ///
    /// # Errors
    /// [`ApplyError::NotDeclared`] if the controller does not [own](crate::Controller::owns) the
    /// kind. [`ApplyError::NotOurs`] if an object with this name exists that the reconciled object
    /// does not control; it is not changed. [`ApplyError::Deleting`] if the child is being deleted:
    /// the retry creates it again after that. [`ApplyError::Version`] if the child does not have
    /// the `resourceVersion` that is set. Also when the child is in another namespace, is a Secret
    /// with `stringData`, or a request fails.
    ///
    /// # Cancel safety
    /// If the future is dropped, the child may be created but not yet applied; the next call
    /// continues from there.
    pub async fn apply<C: Object>(&self, child: C) -> Result<Arc<C>, ApplyError> {
        let desired = self.desired(child, Relation::Owned)?;
        self.apply_desired(&desired).await
    }

    /// Returns the child in the form in which it is sent. Also records the child as applied in this
    /// reconcile, even if an error is returned: a child that could not be applied must not be
    /// pruned.
    pub(crate) fn desired<C: Object>(
        &self,
        child: C,
        relation: Relation,
    ) -> Result<Desired, ApplyError> {
        let (kind, key) = (Kind::of::<C>(), ObjectKey::of(child.meta()));
        let namespace = self.owner.key.namespace.as_deref();
        let applied = key
            .clone()
            .or_namespace(namespace.filter(|_| kind.namespaced));
        self.trace.applied(&kind, &applied);
        let json = |cause| ApplyError::Json {
            kind: Box::new(Kind::of::<C>()),
            key,
            cause,
        };
        let value = serde_json::to_value(&child).map_err(json)?;
        let manager = self.field_manager();
        let desired = Desired::new(&self.owner, manager, kind, value, relation)?;
        let reads = &self.term.cluster.reads;
        let is_owned = relation != Relation::Unowned;
        let resource = resource_of(&desired.kind);
        let declared = &reads.declared;
        let is_declared = match relation {
            Relation::Unowned => declared.unowned.contains(&resource),
            Relation::Once if declared.created_once.contains(&resource) => true,
            _ => declared.owned.contains(&resource),
        };
        if !is_declared {
            return Err(ApplyError::NotDeclared {
                kind: Box::new(desired.kind),
                key: desired.key,
                controller: reads.controller.name.to_string(),
                is_owned,
            });
        }
        if self.owner.uid().is_empty() {
            return Err(ApplyError::OwnerGone {
                kind: Box::new(desired.kind),
                key: desired.key,
                owner: self.owner.to_string(),
            });
        }
        Ok(desired)
    }

    pub(crate) async fn apply_desired<C: Object>(
        &self,
        desired: &Desired,
    ) -> Result<Arc<C>, ApplyError> {
        let found = match self.term.cluster.reads.lister::<C>() {
            Ok(lister) => lister.get(&desired.key).ok().flatten(),
            Err(_) => self.live_child::<C>(desired).await?,
        };
        // The cache may be stale about an object of another owner or with another version: the
        // server decides.
        let found = found.filter(|child| self.is_child(desired, child.meta()));
        let current = match found.filter(|child| desired.is_at(child.meta())) {
            Some(child) => child,
            None if desired.resource_version.is_some() => {
                match self.live_child::<C>(desired).await? {
                    Some(child) => child,
                    None => return Err(self.not_at_version(desired, None)),
                }
            }
            None => match self.create(desired).await? {
                Created::Now(response) => {
                    let head: Head = self.decode(desired, &response)?;
                    let current = Current::whole(head.metadata);
                    return self.apply_onto::<C>(desired, current).await;
                }
                Created::Before(error) => match self.live_child::<C>(desired).await? {
                    Some(child) => child,
                    // The child was deleted meanwhile: the next attempt creates it.
                    None => return Err(self.failed(desired, error)),
                },
            },
        };
        self.check(desired, current.meta())?;
        if self.is_up_to_date(desired, &current) {
            return Ok(current);
        }
        let current = Current::cached(current.meta().clone());
        self.apply_onto::<C>(desired, current).await
    }

    /// Returns an error if the existing object `current` is not a child of the reconciled object,
    /// or if it is being deleted, because a change would then be lost.
    pub(crate) fn check(&self, desired: &Desired, current: &ObjectMeta) -> Result<(), ApplyError> {
        if !self.is_child(desired, current) {
            return Err(self.not_ours(desired, current));
        }
        self.check_lives(desired, current)
    }

    /// Reports whether an object is the desired child. A child is controlled by the reconciled
    /// object; a child without an owner reference has the annotations with the owner and the field
    /// manager.
    pub(crate) fn is_child(&self, desired: &Desired, object: &ObjectMeta) -> bool {
        let object = object.into();
        match desired.relation {
            Relation::Owned | Relation::Once => self.owner.controls(&object),
            Relation::Unowned => has_annotations(&object, &self.owner, self.field_manager()),
        }
    }

    pub(crate) fn check_lives(
        &self,
        desired: &Desired,
        current: &ObjectMeta,
    ) -> Result<(), ApplyError> {
        match current.deletion_timestamp {
            None => Ok(()),
            Some(_) => Err(ApplyError::Deleting {
                kind: Box::new(desired.kind.clone()),
                key: desired.key.clone(),
                owner: self.owner.to_string(),
            }),
        }
    }

    /// Reports whether `current` is as `desired` requires, so that no request is needed. Uses the
    /// memory of applied children or, for a child that this process has not applied yet, the
    /// child's annotation and managed fields.
    fn is_up_to_date<C: Object>(&self, desired: &Desired, current: &Arc<C>) -> bool {
        let (kind, manager) = (TypeId::of::<C>(), self.field_manager());
        let (meta, applied) = (current.meta(), &self.term.cluster.applied);
        if !applied.is_new(kind, &desired.key, meta.uid.as_deref()) {
            let json = || serde_json::to_value(&**current).ok();
            return applied.is_as_applied(kind, desired, meta, manager, json);
        }
        let json = serde_json::to_value(&**current).unwrap_or(Value::Null);
        if !is_recognized(desired, meta, &json, manager) {
            return false;
        }
        if self.term.cluster.reads.lister::<C>().is_ok() {
            applied.remember(kind, desired, meta, &json, manager);
            self.drop_deleted_children();
        }
        true
    }

    pub(crate) fn not_at_version(&self, desired: &Desired, found: Option<String>) -> ApplyError {
        ApplyError::Version {
            kind: Box::new(desired.kind.clone()),
            key: desired.key.clone(),
            asked: desired.resource_version.clone().unwrap_or_default(),
            found,
        }
    }

    pub(crate) fn not_ours(&self, desired: &Desired, found: &ObjectMeta) -> ApplyError {
        ApplyError::NotOurs {
            kind: Box::new(desired.kind.clone()),
            key: desired.key.clone(),
            owner: self.owner.to_string(),
            is_owned: desired.relation != Relation::Unowned,
            controlled_by: controller_of(found)
                .map(|controller| format!("{} {}", controller.kind, controller.name)),
        }
    }
}
