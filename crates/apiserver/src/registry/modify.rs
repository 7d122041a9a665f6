//! Changes of a stored object: read, change, prepare and commit, repeated after a concurrent write.

use serde_json::Value;

use super::prepare::{Prepared, WrittenBy};
use super::{Registry, Write, rules};
use crate::kinds::Kind;
use crate::object;
use crate::status::{ApiError, ApiResult};
use crate::store::{CommitError, Committed, Expected, Stored};
use crate::target::Target;

/// Maximum number of attempts to commit a change while other clients write the same object.
const COMMIT_ATTEMPTS: usize = 5;

impl Registry {
    /// Changes a stored object. `change` returns the new object for the live object, and is called
    /// again if another client writes the object before the commit.
    pub(crate) async fn modify(
        &self,
        target: &Target,
        write: &mut Write,
        change: impl Fn(&Value) -> ApiResult<Value> + Send,
    ) -> ApiResult<Committed> {
        self.modify_by(WrittenBy::Update, target, write, change)
            .await
    }

    /// Changes a stored object like [`Self::modify`], but no field manager owns the changes.
    pub(super) async fn modify_unmanaged(
        &self,
        target: &Target,
        write: &Write,
        change: impl Fn(&Value) -> ApiResult<Value> + Send,
    ) -> ApiResult<Committed> {
        self.modify_by(WrittenBy::Storage, target, write, change)
            .await
    }

    /// Changes a stored object like [`Self::modify`], but also for a server-side apply.
    pub(super) async fn modify_by(
        &self,
        by: WrittenBy,
        target: &Target,
        write: &Write,
        change: impl Fn(&Value) -> ApiResult<Value> + Send,
    ) -> ApiResult<Committed> {
        for _ in 0..COMMIT_ATTEMPTS {
            let stored = self.stored(target)?;
            let live = self
                .read_from_storage(&target.kind, stored.decode())
                .await?;
            let new = change(&live)?;
            self.check_escalation(target, Some(&live), &new, write)?;
            let prepared = self.prepare_update(by, target, &live, new, write).await?;
            let Prepared {
                object: mut new,
                allocation,
                warnings,
            } = prepared;
            self.release_in_versions(by, target, write, (&live, &mut new))
                .await?;
            self.to_storage(&target.kind, &mut new).await?;
            let before = stored.decode();
            if !self.is_changed(&target.kind, &new, &before) {
                return Ok(Committed::unchanged(before, stored).with_warnings(warnings));
            }
            if !write.dry_run {
                self.check_size(&target.kind, &new)?;
            }
            match self.commit(target, &stored, new, write).await {
                Err(CommitError::Moved) => {}
                Err(CommitError::Missing | CommitError::Exists) => return Err(target.not_found()),
                Ok(stored) => {
                    write.charges.settle();
                    allocation.commit();
                    return Ok(stored.with_warnings(warnings));
                }
            }
        }
        Err(ApiError::modified(&target.kind, &target.name))
    }

    /// Stores `new` in place of `stored`, or removes the object if its last finalizer is gone.
    async fn commit(
        &self,
        target: &Target,
        stored: &Stored,
        new: Value,
        write: &Write,
    ) -> Result<Committed, CommitError> {
        let revision = stored.revision();
        if write.dry_run {
            return Ok(Committed::unstored(new));
        }
        if is_finished(&target.kind, &new) {
            self.store
                .remove(&target.storage(), &target.key(), revision)?;
            self.after_delete(&target.kind, &new).await;
            // The response has the version that was read; only the watch event has the version of
            // the deletion.
            return Ok(Committed::unstored(new));
        }
        let stored = self
            .store
            .put(&target.storage(), Expected::Revision(revision), new)?;
        Ok(self.after_write(&target.kind, stored).await)
    }
}

/// Reports whether an object is being deleted and has no finalizer and no grace period left.
pub(super) fn is_finished(kind: &Kind, object: &Value) -> bool {
    object::is_deleting(object)
        && object::finalizers(object).is_empty()
        && object::int(object, &["metadata", "deletionGracePeriodSeconds"]) == 0
        && (!rules::is_namespace(kind) || object::items(object, &["spec", "finalizers"]).is_empty())
}
