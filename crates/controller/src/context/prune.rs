//! `Context::prune`: deleting the children that are no longer asked for.

use std::any::TypeId;

use opkit_cache::{Informer, Stored};
use opkit_client::{Kind, ObjectKey, RequestError};

use crate::context::apply::annotation::{APPLIED, is_of};
use crate::context::{Context, delete};
use crate::error::WriteError;

/// How often a child that changed since it was read is read again.
const ATTEMPTS: usize = 10;

/// A kind of children, without its Rust type.
#[derive(Debug, Clone)]
pub(crate) struct OwnedKind {
    /// None for a kind that has no Rust type.
    pub(crate) type_id: Option<TypeId>,
    pub(crate) informer: Informer,
}

/// A child to be deleted, as it was read.
struct Former {
    key: ObjectKey,
    uid: String,
    version: String,
}

impl<S> Context<S> {
    /// Deletes the children that this run did not apply, and answers how many there were. Call it
    /// when everything is applied: a run that returns before prunes nothing.
    ///
    /// Children are the objects, of the kinds that the controller [owns](crate::Controller::owns),
    /// that the reconciled object controls (as [`children`](Context::children) returns them) and
    /// that carry the mark of this controller (the annotation `opkit.dev/applied` with its field
    /// manager), so objects that users, or other controllers of the operator, made for it stay.
    /// Each is deleted as it was read, and read again if it has changed since. A child whose
    /// application failed in this run stays, and so does one of
    /// [`create_once`](Context::create_once). Of children without an owner reference
    /// ([`apply_unowned`](Context::apply_unowned)), those go that are recorded on the reconciled
    /// object and carry both marks.
    ///
    /// # Errors
    /// When a request fails. Children before it are deleted then.
    ///
    /// # Cancel safety
    /// May be dropped; what was deleted stays deleted, and the next run prunes the rest.
    pub async fn prune(&self) -> Result<usize, WriteError> {
        let mut pruned = self.unowned().prune().await?;
        for owned in &self.term.cluster.owned {
            let former = owned.informer.select(&self.owner.dependents());
            for former in former.iter().filter_map(|child| self.former(owned, child)) {
                pruned += usize::from(self.prune_child(owned, former).await?);
            }
        }
        Ok(pruned)
    }

    /// What to delete, if the child is one to delete.
    fn former(&self, owned: &OwnedKind, child: &Stored) -> Option<Former> {
        let (key, meta) = (child.key(), child.meta());
        let controlled = self.owner.controls(&meta);
        let mark = meta.annotation(APPLIED)?;
        let marked = is_of(&mark, self.field_manager());
        let kind = owned.informer.kind();
        let applied = self.trace.has_applied(&kind.group, &kind.kind, &key);
        (controlled && marked && !applied && !meta.is_deleting()).then(|| Former {
            key,
            uid: meta.uid().unwrap_or_default().into_owned(),
            version: meta.resource_version().unwrap_or_default().into_owned(),
        })
    }

    /// Deletes one child; whether it was there and still one to delete.
    async fn prune_child(
        &self,
        owned: &OwnedKind,
        mut former: Former,
    ) -> Result<bool, RequestError> {
        let (kind, informer) = (owned.informer.kind(), &owned.informer);
        let mut attempts = 0;
        loop {
            let Former { key, uid, version } = &former;
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
            // Its status changes often, which is no reason to let it stay; its owner or its mark
            // is.
            match self.read_again(owned, kind, key).await? {
                Some(again) if again.uid == *uid => former = again,
                _ => return Ok(false),
            }
        }
    }

    async fn read_again(
        &self,
        owned: &OwnedKind,
        kind: &Kind,
        key: &ObjectKey,
    ) -> Result<Option<Former>, RequestError> {
        self.trace.read_live();
        let live = match self.term.client.get(kind, key).await {
            Err(error) if error.is_not_found() => return Ok(None),
            live => live?,
        };
        let stored = owned.informer.read(&live).ok();
        Ok(stored.and_then(|stored| self.former(owned, &stored)))
    }
}
