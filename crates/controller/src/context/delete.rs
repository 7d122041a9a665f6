//! `Context::delete`: deletes an object only if it still has the version that was read.

use std::any::TypeId;
use std::sync::Arc;

use bytes::Bytes;
use opkit_cache::Informer;
use opkit_client::{DeleteOptions, Deleted, Kind, Object, ObjectKey, RequestError, RestClient};
use tracing::debug;

use crate::context::Context;
use crate::error::WriteError;
use crate::record::trace::Trace;

impl<S> Context<S> {
    /// Deletes `object` if it has not changed since it was read: UID and resourceVersion are
    /// preconditions of the request. No error is returned if the object is already deleted or being
    /// deleted. The dependents of the object are deleted in the background.
    ///
    /// # Errors
    /// When the object changed since it was read, was not read from the server, or the request
    /// fails.
    ///
    /// # Cancel safety
    /// If the future is dropped after the request is sent, the object may be deleted.
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
        let lister = self.term.cluster.reads.lister::<K>().ok();
        let informer = lister.as_ref().map(|lister| lister.informer());
        let deleted = send(
            &self.term.client,
            &self.trace,
            "delete",
            &kind,
            &key,
            uid,
            version,
        )
        .await?;
        if let Some(informer) = informer {
            observe(informer, &key, uid, version, deleted);
        }
        self.term.cluster.applied.forget(TypeId::of::<K>(), &key);
        Ok(())
    }
}

/// Deletes an object only if it has this UID and `resourceVersion`. `verb` is recorded in the trace
/// of the reconcile. Returns the response, or `None` if the object did not exist.
pub(crate) async fn send(
    client: &RestClient,
    trace: &Trace,
    verb: &'static str,
    kind: &Kind,
    key: &ObjectKey,
    uid: &str,
    version: &str,
) -> Result<Option<Deleted<Bytes>>, RequestError> {
    let options = DeleteOptions::background().uid(uid);
    let options = options.resource_version(version);
    let deleted = client.delete(kind, key, &options);
    match deleted.await {
        Err(error) if error.is_not_found() => Ok(None),
        deleted => {
            let deleted = deleted?;
            debug!(kind = kind.kind, %key, "deleted");
            trace.wrote(verb, kind, key, "");
            Ok(Some(deleted))
        }
    }
}

/// Updates the cache after a delete request. Removes the object from the cache, or stores the
/// object with its deletion timestamp if finalizers keep it.
pub(crate) fn observe(
    informer: &Informer,
    key: &ObjectKey,
    uid: &str,
    version: &str,
    deleted: Option<Deleted<Bytes>>,
) {
    match deleted {
        Some(Deleted::Terminating(object)) => informer.observe_response(&object),
        Some(Deleted::Gone) | None => informer.observe_deletion(key, uid, Some(version)),
    }
}
