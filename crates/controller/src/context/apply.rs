//! `Context::apply`: bringing a child to what it shall be.

pub(crate) mod annotation;
pub(crate) mod applied;
pub(crate) mod desired;
mod hash;

use std::any::TypeId;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use opkit_client::{Kind, Object, ObjectKey, Patch, RequestError, WriteOptions};
use serde_json::Value;
use tracing::debug;

use crate::context::Context;
use crate::context::apply::annotation::is_marked;
use crate::context::apply::applied::is_recognised;
use crate::context::apply::desired::{Desired, Relation, upgrade_patch};
use crate::error::ApplyError;
use crate::object::owner::{Head, controller_of};
use crate::reads::cross_namespace::resource_of;

/// Whether a child had to be created.
pub(crate) enum Created {
    /// The child was created just now; contains the response.
    Now(bytes::Bytes),
    /// There is one already, according to the server.
    Before(RequestError),
}

/// A child before it is applied.
struct Current {
    meta: ObjectMeta,
    /// Whether its `managedFields` are all there: the cache keeps only our own.
    is_whole: bool,
}

impl Current {
    fn whole(meta: ObjectMeta) -> Self {
        Self {
            meta,
            is_whole: true,
        }
    }

    fn cached(meta: ObjectMeta) -> Self {
        Self {
            meta,
            is_whole: false,
        }
    }
}

impl<S> Context<S> {
    /// Brings `child` to what is given here, by forced server-side apply with the reconciled object
    /// as its controlling owner, and answers the child as it now is.
    ///
    /// Nothing is sent while the child still reads as the server answered the last application of
    /// the same content, also by a process before this one: the child carries the annotation
    /// `opkit.dev/applied`, the field manager and a hash of the names of the applied fields. A
    /// field that is no longer given is removed, drift is corrected, and fields of others are left
    /// alone. A child that does not exist is created by a plain POST, so that an object of somebody
    /// else that appears at the same moment is not taken over. With `resourceVersion` set it is
    /// applied at that version or not at all.
    ///
    /// # Errors
    /// [`ApplyError::NotDeclared`] if the controller does not [own](crate::Controller::owns) the
    /// kind. [`ApplyError::NotOurs`] if an object of that name exists that the reconciled object
    /// does not control; it is not touched. [`ApplyError::Deleting`] if it is being deleted: the
    /// retry makes it anew once it is gone. [`ApplyError::Version`] if it is not at the
    /// `resourceVersion` that is set. Also when the child is in another namespace, is a Secret with
    /// `stringData`, or a request fails.
    ///
    /// # Cancel safety
    /// Dropping the future may leave the child created but not yet applied; the next call goes on
    /// from there.
    pub async fn apply<C: Object>(&self, child: C) -> Result<Arc<C>, ApplyError> {
        let desired = self.desired(child, Relation::Owned)?;
        self.apply_desired(&desired).await
    }

    /// What shall be applied. From now on the child is one that this run applies, also if it is
    /// refused here: that is no reason to prune it.
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
        let declared = match is_owned {
            true => &reads.declared.owned,
            false => &reads.declared.unowned,
        };
        if !declared.contains(&resource_of(&desired.kind)) {
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
        // What the cache says of a stranger, or of another version, may be old: the server decides.
        let found = found.filter(|child| self.is_ours(desired, child.meta()));
        let current = match found.filter(|child| desired.is_at(child.meta())) {
            Some(child) => child,
            None if desired.resource_version.is_some() => {
                match self.live_child::<C>(desired).await? {
                    Some(child) => child,
                    None => return Err(self.not_at_version(desired, None)),
                }
            }
            None => match self.create(desired).await? {
                Created::Now(answer) => {
                    let head: Head = self.decode(desired, &answer)?;
                    let current = Current::whole(head.metadata);
                    return self.apply_onto::<C>(desired, current).await;
                }
                Created::Before(error) => match self.live_child::<C>(desired).await? {
                    Some(child) => child,
                    // Gone again: the next attempt creates it.
                    None => return Err(self.failed(desired, error)),
                },
            },
        };
        self.check(desired, current.meta())?;
        if self.holds(desired, &current) {
            return Ok(current);
        }
        let current = Current::cached(current.meta().clone());
        self.apply_onto::<C>(desired, current).await
    }

    /// Refuses a child that is not ours, and one that is being deleted: what is applied to it would
    /// go with it.
    pub(crate) fn check(&self, desired: &Desired, current: &ObjectMeta) -> Result<(), ApplyError> {
        if !self.is_ours(desired, current) {
            return Err(self.not_ours(desired, current));
        }
        self.check_lives(desired, current)
    }

    /// Whether an object is the child that is desired: it is controlled by the reconciled object,
    /// or, of those that are not owned, it carries the marks.
    pub(crate) fn is_ours(&self, desired: &Desired, object: &ObjectMeta) -> bool {
        let object = object.into();
        match desired.relation {
            Relation::Owned | Relation::Once => self.owner.controls(&object),
            Relation::Unowned => is_marked(&object, &self.owner, self.field_manager()),
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

    /// Whether nothing needs to be sent: by what is remembered, or, after a start, by what the
    /// child shows.
    fn holds<C: Object>(&self, desired: &Desired, current: &Arc<C>) -> bool {
        let (kind, manager) = (TypeId::of::<C>(), self.field_manager());
        let (meta, applied) = (current.meta(), &self.term.cluster.applied);
        if !applied.is_new(kind, &desired.key, meta.uid.as_deref()) {
            let json = || serde_json::to_value(&**current).ok();
            return applied.holds(kind, desired, meta, manager, json);
        }
        let json = serde_json::to_value(&**current).unwrap_or(Value::Null);
        if !is_recognised(desired, meta, &json, manager) {
            return false;
        }
        if self.term.cluster.reads.lister::<C>().is_ok() {
            applied.remember(kind, desired, meta, &json, manager);
            self.drop_gone_children();
        }
        true
    }

    /// Applies onto a child that exists and is ours.
    async fn apply_onto<C: Object>(
        &self,
        desired: &Desired,
        current: Current,
    ) -> Result<Arc<C>, ApplyError> {
        let answer = self.patch(desired, current).await?;
        self.took(desired, &answer)
    }

    /// Takes in the server's answer to an application.
    pub(crate) fn took<C: Object>(
        &self,
        desired: &Desired,
        answer: &[u8],
    ) -> Result<Arc<C>, ApplyError> {
        let child: Arc<C> = Arc::new(self.decode(desired, answer)?);
        if let Ok(lister) = self.term.cluster.reads.lister::<C>() {
            lister.informer().observe_response(answer);
            let json = serde_json::to_value(&*child).unwrap_or(Value::Null);
            let manager = self.field_manager();
            let kind = TypeId::of::<C>();
            self.term
                .cluster
                .applied
                .remember(kind, desired, child.meta(), &json, manager);
            self.drop_gone_children();
        }
        Ok(child)
    }

    /// Forgets what was applied to children that are not in the cache any more.
    fn drop_gone_children(&self) {
        let declared = &self.term.cluster.reads.declared.typed;
        self.term.cluster.applied.drop_gone(|kind, key| {
            let informer = declared.get(&kind);
            informer.is_some_and(|informer| informer.stored(key).is_some())
        });
    }

    /// Creates the child, unless an object of that name exists.
    pub(crate) async fn create(&self, desired: &Desired) -> Result<Created, ApplyError> {
        let (kind, key) = (&desired.kind, &desired.key);
        let manager = self.field_manager();
        let namespace = key.namespace.as_deref();
        let options = WriteOptions::for_manager(manager);
        match self
            .term
            .client
            .create(kind, namespace, &desired.content, &options)
            .await
        {
            Ok(answer) => {
                debug!(kind = kind.kind, %key, "created");
                self.trace.wrote("create", kind, key, "");
                Ok(Created::Now(answer))
            }
            Err(error) if error.is_already_exists() => Ok(Created::Before(error)),
            Err(error) => Err(self.failed(desired, error)),
        }
    }

    pub(crate) async fn live_child<C: Object>(
        &self,
        desired: &Desired,
    ) -> Result<Option<Arc<C>>, ApplyError> {
        self.trace.read_live();
        match self.term.client.get(&desired.kind, &desired.key).await {
            Ok(answer) => Ok(Some(Arc::new(self.decode(desired, &answer)?))),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(self.failed(desired, error)),
        }
    }

    /// Turns the ownership by creation into one by application, if need be, and applies.
    async fn patch(&self, desired: &Desired, current: Current) -> Result<bytes::Bytes, ApplyError> {
        let Current {
            meta: mut current,
            mut is_whole,
        } = current;
        let (client, manager) = (&self.term.client, self.field_manager());
        let (kind, key) = (&desired.kind, &desired.key);
        loop {
            if !desired.is_at(&current) {
                return Err(self.not_at_version(desired, current.resource_version));
            }
            let Some(upgrade) = upgrade_patch(&current, manager, &[]) else {
                break;
            };
            if !is_whole {
                current = self.ours(desired).await?;
                is_whole = true;
                continue;
            }
            let options = WriteOptions::for_manager(manager);
            match client
                .patch(kind, key, None, Patch::Json(&upgrade), &options)
                .await
            {
                Ok(answer) => {
                    current = self.decode::<Head>(desired, &answer)?.metadata;
                    break;
                }
                // It changed since it was read, which the test on its version found.
                Err(error) if error.is_invalid() || error.is_conflict() => {
                    let seen = current.resource_version;
                    current = self.ours(desired).await?;
                    if current.resource_version == seen {
                        return Err(self.failed(desired, error));
                    }
                }
                Err(error) => return Err(self.failed(desired, error)),
            }
        }
        let version = desired.resource_version.as_ref();
        let version = version.and(current.resource_version.as_deref());
        let body = desired.body(current.uid.as_deref(), version);
        debug!(kind = kind.kind, %key, "applying");
        let options = WriteOptions::for_manager(manager).force();
        let answer = client
            .patch(kind, key, None, Patch::Apply(&body), &options)
            .await;
        let answer = answer.map_err(|error| self.failed(desired, error))?;
        self.trace.wrote("apply", kind, key, "");
        Ok(answer)
    }

    /// The metadata of the child as the server has it, if it is ours.
    async fn ours(&self, desired: &Desired) -> Result<ObjectMeta, ApplyError> {
        self.trace.read_live();
        let live = self.term.client.get(&desired.kind, &desired.key).await;
        let live = live.map_err(|error| self.failed(desired, error))?;
        let meta = self.decode::<Head>(desired, &live)?.metadata;
        self.check(desired, &meta)?;
        Ok(meta)
    }

    pub(crate) fn decode<T: serde::de::DeserializeOwned>(
        &self,
        desired: &Desired,
        bytes: &[u8],
    ) -> Result<T, ApplyError> {
        serde_json::from_slice(bytes).map_err(|cause| ApplyError::Json {
            kind: Box::new(desired.kind.clone()),
            key: desired.key.clone(),
            cause,
        })
    }

    pub(crate) fn failed(&self, desired: &Desired, cause: RequestError) -> ApplyError {
        ApplyError::Request {
            kind: Box::new(desired.kind.clone()),
            key: desired.key.clone(),
            manager: self.field_manager().to_owned(),
            cause,
        }
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
