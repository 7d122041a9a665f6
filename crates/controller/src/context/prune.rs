//! `Context::prune`: deletes the children that the reconcile did not apply.

use std::any::TypeId;

use opkit_cache::{Informer, Stored};
use opkit_client::{Kind, ObjectKey, RequestError};

use crate::context::apply::annotation::{APPLIED, is_applied_by};
use crate::context::{Context, delete};
use crate::error::WriteError;

/// Largest number of retries if another client changes the child between read and delete.
const ATTEMPTS: usize = 10;

/// A kind of children, with its informer and its Rust type.
#[derive(Debug, Clone)]
pub(crate) struct OwnedKind {
    /// Rust type of the kind; `None` for a kind that is known only at run time.
    pub(crate) type_id: Option<TypeId>,
    pub(crate) informer: Informer,
}

/// A child to delete, with the UID and the version that were read.
struct Surplus {
    key: ObjectKey,
    uid: String,
    version: String,
}

impl<S> Context<S> {
    /// Deletes the children that this reconcile did not apply, and returns the number of deleted
    /// children. Call `prune` after everything is applied: nothing is pruned if a reconcile returns
    /// before the call.
    ///
    /// A child is an object that the reconciled object controls (see
    /// [`children`](Context::children)) and that this controller applied (the annotation
    /// `opkit.dev/applied` of the child names this controller's field manager). Its kind is one
    /// that the controller [owns](crate::Controller::owns). Objects that users or other controllers
    /// created for the reconciled object stay. A child that this reconcile failed to apply stays,
    /// and so does a child of [`create_once`](Context::create_once). Each child is deleted at the
    /// version that was read, and read again if it changed since.
    ///
    /// Children without an owner reference ([`apply_unowned`](Context::apply_unowned)) are deleted
    /// if they are recorded on the reconciled object and have both annotations.
    ///
    /// # Errors
    /// When a request fails. Children that were deleted before stay deleted.
    ///
    /// # Cancel safety
    /// The future can be dropped; deleted children stay deleted, and the next reconcile prunes the
    /// others.
    pub async fn prune(&self) -> Result<usize, WriteError> {
        let mut pruned = self.unowned().prune().await?;
        for owned in &self.term.cluster.owned {
            let dependents = owned.informer.select(&self.owner.dependents());
            for surplus in dependents
                .iter()
                .filter_map(|child| self.surplus(owned, child))
            {
                pruned += usize::from(self.prune_child(owned, surplus).await?);
            }
        }
        Ok(pruned)
    }

    /// Returns the data for the delete request if `child` is to be pruned, else `None`.
    fn surplus(&self, owned: &OwnedKind, child: &Stored) -> Option<Surplus> {
        let (key, meta) = (child.key(), child.meta());
        let controlled = self.owner.controls(&meta);
        let annotation = meta.annotation(APPLIED)?;
        let is_own = is_applied_by(&annotation, self.field_manager());
        let kind = owned.informer.kind();
        let applied = self.trace.has_applied(&kind.group, &kind.kind, &key);
        (controlled && is_own && !applied && !meta.is_deleting()).then(|| Surplus {
            key,
            uid: meta.uid().unwrap_or_default().into_owned(),
            version: meta.resource_version().unwrap_or_default().into_owned(),
        })
    }

    /// Deletes one child. Returns `false` if the child did not exist, or was no longer to be
    /// deleted.
    async fn prune_child(
        &self,
        owned: &OwnedKind,
        mut surplus: Surplus,
    ) -> Result<bool, RequestError> {
        let (kind, informer) = (owned.informer.kind(), &owned.informer);
        let mut attempts = 0;
        loop {
            let Surplus { key, uid, version } = &surplus;
            match delete::send(
                &self.term.client,
                &self.trace,
                "prune",
                kind,
                key,
                uid,
                version,
            )
            .await
            {
                Ok(deleted) => {
                    let was_there = deleted.is_some();
                    delete::observe(informer, key, uid, version, deleted);
                    if let Some(kind) = owned.type_id {
                        self.term.cluster.applied.forget(kind, key);
                    }
                    return Ok(was_there);
                }
                Err(error) if error.is_conflict() && attempts < ATTEMPTS => attempts += 1,
                Err(error) => return Err(error),
            }
            // A changed status, which is frequent, does not save the child; a changed owner or
            // annotation does.
            match self.read_again(owned, kind, key).await? {
                Some(again) if again.uid == *uid => surplus = again,
                _ => return Ok(false),
            }
        }
    }

    async fn read_again(
        &self,
        owned: &OwnedKind,
        kind: &Kind,
        key: &ObjectKey,
    ) -> Result<Option<Surplus>, RequestError> {
        self.trace.read_live();
        let live = match self.term.client.get(kind, key).await {
            Err(error) if error.is_not_found() => return Ok(None),
            live => live?,
        };
        let stored = owned.informer.read(&live).ok();
        Ok(stored.and_then(|stored| self.surplus(owned, &stored)))
    }
}
