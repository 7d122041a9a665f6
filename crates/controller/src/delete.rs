//! `Context::delete`: removing an object that was read, and no other.

use std::any::TypeId;
use std::sync::Arc;

use bytes::Bytes;
use opkit_cache::Informer;
use opkit_client::{Kind, Object, ObjectKey, RequestError};
use tracing::debug;

use crate::{Context, WriteError};

impl<S> Context<S> {
    /// Deletes `object` if it still is what was read: its UID and resourceVersion are sent along.
    /// An object that is gone, or being deleted, already is no error. Its dependents are deleted in
    /// the background.
    ///
    /// # Errors
    /// When the object changed since it was read, does not come from the server, or the request
    /// fails.
    ///
    /// # Cancel safety
    /// Once the request is sent, the object may be deleted although the future is dropped.
    pub async fn delete<K: Object>(&self, object: &Arc<K>) -> Result<(), WriteError> {
        let meta = object.meta();
        let (kind, key) = (Kind::of::<K>(), ObjectKey::of(meta));
        let (Some(uid), Some(version)) = (&meta.uid, &meta.resource_version) else {
            return Err(WriteError::NotRead {
                kind: Box::new(kind),
                key,
            });
        };
        if meta.deletion_timestamp.is_some() {
            return Ok(());
        }
        let lister = self.shared.reads.lister::<K>().ok();
        let informer = lister.as_ref().map(|lister| lister.informer());
        let answer = self.send_delete(&kind, &key, uid, version).await?;
        self.deleted(Some(TypeId::of::<K>()), informer, &key, uid, answer);
        Ok(())
    }

    /// Deletes an object at a version; the answer, if it was there.
    pub(crate) async fn send_delete(
        &self,
        kind: &Kind,
        key: &ObjectKey,
        uid: &str,
        version: &str,
    ) -> Result<Option<Bytes>, RequestError> {
        let client = &self.shared.client;
        match client.delete(kind, key, Some(uid), Some(version)).await {
            Err(error) if error.is_not_found() => Ok(None),
            answer => {
                let answer = answer?;
                debug!(kind = kind.kind, %key, "deleted");
                self.run.wrote("delete", kind, key, "");
                Ok(Some(answer))
            }
        }
    }

    /// Takes in the answer to a deletion.
    pub(crate) fn deleted(
        &self,
        kind: Option<TypeId>,
        informer: Option<&Informer>,
        key: &ObjectKey,
        uid: &str,
        answer: Option<Bytes>,
    ) {
        if let Some(kind) = kind {
            self.shared.applied.forget(kind, key);
        }
        let Some(informer) = informer else {
            return;
        };
        // An object that has finalizers is answered and lives on; else a status is.
        let lives = answer.and_then(|answer| informer.read(&answer).ok());
        match lives.filter(|object| object.meta().is_deleting()) {
            Some(object) => informer.observe(&object),
            None => informer.observe_deletion(key, uid),
        }
    }
}
